#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Invariants 1, 2, 4 and 5: missing bytes are within the budget, both ends know the exact
# ranges, no element is cut, and missing bytes are spread over the message. dblp-xfer
# checks 1, 2 and 4 for each message of each line below.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"

new_ns client server
# shellcheck disable=SC2154 # new_ns sets them
join "$client" "$server"

xfer()
{
	local address=10.9.0.2

	[ $((tap_count % 2)) = 0 ] || address=fd09::2
	dblp-xfer --from "$client" --to "$server" --address "$address" \
		--seed $((tap_count + 1)) "$@"
}

# lossy PERCENT: lose this share of the client's packets, and a tenth of it of the answers
lossy()
{
	netem "$client" delay 1ms loss "$1%"
	netem "$server" delay 1ms loss "$(($1 / 10))%"
}

# bounded LOSS BUDGET SIZES COUNT LEAST: transfer messages, with at least LEAST bytes missing.
# The loss starts after the handshake, which is not tested here.
bounded()
{
	lossy 0
	xfer --budget "$2" --size "$3" --count "$4" --expect-missing "$5" --timeout 60 \
		--connected "tc -n $client qdisc change dev eth0 root netem \
			limit 100000 delay 1ms loss $1%"
}

# 200 kB are about 140 segments; 0.8 % is one segment
for budget in 8000 100000 408000 600000 950000; do
	for loss in 5 30; do
		try "$loss% loss, budget $budget ppm" bounded $loss $budget \
			200000,150000,1000 6 1000
	done
	# With a budget of several segments, at least one is missing
	least=$((budget > 100000 ? 2800 : 0))
	try "60% loss, budget $budget ppm" bounded 60 $budget 60000,1000 4 $least
	# With 90 % loss, in four of a hundred runs no packet would arrive for 30 s, after which
	# a connection times out.
	try "80% loss, budget $budget ppm" bounded 80 $budget 15000,200 2 $least
done

lossy 30
try "budget of 100 %" xfer --budget 1000000 --size 100000,100 --count 10 --expect-missing 1
try "budget by control message" xfer --per-message --budget 408000 --size 200000 --count 5 \
	--expect-missing 200000
try "both directions" xfer --budget 408000 --size 200000 --count 5 --duplex \
	--expect-missing 200000
try "policy full does not use the budget" xfer --policy full --budget 408000 \
	--size 100000 --count 5
try "the receiver's cap is below the budget" xfer --budget 600000 --cap 50000 \
	--size 200000 --count 5 --expect-missing 10000
try "the receiver's cap is 0" xfer --budget 600000 --cap 0 --size 100000 --count 5
try "critical prefix" xfer --budget 950000 --critical 70001 --size 200000,50000 --count 6 \
	--expect-missing 100000
try "critical prefix shorter than a segment" xfer --budget 950000 --critical 9 \
	--size 200000 --count 4 --expect-missing 200000
try "a message that is all critical" xfer --budget 950000 --critical 200000 --size 200000,9 --count 4
try "elements of 12 bytes" xfer --budget 408000 --element 12 --size 200005 --count 4 \
	--expect-missing 100000
try "elements of 256 bytes" xfer --budget 408000 --element 256 --size 200005 --count 4 \
	--expect-missing 100000
try "elements of 1 byte" xfer --budget 408000 --element 1 --size 200005 --count 4 \
	--expect-missing 100000
try "missing bytes stay as they were" xfer --budget 408000 --fill keep --size 200000 \
	--count 4 --expect-missing 100000
try "a loss map of more ranges than a control buffer holds" xfer --budget 600000 \
	--size 6000000 --expect-missing 2000000

# Described bytes are never missing, whatever else is.
for zeros in 20 90; do
	for policy in eager early; do
		try "$zeros% zeroes, policy $policy" xfer --zeros $zeros --policy $policy \
			--budget 300000 --fill keep --size 200000 --count 6 \
			--critical 30000 --expect-elided 100000
	done
done

# The link carries 20 kB in 5 ms; the deadline is 10 ms after the first segment
lossy 60
try "a deadline with more missing than the budget" xfer --budget 10000 --deadline 10000 \
	--size 60000 --count 8 --critical 5000 --expect-missing 60000
try "a deadline without a budget" xfer --deadline 10000 --size 60000,1000 --count 8 \
	--expect-missing 60000
try "a deadline with policy full" xfer --policy full --deadline 10000 --size 60000 --count 4 \
	--expect-missing 30000
try "a deadline and policy early" xfer --policy early --budget 300000 --deadline 10000 \
	--size 60000 --count 8 --expect-missing 60000
lossy 0
try "a deadline that nothing misses" xfer --deadline 60000000 --size 60000 --count 8 \
	--allow-missing 0

for loss in 0 30; do
	lossy $loss
	for budget in 100000 408000 600000 950000; do
		try "spread, $loss% loss, budget $budget ppm" xfer --spread \
			--budget $budget --size 200000 --count 8
	done
	try "spread behind a critical prefix, $loss% loss" xfer --spread \
		--budget 408000 --critical 100000 --size 300000 --count 6
done
lossy 0

# The check of the spread can fail: with order sequential it does
tail()
{
	xfer --spread --order sequential --budget 408000 --size 200000 --count 8 \
		> "$tmp/tail" 2>&1 && return 1
	grep 'the centre of missing bytes' "$tmp/tail"
}
try "the check of the spread recognizes a tail" tail

# An operator changes the budget of a program that does not know about it. Messages that were
# reported as closed before keep their budget. A message reported too early would get the
# new one, because the repair of its losses takes longer than dblpctl. The congestion
# control is lossy, because with the default the small window would take minutes.
settled()
{
	netem "$client" delay 150ms loss 20%
	netem "$server" delay 150ms
	# shellcheck disable=SC2016 # for the shell in there
	xfer --budget 0 --size 100000 --count 10 --then 400000 --settled \
		--halfway 'dblpctl socket set $(dblpctl -j socket list | jq ".[0].id") loss 40%' \
		"$@"
}
default=$(ip netns exec "$client" dblpctl -j param show congestion | jq -r .congestion)
ip netns exec "$client" dblpctl param set congestion lossy
try "a budget set by dblpctl holds from the next message on" settled --expect-missing 100000
try "a budget set by dblpctl is used as far as the peer's cap allows" \
	settled --cap 50000 --expect-missing 10000 --allow-missing 25000
ip netns exec "$client" dblpctl param set congestion "$default"
lossy 0

# 5 MB: the change is in the middle of the first message, which is sent slowly until then.
# shellcheck disable=SC2016 # for the shell in there
live()
{
	netem "$client" delay 1ms rate 1mbit
	xfer --budget "$1" --then "$2" --size 5000000 --count 2 --timeout 60 \
		--halfway "$(once_counted "$client" BytesFirst 200000 "dblpctl socket set \$(dblpctl -j socket list |
			jq '.[0].id') loss $(($2 / 10000))%
			tc -n $client qdisc change dev eth0 root netem delay 1ms rate 20mbit limit 10000")" \
		"${@:3}"
}
try "dblpctl raises the budget of a message in flight" live 0 400000 --expect-missing 3500000
try "dblpctl lowers the budget of a message in flight" live 500000 10000 --allow-missing 100000
lossy 0

# The smallest MTU that the transport supports; IPv6 needs a larger one
ip -n "$client" link set eth0 mtu 600
ip -n "$server" link set eth0 mtu 600
try "a loss map over a path of MTU 600" dblp-xfer --from "$client" --to "$server" \
	--address 10.9.0.2 --budget 600000 --size 3000000 --expect-missing 1000000

try "no sockets are left at the client" wait_until 40 no_sockets "$client"
try "no sockets are left at the server" wait_until 40 no_sockets "$server"
done_testing
