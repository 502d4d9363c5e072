/*
 * Every timeout and size that can be set, in one table: the variable, its
 * default, its unit, what it bounds. ARCHITECTURE.md lists it from here.
 * `X(field, "VARIABLE", default, "unit", "meaning")`; all are uint64_t.
 */
#ifndef RG_CORE_SETTINGS_H
#define RG_CORE_SETTINGS_H

#include <stdint.h>

#define RG_SETTINGS_LIST(X)                                                    \
    X(deadline_ms, "RG_DEADLINE_MS", 10000, "ms",                              \
      "a device wait; multiplied by ranks/cores when oversubscribed")          \
    X(window_ms, "RG_WINDOW_MS", 1000, "ms",                                   \
      "reconciliation: how long the coordinator waits for answers")            \
    X(heartbeat_ms, "RG_HEARTBEAT_MS", 200, "ms", "between heartbeats")        \
    X(heartbeat_miss_ms, "RG_HEARTBEAT_MISS_MS", 3000, "ms",                   \
      "silence after which a member is unreachable")                           \
    X(isolate_ms, "RG_ISOLATE_MS", 3000, "ms",                                 \
      "with no coordinator or no end of a change, for so long beyond the "     \
      "silence and two windows: isolated")                                     \
    X(mode, "RG_MODE", 0, "0 to 2",                                            \
      "failed members: 0 leave at once, 1 leave when all ask for a change, 2 " \
      "leave when the change names them. The same at all ranks")               \
    X(bootstrap_ms, "RG_BOOTSTRAP_MS", 60000, "ms",                            \
      "start: all ranks connected and the first view active")                  \
    X(park_ms, "RG_PARK_MS", 30000, "ms",                                      \
      "who finds the group changing waits for the new plan; then the rank is " \
      "isolated")                                                              \
    X(gate_us, "RG_GATE_US", 20, "us",                                         \
      "a device wait looks at the abort word once per gate")                   \
    X(region_bytes, "RG_REGION_BYTES", 0, "bytes",                             \
      "registered region per rank and device; 0: 640M on emu, 4G on CUDA")     \
    X(workspaces, "RG_WORKSPACES", 3, "count",                                 \
      "workspace generations per communicator, 2 to 8")                        \
    X(node_ranks, "RG_NODE_RANKS", 0, "count",                                 \
      "so many slots count as one node for hierarchical algorithms; 0: those " \
      "of a host. The same at all ranks")

struct rg_settings {
#define RG_X(field, variable, value, unit, meaning) uint64_t field;
    RG_SETTINGS_LIST(RG_X)
#undef RG_X
};

/* Defaults, then the environment. RG_OK or RG_ECONFIG (logged once). */
int rg_settings_load(struct rg_settings *settings_out);

#endif
