#!/bin/sh
# scripts/check-headers passes the tree and catches what is planted.
. "$(dirname "$0")/tap.sh"

tap_run "$RG_SOURCE_DIR/scripts/check-headers"
tap_ended 0 "every header compiles alone"

# catches NAME TEXT: the spoilt copy fails and the report holds TEXT. Only
# the folder that was spoilt is kept, which makes it quick.
catches()
{
    tap_run "$copy/scripts/check-headers"
    tap_ended 1 "$1" tap_holds "$2"
}

copy=$(tap_copy_sources)
rm -r "$copy"/runtime/[d-z]*/ "$copy"/harness/*
echo 'FILE *planted(void);' >"$copy/runtime/core/clock.h"
catches "a header that needs another one first" \
    'runtime/core/clock.h does not compile alone as C'

copy=$(tap_copy_sources)
rm -r "$copy"/runtime/core/* "$copy"/harness/*
echo 'static inline int *planted(void *p) { return p; }' \
    >"$copy/runtime/device/word.h"
if command -v "${CXX:-c++}" >/dev/null 2>&1; then
    catches "a device header that only C accepts" \
        'runtime/device/word.h does not compile alone as C++'
else
    tap_result 0 "a device header that only C accepts # SKIP no C++ compiler"
fi
tap_end
