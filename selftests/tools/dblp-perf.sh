#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblp-perf(1): each mode over each transport delivers what it sends, and says
# so in JSON that holds together; what cannot be, it refuses with its reason.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"

new_ns client server
# shellcheck disable=SC2154 # new_ns sets them
join "$client" "$server"

# perf ARGUMENT...: from one namespace to the other
perf()
{
	dblp-perf "$@" --from "$client" --to "$server" --address 10.9.0.2 --timeout 200
}

# says FILTER ARGUMENT...: the JSON of a run is one object, of which FILTER holds
says()
{
	local filter=$1 from until _
	shift

	read -r from _ < /proc/uptime
	perf "$@" -j > "$tmp/json" || return
	read -r until _ < /proc/uptime
	head -c 2000 "$tmp/json"
	[ "$(wc -l < "$tmp/json")" -eq 1 ] && jq -e "$filter and .started_ns >= $from * 1e9 and
		.started_ns <= ($until + 0.01) * 1e9" "$tmp/json" > /dev/null
}

complete='.missing_bytes == 0 and .early_messages == 0 and .elapsed_ns > 0'
# Quantiles are samples, in order, and those of all samples.
# shellcheck disable=SC2016 # jq's $p
ordered='.ns.n == (.samples | length) and .ns.min == (.samples | min) and
	.ns.max == (.samples | max) and .ns.min <= .ns.p50 and .ns.p50 <= .ns.p90 and
	.ns.p90 <= .ns.p99 and (.ns.p50 as $p | .samples | index($p)) != null'
# By nearest rank: at least half are not above the median, less than half below
# shellcheck disable=SC2016 # jq's $p
ranked='(.ns.p50 as $p | ([.samples[] | select(. <= $p)] | length) >= .ns.n / 2 and
	([.samples[] | select(. < $p)] | length) < .ns.n / 2)'

for proto in dblp tcp sctp; do
	name=".proto == \"$proto\""
	try "$proto, bulk" says "$name and $complete and .sent_bytes == 2600000 and
		.delivered_bytes == 2500000 and .goodput_bps > 0 and .samples[0] <= .elapsed_ns" \
		bulk --proto $proto --verify -s 100000 -n 25 -w 1 --samples
	try "$proto, fanin of 4 connections" says "$name and $complete and $ordered and $ranked and
		.ns.n == 8 and .sent_bytes == 1800000 and .delivered_bytes == 1600000 and
		(.samples | add) <= .elapsed_ns" \
		fanin --proto $proto --verify -s 50000 -n 8 -w 1 -c 4 --samples
	try "$proto, rr" says "$name and $complete and $ordered and $ranked and .ns.n == 50 and
		.sent_bytes == 3840 and .delivered_bytes == 3200" \
		rr --proto $proto --verify -n 50 -w 10 --samples
	try "$proto, latency" says "$name and $complete and $ordered and .ns.n == 10 and
		.sent_bytes == 1000000 and .delivered_bytes == .sent_bytes" \
		latency --proto $proto --verify -s 100000 -n 10 -w 0 --samples
	try "$proto, idle" says "$name and .delivered_bytes == 20 and .sent_bytes == 20 and
		(.timers.by_function | add) == .timers.all and .timers.all >= .timers.own and
		.memory_bytes != null" \
		idle --proto $proto -c 20 -t 1
done

try "share" says ".proto == \"dblp\" and .other == \"tcp\" and .other_cc == \"cubic\" and
	.connections == 4 and (.side_bytes | min) > 0 and
	(.side_bytes | add) == .delivered_bytes and .sent_bytes > .delivered_bytes" \
	share -c 2 -t 1 -w 0 -s 20000 --other-cc cubic --verify

try "fanin with a hook" says ".ns.n == 3" fanin -s 1000 -n 3 -w 2 --hook "echo \$DBLP_ROUND >> $tmp/rounds"
try "which runs before each measured round" [ "$(paste -s -d ' ' "$tmp/rounds")" = "0 1 2" ]

# What is missing, is said to be, and all of it was sent.
try "a budget" says ".budget_ppm == 20000 and .policy == \"eager\" and .missing_bytes > 0 and
	.missing_bytes <= 40000 and .early_messages > 0 and .early_messages <= 20 and
	.missing_bytes + .delivered_bytes == .sent_bytes and .sent_bytes == 2000000" \
	latency --budget 2% --policy eager --verify -s 100000 -n 20 -w 0

# With a key packets are larger, and there are more of them
head -c 32 /dev/urandom > "$tmp/key"
try "a key" says "$complete" bulk --key "$tmp/key" --verify -s 100000 -n 25
try "a key in rr" says "$ordered" rr --key "$tmp/key" --verify -n 50 --samples

try "a congestion control of dblp that is not there" ends_with 4 "no congestion control 'none'" perf \
	rr --cc none
try "a congestion control of tcp that is not there" ends_with 4 "no congestion control 'none'" perf \
	rr --proto tcp --cc none
try "nobody listens" ends_with 1 "refused" perf rr --connect -n 1
try "a hook that fails" ends_with 1 "the hook has failed before round 0" perf fanin --hook false
try "a hook for another mode" ends_with 2 "--hook is for" perf rr --hook true
try "a budget for tcp" ends_with 2 "tcp has no --budget" perf rr --proto tcp --budget 1%
head -c 15 /dev/urandom > "$tmp/short"
try "a key that is none" ends_with 2 "a file of 16 to 64 bytes" perf rr --key "$tmp/short"
try "a key for tcp" ends_with 2 "and --key" perf rr --proto tcp --key "$tmp/key"
try "no mode" ends_with 2 "there is no mode 'nonsense'" perf nonsense

# Two programs, as on two machines, that were told different things
differ()
{
	spawn ip netns exec "$server" dblp-perf bulk --listen -a 10.9.0.2 -s 1000
	wait_until 10 grep -q ':1B6A ' "/proc/$spawned/net/udp" "/proc/$spawned/net/udp6"
	! ip netns exec "$client" dblp-perf bulk --connect -a 10.9.0.2 -s 2000 || return
	ended "$spawned" 1 && grep -q 'options of the two ends differ' "$tmp/out.$spawned"
}
try "ends that were told different things" differ

# The listening end has measured and says so; the other one is silent.
agree()
{
	spawn ip netns exec "$server" dblp-perf bulk --listen -a 10.9.0.2 -n 3 -j
	wait_until 10 grep -q ':1B6A ' "/proc/$spawned/net/udp" "/proc/$spawned/net/udp6"
	ip netns exec "$client" dblp-perf bulk --connect -a 10.9.0.2 -n 3 > "$tmp/said" || return
	[ ! -s "$tmp/said" ] && ended "$spawned" 0 &&
		jq -e '.delivered_bytes == 3000000 and .sent_bytes == null' "$tmp/out.$spawned"
}
try "ends that are started apart" agree
done_testing
