#!/bin/sh
# transfer_perf: what it refuses, and a small sweep of each route with its JSON
# lines.
. "$(dirname "$0")/../../scripts/test/tap.sh"
perf=$RG_BUILD_DIR/bench/transfer_perf
json=$tap_work/rows.jsonl

# refuses CODE ARGUMENT...: the exit code, one line, no row.
refuses()
{
    tap_refuses "$perf" "$@"
}

refuses 2 --nonsense
refuses 2 -b 1K -e 8
refuses 2 -f 1
refuses 2 -l 3
refuses 2 -l 33
refuses 2 -p reduce
refuses 2 --min-ratio 1
refuses 2 --compare nccl
refuses 2 --ranks 2 --peer 2
refuses 2 --ranks 1
refuses 2 --ranks 2 -J "$tap_work/missing/rows"
refuses 2 --device cuda --compare mpi
refuses 3 --ranks 2 --compare mpi
CUDA_VISIBLE_DEVICES=
export CUDA_VISIBLE_DEVICES
refuses 3 --ranks 2 --device cuda

# sweeps ROUTE SWITCH
sweeps()
{
    output=$(env "$2" "$perf" --launch local --ranks 3 --peer 2 -b 1 -e 1K \
        -f 1024 -l 1,32 -c 1 -n 20 --max-time 0.01 -J "$json" 2>&1)
    tap_result $? "a sweep by $1"
    [ "$(echo "$output" | tail -n 2 | head -n 1)" = \
        "8 passed, 0 failed, 0 skipped" ]
    tap_result $? "$1: eight rows"
    [ "$(grep -c "^{\"kind\":\"transfer\",.*\"route\":\"$1\",.*\"wrong\":0," \
        "$json")" -eq 8 ] &&
        head -n 1 "$json" | grep -q '^{"kind":"env",' &&
        tail -n 1 "$json" | grep -q '^{"kind":"verdict",.*"exit":0}$'
    tap_result $? "$1: JSON lines: env, a right row per case, verdict"
}
sweeps p2p RG_DISABLE_P2P_ROUTE=0
sweeps proxy RG_DISABLE_P2P_ROUTE=1

tap_run "$perf" --launch local --ranks 2 -b 512M -e 512M -l 1
tap_ended 77 "what the workspace has no room for is skipped"

# Without a route there is nothing to measure.
tap_run env RG_DISABLE_P2P_ROUTE=1 RG_DISABLE_HOST_PROXY_ROUTE=1 "$perf" \
    --launch local --ranks 2 -b 8 -e 8
tap_ended 3 "exit 3 without a route"
tap_end
