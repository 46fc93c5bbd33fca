#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Lanes through a switch as Documentation/training.rst has it: what matters most goes first,
# and what matters least is lost first.

# shellcheck disable=SC2016,SC2317 # jq has its own $; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/network.sh
. "$(dirname "$(readlink -f "$0")")/../lib/network.sh"

trap 'no_network; cleanup' EXIT
switched 4 none 0 0 && important_first server 50mbit || exit 1
for i in 0 1 2 3; do
	tc -n "h$i" qdisc add dev eth0 root netem delay 250us limit 100000 || exit 1
done

# gather [OPTION...]: 4 hosts to the server, each sum checked against what is missing. Then
# $result is what dblp-perf has said, $bands what the port has counted
gather()
{
	important_first server 50mbit || return
	result=$(dblp-perf collective -j --spawn server,h0,h1,h2,h3 --plan ps --server \
		--op reduce-scatter --dtype int32 --size 200000 --count 8 --warmup 1 "$@") || return
	bands=$(band_counts server)
	jq -c . <<< "$result"
	echo "$bands"
}

# holds FILTER: of both together
holds()
{
	jq -e -n --argjson r "$result" --argjson b "$bands" "$1" > /dev/null && return
	echo "not so: $1"
	return 1
}

# The first fifth, the largest of the others, and the rest
three=(--lane "share=20%,tos=40,budget=0" --lane "share=80%,tos=48,large=30%,rest=2,budget=0"
	--lane "tos=48,not-ect,budget=20%,policy=early")

# Each lane has what it should: a fifth, and of what is left 30 % and 70 %
divided()
{
	gather "${three[@]}" &&
	holds '[$r.lanes[].asked_bytes] | .[0] == 4 * 8 * 40000 and .[1] == 4 * 8 * 48000 and
		.[2] == 4 * 8 * 112000'
}

# All of it goes by the bands of its DSCP, control packets as well
by_band()
{
	gather "${three[@]}" &&
	holds '$b.bands | .[0].packets > 0 and .[1].packets >= 9 * 4 * 40000 / 1448 and
		.[2].packets >= 9 * 4 * 130000 / 1448'
}

# Only what is not ECT(0) is dropped, and only there is something missing
least_first()
{
	gather "${three[@]}" &&
	holds '$b.bands[2].dropped >= 50 and $b.bands[2].dropped > $b.bands[2].marked and
		$b.bands[0].dropped == 0 and $b.bands[1].dropped == 0' &&
	holds '$r.lanes[0].missing_bytes == 0 and $r.lanes[1].missing_bytes == 0' &&
	holds '$r.lanes[2].missing_bytes > 0 and
		$r.lanes[2].missing_bytes <= $r.lanes[2].asked_bytes * 0.2'
}

# With all of it ECT(0) the same queue marks; what it drops is of new connections, which do not
# know yet whether marks reach their peers
marked_instead()
{
	gather "${three[@]/not-ect,/}" &&
	holds '$b.bands[2].marked > $b.bands[2].dropped'
}

# Before the rest, which shares the link with it otherwise: in little more time than the
# link takes for these bytes of all four, 8 * 4 * 40000 / 50 Mbit/s
first()
{
	local most=$((8 * 4 * 40000 * 20 * 5 / 4))

	gather --lane share=20% --lane share=80% && holds "\$r.lanes[0].ns.p50 > $most" || return
	gather --lane share=20%,tos=40 --lane share=80% &&
		holds "\$r.lanes[0].ns.p50 < $most"
}

# Other traffic, which never ends, has the other half of the link
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

try "elements go by lanes" divided
try "each DSCP has a queue of its own" by_band
try_virtual "what matters least is dropped, and nothing else" least_first
try_virtual "what may be marked is not dropped" marked_instead
try_virtual "the first layers are there first" first
try_virtual "other traffic leaves the rest its half" shared
done_testing
