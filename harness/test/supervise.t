#!/bin/sh
# Supervisors under a real launcher: workers die, the launcher's exit code is
# the verdict.
. "$(dirname "$0")/../../scripts/test/tap.sh"
tap_needs "${RG_MPIRUN:-mpirun}"

# ends CODE TOY [OPTION...]: three times in one job.
ends()
{
    wanted=$1 toy=$2
    shift 2
    tap_run env RG_RUN_TIMEOUT=120 "$RG_SOURCE_DIR/scripts/run" -n 3 "$@" \
        harness/test/test_supervisor "$toy"
    tap_ended "$wanted" "exit $wanted for $toy${1:+ $*}"
}

ends 0 gather
ends 0 clean
ends 0 kill
ends 0 kill_in_exchange
ends 0 stop
ends 0 rejoin
ends 0 rejoin_by_other
ends 0 exit_planned
ends 0 kill --survive
ends 6 crash
ends 6 exit
ends 6 exit --survive
ends 4 hang
ends 4 stop_for_good --survive
ends 2 no_such_toy
tap_end
