#!/bin/sh
# rg_tune: what it refuses; a short tuning whose table all_reduce_perf follows
# from bound to bound; one that is interrupted and gone on with.
. "$(dirname "$0")/../../scripts/test/tap.sh"
tune=$RG_BUILD_DIR/bench/rg_tune
perf=$RG_BUILD_DIR/bench/all_reduce_perf
run=$RG_SOURCE_DIR/scripts/run
table=$tap_work/t.rgp
raw=$table.jsonl

# refuses CODE ARGUMENT...: the exit code and one line.
refuses()
{
    wanted=$1
    shift
    output=$("$tune" "$@" 2>&1)
    status=$?
    [ $status -eq "$wanted" ] && tap_is_line
    tap_result $? "exit $wanted for $*"
    [ $status -eq "$wanted" ] || tap_note "exit $status: $output"
}

printf 'regroup-policy 1\nunit bytes-per-rank-buffer\ntopology any\n' \
    >"$tap_work/head"
{ cat "$tap_work/head"; echo 'all_reduce any 2 0 9 ring - - - - - -'; } \
    >"$tap_work/bad.rgp"
refuses 2
refuses 2 --nonsense
refuses 2 word
refuses 2 -o "$tap_work/missing/t.rgp"
refuses 2 -o t --budget soon
refuses 2 -o t --budget -5s
refuses 2 -o t -b 1M -e 8
refuses 2 -o t -b 2 -d f32
refuses 2 -o t --collectives all_shout
refuses 2 -o t --collectives all --resume t.jsonl
refuses 2 -o t --collectives broadcast,reduce -d f8e4m3
refuses 2 -o t --launches 0
refuses 2 -o t --topology 'a b'
refuses 2 -o t -J a --resume b
refuses 2 -o "$tap_work"
refuses 2 -o /dev/null
refuses 2 -o "$table" -J "$tap_work"
refuses 2 -o "$table" -J "$table"
refuses 2 -o "$table" -J "$tap_work/./t.rgp"
refuses 2 -o "$table" -J "$table.new"
refuses 2 -o "$table" --resume "$table"
refuses 2 -o t --launch mpi --ranks 2
refuses 2 --launch local -o "$table" --resume "$tap_work/missing"
refuses 2 lint
refuses 2 lint "$tap_work/missing"
refuses 2 lint "$tap_work/bad.rgp"
refuses 2 lint "$tap_work"
refuses 2 lint "$tap_work/no
file"
mkfifo "$tap_work/fifo"
for file in "$tap_work/fifo" /dev/zero; do
    tap_run timeout 20 "$tune" lint "$file"
    tap_ended 2 "lint $file does not wait" tap_is_line_with 'not a regular file'
    tap_run timeout 20 "$tune" plot "$file"
    tap_ended 2 "plot $file does not wait" tap_is_line
done
for ending in -J --resume; do
    tap_run timeout 20 "$tune" -o "$table" $ending "$tap_work/fifo"
    tap_ended 2 "$ending FIFO does not wait" tap_is_line_with 'not a regular file'
done
refuses 2 plot "$tap_work"
refuses 2 plot "$tap_work/bad.rgp"
refuses 2 explain "$tap_work/bad.rgp" --bytes 8
refuses 2 explain "$tap_work/bad.rgp" --bytes 8 --ranks 2
refuses 2 diff "$tap_work/bad.rgp"
refuses 2 diff "$tap_work/bad.rgp" "$tap_work/bad.rgp"
refuses 2 merge "$tap_work/bad.rgp" -o "$tap_work/none.rgp"
refuses 2 merge "$tap_work/bad.rgp" "$tap_work/bad.rgp"
refuses 2 merge "$tap_work/bad.rgp" "$tap_work/bad.rgp" -o "$tap_work/none.rgp"
refuses 2 export "$tap_work/bad.rgp"
refuses 2 export "$tap_work/bad.rgp" --format tea
refuses 2 plot "$tap_work/missing"
tap_run "$tune" explain "$tap_work/bad.rgp" --ranks 2 \
    --bytes 18446744073709551615
tap_ended 2 "a size out of range" tap_is_line_with 'bad value'
for tool in '' lint explain diff merge export plot; do
    # shellcheck disable=SC2086
    "$tune" $tool --help | grep -q '^Usage: rg_tune'
    tap_result $? "rg_tune $tool --help"
done

tap_run "$tune" --launch local --ranks 2 -o "$table" --budget 0.001s
tap_ended 2 "a budget for nothing is refused" \
    tap_holds_once 'budget is too short'
[ ! -f "$table" ]
tap_result $? "and no table written"

# ---- several collectives -------------------------------------------------

tap_run "$tune" --launch local --ranks 2 -o "$tap_work/two.rgp" -e 4K \
    --collectives broadcast,barrier --held-out 2 --launches 1 --budget 20s
tap_ended 0 "a broadcast and a barrier are tuned for" [ -f "$tap_work/two.rgp" ]
for collective in broadcast barrier; do
    grep -q "^$collective  *any  *2  *0 " "$tap_work/two.rgp" &&
        head -n 1 "$tap_work/two.rgp.$collective.jsonl" |
        grep -q "\"collective\":\"$collective\""
    tap_result $? "it has rows of $collective, and so has a raw file"
    tap_run "$tune" explain "$tap_work/two.rgp" --collective $collective \
        --ranks 2 --bytes 8
    tap_ended 0 "explain names its row" tap_holds 'algorithm: '
done
tap_run "$tune" diff "$tap_work/two.rgp" "$tap_work/two.rgp"
tap_ended 0 "it does not differ from itself"
"$RG_BUILD_DIR/bench/broadcast_perf" --launch local --ranks 2 -b 8 -e 8 -n 5 \
    --policy "$tap_work/two.rgp" >/dev/null
tap_result $? "and is followed"

# ---- a table, from measuring to use --------------------------------------

tap_run "$run" -n 2 "$tune" -o "$table" -e 256K --budget 10s
tap_ended 0 "two ranks are tuned for" [ -f "$table" ]
tap_run "$tune" lint "$table"
tap_ended 0 "the table is sound"
grep -q '^# provenance: noise of launch medians 8:' "$table" &&
    grep -q '^# provenance: regret at [0-9]* sizes held out' "$table"
tap_result $? "it says how noisy its samples are, and its regret"
head -n 1 "$raw" | grep -q '^{"kind":"tune",' &&
    tail -n 1 "$raw" | grep -q '^{"kind":"tuned",'
tap_result $? "the raw measurements are whole"

# named SIZE: what explain says, as "algorithm".
named()
{
    "$tune" explain "$table" --ranks 2 --bytes "$1" --dtype u8 |
        sed -n 's/^algorithm: //p'
}

# follows BOUND: at, just below and just above it, the rows name the same.
follows()
{
    "$perf" --launch local --ranks 2 -d u8 -b $(($1 - 1)) -e $(($1 + 1)) -i 1 \
        -n 20 --policy "$table" -J "$tap_work/rows.jsonl" >/dev/null 2>&1 ||
        return 1
    for size in $(($1 - 1)) "$1" $(($1 + 1)); do
        grep "^{\"kind\":\"row\",.*\"bytes\":$size,\"" "$tap_work/rows.jsonl" |
            sed 's/.*"algorithm":"\([a-z_]*\)".*/\1/' | sort -u \
            >"$tap_work/ran"
        named "$size" | cmp -s - "$tap_work/ran" || return 1
    done
}

bounds=$(sed -n 's/^all_reduce  *[a-z0-9]*  *2  *\([1-9][0-9]*\) .*/\1/p' "$table")
for bound in 9 $bounds 300000; do
    follows "$bound"
    tap_result $? "all_reduce_perf runs what the table says around $bound bytes"
done

for tool in lint "explain --ranks 2 --bytes 8" "export --format ompi"; do
    # shellcheck disable=SC2086
    "$tune" ${tool%% *} "$table" ${tool#"${tool%% *}"} >/dev/full 2>"$tap_work/said"
    [ $? -eq 3 ] && [ "$(grep -c 'cannot be written' "$tap_work/said")" -eq 1 ]
    tap_result $? "exit 3 when ${tool%% *} cannot write"
done

tap_run "$tune" diff "$table" "$table"
tap_ended 0 "a table does not differ from itself"
{ cat "$tap_work/head"; echo 'all_reduce any 2 0 inf ring - - - - - -'; } \
    >"$tap_work/a.rgp"
{
    cat "$tap_work/head"
    echo 'all_reduce any 2 0 100 ring - - - 5.1 oneshot 1.2'
    echo 'all_reduce any 2 100 inf ring 2 - 65536 - - -'
} >"$tap_work/b.rgp"
tap_run "$tune" diff "$tap_work/a.rgp" "$tap_work/b.rgp"
tap_ended 1 "diff says where two choose differently, and exits 1" \
    tap_is_line_with "all_reduce any, 2 ranks, [100, inf): ring | ring+2ch+65536"

# ---- one table of several --------------------------------------------------

# table_of TOPOLOGY RANKS DTYPE: of one row.
table_of()
{
    printf 'regroup-policy 1\n# provenance: of %s\n' "$2"
    printf 'unit bytes-per-rank-buffer\ntopology %s\n' "$1"
    echo "all_reduce $3 $2 0 inf ring - - - - - -"
}
table_of emu:3 3 any >"$tap_work/3.rgp"
table_of emu:8 4-8 any >"$tap_work/8.rgp"
table_of emu:8 8 any >"$tap_work/8-again.rgp"
table_of emu:8 8 f32 >"$tap_work/8-f32.rgp"
{
    table_of emu:8 8 f32 | sed '$d'
    for min in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do
        echo "all_reduce f32 8 $min $((min + 1)) ring - - - - - -"
    done
    echo "all_reduce f32 8 15 inf ring - - - - - -"
} >"$tap_work/16.rgp"
table_of emu:8x2nodes 16 any >"$tap_work/nodes.rgp"
tap_run "$tune" merge "$tap_work/8.rgp" "$table" "$tap_work/3.rgp" \
    "$tap_work/8-f32.rgp" -o "$tap_work/all.rgp"
tap_ended 0 "merge makes one table of several rank counts" \
    tap_is_line_with "all.rgp: $(($(grep -c '^all_reduce' "$table") + 3)) rows"
tap_run "$tune" lint "$tap_work/all.rgp"
tap_ended 0 "it is sound, and its topology the class" \
    tap_holds "topology emu, "
for file in 8 t 3 8-f32; do
    grep '^# provenance' "$([ $file = t ] && echo "$table" ||
        echo "$tap_work/$file.rgp")"
done >"$tap_work/notes"
grep '^# provenance' "$tap_work/all.rgp" | cmp -s - "$tap_work/notes"
tap_result $? "it keeps all provenance, in order"
tap_run "$tune" diff "$table" "$tap_work/all.rgp"
tap_ended 1 "it chooses for each rank count what its table does"
! tap_holds ' 2 ranks'
tap_result $? "and for 2 ranks just what was measured"
[ "$(grep -c '^all_reduce  *any  *4-8 ' "$tap_work/all.rgp")" -eq 1 ] &&
    "$tune" explain "$tap_work/all.rgp" --ranks 3 --bytes 9 |
    grep -q 'rows are for 3 to 3 ranks'
tap_result $? "explain finds the other tables' rows in it"

# contradicts LINE FILE...: merging them is refused with that line.
contradicts()
{
    line=$1
    shift
    tap_run "$tune" merge "$@" -o "$tap_work/none.rgp"
    tap_ended 2 "no merge: $line" tap_is_line_with "$line"
    [ ! -e "$tap_work/none.rgp" ]
    tap_result $? "and nothing is written"
}
contradicts "8.rgp:5 and $tap_work/8-again.rgp:5 both serve all_reduce any of 8" \
    "$tap_work/3.rgp" "$tap_work/8.rgp" "$tap_work/8-again.rgp"
contradicts "of topology emu:3, '$tap_work/nodes.rgp' of emu:8x2nodes" \
    "$tap_work/3.rgp" "$tap_work/nodes.rgp"
contradicts "17 rows of all_reduce for 8 ranks" "$tap_work/8.rgp" "$tap_work/16.rgp"
tap_run "$tune" merge "$tap_work/3.rgp" "$tap_work/8.rgp" \
    -o "$tap_work/missing/t.rgp"
tap_ended 3 "a merge that cannot be written" tap_is_line_with "cannot write"

"$tune" explain "$tap_work/b.rgp" --ranks 5 --bytes 99 >"$tap_work/why"
grep -q '^algorithm: ring$' "$tap_work/why" &&
    grep -q 'line 4 serves \[0, 100)' "$tap_work/why" &&
    grep -q '5 ranks have no rows, so those of 2 serve them' "$tap_work/why"
tap_result $? "explain names the row and why"
[ "$("$tune" export "$tap_work/b.rgp" --format ompi 2>"$tap_work/lost" |
    sed 's/ *#.*//' | tr '\n' ';')" = \
    "1;2;1;2;2;0 4 0 0;100 5 0 65536;" ] &&
    [ "$(grep -c dropped "$tap_work/lost")" -eq 1 ]
tap_result $? "export for Open MPI, and what it drops"
cat >"$tap_work/many.rgp" <<'EOT'
regroup-policy 1
unit bytes-per-rank-buffer
topology any
all_reduce any 2 0 inf ring - - - - - -
reduce_scatter any 2 0 inf direct - - - - - -
broadcast any 2 0 99 direct - - - - - -
broadcast any 2 99 inf chain - - 4096 - - -
barrier any 2 0 inf dissemination - - - - - -
EOT
[ "$("$tune" export "$tap_work/many.rgp" --format ompi 2>"$tap_work/lost" |
    sed 's/ *#.*//' | tr '\n' ';')" = \
    "3;2;1;2;1;0 4 0 0;6;1;2;1;0 4 0 0;7;1;2;2;0 1 0 0;99 3 0 4096;" ] &&
    [ "$(grep -c dropped "$tap_work/lost")" -eq 1 ]
tap_result $? "export of several collectives for Open MPI"
[ "$("$tune" export "$tap_work/b.rgp" --format nccl-csv 2>"$tap_work/lost" |
    tail -n +2 | head -n 1)" = "allreduce,0,99,ring,simple,-1,-1,2,-1,-1" ] &&
    [ "$(grep -c dropped "$tap_work/lost")" -eq 1 ]
tap_result $? "export for NCCL, and what it drops"
if command -v gnuplot >/dev/null 2>&1; then
    "$tune" plot "$raw" -o "$tap_work/plot" >/dev/null &&
        [ -s "$tap_work/plot.png" ] && [ -s "$tap_work/plot.svg" ]
    tap_result $? "the tuning is drawn"
    tap_run "$tune" plot "$raw" -o "$tap_work/missing/plot"
    tap_ended 2 "a plot that cannot be written" tap_is_line_with missing
fi

# ---- interrupted ----------------------------------------------------------

# A shell leaves SIGINT ignored in what it starts behind it.
env --default-signal=INT "$tune" --launch local --ranks 2 -o "$table" -e 64K \
    --seed 5 --budget 300s >/dev/null 2>&1 &
pid=$!
while kill -0 $pid 2>/dev/null && ! { [ -f "$raw" ] &&
    grep -q '"seed":5' "$raw" && [ "$(wc -l <"$raw")" -gt 60 ]; }; do
    sleep 0.1
done
kill -INT $pid
wait $pid
[ $? -eq 130 ] && ! grep -q '"tuned"' "$raw"
tap_result $? "SIGINT ends a tuning"
cp "$raw" "$tap_work/cut"
printf '{"kind":"sample","phase":"swe' >>"$raw"
refuses 2 --launch local --ranks 2 -o "$table" -e 64K --seed 6 --resume "$raw"
tap_run "$tune" --launch local --ranks 2 -o "$table" -e 64K --seed 5 \
    --budget 10s
tap_ended 0 "the same command goes on" tap_holds '# goes on from '
head -n "$(wc -l <"$tap_work/cut")" "$raw" | cmp -s - "$tap_work/cut" &&
    tail -n 1 "$raw" | grep -q '"tuned"'
tap_result $? "its raw measurements are what was cut short, and the rest"
tap_run "$tune" lint "$table"
tap_ended 0 "its table is sound"
tap_run "$tune" --launch local --ranks 2 -o "$tap_work/again.rgp" -e 64K \
    --seed 5 --budget 10s --resume "$raw"
tap_ended 0 "whole measurements are enough" tap_holds '# decides by '
tap_run "$tune" diff "$table" "$tap_work/again.rgp"
tap_ended 0 "they give the same table again"
tap_end
