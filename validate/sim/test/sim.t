#!/bin/sh
# rg_sim: sound machines break nothing, each planted bug is found.
. "$(dirname "$0")/../../../scripts/test/tap.sh"
sim=$RG_BUILD_DIR/validate/rg_sim

for ranks in 2 3 4 5 8 16; do
    output=$("$sim" --seeds 2000 --ranks $ranks)
    [ "$(echo "$output" | tail -n 1)" = "2000 passed, 0 failed, 0 skipped" ]
    tap_result $? "2000 seeds of $ranks ranks"
    tap_note "$(echo "$output" | tail -n 8 | grep seed)"
done
output=$("$sim" --seeds 100 --ranks 64)
[ "$(echo "$output" | tail -n 1)" = "100 passed, 0 failed, 0 skipped" ]
tap_result $? "100 seeds of 64 ranks"
tap_note "$(echo "$output" | tail -n 8 | grep seed)"

for plant in stale-epoch no-quorum other-rules commit-max no-first-seq local-claim \
    reuse-workspace pair-sent; do
    output=$("$sim" --seeds 2000 --ranks 16 --plant $plant)
    [ "$(echo "$output" | tail -n 1)" = "1 passed, 0 failed, 0 skipped" ]
    tap_result $? "$plant is found within 2000 seeds"
done

# A seed says all: the same run again is the same run.
"$sim" --seed 7 --ranks 9 --verbose >"$tap_work/a" 2>&1
"$sim" --seed 7 --ranks 9 --verbose >"$tap_work/b" 2>&1
cmp -s "$tap_work/a" "$tap_work/b" && [ "$(wc -l <"$tap_work/a")" -gt 5 ]
tap_result $? "a seed replays to the same story"

# The command that a finding prints finds it again.
replay=$("$sim" --seeds 2000 --plant no-quorum | sed -n 's/^# replay: rg_sim//p')
# shellcheck disable=SC2086
output=$("$sim" $replay 2>/dev/null)
echo "$output" | grep -q '^# seed'
tap_result $? "the replay command finds it again"

# The plant that is not found is a failure.
"$sim" --seeds 1 --seed 3 --ranks 2 --plant stale-epoch >"$tap_work/a"
[ $? -eq 6 ]
tap_result $? "exit 6 for a bug that is not found"

for wrong in '--nonsense' '--seeds 0' '--seeds x' '--ranks 1' \
    '--plant nothing' 'more'; do
    # shellcheck disable=SC2086
    "$sim" $wrong >/dev/null 2>"$tap_work/a"
    [ $? -eq 2 ] && [ "$(wc -l <"$tap_work/a")" -eq 1 ]
    tap_result $? "exit 2 and one line for $wrong"
done
tap_end
