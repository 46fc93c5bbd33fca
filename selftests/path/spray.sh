#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# DBLP_SPRAY on four paths that routers select by a hash of addresses and ports.

# shellcheck disable=SC2317,SC2154 # functions are called by try; new_ns sets variables
# shellcheck source=selftests/lib/path.sh
. "$(dirname "$(readlink -f "$0")")/../lib/path.sh"

# $client - $left = four paths = $right - $server
new_ns client left right server
cable "$client" eth0 "$left" eth0 1
cable "$right" eth0 "$server" eth0 2
ip -n "$client" route add default via 10.1.0.2 || exit 1
ip -n "$client" route add default via fd01::2 || exit 1
ip -n "$server" route add default via 10.2.0.1 || exit 1
ip -n "$server" route add default via fd02::1 || exit 1
ways=() backs=() ways6=() backs6=()
for i in 3 4 5 6; do
	cable "$left" "p$i" "$right" "p$i" $i
	ways+=(nexthop via "10.$i.0.2")
	backs+=(nexthop via "10.$i.0.1")
	ways6+=(nexthop via "fd0$i::2")
	backs6+=(nexthop via "fd0$i::1")
done
for ns in "$left" "$right"; do
	ip netns exec "$ns" sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 \
		net.ipv4.fib_multipath_hash_policy=1 net.ipv6.fib_multipath_hash_policy=1 \
		net.ipv4.conf.all.rp_filter=0 || exit 1
done
ip -n "$left" route add 10.2.0.0/24 "${ways[@]}" || exit 1
ip -n "$right" route add 10.1.0.0/24 "${backs[@]}" || exit 1
ip -n "$left" route add fd02::/64 "${ways6[@]}" || exit 1
ip -n "$right" route add fd01::/64 "${backs6[@]}" || exit 1
net=2

# rates RATE...: set the rates of the paths, in both directions
rates()
{
	local i=3

	for rate; do
		tc -n "$left" qdisc replace dev p$i root netem rate "$rate" delay 1ms limit 1000 &&
			tc -n "$right" qdisc replace dev p$i root netem rate "$rate" delay 1ms limit 1000 ||
			return
		i=$((i + 1))
	done
}

# drawn COMMAND...: by chance, 16 ports miss one of four paths once in 25 runs, so retry with other
# ports
drawn()
{
	"$@" || "$@" || "$@"
}

# packets_on PATH: print the number of packets from the client's side
packets_on()
{
	ip -n "$left" -j -s link show "p$1" | jq '.[0].stats64.tx.packets'
}

# transfer 4|6 OPTION...: transfer 3 MB
transfer()
{
	local v=$1
	shift

	dblp-xfer --from "$client" --to "$server" --address "$(server_of "$v")" --size 3000000 "$@"
}

# All bytes arrive, each path is used, and reordering causes almost no retransmissions. A timeout
# on a busy machine repeats at most three packets.
spread()
{
	local v=$1 i before=() again timeouts
	shift

	for i in 3 4 5 6; do
		before[i]=$(packets_on "$i")
	done
	again=$(counter SegAgain) timeouts=$(counter PtoExpired)
	transfer "$v" --spray 16 "$@" || return
	for i in 3 4 5 6; do
		before[i]=$(($(packets_on "$i") - before[i]))
	done
	again=$(($(counter SegAgain) - again)) timeouts=$(($(counter PtoExpired) - timeouts))
	echo "packets by path: ${before[*]}, again $again, timeouts $timeouts"
	[ "$again" -lt $((100 + 3 * timeouts)) ] || return
	for i in 3 4 5 6; do
		[ "${before[i]}" -ge 200 ] || return
	done
}
rates 20mbit 20mbit 20mbit 20mbit || exit 1
for v in 4 6; do
	try "ipv$v: packets take all paths" drawn spread $v
done
try "packets of both directions take all paths" drawn spread 4 --duplex
try "packets take all paths with a budget and policy early" drawn spread 4 --budget 100000 --policy early

# The last path has a tenth of the rate, and gets less than a third of the others' mean
slow()
{
	local i packets=()

	rates 5mbit 5mbit 5mbit 500kbit || return
	for i in 3 4 5 6; do
		packets[i]=$(packets_on "$i")
	done
	transfer 4 --spray 16 --timeout 60 || return
	for i in 3 4 5 6; do
		packets[i]=$(($(packets_on "$i") - packets[i]))
	done
	echo "packets by path: ${packets[*]}"
	[ "${packets[6]}" -ge 20 ] &&
		[ $((9 * packets[6])) -lt $((packets[3] + packets[4] + packets[5])) ]
}
try "a path of a tenth of the rate gets less" drawn slow

# new_qdisc WORDS...: set the qdisc of the last path, in both directions
new_qdisc()
{
	local ns

	for ns in "$left" "$right"; do
		tc -n "$ns" qdisc del dev p6 root && tc -n "$ns" qdisc add dev p6 root netem "$@" || return
	done
}

# last_path FIELD: print a counter of the last path's queue
last_path()
{
	tc -n "$left" -s -j qdisc show dev p6 | jq ".[0].$1"
}

# Eight messages are sent while one path is dead. Only a part of a window and some probes are sent
# there, and a probe finds that the path is back
dark()
{
	local went came

	rm -f "$tmp"/{dark,light,end}
	rates 5mbit 5mbit 5mbit 5mbit || return
	pair 4 send 2 500000 await "$tmp/dark" send 8 500000 await "$tmp/light" send 8 500000 \
		await "$tmp/end" close || return
	wait_until 20 settled 2 && new_qdisc loss 100% && signal dark || return
	wait_until 60 settled 10 && went=$(last_path drops) || return
	new_qdisc rate 5mbit delay 1ms limit 1000 && signal light && wait_until 60 settled 18 || return
	came=$(last_path packets)
	signal end && wait_until 10 no_sockets "$client" || return
	echo "$went went into the dark, $came came afterwards"
	[ "$went" -gt 5 ] && [ "$went" -lt 350 ] && [ "$came" -ge 100 ]
}
before=(set spray 16) listen=(set spray 16)
try "a dead path costs little, and is used when it is back" drawn dark

# unreachable: print the number of ICMP errors of the server, which ends before the last packets
# arrive
unreachable()
{
	ip netns exec "$server" nstat -a -s -z IcmpOutDestUnreachs | awk '/^Icmp/ { print $2 }'
}

# An ICMP error for any of the ports is accepted. Only errors after the end of the client are
# refused.
narrow()
{
	local before refused late

	before=$(counter MtuReduced)
	refused=$(counter IcmpRefused)
	late=$(unreachable)
	rates 20mbit 20mbit 20mbit 20mbit &&
		for i in 4 5 6; do
			ip -n "$left" link set "p$i" mtu 1300 && ip -n "$right" link set "p$i" mtu 1300 || return
		done
	transfer 4 --spray 16 --timeout 60 || return
	refused=$(($(counter IcmpRefused) - refused))
	late=$(($(unreachable) - late))
	echo "$refused errors were refused, the server sent $late"
	[ "$(counter MtuReduced)" -gt "$before" ] && [ "$refused" -le "$late" ]
}
try "ICMP errors of narrower paths are accepted for any port" narrow

is_zero()
{
	local ns

	for ns in "$client" "$server"; do
		is dropped "$(ip netns exec "$ns" dblpctl -j stats | jq .DropPort)" 0 || return
	done
}
try "no packet arrived from a port that was not announced" is_zero

done_testing
