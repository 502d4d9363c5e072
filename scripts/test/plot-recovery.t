#!/bin/sh
# scripts/plot-recovery: draws injections, refuses what has none.
. "$(dirname "$0")/tap.sh"
plot=$RG_SOURCE_DIR/scripts/plot-recovery
tap_needs gnuplot

# row DEVICE RANKS TOTAL: an injection whose phases end evenly spaced.
row()
{
    printf '{"kind":"recovery","device":"%s","ranks":%s,' "$1" "$2"
    printf '"fault":"kill","mode":"replay","bytes":8,'
    at=0
    for phase in detect safepoint quiesce view rebuild first_good; do
        at=$((at + $3 / 6))
        printf '"%s_through_us":%s,' $phase $at
    done
    printf '"total_us":%s}\n' "$3"
}

{ row emu 4 6000; row emu 4 9000; row emu 2 3000; row cuda 2 30000; } \
    >"$tap_work/rows.jsonl"
tap_run "$plot" "$tap_work/rows.jsonl"
tap_ended 0 "injections are drawn"
[ -z "$output" ] || [ "$output" = "$tap_work/rows.png" ]
tap_result $? "without a complaint"
tap_note "$(echo "$output" | grep -v png)"
[ -s "$tap_work/rows.png" ] && grep -q '</svg>' "$tap_work/rows.svg"
tap_result $? "a PNG and a whole SVG are written"
[ "$(grep -c 'Recovery, device emu\|Recovery, device cuda' \
    "$tap_work/rows.svg")" -eq 2 ]
tap_result $? "each device has its own panel"
grep -q '>4 ranks<' "$tap_work/rows.svg" && grep -q '>2 ranks<' \
    "$tap_work/rows.svg"
tap_result $? "runs are told apart by what differs"

echo '{"kind":"env"}' >"$tap_work/none.jsonl"
tap_run "$plot" "$tap_work/none.jsonl"
tap_ended 2 "a file without injections is refused"
tap_run "$plot" "$tap_work/missing.jsonl"
tap_ended 2 "a missing file is a usage error"
tap_run "$plot" -o "$tap_work/no-folder/x" "$tap_work/rows.jsonl"
tap_ended 2 "a folder that is not there is a usage error" \
    tap_is_line_with no-folder
tap_end
