# shellcheck shell=sh
# What the scripts that draw share; they source it, with `set -u`.

# fail CODE TEXT: one line, whatever is in a name.
fail()
{
    printf '%s\n' "${0##*/}: $(printf '%s' "$2" | tr '[:cntrl:]' '?')" >&2
    exit "$1"
}

# plot_to PREFIX FILE: sets $prefix, by default FILE without its ending, and
# $quoted, the same as a word of gnuplot's, where a quote is two.
plot_to()
{
    prefix=$1
    if [ -z "$prefix" ]; then
        case ${2##*/} in
        ?*.*) prefix=${2%.*} ;;
        *) prefix=$2 ;;
        esac
    fi
    # shellcheck disable=SC2034 # for who sources this
    quoted=$(printf '%s' "$prefix" | sed "s/'/''/g")
    folder=$(dirname -- "$prefix.")
    [ -d "$folder" ] && [ -w "$folder" ] ||
        fail 2 "cannot write '$prefix.png': '$folder' is no folder to write to"
    command -v gnuplot >/dev/null || fail 3 "no gnuplot"
}
