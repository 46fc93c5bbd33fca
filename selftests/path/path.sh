#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Path MTU, and changes of it.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/path.sh
. "$(dirname "$(readlink -f "$0")")/../lib/path.sh"

new_ns client router server

# line: connect $client - $router - $server
# shellcheck disable=SC2154 # new_ns sets them
line()
{
	local v

	cable "$client" eth0 "$router" eth1 1
	cable "$router" eth2 "$server" eth0 2
	ip -n "$client" route add default via 10.1.0.2 || exit 1
	ip -n "$client" route add default via fd01::2 || exit 1
	ip -n "$server" route add default via 10.2.0.1 || exit 1
	ip -n "$server" route add default via fd02::1 || exit 1
	for v in net.ipv4.ip_forward net.ipv6.conf.all.forwarding; do
		ip netns exec "$router" sysctl -q -w $v=1 || exit 1
	done
}

net=2

# narrow MTU: set the MTU of the link from the router to the server
narrow()
{
	ip -n "$router" link set eth2 mtu "$1" && ip -n "$server" link set eth0 mtu "$1"
}

# forget: flush the client's cached MTUs
forget()
{
	ip -n "$client" route flush cache && ip -n "$client" -6 route flush cache
}

line

# delay TIME: delay packets in each direction
delay()
{
	netem "$client" delay "$1" && netem "$server" delay "$1"
}

no_delay()
{
	tc -n "$client" qdisc del dev eth0 root
	tc -n "$server" qdisc del dev eth0 root
}

# The packets of a window are too large and cause ICMP errors. They are retransmitted without a
# timeout, and later segments fit.
too_big()
{
	local v=$1 before

	narrow 1500 && forget && rm -f "$tmp"/go* || return
	pair "$v" send 1 1000 await "$tmp/go" send 1 20000 await "$tmp/go2" send 1 5000 pause ||
		return
	wait_until 10 settled 1 || return
	is segment "$(info seg_size)" "$(segment "$v" 1500)" || return

	narrow 1300 || return
	before=$(counter PtoExpired)
	signal go
	wait_until 10 settled 2 || return
	# On a host that is busy for a round trip, timeouts expire
	[ "${DBLP_VIRTUAL_TIME:-0}" = 0 ] || is timeouts "$(counter PtoExpired)" "$before" ||
		return
	is segment "$(info seg_size)" "$(segment "$v" 1300)" || return
	sniff "$client" eth0 || return
	signal go2
	wait_until 10 settled 3 || return
	# At least five; more if a slow machine repeats some
	[ "$(grep -c 'whole DATA' "$log")" -ge 5 ] || return
	is "larger ones" "$(awk '$9 == "DATA" && $4 > 1300' "$log" | wc -l)" 0 ||
		return
	is "in pieces" "$(grep -c piece "$log")" 0
}
delay 200ms
for v in 4 6; do
	try "ipv$v: a router says that packets are too big" too_big $v
done
no_delay

# midway COMMAND: print a command for dblp-xfer --connected, which runs COMMAND after some packets
# were sent. Packets are slow until then, so that most of the message is unsent.
midway()
{
	tc -n "$router" qdisc replace dev eth2 root netem rate 1mbit limit 1000 &&
		echo "{ $(once_counted "$client" BytesFirst 10000 "$1
			tc -n $router qdisc change dev eth2 root netem rate 50mbit limit 1000")
		} &"
}

# Segments cut for the old MTU are sent in IP fragments, and every byte arrives.
too_big_midway()
{
	local v=$1

	narrow 1500 && forget || return
	dblp-xfer --from "$client" --to "$server" --address "$(server_of "$v")" --size 3000000 \
		--connected "$(midway "ip -n $router link set eth2 mtu 1300
			ip -n $server link set eth0 mtu 1300")" || return
	tc -n "$router" qdisc del dev eth2 root
}

fragmented()
{
	local v=$1

	sniff "$client" eth0 || return
	too_big_midway "$v" || return
	[ "$(grep -c piece "$log")" -gt 100 ]
}
for v in 4 6; do
	try "ipv$v: the path narrows under a message" fragmented $v
done

# unasked 4|6: does this kernel change the route of a UDP packet by an ICMP error without asking the
# socket? IPv6 asked until Linux 6.12.118
unasked()
{
	[ "$1" = 4 ] || printf '%s\n' 6.12.118 "$(uname -r)" | sort -VC
}

# An ICMP error without a connection ID, or with a wrong one, does not affect a connection; with
# the right one it does.
forged()
{
	local v=$1 reduced refused how

	narrow 1500 && forget && rm -f "$tmp"/go* || return
	pair "$v" send 1 1 await "$tmp/go.short" send 1 1 await "$tmp/go.forged" send 1 1 \
		await "$tmp/go.genuine" send 1 1 pause || return
	wait_until 10 settled 1 || return
	reduced=$(counter MtuReduced)
	for how in short forged genuine; do
		refused=$(counter IcmpRefused)
		spawn ip netns exec "$router" dblp-toobig eth1 1300 "$how"
		wait_until 10 output_has "$spawned" ready || return
		signal "go.$how"
		wait_until 10 output_has "$spawned" sent || return
		[ "$how" = genuine ] && break
		wait_until 10 counted IcmpRefused $((refused + 1)) || return
		is "connections that believe one $how" "$(counter MtuReduced)" "$reduced" || return
		unasked "$v" && continue
		is "segment after one $how" "$(info seg_size)" "$(segment "$v" 1500)" || return
	done
	wait_until 10 counted MtuReduced $((reduced + 1)) || return
	is "segment after a genuine one" "$(info seg_size)" "$(segment "$v" 1300)"
}
for v in 4 6; do
	try "ipv$v: a forged ICMP error changes nothing" forged $v
done

# hole MTU: drop larger packets to the server without ICMP
hole()
{
	ip -n "$server" link set eth0 mtu "$1"
}

# wide MTU: set the MTU of all links, and remove the hole
wide()
{
	ip -n "$client" link set eth0 mtu "$1" && ip -n "$router" link set eth1 mtu "$1" &&
		narrow "$1" && forget
}

# seg_size_between LOW HIGH: is the client's segment size within this range?
seg_size_between()
{
	local have

	have=$(info seg_size)
	[ "$have" -ge "$1" ] && [ "$have" -le "$2" ]
}

# A veth carries 4 bytes more than its MTU. The search ends at most 8 bytes, and an element, below
# the limit.
found()
{
	wait_until 20 seg_size_between "$(segment "$1" $(($2 - 8)))" "$(segment "$1" $(($2 + 4)))"
}

# Messages with too large packets arrive, later ones have smaller packets, and the search for the
# size runs while messages are sent.
black_hole()
{
	local v=$1 mtu=$2 gap=$3 holes

	wide "$mtu" && rm -f "$tmp"/go* || return
	holes=$(counter MtuBlackHole)
	pair "$v" send 1 1000 await "$tmp/go" send 300 "$mtu" await "$tmp/go2" \
		send 1000000 "$mtu" || return
	wait_until 10 settled 1 || return
	hole "$gap" || return
	signal go
	wait_until 30 settled 301 || return
	is "black holes" "$(counter MtuBlackHole)" $((holes + 1)) || return
	signal go2
	found "$v" "$gap"
}
for v in 4 6; do
	try "ipv$v: large packets vanish" black_hole $v 1500 1400
	try "ipv$v: jumbo packets vanish" black_hole $v 9000 1500
done

# Several messages of the old size are lost at once.
black_hole_midway()
{
	local v=$1

	wide 1500 || return
	dblp-xfer --from "$client" --to "$server" --address "$(server_of "$v")" \
		--size 1000000,300000 --count 4 \
		--connected "$(midway "ip -n $server link set eth0 mtu 1400")" || return
	tc -n "$router" qdisc del dev eth2 root
}
for v in 4 6; do
	try "ipv$v: large packets begin to vanish under a message" black_hole_midway $v
done

# pieces_made 4|6: print the number of fragments that the client's IP has made
pieces_made()
{
	ip netns exec "$client" nstat -a -s -z "Ip$([ "$1" = 4 ] || echo 6)FragCreates" |
		awk '/FragCreates/ { print $2 }'
}

# A path that loses four of five packets is not a black hole: segments do not shrink, and are not
# sent in fragments, all of which would have to arrive.
no_hole()
{
	local v=$1 holes pieces

	wide 1500 || return
	holes=$(counter MtuBlackHole) pieces=$(pieces_made "$v")
	dblp-xfer --from "$client" --to "$server" --address "$(server_of "$v")" --seed "$v" \
		--size 100000 --count 10 --timeout 60 \
		--connected "tc -n $router qdisc replace dev eth2 root netem limit 1000 loss 80%" ||
		return
	tc -n "$router" qdisc del dev eth2 root
	is "black holes" "$(counter MtuBlackHole)" "$holes" &&
		is fragments "$(pieces_made "$v")" "$pieces"
}
for v in 4 6; do
	try "ipv$v: 80% loss is no black hole" no_hole $v
done

done_with_sockets
