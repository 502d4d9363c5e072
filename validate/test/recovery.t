#!/bin/sh
# Fault plans of a user's own; scripts/check plays those of rg_validate.
. "$(dirname "$0")/../../scripts/test/tap.sh"
tap_needs "${RG_MPIRUN:-mpirun}"

# recovers RANKS GLOB [OPTION...]: the cases pass.
recovers()
{
    ranks=$1 glob=$2
    shift 2
    tap_run env RG_RUN_TIMEOUT=200 "$RG_SOURCE_DIR/scripts/run" --survive \
        -n "$ranks" validate/rg_validate --case "recovery.$glob" "$@"
    tap_ended 0 "recovery.$glob with $ranks ranks${1:+ $*}"
}

# says CODE TEXT ARGUMENT...: the exit code, and one line with the text.
says()
{
    wanted=$1 text=$2
    shift 2
    tap_run "$RG_BUILD_DIR/validate/rg_validate" "$@"
    tap_ended "$wanted" "exit $wanted and '$text' for $*" \
        tap_is_line_with "$text"
}

says 2 'line 1, column 15' --fault 'at seq 5 rank kill'
says 2 'there is no fault' --fault ''
says 2 'there is no fault' --fault '# none'
says 2 "cannot read '$tap_work'" --fault "$tap_work"
says 2 "cannot read '/nonexistent': No such file" --fault /nonexistent
says 2 "cannot read 'plan.txt': No such file" --fault plan.txt
says 2 'same fault as in entry 1' --fault \
    'at seq 5 rank 1 kill; at seq 5 rank 1 kill'
says 2 'too long' --fault 'at seq 5 rank 1 stop 999999999s'
says 2 'nothing in the plan ends' --fault 'at seq 5 rank 1 rejoin'
says 2 'nothing in the plan ends' --fault \
    'at seq 5 rank 2 kill; at seq 7 rank 1 rejoin'
says 2 "'at seq 9 rank 1 rejoin': nothing" --fault \
    'at seq 5 rank 1 kill; at seq 7 rank 1 rejoin; at seq 9 rank 1 rejoin'
says 2 'no such rank' --launch local --ranks 2 --fault 'at seq 5 rank 2 kill'
says 2 'no such rank' --launch local --ranks 2 --fault 'at seq 5 link 0->2 drop'
says 2 'cannot be delayed' --fault 'at seq 5 link 0->1 delay 2ms'
says 2 'only hosts of' --fault 'at seq 5 rank 1 cut 2s'
echo 'at seq 7 phase start rank 1 kill' >"$tap_work/plan"
says 2 'would overwrite' --fault "$tap_work/plan" -J "$tap_work/plan"
recovers 3 'plan.*' --fault 'at seq 7 phase start rank 1 kill'
# What cannot happen must not pass: the plan asks for what never comes.
tap_run env RG_RUN_TIMEOUT=100 "$RG_SOURCE_DIR/scripts/run" --survive -n 2 \
    validate/rg_validate --fault 'at view 9 phase apply rank 1 kill' \
    --case '*.eager'
tap_ended 6 "a fault that was not injected fails the case" \
    tap_holds 'not injected: at view 9'
tap_run env RG_RUN_TIMEOUT=100 "$RG_SOURCE_DIR/scripts/run" --survive -n 2 \
    validate/rg_validate --case '*.eager' --fault \
    'at seq 3 phase start rank 0 kill; at seq 3 phase start rank 1 exit'
tap_ended 6 "a plan that nobody survives fails the case" \
    tap_holds_once 'no survivor'


# loses RANK: that rank of the job, no worker, is killed in mid-run; the others
# say who it was and how many cases there were, and the run ends.
cat >"$tap_work/validate" <<'EOP'
#!/bin/sh
echo $$ >"$RG_TEST_PIDS/${OMPI_COMM_WORLD_RANK-${PMI_RANK-}}"
exec "$RG_BUILD_DIR/validate/rg_validate" "$@"
EOP
chmod +x "$tap_work/validate"
loses()
{
    : >"$tap_work/out"
    env RG_TEST_PIDS="$tap_work" RG_RUN_TIMEOUT=100 \
        "$RG_SOURCE_DIR/scripts/run" --survive -n 4 "$tap_work/validate" \
        --case 'recovery.*' >"$tap_work/out" 2>"$tap_work/err" &
    run=$!
    while ! grep -q '^ok 2 ' "$tap_work/out" && kill -0 $run; do
        sleep 0.1
    done
    kill -KILL "$(cat "$tap_work/$1")"
    wait $run
    status=$?
    output=$(grep -v '^ok ' "$tap_work/out")
    tap_ended 6 "exit 6 when rank $1 of the job is killed" \
        tap_holds "rank $1 has died"
    tap_holds ' passed, 1 failed, 0 skipped'
    tap_result $? "and a sum of the cases"
    output=$(cat "$tap_work/err")
    tap_holds_once "run: rank $1 was killed"
    tap_result $? "and a line of the launcher"
}
loses 0
loses 2
tap_end
