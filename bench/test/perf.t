#!/bin/sh
# all_reduce_perf: what it refuses, and a small sweep with its JSON lines.
. "$(dirname "$0")/../../scripts/test/tap.sh"
perf=$RG_BUILD_DIR/bench/all_reduce_perf
json=$tap_work/rows.jsonl

# refuses CODE ARGUMENT...: the exit code, one line, no row.
refuses()
{
    tap_refuses "$perf" "$@"
}

refuses 2 --nonsense
refuses 2 word
refuses 2 -b 1G -e 8
refuses 2 -d f99
refuses 2 -o xor
refuses 2 --ranks 0
refuses 2 -i 8 -f 2
refuses 2 -G 2 -z 1
refuses 2 -n 5 -n 5
refuses 2 --algo nonsense
refuses 2 --backend legacy -G 2
refuses 2 --backend legacy --algo ring
refuses 2 --policy "$tap_work/missing"
refuses 2 --max-violations 3
refuses 2 --fault "at seq 1 rank 0 kill"
refuses 2 -J "$tap_work/missing/rows"
refuses 2 --algo ring+99ch
refuses 2 --algo ring+1
refuses 2 -J "$tap_work"
refuses 2 "no
flag"
mkfifo "$tap_work/fifo"
refuses 2 --policy "$tap_work/fifo"
refuses 3 --compare mpi
refuses 3 --compare nccl
CUDA_VISIBLE_DEVICES=
export CUDA_VISIBLE_DEVICES
refuses 3 --device cuda

refuses 2 -r 0
refuses 2 --seed 2
refuses 2 -d f8e4m3
refuses 2 -d f32 -o band
refuses 2 -d i32,f64 -o bor,bxor

# The programs of the other collectives refuse what theirs has no use for.
# refuses_of COLLECTIVE ARGUMENT...
refuses_of()
{
    collective=$1
    shift
    tap_refuses "$RG_BUILD_DIR/bench/${collective}_perf" 2 "$@"
}
for collective in all_gather broadcast all_to_all all_to_all_v gather scatter \
    sendrecv barrier; do
    refuses_of "$collective" -o sum
done
for collective in all_gather reduce_scatter all_to_all all_to_all_v sendrecv \
    barrier; do
    refuses_of "$collective" -r all
done
for flag in "-b 8" "-e 8" "-d u8" "-f 4"; do
    # shellcheck disable=SC2086
    refuses_of barrier $flag
done
refuses_of broadcast --seed 1
refuses_of broadcast -r -1
refuses_of broadcast -r some
refuses_of broadcast --ranks 2 -r 2
refuses_of reduce -d f8e5m2
refuses_of reduce --algo nonsense

# A wrong variable is told once for all ranks, by every program.
# wrong VARIABLE=VALUE PROGRAM ARGUMENT...
wrong()
{
    setting=$1 program=$2
    shift 2
    tap_run timeout 60 env "$setting" "$RG_BUILD_DIR/$program" \
        --launch local --ranks 3 "$@"
    tap_ended 2 "exit 2 and one line for $setting: $program" tap_is_line
}
for setting in RG_ALGO=nonsense RG_ALGO=all_reduce=nonsense \
    RG_ALGO=all_reduce=ring+65ch RG_POLICY="$tap_work/missing" \
    RG_POLICY="$tap_work/fifo" RG_NODE_RANKS=two RG_ENGINE=air RG_FENCE=no \
    RG_ON_FAILURE=cry RG_DISABLE_P2P_ROUTE=maybe \
    RG_CONTROL_IFACE=none0; do
    wrong "$setting" bench/all_reduce_perf -b 8 -e 8 -n 2
done
for setting in RG_ALGO=all_reduce=nonsense RG_ALGO=all_reduce=ring+65ch; do
    wrong "$setting" bench/frame_perf -n 6
    wrong "$setting" bench/rg_tune -o "$tap_work/tuned.rgp"
    wrong "$setting" validate/rg_validate --case results.queued
done

# A device serves so much without a frame.
for size in 3 12 8K; do
    tap_run "$RG_BUILD_DIR/bench/frame_perf" --launch local --ranks 2 -b $size
    tap_ended 2 "frame_perf: exit 2 for $size on emu" \
        tap_is_line_with '4 to 8 bytes on emu'
done
tap_run "$RG_BUILD_DIR/bench/frame_perf" --launch local --ranks 2 -b 8 -n 6
tap_ended 0 "frame_perf: 8 bytes are served"

# Who cannot write does not pass.
"$perf" --launch local --ranks 2 -b 8 -e 8 -n 2 2>"$tap_work/said" >/dev/full
[ $? -eq 3 ] && [ "$(grep -c 'cannot be written' "$tap_work/said")" -eq 1 ]
tap_result $? "exit 3 when standard output is full"
"$perf" --help 2>/dev/null >/dev/full
[ $? -eq 3 ]
tap_result $? "exit 3 when --help cannot be written"

output=$("$perf" --launch local --ranks 3 -b 0 -e 4K -f 16 -d f32,bf16 -o all \
    --algo all --max-time 0.01 -J "$json" 2>&1)
tap_result $? "every algorithm sweeps on 3 ranks"
case $output in
*" passed, 0 failed, 0 skipped
pass: exit 0") tap_result 0 "the last two lines are the verdict" ;;
*) tap_result 1 "the last two lines are the verdict"; tap_note "$output" ;;
esac
passed=$(echo "$output" | sed -n 's/^\([0-9]*\) passed.*/\1/p')
[ "$(grep -c '^{"kind":"row",.*"wrong":0,.*}$' "$json")" = "$passed" ] &&
    head -n 1 "$json" | grep -q '^{"kind":"env",' &&
    tail -n 1 "$json" | grep -q '^{"kind":"verdict",.*"exit":0}$'
tap_result $? "JSON lines: env, a right row per case, verdict"

output=$("$perf" --launch local --ranks 3 -b 4 -e 4K -f 7 -d u8,f64 -o all \
    --backend legacy --max-time 0.01 2>&1)
[ $? -eq 0 ] && echo "$output" | head -n 1 | grep -q 'legacy backend'
tap_result $? "the legacy backend sweeps on 3 ranks"
echo "$output" | grep -q ' legacy  *host ' &&
    ! echo "$output" | grep -q ' legacy  *proxy '
tap_result $? "by no route, but by the host"
tap_run env RG_DISABLE_P2P_ROUTE=1 RG_DISABLE_HOST_PROXY_ROUTE=1 "$perf" \
    --launch local --ranks 2 -b 8 -e 8 --max-time 0.01
tap_ended 0 "without a route a group is on the legacy backend" tap_holds_once \
    'rank 0 has no route (RG_DISABLE_P2P_ROUTE, RG_DISABLE_HOST_PROXY_ROUTE)'

# The other collectives; the types that only move too.
# sweeps COLLECTIVE ROWS FLAG...: so many right rows.
sweeps()
{
    collective=$1 rows=$2
    shift 2
    tap_run "$RG_BUILD_DIR/bench/${collective}_perf" --launch local --ranks 3 \
        --max-time 0.002 -n 20 -J "$json" "$@"
    tap_ended 0 "$collective sweeps on 3 ranks" \
        tap_holds_once "$rows passed, 0 failed, 0 skipped" &&
        [ "$(grep -c "\"collective\":\"$collective\".*\"wrong\":0," "$json")" \
            -eq "$rows" ]
    tap_result $? "each row is one of $collective"
}
for how in "--backend legacy" "-G 3"; do
    # shellcheck disable=SC2086
    {
        sweeps all_gather 12 -b 0 -e 4K -f 64 -d u8,f8e5m2 $how
        sweeps reduce_scatter 12 -b 3 -e 1K -f 17 -d f16 -o sum,avg $how
        sweeps reduce_scatter 18 -b 64 -e 1K -f 4 -d u16 -o band,bor,bxor $how
        sweeps broadcast 12 -b 8 -e 4K -f 512 -d f8e4m3 -r all $how
        sweeps reduce 12 -b 8 -e 4K -f 512 -o max -r all $how
        sweeps all_to_all 3 -b 8 -e 4K -f 16 $how
        sweeps gather 12 -b 8 -e 4K -f 512 -r all $how
        sweeps scatter 4 -b 8 -e 4K -f 512 -r 2 $how
        sweeps barrier 1 $how
    }
done
sweeps all_to_all_v 4 -b 64 -e 64K -f 1024 -d f8e4m3,i64 --seed 7
sweeps sendrecv 6 -b 8 -e 4M -f 128 -d f8e4m3,i64 -G 3
for collective in all_to_all_v sendrecv; do
    tap_refuses "$RG_BUILD_DIR/bench/${collective}_perf" 3 --ranks 3 \
        --backend legacy
done

# Selection tables: each row of figures names the algorithm of the table's row.
table=$tap_work/t.rgp
cat >"$table" <<'END'
regroup-policy 1
unit bytes-per-rank-buffer
topology emu:2
all_reduce any 2 0    64   oneshot - ll -    - - -
all_reduce any 2 64   1024 ring    1 -  1024 - - -
all_reduce any 2 1024 4096 oneshot 2 -  -    - - -
all_reduce any 2 4096 inf  ring    1 -  4096 - - -
END
# ran FILE: what ran at each size, as "BYTES:ALGORITHM+CHANNELSch", once each.
ran()
{
    sed -n 's/^{"kind":"row",.*"bytes":\([0-9]*\),.*"algorithm":"\([a-z_]*\)","channels":\([0-9]*\),.*/\1:\2+\3ch/p' \
        "$1" | uniq | sed 's/_ll+.*/_ll/' | tr '\n' ' '
}
# hash FILE: the one policy hash of all objects.
hash()
{
    sed -n 's/.*"policy_hash":"\([0-9a-f]*\)".*/\1/p' "$1" | sort -u
}
sizes="-b 16 -e 16K -f 4 --max-time 0.01"
wanted="16:oneshot_ll 64:ring+1ch 256:ring+1ch 1024:oneshot+2ch \
4096:ring+1ch 16384:ring+1ch "
# shellcheck disable=SC2086
output=$("$perf" --launch local --ranks 2 $sizes --policy "$table" -J "$json" 2>&1)
[ $? -eq 0 ] && [ "$(ran "$json")" = "$wanted" ]
tap_result $? "--policy: every row names the table's algorithm"
tap_note "$(ran "$json")"
named=$(hash "$json")
[ "$(echo "$named" | wc -w)" -eq 1 ]
tap_result $? "the environment and all rows have one policy hash"
# shellcheck disable=SC2086
RG_POLICY=$table "$perf" --launch local --ranks 2 $sizes -J "$json" >/dev/null 2>&1
[ $? -eq 0 ] && [ "$(ran "$json")" = "$wanted" ] && [ "$(hash "$json")" = "$named" ]
tap_result $? "RG_POLICY: the same"
# shellcheck disable=SC2086
RG_ALGO=all_reduce=ring+2ch RG_POLICY=$table \
    "$perf" --launch local --ranks 2 $sizes -J "$json" >/dev/null 2>&1
[ $? -eq 0 ] && [ "$(ran "$json" | tr ' ' '\n' | grep -c ':ring+2ch$')" -eq 6 ] &&
    [ "$(hash "$json")" != "$named" ]
tap_result $? "RG_ALGO comes before RG_POLICY"

cp "$table" "$tap_work/kept.rgp"
refuses 2 --policy "$table" -J "$table"
refuses 2 --policy "$table" -J "$tap_work/../${tap_work##*/}/t.rgp"
tap_run env RG_POLICY="$table" "$perf" --launch local --ranks 2 -J "$table"
tap_ended 2 "-J does not overwrite RG_POLICY" tap_is_line
cmp -s "$table" "$tap_work/kept.rgp"
tap_result $? "the table is as it was"

# A table that is not sound ends everything before it begins.
for flaw in 's/ 1024 4096/ 1025 4096/:6: gap' 's/ inf / 8192 /:7: the last row' \
    's/oneshot 2/twice 2/:6: all_reduce has no' 's/policy 1/policy 2/:1: version'; do
    sed "${flaw%%:*}" "$table" >"$tap_work/bad.rgp"
    output=$("$perf" --launch local --ranks 2 --policy "$tap_work/bad.rgp" 2>&1)
    [ $? -eq 2 ] && [ "$(echo "$output" | wc -l)" -eq 1 ] &&
        echo "$output" | grep -qF "$tap_work/bad.rgp:${flaw#*:}"
    tap_result $? "exit 2 and one line for ${flaw%%:*}"
    tap_note "$output"
done
sed 's/any 2 0/any 2 4/' "$table" >"$tap_work/bad.rgp"
output=$(RG_POLICY="$tap_work/bad.rgp" "$perf" --launch local --ranks 1 2>&1)
[ $? -eq 2 ] && echo "$output" | grep -qF "$tap_work/bad.rgp:4: gap"
tap_result $? "exit 2 for such a file in RG_POLICY"
tap_note "$output"

"$perf" --launch local --ranks 2 -b 8 -e 8 -n 30 -G 3 --max-time 0.2 >/dev/null
tap_result $? "graphs of an odd number of invocations are replayed"

output=$("$perf" --launch local --ranks 2 -b 8 -e 64 --algo all --max-time 0.01 \
    --guidelines --max-violations 1000 -J "$json" 2>&1)
[ $? -eq 0 ] && echo "$output" | grep -q '^# guideline split: not measured$' &&
    echo "$output" | grep -q '^# guideline next-larger: [0-9]* of [0-9]* rows' &&
    grep -q '^{"kind":"guideline","rule":"split","measured":false}$' "$json"
tap_result $? "--guidelines judges the rows, and says what it cannot"
tap_note "$(echo "$output" | grep guideline)"

# A rank of the launcher is killed within a sweep: the lowest one left says so.
if ! command -v "${RG_MPIRUN:-mpirun}" >/dev/null 2>&1; then
    tap_result 0 "a killed rank # SKIP no mpirun"
    tap_end
fi
cat >"$tap_work/killed" <<'EOP'
#!/bin/sh
victim=$1 json=$2
shift 2
[ "${OMPI_COMM_WORLD_RANK-${PMI_RANK-}}" = "$victim" ] || exec "$@" -J "$json"
"$@" -J "$json" &
while ! grep -q '"kind":"row"' "$json" 2>/dev/null; do
    sleep 0.1
done
kill -KILL $!
wait $!
kill -KILL $$
EOP
chmod +x "$tap_work/killed"
for victim in 0 2; do
    rm -f "$json"
    tap_run env RG_RUN_TIMEOUT=100 "$RG_SOURCE_DIR/scripts/run" --survive -n 3 \
        "$tap_work/killed" $victim "$json" "$perf" -n 10000000
    tap_ended 6 "rank $victim is killed: exit 6" \
        tap_holds_once 'recovery failed: exit 6'
    tap_holds_once "run: rank $victim was killed" &&
        tap_holds_once ' passed, 1 failed, 0 skipped'
    tap_result $? "it is named, and those left have counted"
done
tap_end
