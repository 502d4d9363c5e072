#!/bin/sh
# scripts/hosts: usage, exit codes, cables, and that nothing is left behind.
# shellcheck source=scripts/test/tap.sh
. "$(dirname "$0")/tap.sh"
hosts=$RG_SOURCE_DIR/scripts/hosts
# Nobody else's.
RG_HOSTS_NAME=test-$$
export RG_HOSTS_NAME

# refused CODE NAME TEXT ARGUMENT...: one line that holds TEXT.
refused()
{
    wanted=$1 name=$2 text=$3
    shift 3
    tap_run "$hosts" "$@"
    tap_ended "$wanted" "$name" tap_is_line_with "$text"
}

refused 2 "a command is needed" "not ''"
refused 2 "an unknown command is a usage error" "'ping'" ping
refused 2 "up needs a number of hosts" "1 to 100 hosts" up
refused 2 "0 hosts are a usage error" "'0'" up 0
refused 2 "101 hosts are a usage error" "'101'" run 101 true
refused 2 "up takes no program" "'true'" up 2 true
refused 2 "run needs a program" "no program" run 2 --
refused 2 "an unknown option is a usage error" "'--nonsense'" \
    run 2 --nonsense true
refused 2 "0 ranks a host are a usage error" "--ppn" run 2 --ppn 0 true
refused 2 "a word for a rate is a usage error" "'fast'" up 2 --rate fast
refused 2 "no packet but a lost one is a usage error" "'100'" up 2 --loss 100
refused 2 "a negative delay is a usage error" "'-1'" up 2 --delay -1
refused 2 "a missing value is a usage error" "--delay" up 2 --delay
refused 2 "links of hosts that are up stay" "run N" run --loss 1 true
refused 2 "cut needs a host" "wants a host" cut
refused 2 "split needs a host" "wants a host" split
refused 2 "exec needs a command" "a command" exec h1
refused 2 "status takes nothing" "'all'" status all
tap_run env RG_HOSTS_NAME=a.b "$hosts" down
tap_ended 2 "a name has no dots" tap_is_line_with RG_HOSTS_NAME
tap_run "$hosts" --help
tap_ended 0 "--help explains" tap_holds "scripts/hosts run N"

reason=
if [ "$(id -u)" -ne 0 ]; then
    refused 3 "other users are told that it needs root" "needs root" up 2
    reason="needs root"
elif ! command -v ip >/dev/null || ! command -v flock >/dev/null; then
    reason="no ip (iproute2) or no flock (util-linux)"
elif ! unshare -n true 2>/dev/null; then
    refused 3 "what cannot be made is told" "cannot make" up 2
    reason="cannot make network namespaces (CAP_SYS_ADMIN)"
fi
if [ -n "$reason" ]; then
    tap_result 0 "hosts are made # SKIP $reason"
    tap_end
fi
trap '"$hosts" down; rm -rf "$tap_work"' EXIT

# Tests of what is there. A name's hosts are gone with their processes.
is_gone()
{
    [ -z "$(find /run/regroup-hosts /run/netns -name "$1" \
        -o -name "regroup.$1.*")" ] &&
        ! grep -qsz "^RG_HOSTS_TEST=$1\$" /proc/[0-9]*/environ
}

# eventually TEST...: it holds before long; for what ends by itself.
eventually()
{
    limit=$(($(date +%s) + 20))
    until "$@"; do
        [ "$(date +%s)" -lt $limit ] || return 1
        sleep 0.1
    done
}

# h1 gets an answer from h2: that nobody listens there.
reaches()
{
    "$hosts" exec h1 timeout 2 bash -c '</dev/tcp/h2/9' 2>&1 |
        grep -q "refused"
}

does_not_reach()
{
    ! reaches
}

# ---- hosts that stay --------------------------------------------------------

refused 2 "no host is cut before there are some" "are up" cut h1
refused 2 "nothing runs before there are hosts" "are up" run true
tap_run "$hosts" up 2
tap_ended 0 "hosts are made"
refused 2 "a name is given once" "up already" up 2
tap_run "$hosts" status
tap_ended 0 "status shows them" tap_holds "h2 10.77.0.2 up"
tap_run "$hosts" exec h2 sh -c 'hostname; exit 7'
tap_ended 7 "a command runs on a host and its exit code is passed on" \
    tap_is_line_with h2
networks=$(for host in h1 h2 head; do
    "$hosts" exec $host stat -L -c %i /proc/self/ns/net
done | sort -u | wc -l)
[ "$networks" -eq 3 ]
tap_result $? "each has a network of its own"
refused 2 "an unknown host is not cut" "'h3'" cut h3
refused 2 "the head is not cut" "'head'" cut head
reaches
tap_result $? "a host reaches another"
"$hosts" cut h2
does_not_reach
tap_result $? "a host that is cut is not reached"
tap_run "$hosts" status
tap_ended 0 "status shows the cut" tap_holds "h2 10.77.0.2 cut"
"$hosts" heal h2
eventually reaches
tap_result $? "a host that is healed is reached"
"$hosts" split h2
does_not_reach
tap_result $? "a host that is split off is not reached"
tap_run "$hosts" status
tap_ended 0 "status shows the split" tap_holds "h2 10.77.0.2 split"
"$hosts" split h1
eventually reaches
tap_result $? "hosts that are split off reach each other"
"$hosts" heal h1
"$hosts" heal h2
eventually reaches
tap_result $? "so do hosts that are healed"
"$hosts" exec h1 env RG_HOSTS_TEST="$RG_HOSTS_NAME" sleep 60 &
eventually grep -qsz "^RG_HOSTS_TEST=$RG_HOSTS_NAME\$" /proc/[0-9]*/environ
"$hosts" down
is_gone "$RG_HOSTS_NAME"
tap_result $? "down leaves nothing behind"
tap_run "$hosts" up 2 --rate 100
if [ "$status" -eq 3 ]; then
    tap_result 0 "a rate is set # SKIP $output"
else
    tap_ended 0 "a rate is set, and it says by what" tap_holds "rate 100"
fi
"$hosts" down

# ---- runs -------------------------------------------------------------------

case $(mpirun --version 2>/dev/null) in
*"Open MPI) 4."*) ;;
*)
    tap_result 0 "programs run # SKIP no mpirun of Open MPI 4"
    tap_end
    ;;
esac
cat >"$tap_work/program" <<'EOP'
#!/bin/sh
echo "rank $OMPI_COMM_WORLD_RANK $(hostname) $RG_HOSTS_TEST"
[ "$1" != wait ] || exec sleep 100
exit "$1"
EOP
chmod +x "$tap_work/program"

tap_run "$hosts" run 2 -- "$tap_work/program" 5
tap_ended 5 "the program's exit code is the exit code"
is_gone "$RG_HOSTS_NAME"
tap_result $? "its hosts are gone"
RG_HOSTS_TEST=there
export RG_HOSTS_TEST
tap_run "$hosts" run 2 --ppn 2 "$tap_work/program" 0
tap_ended 0 "ranks are dealt out host by host" eval \
    'tap_holds "rank 1 h1" && tap_holds "rank 2 h2"'
tap_holds "rank 3 h2 there"
tap_result $? "they have the environment"

# waits ARGUMENT...: a run that does not end; $run, once both ranks are there.
waits()
{
    RG_HOSTS_TEST=$RG_HOSTS_NAME
    "$hosts" run "$@" "$tap_work/program" wait >"$tap_work/said" 2>&1 &
    run=$!
    eventually both_there
}

# shellcheck disable=SC2317 # eventually
both_there()
{
    [ "$(grep -c "^rank" "$tap_work/said")" -eq 2 ]
}

waits 2
tap_result $? "a run that waits has begun"
kill -TERM $run
wait $run
[ $? -eq 143 ] && eventually is_gone "$RG_HOSTS_NAME"
tap_result $? "SIGTERM ends a run and leaves nothing behind"
waits 2
kill -KILL $run
wait $run 2>/dev/null
eventually is_gone "$RG_HOSTS_NAME"
tap_result $? "nor does SIGKILL"

"$hosts" up 2
cat >"$tap_work/mpirun" <<'EOP'
#!/bin/sh
[ "$1" = --version ] && exec mpirun --version
echo "$@"
EOP
chmod +x "$tap_work/mpirun"
tap_run env RG_MPIRUN="$tap_work/mpirun" "$hosts" run --survive true
tap_ended 0 "with --survive ranks may die" \
    tap_holds orte_allowed_exit_without_sync
# No process of it is left.
has_ended()
{
    ! grep -qsz "^RG_HOSTS_TEST=$RG_HOSTS_NAME\$" /proc/[0-9]*/environ
}
waits
kill -TERM $run
wait $run
[ $? -eq 143 ] && eventually has_ended && reaches
tap_result $? "hosts that stay outlive a run that is ended"
tap_end
