#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Paths with nested tunnels, each offload of each device on and off, a router that merges packets,
# XDP, and filters that redirect. Each byte of the messages is compared. A bond continues by its
# other device.

# shellcheck disable=SC2154,SC2317 # new_ns sets them; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"

needs wg
new_ns client router server
umask 077
for n in 1 2; do
	wg genkey > "$tmp/private$n" && wg pubkey < "$tmp/private$n" > "$tmp/public$n" || exit 1
done

# leg NS N: connect eth0 of NS to the router's eth$N
leg()
{
	ip link add eth0 netns "$1" type veth peer name "eth$2" netns "$router" &&
		ip -n "$1" -batch - <<-END && ip -n "$router" -batch - <<-END
			link set eth0 up
			addr add 10.40.$2.2/24 dev eth0
			addr add fd40:$2::2/64 dev eth0 nodad
			route add default via 10.40.$2.1
			route add default via fd40:$2::1
		END
			link set eth$2 up
			addr add 10.40.$2.1/24 dev eth$2
			addr add fd40:$2::1/64 dev eth$2 nodad
		END
}
leg "$client" 1 && leg "$server" 2 &&
	ip netns exec "$router" sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 || exit 1

# ends COMMAND [ARGUMENT...]: run at both ends, with the namespace and the numbers of both ends
ends()
{
	"$1" "$client" 1 2 "${@:2}" && "$1" "$server" 2 1 "${@:2}"
}

# up NS HERE THERE DEVICE NETWORK: add addresses to a device and set it up
up()
{
	ip -n "$1" -batch - <<-END
		link set $4 up
		addr add 10.$5.0.$2/24 dev $4
		addr add fd$5::$2/64 dev $4 nodad
	END
}

# vxlan NS HERE THERE DEVICE NETWORK ADDRESS-OF-1 ADDRESS-OF-2: create a VXLAN device
vxlan()
{
	local to=("${@:6}")

	ip -n "$1" link add "$4" type vxlan id "$5" local "${to[$2 - 1]}" remote "${to[$3 - 1]}" \
		dstport "48$5" && up "$@"
}

# wireguard NS HERE THERE DEVICE NETWORK ADDRESS-OF-1 ADDRESS-OF-2: create a WireGuard device
wireguard()
{
	local to=("${@:6}")

	ip -n "$1" link add "$4" type wireguard &&
		ip netns exec "$1" wg set "$4" private-key "$tmp/private$2" listen-port "52$5" \
			peer "$(cat "$tmp/public$3")" endpoint "${to[$3 - 1]}:52$5" \
			allowed-ips "10.$5.0.$3/32,fd$5::$3/128" && up "$@"
}

ends vxlan vx0 41 10.40.1.2 10.40.2.2 &&
	ends wireguard wg0 42 10.40.1.2 10.40.2.2 &&
	ends wireguard wg1 43 10.41.0.1 10.41.0.2 &&
	ends vxlan vx1 44 10.42.0.1 10.42.0.2 || exit 1

# xfer 4|6 NETWORK: transfer messages and compare them
xfer()
{
	local address="10.$2.0.2"

	[ "$1" = 4 ] || address=fd$2::2
	dblp-xfer --from "$client" --to "$server" --address "$address" --size 100000,1000 --count 6 \
		--duplex --timeout 60
}

# offloads NAME STATE...: set offloads of all devices that have them
offloads()
{
	local ns

	for ns in "$client" "$server" "$router"; do
		# shellcheck disable=SC2016 # for the shell in there
		ip netns exec "$ns" bash -c 'for device in /sys/class/net/*; do
			ethtool -K "${device##*/}" "$@"
		done' bash "$@" > /dev/null 2>&1
	done
}

# switched NAME: is this offload of the router off, and are others on?
switched()
{
	local name=$1

	ip netns exec "$router" ethtool -k eth1 | sed 's/ \[.*//' > "$tmp/state"
	case $1 in
	gso) name=generic-segmentation-offload ;;
	gro) name=generic-receive-offload ;;
	tx) name=tx-checksumming ;;
	none) grep -x 'rx-udp-gro-forwarding: on' "$tmp/state" && grep -x 'tx-udp-segmentation: on' "$tmp/state"; return ;;
	all) fails grep -E '^(rx-udp-gro-forwarding|tx-udp-segmentation|tx-checksumming|scatter-gather|generic-receive-offload): on' "$tmp/state"; return ;;
	esac
	grep -x "$name: off" "$tmp/state"
}

all=(tx sg gso tx-udp-segmentation tx-udp_tnl-segmentation gro rx-udp-gro-forwarding)
v=4
for without in none gso tx-udp-segmentation tx-udp_tnl-segmentation tx rx-udp-gro-forwarding gro all; do
	words=()
	for name in "${all[@]}"; do
		case $without in "$name"|all) words+=("$name" off) ;; *) words+=("$name" on) ;; esac
	done
	offloads "${words[@]}"
	try "offloads except $without" switched "$without"
	try "VXLAN, offloads except $without" xfer $v 41
	try "WireGuard, offloads except $without" xfer $v 42
	try "WireGuard over VXLAN, offloads except $without" xfer $v 43
	try "VXLAN over WireGuard, offloads except $without" xfer $v 44
	v=$((10 - v))
done
# shellcheck disable=SC2046 # words
offloads $(printf '%s on ' "${all[@]}")

# with_xdp MODE: attach an XDP program to the device of each host and to one of the router
with_xdp()
{
	local where

	for where in "$client eth0" "$server eth0" "$router eth1"; do
		# shellcheck disable=SC2086 # words
		set -- "$1" $where
		spawn ip netns exec "$2" dblp-xdp "$3" "$1"
		wait_until 10 output_has "$spawned" ready || return
	done
	xfer 4 41 && xfer 6 42
}
try "XDP on the path" with_xdp native
try "generic XDP on the path" with_xdp generic

# redirect NS DEVICE TO: redirect packets received on one device to the other
redirect()
{
	tc -n "$1" qdisc add dev "$2" clsact &&
		tc -n "$1" filter add dev "$2" ingress matchall action mirred egress redirect dev "$3"
}

# The router forwards without routing, and the server uses an intermediate queueing device
redirected()
{
	ip link add eth4 netns "$client" type veth peer name eth4 netns "$router" &&
		ip link add eth5 netns "$router" type veth peer name eth4 netns "$server" &&
		ip -n "$router" link set eth4 up && ip -n "$router" link set eth5 up &&
		ends up eth4 45 && redirect "$router" eth4 eth5 && redirect "$router" eth5 eth4 &&
		xfer 4 45 && xfer 6 45 || return
	ip -n "$server" link add ifb0 type ifb && ip -n "$server" link set ifb0 up &&
		redirect "$server" eth4 ifb0 && xfer 4 45 && xfer 6 45
}
try "packets are redirected" redirected

bond()
{
	ip -n "$1" -batch - <<-END && up "$@"
		link add bond7 type bond mode active-backup miimon 20
		link set port0 master bond7
		link set port1 master bond7
	END
}

# failover 4|6 NOW NEXT: set the active device of a bond down during a transfer
failover()
{
	local address=10.46.0.2

	[ "$1" = 4 ] || address=fd46::2
	dblp-xfer --from "$client" --to "$server" --address "$address" --size 200000 --count 20 --timeout 100 \
		--halfway "ip -n $client link set port$2 down" || return
	ip netns exec "$client" grep -x "port$3" /sys/class/net/bond7/bonding/active_slave &&
		ip -n "$client" link set "port$2" up
}

for n in 0 1; do
	ip link add port$n netns "$client" type veth peer name port$n netns "$server" || exit 1
done
try "a bond of two devices" ends bond bond7 46
try "IPv4: in a transfer, one of them goes down" failover 4 0 1
try "IPv6: in a transfer, one of them goes down" failover 6 1 0

for ns in client server; do
	try "no sockets are left at the $ns" wait_until 40 no_sockets "${!ns}"
done
done_testing
