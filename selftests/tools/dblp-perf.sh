#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblp-perf(1): each mode delivers all messages over AF_DBLP and SCTP, its JSON output is
# consistent, and missing features of the kernel are reported. TCP and mode collective are tested
# in host/perf.sh and ranks.sh.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"

new_ns client server
# shellcheck disable=SC2154 # new_ns sets them
join "$client" "$server"

# perf ARGUMENT...: measure from one namespace to the other
perf()
{
	dblp-perf "$@" --from "$client" --to "$server" --address 10.9.0.2 --timeout 200s
}

# says FILTER ARGUMENT...: the output of a run is one JSON object, for which FILTER is true
says()
{
	local filter=$1
	shift

	perf "$@" -j > "$tmp/json" || return
	cut -c -2000 "$tmp/json"
	jq -s -e "length == 1 and all(.[]; $filter)" "$tmp/json" > /dev/null
}

complete='.missing_bytes == 0 and .early_messages == 0 and .elapsed_ns > 0'
for proto in dblp sctp; do
	name=".proto == \"$proto\""
	try "$proto, bulk" says "$name and $complete and .sent_bytes == 2600000 and
		.delivered_bytes == 2500000" bulk --proto $proto --verify -s 100000 -n 25 -w 1
	try "$proto, fanin of 4 connections" says "$name and $complete and .ns.n == 8 and
		.sent_bytes == 1800000 and .delivered_bytes == 1600000" \
		fanin --proto $proto --verify -s 50000 -n 8 -w 1 -c 4
	try "$proto, rr" says "$name and $complete and .ns.n == 50 and .sent_bytes == 3840 and
		.delivered_bytes == 3200" rr --proto $proto --verify -n 50 -w 10
	try "$proto, latency" says "$name and $complete and .ns.n == 10 and .sent_bytes == 1000000 and
		.delivered_bytes == .sent_bytes" latency --proto $proto --verify -s 100000 -n 10 -w 0
done

# Three runs at the same time
idle()
{
	local proto pids=()

	for proto in dblp tcp sctp; do
		spawn perf idle --proto "$proto" -c 20 -t 1s -j
		pids+=("$spawned")
	done
	for proto in "${pids[@]}"; do
		ended "$proto" 0 || return
		cat "$tmp/out.$proto" >> "$tmp/idle"
	done
	jq -s -e 'map(.proto) == ["dblp", "tcp", "sctp"] and all(.[]; .delivered_bytes == 20 and
		.sent_bytes == 20 and .memory_bytes != null)' "$tmp/idle"
}
try "idle" idle
timers="timers of idle connections"
if grep -q '^# .* hist' /sys/kernel/tracing/events/timer/timer_expire_entry/trigger 2>/dev/null; then
	try "$timers" jq -s -e 'map(.timers | select(.)) | length == 3 and
		all(.[]; .all == (.by_function | add // 0) and .all >= .own)' "$tmp/idle"
else
	skip_point "$timers" "needs hist triggers of tracing"
fi

try "share" says ".proto == \"dblp\" and .other == \"tcp\" and .other_cc == \"cubic\" and
	.connections == 4 and (.side_bytes | min) > 0 and
	(.side_bytes | add) == .delivered_bytes and .sent_bytes > .delivered_bytes" \
	share -c 2 -t 1s -w 0s -s 20000 --other-cc cubic --verify

# Missing bytes are reported, and all bytes were sent.
try "a budget" says ".budget_ppm == 20000 and .policy == \"eager\" and .missing_bytes > 0 and
	.missing_bytes <= 40000 and .early_messages > 0 and .early_messages <= 20 and
	.missing_bytes + .delivered_bytes == .sent_bytes and .sent_bytes == 2000000" \
	latency --budget 2% --policy eager --verify -s 100000 -n 20 -w 0

# With a key, there are more packets
head -c 32 /dev/urandom > "$tmp/key"
try "a key" says "$complete" bulk --key "$tmp/key" --verify -s 100000 -n 25
try "a key in rr" says ".ns.n == 50" rr --key "$tmp/key" --verify -n 50

try "an unknown congestion control of dblp" ends_with 4 "no congestion control 'none'" perf \
	rr --cc none
done_testing
