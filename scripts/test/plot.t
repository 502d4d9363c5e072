#!/bin/sh
# scripts/plot-perf: draws rows, refuses what has none.
. "$(dirname "$0")/tap.sh"
plot=$RG_SOURCE_DIR/scripts/plot-perf
tap_needs gnuplot

# row DEVICE BYTES MICROSECONDS
row()
{
    printf '{"kind": "row", "collective": "all_reduce", "bytes": %s, ' "$2"
    printf '"dtype": "f32", "op": "sum", "inplace": false, "ranks": 2, '
    printf '"device": "%s", "mode": "latency", "graph": 0, ' "$1"
    printf '"algorithm": "ring", "p50_us": %s, "busbw_gbps": 1.5, ' "$3"
    printf '"peer": "mpi", "peer_p50_us": 9.0, "ratio": 1.25}\n'
}

{ row emu 8 2.5; row emu 1024 3.5; row cuda 8 1.5; } >"$tap_work/rows.jsonl"
tap_run "$plot" "$tap_work/rows.jsonl"
tap_ended 0 "rows are drawn"
[ -s "$tap_work/rows.png" ] && grep -q '</svg>' "$tap_work/rows.svg"
tap_result $? "a PNG and a whole SVG are written"
panels=$(grep -c 'Latency, device emu\|Latency, device cuda' "$tap_work/rows.svg")
[ "$panels" -eq 2 ]
tap_result $? "each device has its own panel"
grep -q '>mpi<' "$tap_work/rows.svg"
tap_result $? "the peer has its own line"

echo '{"kind": "env"}' >"$tap_work/none.jsonl"
tap_run "$plot" "$tap_work/none.jsonl"
tap_ended 2 "a file without rows is refused"
tap_run "$plot" "$tap_work/missing.jsonl"
tap_ended 2 "a missing file is a usage error"
tap_run "$plot" -o "$tap_work/no-folder/x" "$tap_work/rows.jsonl"
tap_ended 2 "a folder that is not there is a usage error" \
    tap_is_line_with no-folder
tap_end
