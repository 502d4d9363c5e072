#!/bin/sh
# recovery_perf: what it refuses, and some injections of each kind. Gates are
# tried with bounds that no machine meets or misses.
. "$(dirname "$0")/../../scripts/test/tap.sh"
perf=$RG_BUILD_DIR/bench/recovery_perf
json=$tap_work/rows.jsonl

# exits CODE ARGUMENT...: the program's exit code; keeps $output.
exits()
{
    wanted=$1
    shift
    tap_run timeout -k 5 120 "$perf" --launch local "$@"
    tap_ended "$wanted" "exit $wanted for $*"
}

exits 2 --nonsense
exits 2 --ranks 1
exits 2 --ranks 3 -n 0
exits 2 --ranks 3 -b 2
exits 2 --ranks 2 --fault stop
exits 2 --ranks 3 --fault soft --deadline 100
exits 2 --ranks 3 --backend legacy
exits 2 --ranks 3 --gate p50
exits 2 --ranks 3 --gate p50=10
exits 2 --ranks 3 --gate p50=10ms,
exits 2 --ranks 3 --gate p50=10msp99=50ms
exits 2 --ranks 3 --gate ratio=1.1
exits 2 --ranks 3 -J "$tap_work/missing/rows"

# Workers' settings are told once.
for setting in RG_ALGO=all_reduce=nonsense RG_NODE_RANKS=two; do
    tap_run env $setting timeout -k 5 120 "$perf" --launch local --ranks 3 -n 1
    tap_ended 2 "exit 2 and one line for $setting" tap_is_line
done

for mode in 1 2 3; do
    tap_run env RG_MODE=$mode timeout -k 5 120 "$perf" --launch local --ranks 3
    tap_ended 2 "exit 2 and one line for RG_MODE=$mode" tap_is_line_with RG_MODE
done

# A device that is not there is the environment's fault, said once.
if ! "$RG_BUILD_DIR/bench/all_reduce_perf" --launch local --ranks 1 \
    --device cuda -b 8 -e 8 -n 1 >"$tap_work/cuda" 2>&1; then
    exits 3 --ranks 3 -n 1 --device cuda
    [ "$(echo "$output" | wc -l)" -eq 1 ]
    tap_result $? "one line says that there is no such device"
fi

# counts N PATTERN: so many JSON lines have it.
counts()
{
    [ "$(grep -c "$2" "$json")" -eq "$1" ]
    tap_result $? "$1 lines with $2"
}

exits 0 --ranks 3 -n 3 --pause 100 -J "$json"
counts 3 '^{"kind":"recovery",.*"total_us":[0-9].*"agreed":true.*"captures":1'
counts 4 '^{"kind":"recovery_summary",.*"stat":"'
counts 1 '^{"kind":"verdict",.*"exit":0}$'
exits 0 --ranks 2 -n 2 --pause 0 --mode eager --role coordinator -J "$json"
counts 2 '"kind":"recovery",.*"role":"coordinator".*"captures":0'
exits 0 --ranks 4 -n 2 --pause 0 --role leaf -b 64K -J "$json"
counts 2 '"kind":"recovery",.*"bytes":65536.*"role":"leaf"'
exits 0 --ranks 3 -n 4 --pause 0 --fault soft --gate p50=100s,p99=100s
exits 5 --ranks 3 -n 1 --pause 0 --fault soft --gate p50=1us
exits 0 --ranks 3 -n 1 --fault stop -J "$json"
counts 1 '"kind":"recovery",.*"bound_us":700000.0,"ratio":[0-9]'
tap_end
