# Sourced by the shell tests: TAP lines and a copy of the sources to spoil.
: "${RG_SOURCE_DIR:=$(cd "$(dirname "$0")/../.." && pwd)}"
tap_count=0
tap_failed=0
tap_work=$(mktemp -d)
trap 'rm -rf "$tap_work"' EXIT

# tap_result STATUS NAME: ok when STATUS is 0.
tap_result()
{
    tap_count=$((tap_count + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $tap_count - $2"
    else
        tap_failed=1
        echo "not ok $tap_count - $2"
    fi
}

# tap_note TEXT: shown as diagnosis.
tap_note()
{
    [ -z "$1" ] || echo "$1" | sed 's/^/# /'
}

tap_end()
{
    echo "1..$tap_count"
    exit $tap_failed
}

# The sources (not the build) in a folder of their own; prints its name.
tap_copy_sources()
{
    copy=$tap_work/tree
    rm -rf "$copy"
    mkdir -p "$copy"
    (cd "$RG_SOURCE_DIR" &&
        find runtime algos harness bench validate scripts -name '*.[ch]' \
            -o -name 'check-*' -o -name layers.txt | tar cf - -T -) |
        tar xf - -C "$copy"
    chmod -R u+w "$copy"
    echo "$copy"
}
