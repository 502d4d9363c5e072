#!/bin/sh
# all_reduce_perf: what it refuses, and a small sweep with its JSON lines.
. "$(dirname "$0")/../../scripts/test/tap.sh"
perf=$RG_BUILD_DIR/bench/all_reduce_perf
json=$tap_work/rows.jsonl

# refuses CODE ARGUMENT...: the exit code, one line, no row.
refuses()
{
    wanted=$1
    shift
    tap_run "$perf" --launch local "$@"
    tap_ended "$wanted" "exit $wanted for $*" tap_is_line
}

refuses 2 --nonsense
refuses 2 word
refuses 2 -b 1G -e 8
refuses 2 -d f99
refuses 2 -o xor
refuses 2 --ranks 0
refuses 2 -i 8 -f 2
refuses 2 -G 2 -z 1
refuses 2 -n 5 -n 5
refuses 2 --algo nonsense
refuses 2 --backend legacy -G 2
refuses 2 --backend legacy --algo ring
refuses 2 --policy "$tap_work/missing"
refuses 2 --fault "at seq 1 rank 0 kill"
refuses 2 -J "$tap_work/missing/rows"
refuses 3 --compare mpi
refuses 3 --compare nccl
CUDA_VISIBLE_DEVICES=
export CUDA_VISIBLE_DEVICES
refuses 3 --device cuda

output=$("$perf" --launch local --ranks 3 -b 0 -e 4K -f 16 -d f32,bf16 -o all \
    --algo all --max-time 0.01 -J "$json" 2>&1)
tap_result $? "every algorithm sweeps on 3 ranks"
case $output in
*" passed, 0 failed, 0 skipped
pass: exit 0") tap_result 0 "the last two lines are the verdict" ;;
*) tap_result 1 "the last two lines are the verdict"; tap_note "$output" ;;
esac
passed=$(echo "$output" | sed -n 's/^\([0-9]*\) passed.*/\1/p')
[ "$(grep -c '^{"kind":"row",.*"wrong":0,.*}$' "$json")" = "$passed" ] &&
    head -n 1 "$json" | grep -q '^{"kind":"env",' &&
    tail -n 1 "$json" | grep -q '^{"kind":"verdict",.*"exit":0}$'
tap_result $? "JSON lines: env, a right row per case, verdict"

output=$("$perf" --launch local --ranks 3 -b 4 -e 4K -f 7 -d u8,f64 -o all \
    --backend legacy --max-time 0.01 2>&1)
[ $? -eq 0 ] && echo "$output" | head -n 1 | grep -q 'legacy backend'
tap_result $? "the legacy backend sweeps on 3 ranks"

"$perf" --launch local --ranks 2 -b 8 -e 8 -n 30 -G 3 --max-time 0.2 >/dev/null
tap_result $? "graphs of an odd number of invocations are replayed"
tap_end
