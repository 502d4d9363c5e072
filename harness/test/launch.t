#!/bin/sh
# Ranks that were started differently: one line, and nobody waits for anybody.
. "$(dirname "$0")/../../scripts/test/tap.sh"
tap_needs "${RG_MPIRUN:-mpirun}"

# One rank has a setting or arguments of its own.
cat >"$tap_work/differs" <<'EOP'
#!/bin/sh
program=$1
shift
[ "${OMPI_COMM_WORLD_RANK-${PMI_RANK-}}" = "$RG_TEST_RANK" ] ||
    exec "$program" "$@"
[ -z "${RG_TEST_SETTING-}" ] || exec env "$RG_TEST_SETTING" "$program" "$@"
# shellcheck disable=SC2086 # several
exec "$program" $RG_TEST_ARGUMENTS
EOP
chmod +x "$tap_work/differs"

# told TEXT RANK SETTING=VARIABLE=VALUE|ARGUMENTS=... PROGRAM [ARGUMENT...]
told()
{
    text=$1 rank=$2 what=$3 program=$4
    shift 4
    tap_run env RG_RUN_TIMEOUT=60 RG_TEST_RANK="$rank" "RG_TEST_$what" \
        "$RG_SOURCE_DIR/scripts/run" -n 3 "$tap_work/differs" \
        "$RG_BUILD_DIR/$program" "$@"
    tap_ended 2 "exit 2 and one line: $program $*, rank $rank: $what" \
        tap_is_line_with "$text"
}

other='rank 2 was started with other arguments than rank 0'
told "$other" 2 'ARGUMENTS=-b 16' bench/all_reduce_perf -b 8
told "$other" 2 'ARGUMENTS=-n 4' bench/recovery_perf -n 3
told "$other" 2 'ARGUMENTS=' bench/transfer_perf -n 10
told "$other" 2 'ARGUMENTS=--case results.a*' validate/rg_validate \
    --case 'results.*'
told "$other" 2 "ARGUMENTS=-o $tap_work/b.rgp --seed 2" bench/rg_tune \
    -o "$tap_work/b.rgp"
told 'rank 1 was started with other' 0 'ARGUMENTS=-b 16' \
    bench/all_reduce_perf -b 8
told "unknown flag '--nonsense'" 1 'ARGUMENTS=--nonsense' \
    bench/all_reduce_perf -b 8
told "RG_MODE is 0 at rank 0 and 1 at rank 2" 2 SETTING=RG_MODE=1 \
    bench/all_reduce_perf -b 8
told "RG_MODE is 0 at rank 0 and 2 at rank 1" 1 SETTING=RG_MODE=2 \
    bench/recovery_perf -n 1
told "RG_MODE is 1 at rank 0 and 0 at rank 1" 0 SETTING=RG_MODE=1 \
    validate/rg_validate --case 'results.queued'
tap_end
