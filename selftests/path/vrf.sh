#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# VRFs: the server has two VRFs with the same addresses, on links with the same link-local
# addresses. Answers and connections stay in the VRF of the client.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/path.sh
. "$(dirname "$(readlink -f "$0")")/../lib/path.sh"

new_ns server red blue

# member NS VRF TABLE: create a VRF of the server, with a cable to the client in NS
member()
{
	ip link add eth0 netns "$1" type veth peer name "to-$2" netns "$server" &&
		ip -n "$server" link add "$2" type vrf table "$3" &&
		ip -n "$server" link set "$2" up &&
		ip -n "$server" link set "to-$2" master "$2" &&
		ip -n "$server" link set "to-$2" addrgenmode none up &&
		ip -n "$1" link set eth0 addrgenmode none up || return
	ip -n "$server" -batch - <<-END || return
		addr add 10.5.0.2/24 dev to-$2
		addr add fd05::2/64 dev to-$2 nodad
		addr add fe80::2/64 dev to-$2 nodad
	END
	ip -n "$1" -batch - <<-END
		addr add 10.5.0.1/24 dev eth0
		addr add fd05::1/64 dev eth0 nodad
		addr add fe80::1/64 dev eth0 nodad
	END
}

# shellcheck disable=SC2154 # new_ns sets them
{
	member "$red" red 10 && member "$blue" blue 20
} || exit 1
ip netns exec "$server" sysctl -q -w net.ipv4.udp_l3mdev_accept=1 || exit 1

# serve WORD...: start a server, which may fork for two connections
serve()
{
	spawn ip netns exec "$server" dblp-peer "$@" say listening accept drain
	server_pid=$spawned
	wait_until 10 output_has "$server_pid" listening
}

# client NS N WORD...: start a client, which also sends N messages
client()
{
	local ns=$1 n=$2

	shift 2
	spawn ip netns exec "$ns" dblp-peer "$@" say connected send "$n" 1000 pause
	wait_until 10 output_has "$spawned" connected
}

# sent NS N: wait until the client has sent its N messages
sent()
{
	[ "$(ip netns exec "$1" dblpctl -j socket list | jq '.[0].msgs_sent')" = "$2" ]
}

# received N M: wait for this number of messages on the two connections of the server
received()
{
	[ "$(ip netns exec "$server" dblpctl -j socket list |
		jq -c '[.[].msgs_received] | sort | map(select(. > 0))')" = "[$1,$2]" ]
}

address_of()
{
	[ "$1" = 4 ] && echo "10.5.0.$2" || echo "fd05::$2"
}

# One listener, and two clients with the same address and port
both()
{
	local v=$1 here there

	here=$(address_of "$v" 1) there=$(address_of "$v" 2)
	serve listen :: 7000 fork || return
	client "$red" 3 bind "$here" 5000 connect "$there" 7000 || return
	client "$blue" 5 bind "$here" 5000 connect "$there" 7000 || return
	wait_until 10 sent "$red" 3 && wait_until 10 sent "$blue" 5 && wait_until 10 received 3 5
}

# A listener bound to one VRF is unreachable from the other
bound()
{
	local v=$1 there

	there=$(address_of "$v" 2)
	serve device red listen :: 7000 || return
	client "$red" 3 connect "$there" 7000 || return
	wait_until 10 sent "$red" 3 || return
	ip netns exec "$blue" dblp-peer fails ECONNREFUSED connect "$there" 7000
}

# A client in a VRF: refused by ICMP, then accepted
from_inside()
{
	local v=$1 here there

	here=$(address_of "$v" 1) there=$(address_of "$v" 2)
	ip netns exec "$server" dblp-peer device blue fails ECONNREFUSED connect "$here" 7000 || return
	spawn ip netns exec "$blue" dblp-peer listen "$here" 7000 say listening accept drain
	wait_until 10 output_has "$spawned" listening || return
	client "$server" 3 device blue connect "$here" 7000 || return
	wait_until 10 sent "$server" 3 || return
	ip netns exec "$server" dblp-peer device red set user-timeout 200 \
		fails ECONNREFUSED connect "$here" 7000
}

# Both ends in one VRF of one machine
to_oneself()
{
	local v=$1 there

	there=$(address_of "$v" 2)
	serve listen :: 7000 || return
	client "$server" 3 device blue connect "$there" 7000 || return
	wait_until 10 received_by 3
}

received_by()
{
	ip netns exec "$server" dblpctl -j socket list | jq -e "any(.msgs_received == $1)"
}

for v in 4 6; do
	try "ipv$v: two clients with one address, one listener" both $v
	try "ipv$v: a listener that is bound to a VRF" bound $v
	try "ipv$v: a client that is bound to a VRF" from_inside $v
	try "ipv$v: both ends in one VRF" to_oneself $v
done

link_local()
{
	serve listen :: 7000 fork || return
	client "$red" 3 bind fe80::1%eth0 5000 connect fe80::2%eth0 7000 || return
	client "$blue" 5 bind fe80::1%eth0 5000 connect fe80::2%eth0 7000 || return
	wait_until 10 sent "$red" 3 && wait_until 10 sent "$blue" 5 && wait_until 10 received 3 5
}
try "link-local clients of two VRFs" link_local

# link_local_bound DEVICE: test with a listener bound to DEVICE
link_local_bound()
{
	serve device "$1" listen :: 7000 || return
	client "$red" 3 connect fe80::2%eth0 7000 || return
	wait_until 10 sent "$red" 3
}
try "a link-local client of a listener that is bound to a VRF" link_local_bound red
try "a link-local client of a listener that is bound to its link" link_local_bound to-red

# The device of the scope may be in the VRF that the socket is bound to, or not
link_local_from_inside()
{
	spawn ip netns exec "$red" dblp-peer listen fe80::1%eth0 7000 say listening accept drain
	wait_until 10 output_has "$spawned" listening || return
	client "$server" 3 device red connect fe80::1%to-red 7000 || return
	wait_until 10 sent "$server" 3 || return
	ip netns exec "$server" dblp-peer device blue fails EINVAL connect fe80::1%to-red 7000 &&
		ip netns exec "$server" dblp-peer device blue fails EINVAL bind fe80::2%to-red 7000 &&
		ip netns exec "$server" dblp-peer device to-blue fails EINVAL connect fe80::1%to-red 7000
}
try "a link-local address whose link is not in the VRF is invalid" link_local_from_inside

for ns in server red blue; do
	try "no sockets are left in $ns" wait_until 40 no_sockets "${!ns}"
done
done_testing
