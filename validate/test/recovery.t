#!/bin/sh
# Ranks that die under a real launcher: one case of each kind.
. "$(dirname "$0")/../../scripts/test/tap.sh"
command -v "${RG_MPIRUN:-mpirun}" >/dev/null || {
    echo "1..0 # SKIP no launcher"
    exit 0
}

# recovers RANKS GLOB: the cases pass.
recovers()
{
    output=$(RG_RUN_TIMEOUT=200 "$RG_SOURCE_DIR/scripts/run" --survive \
        -n "$1" validate/rg_validate --case "recovery.$2" 2>&1)
    status=$?
    [ $status -eq 0 ]
    tap_result $? "recovery.$2 with $1 ranks"
    [ $status -eq 0 ] || tap_note "exit $status: $output"
}

recovers 2 'kill.*.eager'
recovers 3 'kill.*.replay'
recovers 3 'exit.start.*'
recovers 3 'stop.start.leaf.eager'
recovers 4 'kill.*.two.eager'
recovers 4 'kill.quiesce.*'
recovers 4 'kill.parked.*'
recovers 4 'kill.apply.coordinator.*'
recovers 3 'rejoin.ten.turns.replay'
tap_end
