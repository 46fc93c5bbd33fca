#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Devices of each kind are deleted under idle connections, which must not hold a reference:
# otherwise 'ip link del' would wait forever. The connections continue when there is another
# device with the same addresses.

# shellcheck disable=SC2154,SC2317 # new_ns sets them; functions are called by try
# shellcheck source=selftests/lib/path.sh
. "$(dirname "$(readlink -f "$0")")/../lib/path.sh"

needs wg
kinds=(veth vlan macvlan ipvlan vxlan wireguard bond bridge vrf)

new_ns client server
for n in 0 1 2 3 4; do
	ip link add eth$n netns "$client" type veth peer name eth$n netns "$server" || exit 1
done
umask 077
for n in 1 2; do
	wg genkey > "$tmp/private$n" && wg pubkey < "$tmp/private$n" > "$tmp/public$n" || exit 1
done

# both COMMAND [ARGUMENT...]: run at both ends, with the namespace and the numbers of both ends
both()
{
	"$1" "$client" 1 2 "${@:2}" && "$1" "$server" 2 1 "${@:2}"
}

underlay()
{
	ip -n "$1" -batch - <<-END
		link set eth0 up
		addr add 10.30.0.$2/24 dev eth0
		addr add fd30::$2/64 dev eth0 nodad
		link set eth4 up
	END
}
both underlay || exit 1

# Commands that create the device d$kind, with the number of its network
on()
{
	ip -n "$1" link add "d$kind" link "$4" type "$kind" "${@:5}"
}

make_veth()
{
	ip link add dveth netns "$client" type veth peer name dveth netns "$server"
}

make_vlan()
{
	both on eth0 id 5
}

make_macvlan()
{
	both on eth0 mode bridge
}

make_ipvlan()
{
	both on eth4 mode l2
}

vxlan_at()
{
	ip -n "$1" link add dvxlan type vxlan id 7 local "10.30.0.$2" remote "10.30.0.$3" \
		dstport 4789 dev eth0
}

make_vxlan()
{
	both vxlan_at
}

wireguard_at()
{
	ip -n "$1" link add dwireguard type wireguard &&
		ip netns exec "$1" wg set dwireguard private-key "$tmp/private$2" listen-port 51820 \
			peer "$(cat "$tmp/public$3")" endpoint "10.30.0.$3:51820" \
			allowed-ips "10.$4.0.$3/32,fd$4::$3/128"
}

make_wireguard()
{
	both wireguard_at "$1"
}

# with_port NS HERE THERE PORT WORD...: create a device with PORT as a lower device
with_port()
{
	ip -n "$1" -batch - <<-END
		link add d$kind type $kind ${*:5}
		link set $4 down
		link set $4 master d$kind
		link set $4 up
	END
}

make_bond()
{
	both with_port eth1 mode active-backup
}

make_bridge()
{
	both with_port eth2 forward_delay 0
}

make_vrf()
{
	both with_port eth3 table 9
}

addresses()
{
	ip -n "$1" -batch - <<-END
		link set d$kind up
		addr add 10.$4.0.$2/24 dev $5
		addr add fd$4::$2/64 dev $5 nodad
	END
}

# make KIND: create the device with addresses at both ends; for a VRF, on the device in it
make()
{
	local kind=$1 n=31 other

	for other in "${kinds[@]}"; do
		[ "$other" != "$kind" ] || break
		n=$((n + 1))
	done
	network[$kind]=$n
	if [ "$kind" = vrf ]; then
		make_vrf && both addresses "$n" eth3
	else
		"make_$kind" "$n" && both addresses "$n" "d$kind"
	fi
}

# of_network KIND 4|6: set the server's address, port, and device if one is needed
of_network()
{
	to="10.${network[$1]}.0.2" port=$((7000 + network[$1])) bound=()
	[ "$2" = 4 ] || to=fd${network[$1]}::2
	[ "$1" != vrf ] || bound=(device dvrf)
}

# receive KIND 4|6: start a receiver, which leaves messages unread until it is allowed
receive()
{
	local to port bound

	of_network "$@"
	spawn ip netns exec "$server" dblp-peer "${bound[@]}" listen "$to" "$port" say listening \
		accept recv 1 await "$tmp/go.$1" drain
	ends[$1]+="$spawned "
}

# send KIND 4|6: start a sender to this receiver
send()
{
	local to port bound

	of_network "$@"
	spawn ip netns exec "$client" dblp-peer "${bound[@]}" connect "$to" "$port" send 3 1000 \
		await "$tmp/go.$1" send 3 1000 close
	ends[$1]+="$spawned "
}

idle()
{
	ip netns exec "$client" dblpctl -j socket list |
		jq -e "map(select(.msgs_sent == 3)) | length == 2 * ${#kinds[@]}"
}

declare -A network ends=()
all_idle()
{
	local kind pid

	for kind in "${kinds[@]}"; do
		make "$kind" || return
		receive "$kind" 4
		receive "$kind" 6
	done
	for pid in "${all_pids[@]}"; do
		wait_until 20 output_has "$pid" listening || return
	done
	for kind in "${kinds[@]}"; do
		send "$kind" 4
		send "$kind" 6
	done
	wait_until 30 idle || return
	# Keep the processes for the next points
	standing=("${all_pids[@]}")
	all_pids=()
}
trap 'all_pids+=("${standing[@]}"); cleanup' EXIT
standing=()
try "connections over each kind of device, idle and with unread messages" all_idle

deleted_at()
{
	! ip -n "$1" link show "d$4" > /dev/null 2>&1 || timeout 60 ip -n "$1" link del "d$4" || return
	[ "$4" != vrf ] || ip -n "$1" addr flush dev eth3
	fails ip -n "$1" link show "d$4" 2> /dev/null
}
for kind in "${kinds[@]}"; do
	try "$kind: no idle connection keeps it" both deleted_at "$kind"
done

# A socket bound to a deleted device stays bound to it. All others start to send before a new
# device exists.
go_on()
{
	local pid

	[ -n "${ends[$1]:-}" ] || return
	signal "go.$1"
	make "$1" || return
	for pid in ${ends[$1]}; do
		ended "$pid" 0 || return
	done
}
for kind in "${kinds[@]}"; do
	[ "$kind" = vrf ] || try "$kind: the connections go on over another one" go_on "$kind"
done

slay "${standing[@]}"
standing=()
done_with_sockets
