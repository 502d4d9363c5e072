#!/bin/sh
# Every source file is in a local.mk (and so in a distribution), and every
# listed one exists.
. "$(dirname "$0")/tap.sh"
cd "$RG_SOURCE_DIR" || exit 99

find runtime algos harness bench validate -name '*.[ch]' | sort \
    >"$tap_work/there"
find runtime algos harness bench validate -name local.mk -exec cat {} + |
    sed 's/#.*//' | tr -s ' \t\\:=' '\n' | grep '/[^*%]*\.[ch]$' | sort -u \
    >"$tap_work/listed"

missing=$(comm -23 "$tap_work/there" "$tap_work/listed")
[ -z "$missing" ]
tap_result $? "every source file is in a local.mk"
tap_note "$missing"
vanished=$(comm -13 "$tap_work/there" "$tap_work/listed")
[ -z "$vanished" ]
tap_result $? "every listed source file exists"
tap_note "$vanished"
tap_end
