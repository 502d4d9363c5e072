#!/bin/sh
# Fault plans of a user's own; scripts/check plays those of rg_validate.
. "$(dirname "$0")/../../scripts/test/tap.sh"
command -v "${RG_MPIRUN:-mpirun}" >/dev/null || {
    echo "1..0 # SKIP no launcher"
    exit 0
}

# recovers RANKS GLOB [OPTION...]: the cases pass.
recovers()
{
    ranks=$1 glob=$2
    shift 2
    output=$(RG_RUN_TIMEOUT=200 "$RG_SOURCE_DIR/scripts/run" --survive \
        -n "$ranks" validate/rg_validate --case "recovery.$glob" "$@" 2>&1)
    status=$?
    [ $status -eq 0 ]
    tap_result $? "recovery.$glob with $ranks ranks${1:+ $*}"
    [ $status -eq 0 ] || tap_note "exit $status: $output"
}

# says CODE TEXT ARGUMENT...: the exit code, and one line with the text.
says()
{
    wanted=$1 text=$2
    shift 2
    output=$("$RG_BUILD_DIR/validate/rg_validate" "$@" 2>&1)
    status=$?
    [ $status -eq "$wanted" ] && [ "$(echo "$output" | wc -l)" -eq 1 ] &&
        echo "$output" | grep -q "$text"
    tap_result $? "exit $wanted and '$text' for $*"
    [ $status -eq "$wanted" ] || tap_note "exit $status: $output"
}

says 2 'line 1, column 15' --fault 'at seq 5 rank kill'
says 2 'cannot be delayed' --fault 'at seq 5 link 0->1 delay 2ms'
recovers 3 'plan.*' --fault 'at seq 7 phase start rank 1 kill'
# What cannot happen must not pass: the plan asks for what never comes.
output=$(RG_RUN_TIMEOUT=100 "$RG_SOURCE_DIR/scripts/run" --survive -n 2 \
    validate/rg_validate --fault 'at view 9 phase apply rank 1 kill' \
    --case '*.eager' 2>&1)
[ $? -eq 6 ] && echo "$output" | grep -q 'not injected: at view 9'
tap_result $? "a fault that was not injected fails the case"
output=$(RG_RUN_TIMEOUT=100 "$RG_SOURCE_DIR/scripts/run" --survive -n 2 \
    validate/rg_validate --case '*.eager' --fault \
    'at seq 3 phase start rank 0 kill; at seq 3 phase start rank 1 exit' 2>&1)
[ $? -eq 6 ] && [ "$(echo "$output" | grep -c 'no survivor')" -eq 1 ]
tap_result $? "a plan that nobody survives fails the case"
tap_end
