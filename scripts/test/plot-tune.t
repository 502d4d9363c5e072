#!/bin/sh
# scripts/plot-tune: draws a tuning, refuses what is none.
. "$(dirname "$0")/tap.sh"
plot=$RG_SOURCE_DIR/scripts/plot-tune
if ! command -v gnuplot >/dev/null 2>&1; then
    echo '1..0 # SKIP no gnuplot'
    exit 0
fi

# sample PHASE LAUNCH BYTES CANDIDATE US
sample()
{
    printf '{"kind":"sample","phase":"%s","launch":%s,"bytes":%s,' "$1" "$2" "$3"
    printf '"candidate":"%s","p50_us":%s,"samples":10}\n' "$4" "$5"
}

{
    echo '{"kind":"tune","collective":"all_reduce","dtype":"f32","ranks":4,"device":"emu"}'
    for launch in 1 2 3; do
        for size in 4096 64 512; do
            sample sweep $launch $size ring $((size + launch))
            sample sweep $launch $size oneshot+2ch $((2 * size + launch))
        done
    done
    sample prune 0 64 never 1
    sample peer 1 64 mpi 99
    sample peer 1 4096 mpi 999
    echo '{"kind":"choice","bytes":64,"candidate":"ring","p50_us":66}'
    echo '{"kind":"crossover","low":64,"bound":100}'
} >"$tap_work/raw.jsonl"
"$plot" --limit 20 "$tap_work/raw.jsonl" >"$tap_work/log" 2>&1
tap_result $? "a tuning is drawn"
[ "$(cat "$tap_work/log")" = "$tap_work/raw.png" ]
tap_result $? "without a complaint"
tap_note "$(grep -v png "$tap_work/log")"
[ -s "$tap_work/raw.png" ] && grep -q '</svg>' "$tap_work/raw.svg"
tap_result $? "a PNG and a whole SVG are written"
for name in ring oneshot+2ch mpi chosen hardware; do
    [ "$(grep -c ">$name<" "$tap_work/raw.svg")" -eq 2 ]
    tap_result $? "both panels show $name"
done
! grep -q '>never<' "$tap_work/raw.svg"
tap_result $? "what was only looked at is not drawn"

echo '{"kind":"tune"}' >"$tap_work/none.jsonl"
"$plot" "$tap_work/none.jsonl" >/dev/null 2>&1
[ $? -eq 2 ]
tap_result $? "a file without a sweep is refused"
nothing="$tap_work/no
file"
tap_run "$plot" "$nothing"
tap_ended 2 "a name with a newline is told in one line" tap_is_line
for file in /dev/zero "$tap_work"; do
    tap_run timeout 20 "$plot" "$file"
    tap_ended 2 "what is no regular file is refused" tap_is_line
done
for arguments in "$tap_work/missing" "--limit x $tap_work/raw.jsonl" "" "--what"; do
    # shellcheck disable=SC2086
    "$plot" $arguments >/dev/null 2>&1
    [ $? -eq 2 ]
    tap_result $? "exit 2 for '${arguments#$tap_work/}'"
done
tap_run "$plot" -o "$tap_work/no-folder/x" "$tap_work/raw.jsonl"
tap_ended 2 "a folder that is not there is a usage error" \
    tap_is_line_with no-folder
tap_run "$plot" -o "$tap_work/it's" "$tap_work/raw.jsonl"
[ "$status" -eq 0 ] && [ -s "$tap_work/it's.png" ]
tap_result $? "a quote in a name is one"
mkdir "$tap_work/a.b" && cp "$tap_work/raw.jsonl" "$tap_work/a.b/raw"
tap_run "$plot" "$tap_work/a.b/raw"
[ "$status" -eq 0 ] && [ -s "$tap_work/a.b/raw.png" ]
tap_result $? "a point in a folder's name is no ending"
tap_end
