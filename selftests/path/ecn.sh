#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# ECN from end to end: packets are marked, marks are counted, reported and reduce the rate, and a
# path that does not preserve ECN is detected.

# shellcheck disable=SC2016,SC2317 # awk has its own $; functions are called by try
# shellcheck source=selftests/lib/path.sh
. "$(dirname "$(readlink -f "$0")")/../lib/path.sh"

new_ns client server
# shellcheck disable=SC2154 # new_ns sets them
cable "$client" eth0 "$server" eth0 1

net=1

# begin: store the counters from which grown() counts
declare -A base
begin()
{
	local name

	for name in SegAgain SegFirst EcnFailed PtoExpired; do
		base[$name]=$(counter "$name")
	done
}

grown()
{
	echo $(($(counter "$1") - ${base[$1]}))
}

# xfer 4|6 [OPTION...]: transfer 1 MB with budget 0
xfer()
{
	local began=${EPOCHREALTIME/./} to

	to=$(server_of "$1")
	shift
	begin
	dblp-xfer --from "$client" --to "$server" --address "$to" \
		--size 100000 --count 10 "$@" || return
	took=$(((${EPOCHREALTIME/./} - began) / 1000))
	echo "it took $took ms, $(grown SegAgain) of $(grown SegFirst) segments went again"
}

# A marking queue drops no packets, so that none is retransmitted. On a busy host, late packets may
# cause a probe of at most three packets.
nothing_again()
{
	if [ "${DBLP_VIRTUAL_TIME:-0}" = 1 ]; then
		is "segments sent again" "$(grown SegAgain)" 0
	else
		[ $(($(grown SegAgain) - 3 * $(grown PtoExpired))) -lt 20 ]
	fi
}

# arrived TOS: print the number of data packets with this TOS at the server
arrived()
{
	awk -v tos="$1" '$2 == "in" && $9 == "DATA" && $5 == tos { n++ }
		END { print n + 0 }' "$log"
}

# Transfer through a queue that marks ECT packets and drops others
marked()
{
	sniff "$server" eth0 || return
	netem "$client" delay 5ms loss 10% ecn
	xfer "$1" || return
	nothing_again || return
	is "failures" "$(grown EcnFailed)" 0 || return
	echo "$(arrived 0x3) packets came with CE, $(arrived 0x2) with ECT(0)"
	[ "$(arrived 0x3)" -ge 20 ] && [ "$(arrived 0x2)" -ge 200 ]
}

# Many marks reduce the congestion window
heeded()
{
	local without

	netem "$client" delay 20ms
	xfer "$1" || return
	without=$took
	netem "$client" delay 20ms loss 60% ecn
	xfer "$1" || return
	is "failures" "$(grown EcnFailed)" 0 || return
	[ "$took" -ge $((4 * without)) ]
}

# queued 4|6 [OPTION...]: xfer through a queue before a slow link. The queue marks packets as it
# grows, and drops packets that are not ECT. $stats has its counters
queued()
{
	tc -n "$client" qdisc replace dev eth0 root handle 1: htb default 1 || return
	tc -n "$client" class add dev eth0 parent 1: classid 1:1 htb rate 20mbit burst 3000 \
		cburst 3000 || return
	tc -n "$client" qdisc add dev eth0 parent 1:1 handle 10: red limit 400000 min 3000 \
		max 9000 avpkt 1000 burst 4 probability 1 bandwidth 20mbit ecn || return
	xfer "$@" || return
	stats=$(tc -n "$client" -s -j qdisc show dev eth0 | jq '.[] | select(.handle == "10:")')
	tc -n "$client" qdisc del dev eth0 root
	jq -c . <<< "$stats"
	is "failures" "$(grown EcnFailed)" 0
}

# Control packets are not ECT and are dropped; data packets only if the queue overflows. Runs in
# virtual time only, because a busy host sends unevenly and gets marks late
short_queue()
{
	queued "$1" || return
	nothing_again && jq -e '.marked >= 5 and .pdrop == 0' <<< "$stats" > /dev/null
}

# Data sent as Not-ECT is dropped instead of marked
selective()
{
	queued "$1" --ect 0 || return
	is "marked packets" "$(jq .marked <<< "$stats")" 0 || return
	jq -e '.early >= 5' <<< "$stats" > /dev/null && [ "$(grown SegAgain)" -ge 5 ]
}

has_arrived()
{
	[ "$(arrived "$1")" -ge "$2" ]
}

# Two timeouts of a busy host look like a path that drops marked packets
gave_up()
{
	[ "$(grown PtoExpired)" -ge 2 ]
}

# All of the first ten packets are marked, unless DBLP_ECT is 0
at_any_time()
{
	begin
	sniff "$server" eth0 || return
	netem "$client" delay 1ms
	pair "$1" send 3 1000 await "$tmp/go.$1" set ect 0 send 2 1000 await "$tmp/on.$1" \
		set ect 1 send 1 1000 pause || return
	wait_until 10 settled 3 || return
	# More if a slow machine repeats some
	wait_until 10 has_arrived 0x2 3 || return
	[ "$(arrived 0)" -eq 0 ] || gave_up || return
	signal "go.$1"
	wait_until 10 settled 5 && wait_until 10 has_arrived 0 2 || return
	signal "on.$1"
	wait_until 10 settled 6 || return
	wait_until 10 has_arrived 0x2 4 || gave_up || return
	is "failures" "$(grown EcnFailed)" 0 || gave_up
}

# bleach 4|6: a router clears the ECN field
bleach()
{
	if [ "$1" = 4 ]; then
		tc -n "$client" filter add dev eth0 egress protocol ip matchall action pedit \
			munge offset 0 u32 set 0 retain 0x00030000 pipe action csum ip4h
	else
		tc -n "$client" filter add dev eth0 egress protocol ipv6 matchall action pedit \
			munge offset 0 u32 set 0 retain 0x00300000
	fi
}

# swallow 4|6: a router drops marked packets
swallow()
{
	if [ "$1" = 4 ]; then
		tc -n "$client" filter add dev eth0 egress protocol ip u32 match ip tos 2 3 action drop
	else
		tc -n "$client" filter add dev eth0 egress protocol ipv6 u32 match ip6 priority 2 3 \
			action drop
	fi
}

# found_out bleach|swallow 4|6: the sender stops using ECN
found_out()
{
	netem "$client" delay 1ms
	sniff "$server" eth0 && tc -n "$client" qdisc replace dev eth0 clsact && "$1" "$2" || return
	xfer "$2" || return
	tc -n "$client" qdisc del dev eth0 clsact
	is "packets with ECT" "$(arrived 0x2)" 0 || return
	is "failures" "$(grown EcnFailed)" 1
}

for v in 4 6; do
	try "ipv$v: packets are marked instead of dropped" marked $v
	try_virtual "marks make a sender send less at a time, ipv$v" heeded $v
	try_virtual "ipv$v: marks keep a queue short, and nothing is lost" short_queue $v
	try_virtual "ipv$v: packets sent as Not-ECT are dropped instead" selective $v
	try "ipv$v: DBLP_ECT can be changed at any time" at_any_time $v
	try "ipv$v: a path that clears ECN is detected and used without" found_out bleach $v
	try "ipv$v: a path that drops marked packets is detected, too" found_out swallow $v
done

done_with_sockets
