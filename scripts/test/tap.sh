# Sourced by the shell tests: TAP lines, commands that are judged by how they
# end, and a copy of the sources to spoil.
: "${RG_SOURCE_DIR:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${RG_BUILD_DIR:=$RG_SOURCE_DIR/build}"
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

# tap_needs COMMAND: without it all tests are skipped.
tap_needs()
{
    command -v "$1" >/dev/null 2>&1 && return
    echo "1..0 # SKIP no $1"
    exit 0
}

# tap_run COMMAND...: keeps all that it says in $output, how it ends in $status.
tap_run()
{
    output=$("$@" 2>&1)
    status=$?
}

# tap_ended CODE NAME [TEST...]: ok when $status is CODE and the test, a
# command, holds; if not, shows what tap_run kept.
tap_ended()
{
    tap_wanted=$1 tap_name=$2
    shift 2
    if [ "$status" -eq "$tap_wanted" ] && { [ $# -eq 0 ] || "$@"; }; then
        tap_result 0 "$tap_name"
    else
        tap_result 1 "$tap_name"
        tap_note "exit $status, wanted $tap_wanted${1:+ and $*}: $output"
    fi
}

# tap_refuses PROGRAM CODE ARGUMENT...: so, on ranks that are threads of one
# process, it ends with the code and one line.
tap_refuses()
{
    tap_program=$1 tap_code=$2
    shift 2
    tap_run "$tap_program" --launch local "$@"
    tap_ended "$tap_code" "exit $tap_code for $*" tap_is_line
}

# Tests of $output: it is one line; it is one line that holds TEXT; it holds
# TEXT.
tap_is_line()
{
    [ "$(printf '%s\n' "$output" | wc -l)" -eq 1 ]
}

tap_is_line_with()
{
    tap_is_line && tap_holds "$1"
}

tap_holds()
{
    printf '%s\n' "$output" | grep -qF -- "$1"
}

# It holds TEXT on one line only.
tap_holds_once()
{
    [ "$(printf '%s\n' "$output" | grep -cF -- "$1")" -eq 1 ]
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
