#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblp-perf(1) over TCP: the results of each mode and each plan are consistent, errors name
# the rank that failed, and an invalid command line is refused with a reason. Tests with
# AF_DBLP are in tools/dblp-perf.sh and tools/ranks.sh.

# shellcheck disable=SC2154,SC2317 # host.sh sets them; functions are called by try
# shellcheck source=selftests/lib/host.sh
. "$(dirname "$(readlink -f "$0")")/../lib/host.sh"

# holds FILTER: the jq FILTER is true for each object that a run has printed
holds()
{
	head -c 2000 "$tmp/json"
	jq -s -e "length > 0 and all(.[]; $1)" "$tmp/json" > /dev/null
}

run()
{
	dblp-perf "$@" --proto tcp --timeout 50s -j > "$tmp/json"
}

# mode FILTER ARGUMENT...: run a mode; FILTER is true for its only object, whose start time
# is that of the run
mode()
{
	local filter=$1 from until _
	shift

	next_port
	read -r from _ < /proc/uptime
	run "$@" --verify -a "$here" -p "$port" --samples || return
	read -r until _ < /proc/uptime
	[ "$(wc -l < "$tmp/json")" -eq 1 ] && holds "$filter and .started_ns >= $from * 1e9 and
		.started_ns <= ($until + 0.01) * 1e9"
}

# sums FILTER OPTION...: run collective with four ranks; FILTER is true for each object
sums()
{
	run collective --spawn 4 "${@:2}" && holds "$1"
}

complete='.proto == "tcp" and .missing_bytes == 0 and .early_messages == 0 and .elapsed_ns > 0'
# Quantiles are in order, and minimum, maximum and median are samples.
# shellcheck disable=SC2016 # jq's $p
ordered='.ns.n == (.samples | length) and .ns.min == (.samples | min) and
	.ns.max == (.samples | max) and .ns.min <= .ns.p50 and .ns.p50 <= .ns.p90 and
	.ns.p90 <= .ns.p99 and (.ns.p50 as $p | .samples | index($p)) != null'
# By nearest rank: at least half are not above the median, less than half below
# shellcheck disable=SC2016 # jq's $p
ranked='(.ns.p50 as $p | ([.samples[] | select(. <= $p)] | length) >= .ns.n / 2 and
	([.samples[] | select(. < $p)] | length) < .ns.n / 2)'

try "bulk" mode "$complete and .sent_bytes == 2600000 and .delivered_bytes == 2500000 and
	.goodput_bps > 0 and .samples[0] <= .elapsed_ns" bulk -s 100000 -n 25 -w 1
try "fanin of 4 connections" mode "$complete and $ordered and $ranked and .ns.n == 8 and
	.sent_bytes == 1800000 and .delivered_bytes == 1600000 and (.samples | add) <= .elapsed_ns" \
	fanin -s 50000 -n 8 -w 1 -c 4
try "rr" mode "$complete and $ordered and $ranked and .ns.n == 50 and
	.sent_bytes == 3840 and .delivered_bytes == 3200" rr -n 50 -w 10
try "latency" mode "$complete and $ordered and .ns.n == 10 and .sent_bytes == 1000000 and
	.delivered_bytes == .sent_bytes" latency -s 100000 -n 10 -w 0
try "fanin with a hook" mode ".ns.n == 3" fanin -s 1000 -n 3 -w 2 --hook "echo \$DBLP_ROUND >> $tmp/rounds"
try "the hook runs before each measured round" [ "$(paste -s -d ' ' "$tmp/rounds")" = "0 1 2" ]

plans=(
	"ps --server --root 1"
	"ps"
	"transpose"
	"ring"
	"tree --fanin 3"
	"bcube --radix 2,2"
	"average --radix 2,2"
)
exact='.mode == "collective" and .ranks == 4 and .verified and .missing_bytes == 0 and
	.late_ranks == 0 and .ns.n == 3 and .count == 3 and .started_ns > 0 and
	(.samples | length) == 3 and .ns.max == (.samples | max) and
	.elapsed_ns == (.samples | add) and .ns.p999 == .ns.max and
	(.bytes_per_second - .size * 3e9 / .elapsed_ns | fabs) <= 1'
for plan in "${plans[@]}"; do
	# Vectors that all ranks ask for in three rounds: each sum needs three other vectors.
	# In average each rank asks another one for half of its vector.
	asked=9
	case $plan in average*) asked=6 ;; esac
	# shellcheck disable=SC2086 # words
	try "sums by $plan" sums "$exact and .proto == \"tcp\" and .plan == \"${plan%% *}\" and
		.asked_bytes == $asked * .size" \
		--dtype int32 -s 60000,4000 -n 3 -w 2 --samples --plan $plan
done
try "an object for each size, in order" jq -s -e 'map(.size) == [60000, 4000]' "$tmp/json"

try "--levels finds the radices" sums '.verified and .radix == [2, 2]' --dtype int32 -s 4000 -n 1 \
	--plan bcube --levels 2
paused()
{
	local start=${EPOCHREALTIME/./}

	sums '.gap_ms == 100 and .ns.n == 2' --gap 100ms -s 4000 -n 2 -w 1 || return
	[ $((${EPOCHREALTIME/./} - start)) -ge 200000 ]
}
try "a gap between rounds" paused

# Two rounds of three contributing ranks: in the first all vectors are zero, in the second
# one is not. The server sends the sum to all three.
vectors_are_read()
{
	{ head -c 160000 /dev/zero; head -c 40000 /dev/urandom; head -c 40000 /dev/zero; } > "$tmp/vectors"
	for warmup in 0 1 2; do
		sums "if $warmup == 1 then .sent_bytes > 160000 else .sent_bytes < 20000 end" --sparse \
			--plan ps --server --vectors "$tmp/vectors" -s 40000 -n 1 -w "$warmup" || return
	done
}
try "vectors of a file, round by round" vectors_are_read

for op in reduce-scatter allgather; do
	try "$op" sums ".op == \"$op\" and .verified and .missing_bytes == 0" \
		--op $op --dtype int32 -s 60000 -n 3 --plan bcube --radix 2,2
done

# 1 % of contributions and up to 4 % of sums are sent, plus a bitmap
try "zeroes are not sent" sums '.verified and .sparse and .density_ppm == 10000 and .cluster == 16 and
	.missing_bytes == 0 and .sent_bytes * 20 < .size * .count * 6' \
	--sparse --density 1% --cluster 16 --dtype int32 -s 400000 -n 3 -w 0
# 15 % of the blocks of 256 elements have a cluster
try "--sparse=256 uses blocks of 256 elements" sums '.verified and .block == 256 and .sent_bytes * 20 > .size * .count * 18' \
	--sparse=256 --density 1% --cluster 16 --dtype int32 -s 400000 -n 3 -w 0

# Each part of these vectors takes several messages
for dtype in float32 float16 bfloat16; do
	try "$dtype" sums ".dtype == \"$dtype\" and (.verified | not) and .missing_bytes == 0" \
		--dtype $dtype -s 6002000 -n 1 --plan ring
done

# apart SEED0 SEED1: start two ranks separately, as on two machines
apart()
{
	local each=(dblp-perf collective --proto tcp --plan ps --op reduce-scatter --dtype int32 -s 4 -n 3 -j)

	next_port
	each+=(--rendezvous "tcp://$here:$port")
	spawn env RANK=1 WORLD_SIZE=2 "${each[@]}" --seed "$2"
	"${each[@]}" --rank 0 --nranks 2 --seed "$1" > "$tmp/said" 2>&1
}

agree()
{
	apart 1 1 && ended "$spawned" 0 && [ ! -s "$tmp/out.$spawned" ] &&
		jq -e '.ranks == 2 and .verified and .ns.n == 3' "$tmp/said"
}
try "ranks that are started separately agree" agree

differ()
{
	local rank pids=()

	next_port
	for rank in 1 0; do
		spawn dblp-perf collective --rank "$rank" --nranks 2 --message $((4000 + 4000 * rank)) \
			--rendezvous "tcp://$here:$port" --proto tcp
		pids[rank]=$spawned
	done
	for rank in 0 1; do
		ended "${pids[rank]}" 1 &&
			grep -q "rank $rank: joining .* size of messages" "$tmp/out.${pids[rank]}" || return
	done
}
try "ranks with different options refuse each other" differ

# sums_wrong SEED0 SEED1 TEXT: rank 1 contributes other numbers, so rank 0 reports TEXT
sums_wrong()
{
	! apart "$1" "$2" || return
	cat "$tmp/said"
	grep -q "rank 0: wrong: $3" "$tmp/said"
}
try "a sum that is too small is reported" sums_wrong 1 3 "5 sums are not full, but only 0 bytes"
try "a sum that is too large is reported" sums_wrong 3 1 "element 0 of 1 in round 0 is"

# children_of PID N: store the children of PID in $children, in the order of ranks; true when
# N ranks have connected
children_of()
{
	mapfile -t children < <(cat /proc/[0-9]*/stat 2> /dev/null |
		sed -n "s/^\([0-9]*\) (.*) . $1 .*/\1/p" | sort -n)
	[ ${#children[@]} -eq "$2" ] && [ "$(find "/proc/${children[$2 - 1]}/fd" -lname 'socket:*' | wc -l)" -ge "$2" ]
}

# The error names the killed rank, no matter which process notices first.
killed()
{
	local children

	spawn dblp-perf collective --proto tcp --spawn 4 -n 1000000 -s 4000
	wait_until 30 children_of "$spawned" 4 && kill -9 "${children[2]}" || return
	ended "$spawned" 1 && grep -q 'rank 2 has \(died\|failed\)' "$tmp/out.$spawned"
}
try "the error names a rank that was killed" killed

refused()
{
	local text=$1
	shift

	try "refused: $text $*" ends_with 2 "$text" dblp-perf "$@"
}

# --other is for mode share
try "budgets are shares with a unit" texts_as_listed share dblp-perf rr --other tcp --budget
try "limits are times with a unit" texts_as_listed time dblp-perf rr --other tcp --timeout
try "sizes are bytes, also with a unit" dblp-perf bulk --proto tcp -a "$here" -s 64KiB --buffer 1MB -n 2
refused "--size: '64K' is not a size" bulk -s 64K
refused "there is no mode 'nonsense'" nonsense
refused "--hook is for" rr --hook true
refused "tcp has no --budget" rr --proto tcp --budget 1%
head -c 15 /dev/zero > "$tmp/short"
refused "a file of 16 to 64 bytes" rr --key "$tmp/short"
head -c 32 /dev/zero > "$tmp/key"
refused "and --key" rr --proto tcp --key "$tmp/key"
refused "--spawn or --rendezvous is needed" collective
refused "--rank and --nranks go together" collective --rank 0
refused "--rank 2: there are only 2" collective --rank 2 --nranks 2
refused "--spawn starts all ranks" collective --spawn 2 --rank 0 --nranks 2
refused "--rendezvous takes" collective --rendezvous here
refused "--root 2: there are only 2" collective --spawn 2 --plan ps --root 2
refused "--server needs at least two ranks" collective --spawn 1 --plan ps --server
refused "are for --plan ps and tree" collective --spawn 2 --server
refused "--fanin is for" collective --spawn 2 --fanin 2
refused "--levels and --radix are for" collective --spawn 4 --radix 2,2
refused "exclude each other" collective --spawn 4 --plan bcube --radix 2,2 --levels 2
refused "the product is not the number of ranks, 4" collective --spawn 4 --plan bcube --radix 2,3
refused "--size 6 is not a multiple of a float32, which has 4 bytes" collective --spawn 2 --size 8,6
refused "--message takes a multiple of 8" collective --spawn 2 --message 100
refused "--carry needs a --budget" collective --spawn 2 --carry
refused "--cluster needs a --density" collective --spawn 2 --cluster 2
refused "--sparse takes a power of two" collective --spawn 2 --sparse=24
refused "--density: '5' has no unit" collective --spawn 2 --density 5
refused "--vectors: none: No such file" collective --spawn 2 --vectors none
refused "--vectors needs one --size" collective --spawn 2 --vectors "$tmp/vectors" --dtype int32
refused "loses nothing" collective --spawn 2 --op allgather --budget 1%
refused "tcp has no --budget" collective --spawn 2 --proto tcp --budget 1%
refused "tcp has no --job" collective --spawn 2 --proto tcp --job 1
refused "--cc is for --proto tcp" collective --spawn 2 --cc bbr
refused "mode collective does not support sctp" collective --spawn 2 --proto sctp
refused "mode collective has no --verify" collective --spawn 2 --verify
refused "mode collective has no --connections" collective --spawn 2 -c 2
refused "--plan is for mode collective" rr --plan ps
try "a file of --vectors that is too short fails" ends_with 1 "bytes are not a multiple of 2 vectors of 4000" dblp-perf \
	collective --spawn 2 --proto tcp --vectors "$tmp/key" -s 4000
try "an unknown congestion control fails"  ends_with 4 "no congestion control 'none'" dblp-perf \
	rr --proto tcp --cc none -a "$here" -p "$port"
try "an unknown congestion control of a collective fails" ends_with 4 "tcp has no congestion control 'none'" dblp-perf \
	collective --spawn 2 --proto tcp --cc none
try "an unknown device fails" ends_with 1 "rank [01]: joining the other ranks: there is no device [a-z0-9]*: No such device" dblp-perf \
	collective --spawn 2 --proto tcp --devices none
next_port
try "connecting without a listener fails" ends_with 1 "refused" dblp-perf rr --proto tcp --connect -n 1 -a "$here" -p "$port"
try "a failing hook fails the run" ends_with 1 "the hook failed before round 0" dblp-perf \
	fanin --proto tcp --hook false -a "$here" -p "$port"

# two_ends LISTENS CONNECTS: run both ends separately, as on two machines, with these options
two_ends()
{
	next_port
	# shellcheck disable=SC2086 # words
	spawn dblp-perf bulk --proto tcp --listen -a "$here" -p "$port" $1
	# shellcheck disable=SC2086 # words
	wait_until 30 listens "$here:$port" && dblp-perf bulk --proto tcp --connect -a "$here" -p "$port" $2 > "$tmp/said"
}

ends_differ()
{
	! two_ends "-s 1000" "-s 2000" && ended "$spawned" 1 &&
		grep -q 'options of the two ends differ' "$tmp/out.$spawned"
}
try "ends with different options refuse each other" ends_differ

# Only the listening end, which measures, prints a result.
ends_agree()
{
	two_ends "-n 3 -j" "-n 3" && [ ! -s "$tmp/said" ] && ended "$spawned" 0 &&
		jq -e '.delivered_bytes == 3000000 and .sent_bytes == null' "$tmp/out.$spawned"
}
try "ends that are started separately agree" ends_agree

done_testing
