#!/bin/sh
# Which of a host's interfaces others are told of, without a variable that says
# so: in a network of its own for each test.
# shellcheck source=scripts/test/tap.sh
. "$(dirname "$0")/../../../scripts/test/tap.sh"
tap_needs ip
tap_needs unshare
unshare -n true 2>/dev/null || {
    echo "1..0 # SKIP cannot make network namespaces (root, CAP_SYS_ADMIN)"
    exit 0
}
unset RG_CONTROL_HOST RG_CONTROL_IFACE

# expect ADDRESS NAME COMMANDS: what is chosen after these.
expect()
{
    # shellcheck disable=SC2016 # for the shell in the network
    tap_run unshare -n sh -c 'eval "$1" >/dev/null || exit 99
        exec "$0" own' "$RG_BUILD_DIR/runtime/core/test/test_address" "$prepare
$3"
    tap_ended "${4-0}" "$2" tap_is_line_with "$1"
}

# wired NAME ADDRESS, bare NAME ADDRESS: an interface with a cable or without.
# The kernel tells a little later which it is.
# shellcheck disable=SC2016 # for the shell in the network
prepare='
set -e
add() {
    ip link add "$1" type veth peer name "peer-$1"
    ip address add "$2" dev "$1" ${3-}
    ip link set "$1" up
}
wired() {
    add "$@"
    ip link set "peer-$1" up
    settle "$1" " UP "
}
bare() {
    add "$@"
    settle "$1" "DOWN "
}
settle() {
    for _ in $(seq 200); do
        ! ip -brief link show "$1" | grep -qF "$2" || return 0
        sleep 0.05
    done
    exit 99
}
'
expect 10.1.0.1 "one that has no cable is passed over" '
bare docker 172.17.0.1/16; wired eth 10.1.0.1/16'
expect 172.17.0.1 "unless there is no other" 'bare docker 172.17.0.1/16'
expect 10.1.0.1 "the default route decides" '
wired docker 172.17.0.1/16; wired eth 10.1.0.1/16
ip route add default via 10.1.0.254'
expect 10.1.0.1 "and of two, the nearer one" '
wired first 10.2.0.1/16; wired second 10.1.0.1/16
ip route add default via 10.2.0.254 metric 20
ip route add default via 10.1.0.254 metric 10'
expect 10.1.0.1 "else the first" 'wired first 10.1.0.1/16; wired second 10.2.0.1/16'
expect 10.1.0.1 "IPv4 comes before IPv6" '
wired first 2001:db8::1/64 nodad; wired second 10.1.0.1/16
ip route add default dev first'
expect 2001:db8::1 "IPv6 will do" 'wired first 2001:db8::1/64 nodad'
expect "set RG_CONTROL_HOST" "loopback will not" 'ip link set lo up' 1
tap_end
