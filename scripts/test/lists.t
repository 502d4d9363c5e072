#!/bin/sh
# What is listed twice agrees: every source file and script is in a local.mk
# (and so in a distribution), every listed source exists or is made, every
# setting is in ARCHITECTURE.md.
. "$(dirname "$0")/tap.sh"
cd "$RG_SOURCE_DIR" || exit 99

find runtime algos harness bench validate -name '*.[ch]' | sort \
    >"$tap_work/there"
find runtime algos harness bench validate -name local.mk -exec cat {} + |
    sed 's/#.*//; /^nodist_/d' | tr -s ' \t\\:=' '\n' | grep '/[^*%]*\.[ch]$' | sort -u \
    >"$tap_work/listed"

missing=$(comm -23 "$tap_work/there" "$tap_work/listed")
[ -z "$missing" ]
tap_result $? "every source file is in a local.mk"
tap_note "$missing"
# A script beside it makes a header of its own name.
vanished=$(comm -13 "$tap_work/there" "$tap_work/listed" |
    while read -r file; do [ -x "${file%.h}" ] || echo "$file"; done)
[ -z "$vanished" ]
tap_result $? "every listed source file exists"
tap_note "$vanished"

left_behind=$(find scripts -type f ! -name local.mk | while read -r script; do
    grep -qE "[[:blank:]]$script( |\$)" scripts/local.mk || echo "$script"
done)
[ -z "$left_behind" ]
tap_result $? "every script is in a distribution"
tap_note "$left_behind"

unsaid=$(grep -o '"RG_[A-Z_]*"' runtime/core/settings.h | tr -d '"' |
    while read -r name; do
        grep -q "\`$name\`" ARCHITECTURE.md || echo "$name"
    done)
[ -z "$unsaid" ]
tap_result $? "every setting is in ARCHITECTURE.md"
tap_note "$unsaid"
tap_end
