#!/bin/sh
# The worked example of algos/README.md, on a copy of the sources: an all-reduce
# in one file and one line is validated, and the tuner takes it where it is
# best. Beside it only the ring is left, for the sake of the compiler's time.
# For `make check-long`: it builds, and who is best is measured. Exit 1: one of
# them failed.
set -u
source=${RG_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
n=0 failed=0

# check NAME COMMAND...
check()
{
    n=$((n + 1)) name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        failed=1
        tail -n 15 "$work/log" | sed 's/^/# /'
    fi
}

copy()
{
    mkdir "$work/source" "$work/build" &&
        (cd "$source" && tar -c --exclude=./build --exclude=./.git \
            --exclude=./results .) | tar -x -C "$work/source"
}

register()
{
    cd "$work/source" || return 1
    cp algos/test/all_reduce_mesh.c algos/all_reduce/ &&
        sed -i -e '/^\talgos\/all_reduce\/all_reduce_\(two\|dou\|hier\|oneshot\.\).* \\$/d' \
            -e 's#^\(\talgos/all_reduce/\)all_reduce_ring\.c \\$#&\n\1all_reduce_mesh.c \\#' \
            algos/local.mk && autoreconf -fi
}

build()
{
    cd "$work/build" && "$work/source/configure" --without-cuda \
        --with-dtypes=f32 CFLAGS=-O2 && make -j"$(nproc)" validate/rg_validate \
        bench/rg_tune
}

validated()
{
    (cd "$work/build" && validate/rg_validate --launch local --ranks 3 \
        --case 'results.all_reduce.mesh.f32.*') | grep -E '^[1-9][0-9]* passed, 0 failed'
}

chosen()
{
    cd "$work/build" && bench/rg_tune --launch local --ranks 4 -e 64K \
        --budget 20 -o mesh.rgp && grep -E '^all_reduce .* mesh ' mesh.rgp
}

echo "1..5"
check "the sources are copied" copy
check "one line registers it" register
check "it is built" build
check "its results are right" validated
check "the tuner chooses it" chosen
exit $failed
