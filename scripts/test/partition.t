#!/bin/sh
# A few cases on several hosts: one is cut off, two are split off, one is
# stopped; ranks die while packets are lost; bytes between hosts are counted.
# All of them: README.md, "More than one machine".
# shellcheck source=scripts/test/tap.sh
. "$(dirname "$0")/tap.sh"

# on_hosts NAME CASES ARGUMENT...: all of the cases pass, and none is skipped,
# on hosts that `scripts/hosts run ARGUMENT...` makes.
on_hosts()
{
    name=$1 cases=$2
    shift 2
    tap_run env RG_RUN_TIMEOUT=120 "$RG_SOURCE_DIR/scripts/hosts" run "$@" \
        --survive -- validate/rg_validate --case "$cases"
    if [ "$status" -eq 3 ]; then
        tap_result 0 "$name # SKIP $(echo "$output" | tail -n 1)"
    else
        tap_ended 0 "$name" tap_holds " 0 failed, 0 skipped"
    fi
}

on_hosts "a majority goes on without hosts that are cut off, split off, stopped" \
    'hosts.cut.start.leaf.eager,hosts.split.start.coordinator.eager,hosts.stop.start.leaf.eager' 4
on_hosts "ranks die on a network that loses packets" \
    'recovery.kill.mid.leaf.eager,recovery.kill.start.coordinator.eager' \
    4 --loss 1 --rate 400
on_hosts "two hosts of two ranks send each byte across once" \
    'traffic.hierarchical,recovery.break.mid.leaf.eager' 2 --ppn 2
tap_end
