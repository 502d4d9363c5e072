#!/bin/sh
# rg_validate: what it refuses, how it ends, and its JSON lines.
. "$(dirname "$0")/../../scripts/test/tap.sh"
validate=$RG_BUILD_DIR/validate/rg_validate
json=$tap_work/cases.jsonl

settings= # of the environment

# refuses CODE ARGUMENT...: the exit code and one line.
refuses()
{
    wanted=$1
    shift
    # shellcheck disable=SC2086 # one or two settings
    tap_run env $settings "$validate" --launch local "$@"
    tap_ended "$wanted" "exit $wanted for ${settings:+$settings }$*" tap_is_line
}

refuses 2 --nonsense
refuses 2 --ranks 0
refuses 2 --case 'nothing.*'
refuses 2 --list --case 'nothing.*'
refuses 2 -J "$tap_work/missing/cases"

# Variables that are wrong are named once, whatever the flag says.
ours=RG_PREFERRED_GPU_COLLECTIVE_BACKEND
theirs=MOONCAKE_PG_PREFERRED_GPU_COLLECTIVE_BACKEND
for settings in "$ours=fast" "$theirs=" "$ours=new $theirs=legacy"; do
    refuses 2 --ranks 3 --backend new --case 'results.queued'
done
tap_run env "$ours=no
such" "$validate" --launch local --ranks 3 --case 'results.queued'
tap_ended 2 "a value with a newline is told in one line" tap_is_line
settings=
CUDA_VISIBLE_DEVICES=
export CUDA_VISIBLE_DEVICES
refuses 3 --device cuda

[ "$("$validate" --list --case 'replay.*')" = \
    "$("$validate" --list | grep '^replay\.')" ]
tap_result $? "--case chooses from --list"
[ "$("$validate" --list --case 'plant.*,nothing,replay.busy,replay.p*' |
    sort)" = "$("$validate" --list | grep '^plant\.\|^replay\.p' | sort)" ]
tap_result $? "--case takes several patterns"
[ "$("$validate" --list --full | sort | uniq -d | wc -l)" -eq 0 ]
tap_result $? "names of cases are unique"

# tells LINE: it is the line before the last.
tells()
{
    [ "$(echo "$output" | tail -n 2 | head -n 1)" = "$1" ]
}

# ends CODE LINES ARGUMENT...: the exit code and the line before the last.
ends()
{
    wanted=$1 verdict=$2
    shift 2
    tap_run "$validate" --launch local "$@"
    tap_ended "$wanted" "exit $wanted, '$verdict' for $*" tells "$verdict"
}

one=results.all_reduce.auto.i8.sum.17e.out.exact
ends 0 "1 passed, 0 failed, 0 skipped" --ranks 2 --full --case $one -J "$json"
head -n 1 "$json" | grep -q '^{"kind":"env",' &&
    grep -q "^{\"kind\":\"case\",\"name\":\"$one\",\"outcome\":\"passed\"" "$json" &&
    tail -n 1 "$json" | grep -q '^{"kind":"verdict",.*"exit":0}$'
tap_result $? "JSON lines: env, a line a case, verdict"
ends 1 "0 passed, 1 failed, 0 skipped" --ranks 2 --full --case $one \
    --plant flip

# Nodes of one, two and three of four ranks.
for nodes in 1 2 3; do
    output=$(RG_NODE_RANKS=$nodes "$validate" --launch local --ranks 4 \
        --full --case 'results.all_reduce.hierarchical.f16.avg.*.in.*' 2>&1)
    tap_result $? "nodes of $nodes ranks"
    echo "$output" | grep '^not ok' | while read -r line; do
        tap_note "$line"
    done
done
ends 0 "13 passed, 0 failed, 0 skipped" --ranks 3 --backend legacy \
    --case 'results.[cqtw]*,results.refused.*'
# What is only moved, and what is at one rank only: the last one's is wrong.
for one in all_gather.auto.f8e5m2.none.17e.in all_to_all.auto.f32.none.1K.skew \
    reduce_scatter.auto.u8.bxor.1K.in_odd; do
    ends 0 "1 passed, 0 failed, 0 skipped" --ranks 3 --backend legacy \
        --full --case "results.$one.exact"
    ends 1 "0 passed, 1 failed, 0 skipped" --ranks 3 --backend legacy \
        --full --case "results.$one.exact" --plant flip
done
for one in broadcast.auto.i64.none.8K.out reduce.auto.f16.max.8K.out_odd \
    gather.auto.bf16.none.64K.in scatter.auto.u16.none.128.adjacent; do
    ends 0 "1 passed, 0 failed, 0 skipped" --ranks 3 --backend legacy \
        --full --case "results.$one.exact.last"
    ends 1 "0 passed, 1 failed, 0 skipped" --ranks 3 --backend legacy \
        --full --case "results.$one.exact.last" --plant flip
done
ends 77 "0 passed, 0 failed, 1 skipped" --ranks 2 --backend legacy \
    --case replay.policy_change.auto
ends 77 "0 passed, 0 failed, 4 skipped" --ranks 1 --case 'plant.*'
ends 77 "0 passed, 0 failed, 16 skipped" --ranks 3 --case 'hosts.*'
ends 77 "0 passed, 0 failed, 1 skipped" --ranks 4 --case 'traffic.*'

# Two nodes of two, all by the host proxy: what is sent is counted, and the log
# shows each rank's line of the matrix.
tap_run env RG_NODE_RANKS=2 RG_DISABLE_P2P_ROUTE=1 RG_LOG=info "$validate" \
    --launch local --ranks 4 --case 'traffic.*'
tap_ended 0 "bytes between nodes" \
    tap_holds 'node 1 of 2 ranks: to others 1.0000 x the buffer'
tap_holds 'regroup[2]: routes of epoch 1: hh.h'
tap_result $? "the route matrix is logged"
tap_end
