#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Invariant 3: with budget 0 every byte arrives, in order, over any network, and both ends agree.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/path.sh
. "$(dirname "$(readlink -f "$0")")/../lib/path.sh"

new_ns client server
# shellcheck disable=SC2154 # new_ns sets them
join "$client" "$server"

# xfer 4|6 OPTION...: transfer by IPv4 or IPv6
xfer()
{
	local address=10.9.0.2

	[ "$1" = 4 ] || address=fd09::2
	shift
	dblp-xfer --from "$client" --to "$server" --address "$address" \
		--seed $((tap_count + 1)) "$@"
}

# both NAME OPTION...: transfer by both protocols
both()
{
	local name=$1 v
	shift

	for v in 4 6; do
		try "ipv$v, $name" xfer $v "$@"
	done
}

# network ARGUMENT...: apply netem to both directions
network()
{
	netem "$client" "$@"
	netem "$server" "$@"
}

mixed=1,7,8,255,256,257,1000,1500,4096,20000,65535,65536,100003,150000

network delay 1ms
both "single bytes" --size 1 --count 300
both "all sizes" --size $mixed --count 28
both "all sizes, poll" --size $mixed --count 14 --nonblock
both "both directions" --size $mixed --count 14 --duplex
both "elements of 12 bytes" --size $mixed --count 14 --element 12
try "ipv4, 16 MiB" xfer 4 --size 16777216
try "ipv4, 16 MiB of zeroes" xfer 4 --size 16777216 --zeros 100 --expect-elided 16777216
try "ipv6, 3 x 5 MB" xfer 6 --size 5000011 --count 3

for loss in 0 1 10 30; do
	network delay 1ms loss $loss%
	both "$loss% loss" --size $mixed --count 14
	both "$loss% loss, small messages" --size 1,100,900 --count 60
	try "ipv6, $loss% loss, both directions" xfer 6 --size $mixed --count 14 --duplex
	both "$loss% loss, zeroes" --size $mixed --count 14 --zeros 50 --expect-elided 60000
done

network delay 4ms reorder 30% 50%
both "reordering" --size $mixed --count 28
network delay 3ms 2ms
both "reordering by jitter" --size $mixed --count 28
both "reordering by jitter, zeroes" --size $mixed --count 28 --zeros 50 --expect-elided 120000
network delay 1ms duplicate 30%
both "duplication" --size $mixed --count 28
both "duplication, zeroes" --size $mixed --count 28 --zeros 50 --expect-elided 120000
network delay 1ms corrupt 5%
both "corruption" --size $mixed --count 28

# One of ten packets overtakes all packets in flight
overtaken()
{
	local first again

	first=$(counter SegFirst) again=$(counter SegAgain)
	one_by_one "$client" eth0 && xfer 4 --size 1000000 --count 4 || return
	first=$(($(counter SegFirst) - first)) again=$(($(counter SegAgain) - again))
	echo "$first segments sent, $again again"
	[ "$first" -gt 2000 ] && [ "$again" -lt $((first / 4)) ]
}
netem "$client" delay 5ms reorder 10% rate 100mbit
netem "$server" delay 5ms
try "permanent reordering causes no retransmissions" overtaken

network delay 60ms
both "a long delay" --size $mixed --count 28
network delay 3ms 2ms loss 5% duplicate 5% corrupt 2%
both "everything at once" --size $mixed --count 28
both "everything at once, zeroes" --size $mixed --count 28 --zeros 50 --expect-elided 120000
network rate 20mbit limit 30
both "a narrow place with a short queue" --size $mixed --count 14

for ns in "$client" "$server"; do
	ip -n "$ns" link set eth0 mtu 1280
done
network delay 1ms loss 1%
both "MTU 1280" --size $mixed --count 14
for ns in "$client" "$server"; do
	ip -n "$ns" link set eth0 mtu 9000
done
both "MTU 9000" --size $mixed --count 14

try "all sockets are gone from the client's side" wait_until 40 no_sockets "$client"
try "all sockets are gone from the server's side" wait_until 40 no_sockets "$server"
done_testing
