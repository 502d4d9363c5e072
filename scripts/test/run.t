#!/bin/sh
# scripts/run: exit codes, where programs are found, the time limit.
. "$(dirname "$0")/tap.sh"
run=$RG_SOURCE_DIR/scripts/run

# expect CODE NAME ARGUMENT...: the exit code, and one line when it is 2.
expect()
{
    wanted=$1 name=$2
    shift 2
    tap_run "$run" "$@"
    if [ "$wanted" -eq 2 ]; then
        tap_ended 2 "$name" tap_is_line
    else
        tap_ended "$wanted" "$name"
    fi
}

expect 2 "no ranks given is a usage error" true
expect 2 "0 ranks are a usage error" -n 0 true
expect 2 "a word for the ranks is a usage error" -n two true
expect 2 "an unknown option is a usage error" -n 2 --nonsense true
expect 2 "no program is a usage error" -n 2
expect 2 "a missing program is a usage error" -n 2 bench/missing_perf
expect 2 "a name with a newline is told in one line" -n 2 "no
program"
expect 2 "a missing host file is a usage error" -n 2 --hosts missing true

if ! command -v mpirun >/dev/null 2>&1; then
    tap_result 0 "programs are started # SKIP no mpirun"
    tap_end
fi
mkdir -p "$tap_work/bench"
cat >"$tap_work/bench/program" <<'EOP'
#!/bin/sh
echo "rank started"
[ "$1" != sleep ] || exec sleep 60
exit "$1"
EOP
chmod +x "$tap_work/bench/program"
export RG_BUILD_DIR="$tap_work"
expect 0 "a relative program is found in the build folder" -n 1 bench/program 0
started=$("$run" -n 3 bench/program 0 2>/dev/null | grep -c 'rank started')
[ "$started" -eq 3 ]
tap_result $? "-n 3 starts three ranks"
expect 5 "the program's exit code is the exit code" -n 2 bench/program 5
# dies RANK SIGNAL CODE: with --survive, of two; the other passes.
cat >"$tap_work/bench/dies" <<'EOP'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK-${PMI_RANK-}}" != "$1" ] || kill -"$2" $$
exit 0
EOP
chmod +x "$tap_work/bench/dies"
expect 6 "a killed rank is exit 6" --survive -n 2 bench/dies 0 KILL
tap_is_line_with "run: rank 0 was killed"
tap_result $? "and is named in a line"
expect 6 "a terminated rank is exit 6" --survive -n 2 bench/dies 1 TERM
tap_is_line_with "run: rank 1 was terminated"
tap_result $? "and is named in a line"
cat >"$tap_work/bench/ends_shell" <<'EOP'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK-${PMI_RANK-}}" = 1 ] || exit 0
kill -TERM $PPID
exec sleep 60
EOP
chmod +x "$tap_work/bench/ends_shell"
expect 6 "so is one whose shell is terminated" --survive -n 2 bench/ends_shell
tap_is_line_with "run: rank 1 was terminated"
tap_result $? "and is named in a line"
expect 139 "a crash stays one" --survive -n 2 bench/dies 1 SEGV
expect 5 "--survive: the program's exit code" --survive -n 2 bench/program 5
expect 0 "--survive: all pass" --survive -n 2 bench/program 0
cat >"$tap_work/bench/lasts" <<'EOP'
#!/bin/sh
echo $PPID >"$0.launcher.new" && mv "$0.launcher.new" "$0.launcher"
exec sleep 60
EOP
chmod +x "$tap_work/bench/lasts"
"$run" -n 1 bench/lasts >/dev/null 2>&1 </dev/null &
job=$!
while [ ! -e "$tap_work/bench/lasts.launcher" ]; do sleep 0.1; done
kill -TERM $job
wait $job
[ $? -eq 143 ]
tap_result $? "who ends the script gets exit 143"
! kill -0 "$(cat "$tap_work/bench/lasts.launcher")" 2>/dev/null
tap_result $? "and has ended the launcher"
RG_RUN_TIMEOUT=1
export RG_RUN_TIMEOUT
expect 4 "the time limit ends a hang" -n 2 bench/program sleep
expect 4 "the time limit ends a hang with --survive" --survive -n 3 \
    bench/program sleep
! tap_holds terminated
tap_result $? "and no rank is said to be terminated by others"
tap_end
