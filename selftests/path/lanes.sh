#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Lanes through a switch as in Documentation/training.rst: the most important data is sent first,
# and the least important is lost first. Ranks without a switch, on one host.

# shellcheck disable=SC2016,SC2317 # jq has its own $; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/network.sh
. "$(dirname "$(readlink -f "$0")")/../lib/network.sh"

trap 'no_network; cleanup' EXIT
# Sizes of the queues, see important_first
queues=()
switched 4 none 0 0 && important_first server 50mbit || exit 1
for i in 0 1 2 3; do
	tc -n "h$i" qdisc add dev eth0 root netem delay 250us limit 100000 || exit 1
done

# gather [OPTION...]: gather from 4 hosts to the server, with checked sums. $result is the output of
# dblp-perf, $bands has the counters of the port
gather()
{
	important_first server 50mbit "${queues[@]}" || return
	result=$(dblp-perf collective -j --spawn server,h0,h1,h2,h3 --plan ps --server \
		--op reduce-scatter --dtype int32 --size 200000 --count 8 --warmup 1 "$@") || return
	bands=$(band_counts server)
	jq -c . <<< "$result"
	echo "$bands"
}

# holds FILTER: the jq FILTER is true for both
holds()
{
	jq -e -n --argjson r "$result" --argjson b "$bands" "$1" > /dev/null && return
	echo "not so: $1"
	return 1
}

# Lanes: the first fifth, the largest of the other elements, and the rest
three=(--lane "share=20%,tos=40,budget=0%" --lane "share=80%,tos=48,large=30%,rest=2,budget=0%"
	--lane "tos=48,not-ect,budget=20%,policy=early")

# Lanes have a fifth of the elements, and 30 % and 70 % of the others
divided()
{
	gather "${three[@]}" &&
	holds '[$r.lanes[].asked_bytes] | .[0] == 4 * 8 * 40000 and .[1] == 4 * 8 * 48000 and
		.[2] == 4 * 8 * 112000'
}

# All packets, also control packets, use the class of their DSCP
by_band()
{
	gather "${three[@]}" &&
	holds '$b.bands | .[0].packets > 0 and .[1].packets >= 9 * 4 * 40000 / 1448 and
		.[2].packets >= 9 * 4 * 130000 / 1448'
}

# Only packets that are not ECT(0) are dropped, and only their lane has bytes missing
least_first()
{
	gather "${three[@]}" &&
	holds '$b.bands[2].dropped >= 50 and $b.bands[2].dropped > $b.bands[2].marked and
		$b.bands[0].dropped == 0 and $b.bands[1].dropped == 0' &&
	holds '$r.lanes[0].missing_bytes == 0 and $r.lanes[1].missing_bytes == 0' &&
	holds '$r.lanes[2].missing_bytes > 0 and
		$r.lanes[2].missing_bytes <= $r.lanes[2].asked_bytes * 0.2'
}

# With all packets ECT(0) the same queue marks them. It drops only packets of new connections, which
# do not know yet whether ECN works
marked_instead()
{
	gather "${three[@]/not-ect,/}" &&
	holds '$b.bands[2].marked > $b.bands[2].dropped'
}

# The first lane does not share the link: it takes little more than the time of its bytes from all
# four hosts, 8 * 4 * 40000 / 50 Mbit/s
first()
{
	local most=$((8 * 4 * 40000 * 20 * 5 / 4))

	gather --lane share=20% --lane share=80% && holds "\$r.lanes[0].ns.p50 > $most" || return
	gather --lane share=20%,tos=40 --lane share=80% &&
		holds "\$r.lanes[0].ns.p50 < $most"
}

# Endless other traffic gets the other half of the link
shared()
{
	local alone good=0

	gather "${three[@]}" || return
	alone=$(jq .ns.p50 <<< "$result")
	dblp-perf bulk --proto tcp --to server --from h3 --address "$server" --port 7100 \
		--count 1000000 > /dev/null 2>&1 &
	gather "${three[@]}" && holds "\$r.ns.p50 < 2.5 * $alone" &&
		holds '$b.bands[3].packets > $b.bands[2].packets / 2' || good=1
	# shellcheck disable=SC2046 # numbers
	kill $(ip netns pids h3) $(ip netns pids server)
	wait
	return "$good"
}

# In short queues, what waits for the first layers is not dropped behind them
waits()
{
	local queues=(12 3 9) dropped time two=(--lane "share=20%,tos=40,budget=0%"
		--lane "share=80%,tos=48,not-ect,budget=14%,policy=early")

	gather "${two[@]}" || return
	dropped=$(jq '.bands[2].dropped' <<< "$bands") time=$(jq .ns.p50 <<< "$result")
	gather "${two[@]/not-ect/not-ect,after}" &&
		holds "\$b.bands[2].dropped < 0.6 * $dropped and \$r.ns.p50 < 0.95 * $time"
}

# Four ranks on one host: over AF_DBLP, an allreduce takes no longer than over TCP
one_host()
{
	local proto

	ip -n h0 link set lo up || return
	for proto in tcp dblp; do
		ip netns exec h0 dblp-perf collective --spawn 4 --proto "$proto" --size 40000000 --count 3 \
			--warmup 1 -j || return
	done | jq -s -c 'map({proto, ns: .ns.p50})' > "$tmp/json" || return
	cat "$tmp/json"
	jq -e '.[1].ns <= 1.05 * .[0].ns' "$tmp/json" > /dev/null
}

try "elements go by lanes" divided
try "each DSCP has a queue of its own" by_band
try_virtual "only the least important data is dropped" least_first
try_virtual "ECT packets are marked, not dropped" marked_instead
try_virtual "the first layers arrive first" first
try_virtual "other traffic leaves half of the link" shared
try_virtual "lanes that wait for the first layers are dropped less" waits
try_virtual "ranks on one host take no longer than over TCP" one_host
done_testing
