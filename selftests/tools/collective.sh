#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblp-perf(1), mode collective: each plan over each transport adds up what four hosts
# have, what is missing is told, and what cannot be is refused with its reason.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/link.sh
. "$(dirname "$(readlink -f "$0")")/../lib/link.sh"

# Four hosts: eth0 joins all, n0 those that differ in digit 0, n1 in digit 1
new_ns h0 h1 h2 h3 switch
# shellcheck disable=SC2154 # new_ns sets them
hosts=("$h0" "$h1" "$h2" "$h3")
list=$(IFS=,; echo "${hosts[*]}")

join_hosts()
{
	local i digit peer

	# shellcheck disable=SC2154 # new_ns sets it
	ip -n "$switch" link add name br0 type bridge && ip -n "$switch" link set br0 up || exit 1
	for i in 0 1 2 3; do
		ip link add eth0 netns "${hosts[i]}" type veth peer name "p$i" netns "$switch" || exit 1
		ip -n "$switch" link set "p$i" master br0 up || exit 1
		ip -n "${hosts[i]}" addr add "10.0.0.$((i + 1))/24" dev eth0 || exit 1
		for digit in 0 1; do
			peer=$((i | 1 << digit))
			[ $peer != $i ] || continue
			ip link add "n$digit" netns "${hosts[i]}" type veth \
				peer name "n$digit" netns "${hosts[peer]}" || exit 1
			ip -n "${hosts[i]}" addr add "10.$((digit + 1)).$i.1/24" dev "n$digit" || exit 1
			ip -n "${hosts[peer]}" addr add "10.$((digit + 1)).$i.2/24" dev "n$digit" || exit 1
		done
	done
	for i in 0 1 2 3; do
		for digit in eth0 n0 n1; do
			ip -n "${hosts[i]}" link set "$digit" up || exit 1
			one_by_one "${hosts[i]}" "$digit" || exit 1
		done
	done
}
join_hosts

# perf ARGUMENT...: a rank on each host
perf()
{
	dblp-perf collective --spawn "$list" --timeout 50 "$@"
}

# says FILTER ARGUMENT...: FILTER holds for each object of a run
says()
{
	local filter=$1
	shift

	perf "$@" -j > "$tmp/json" || return
	head -c 2000 "$tmp/json"
	jq -s -e "length > 0 and all(.[]; $filter)" "$tmp/json" > /dev/null
}

levels=(--radix "2,2" --devices "n0,n1" --rendezvous tcp://10.0.0.1:7100)
plans=(
	"ps --server --root 1"
	"ps"
	"transpose"
	"ring"
	"tree --fanin 3"
	"bcube ${levels[*]}"
	"average ${levels[*]}"
)
exact='.mode == "collective" and .ranks == 4 and .verified and .missing_bytes == 0 and
	.late_ranks == 0 and .ns.n == 3 and .count == 3 and .started_ns > 0 and
	(.samples | length) == 3 and .ns.max == (.samples | max) and
	.elapsed_ns == (.samples | add) and .ns.p999 == .ns.max and
	(.bytes_per_second - .size * 3e9 / .elapsed_ns | fabs) <= 1'
for proto in dblp tcp; do
	for plan in "${plans[@]}"; do
		# In three rounds each of all others adds its vector to one; in average to half of
		# the vector of another one, and that one to the other half
		asked=9
		case $plan in average*) asked=6 ;; esac
		# shellcheck disable=SC2086 # words
		try "$proto, $plan" says "$exact and .proto == \"$proto\" and
			.plan == \"${plan%% *}\" and .asked_bytes == $asked * .size" \
			--proto $proto --dtype int32 -s 60000,4000 -n 3 -w 2 --samples --plan $plan
	done
done

two_sizes()
{
	jq -s -e 'map(.size) == [60000, 4000]' "$tmp/json"
}
try "an object for each size, in order" two_sizes

# sent DEVICE: bytes that the first host has sent by it
sent()
{
	ip -n "$h0" -s -j link show dev "$1" | jq '.[0].stats64.tx.bytes'
}

# In three rounds one level has its turn twice, the other one once: half a vector and back
in_turn()
{
	local n0 n1

	n0=$(sent n0)
	n1=$(sent n1)
	says '.verified' --proto tcp --dtype int32 -s 400000 -n 3 -w 0 --plan average "${levels[@]}" || return
	n0=$(($(sent n0) - n0))
	n1=$(($(sent n1) - n1))
	echo "$n0 bytes by n0, $n1 by n1"
	[ "$n0" -gt 800000 ] && [ "$n0" -lt 1200000 ] && [ "$n1" -gt 400000 ] && [ "$n1" -lt 600000 ]
}
try "levels take turns" in_turn
try "radices that are found" says '.verified and .radix == [2, 2]' \
	--dtype int32 -s 4000 -n 1 --plan bcube --levels 2
paused()
{
	local start=${EPOCHREALTIME/./}

	says '.gap_ms == 300 and .ns.n == 2' --gap 300 -s 4000 -n 2 -w 1 || return
	[ $((${EPOCHREALTIME/./} - start)) -ge 600000 ]
}
try "a gap between rounds" paused

# Two rounds of the three ranks that contribute: zeroes, then all of one's and zeroes. What is sent
# once goes back to all three.
vectors_are_read()
{
	{ head -c 160000 /dev/zero; head -c 40000 /dev/urandom; head -c 40000 /dev/zero; } > "$tmp/vectors"
	for warmup in 0 1 2; do
		says "if $warmup == 1 then .sent_bytes > 160000 else .sent_bytes < 20000 end" --proto tcp --sparse \
			--plan ps --server --vectors "$tmp/vectors" -s 40000 -n 1 -w "$warmup" || return
	done
}
try "vectors of a file, round by round" vectors_are_read

for op in reduce-scatter allgather; do
	try "$op" says ".op == \"$op\" and .verified and .missing_bytes == 0" \
		--op $op --dtype int32 -s 60000 -n 3 --plan bcube "${levels[@]}"
done

# Of contributions 1 % is sent, and up to 4 % of sums, with a bit for some elements
for proto in dblp tcp; do
	try "zeroes, $proto" says '.verified and .sparse and .density_ppm == 10000 and .cluster == 16 and
		.missing_bytes == 0 and .sent_bytes * 20 < .size * .count * 6' --proto $proto \
		--sparse --density 1% --cluster 16 --dtype int32 -s 400000 -n 3 -w 0
done
# Of blocks of 256 elements 15 % have one of the clusters
try "zeroes, blocks of 256" says '.verified and .block == 256 and .sent_bytes * 20 > .size * .count * 18' \
	--sparse=256 --density 1% --cluster 16 --dtype int32 -s 400000 -n 3 -w 0

for dtype in float32 float16 bfloat16; do
	try "$dtype" says ".dtype == \"$dtype\" and (.verified | not) and .missing_bytes == 0" \
		--dtype $dtype -s 6002000 -n 1 --plan ring
done

# What is missing, is told, and within the budget; all else is still right.
for host in "${hosts[@]}"; do
	for device in eth0 n0 n1; do
		tc -n "$host" qdisc replace dev $device root netem limit 100000 loss 3%
	done
done
lossy='.verified and .missing_bytes > 0 and .budget_ppm == 100000 and .policy == "early" and
	.missing_bytes * 1e6 <= .asked_bytes * .budget_ppm'
for plan in "ps --server" "transpose --rule rescale" "ring --rule feedback" "bcube ${levels[*]}"; do
	# shellcheck disable=SC2086 # words
	try "a budget, $plan" says "$lossy" --budget 10% --policy early --dtype int32 -s 400000 \
		-n 3 -w 0 --plan $plan
done
try "a phase" says '.verified and .missing_bytes > 0 and .phase == 2 and .budget_ppm == null' \
	--phase 2 --dtype int32 -s 400000 -n 3 -w 0
for host in "${hosts[@]}"; do
	ip netns exec "$host" dblpctl job add 9 phase tolerant
done
try "a job" says '.verified and .missing_bytes > 0 and .job == 9 and .phase == null' \
	--job 9 --dtype int32 -s 400000 -n 3 -w 0
try "no budget" says ".verified and .missing_bytes == 0" --dtype int32 -s 400000 -n 3
try "a budget that is too small" says ".verified and .missing_bytes == 0 and (.carry | not)" \
	--budget 1% --policy early --dtype int32 -s 80000 -n 20 -w 0
try "a budget that is saved up" says ".verified and .missing_bytes > 0 and .carry" \
	--budget 1% --policy early --carry --dtype int32 -s 80000 -n 20 -w 0

# One host is so far away that its vectors come too late; a busy machine may be, too.
for host in "${hosts[@]}"; do
	netem "$host"
done
netem "$h2" delay 500ms
try "a late rank" says '.verified and .wait_ms == 200 and .late_ranks >= 2 and
	.missing_bytes == .late_ranks * .size and .ns.min >= 2e8' \
	--plan ps --wait 200 --proto tcp --dtype int32 -s 4000 -n 2 -w 1
netem "$h2"

# Rank 0 has sent what only comes later to rank 3.
tc -n "$switch" qdisc replace dev p3 root netem delay 300ms
try "the slowest rank" says '.verified and .ns.min >= 3e8 and .elapsed_ns >= 6e8' \
	--plan ps --proto tcp --dtype int32 -s 4000 -n 2 -w 1
tc -n "$switch" qdisc del dev p3 root

# Ranks that are started apart, as on several machines; $1 and $2 are their seeds
apart()
{
	local each=(dblp-perf collective --rendezvous tcp://10.0.0.1:7100 --proto tcp --plan ps
		--op reduce-scatter --dtype int32 -s 4 -n 3 -j)

	spawn ip netns exec "$h1" env RANK=1 WORLD_SIZE=2 "${each[@]}" --seed "$2"
	ip netns exec "$h0" "${each[@]}" --rank 0 --nranks 2 --seed "$1" > "$tmp/said" 2>&1
}

agree()
{
	apart 1 1 && ended "$spawned" 0 && [ ! -s "$tmp/out.$spawned" ] &&
		jq -e '.ranks == 2 and .verified and .ns.n == 3' "$tmp/said"
}
try "ranks that are started apart" agree

differ()
{
	spawn ip netns exec "$h1" dblp-perf collective --rank 1 --nranks 2 --message 8000 \
		--rendezvous tcp://10.0.0.1:7100 --proto tcp
	! ip netns exec "$h0" dblp-perf collective --rank 0 --nranks 2 --message 4000 \
		--rendezvous tcp://10.0.0.1:7100 --proto tcp 2> "$tmp/said" || return
	cat "$tmp/said"
	ended "$spawned" 1 && grep -q "rank 0: joining .* size of messages" "$tmp/said" &&
		grep -q "rank 1: joining .* size of messages" "$tmp/out.$spawned"
}
try "ranks that were told different things" differ

# They contribute other numbers than they should: rank 1 less, or more
sums_wrong()
{
	! apart "$1" "$2" || return
	cat "$tmp/said"
	grep -q "rank 0: wrong: $3" "$tmp/said"
}
try "sums that are too small" sums_wrong 1 3 "5 sums are not full, but only 0 bytes"
try "sums that are too large" sums_wrong 3 1 "element 0 of 1 in round 0 is"

has_sockets()
{
	! no_sockets "$1"
}

# The error names who is gone, whoever sees it first.
killed()
{
	local pids

	spawn dblp-perf collective --spawn "$list" -n 1000000 -s 4000
	wait_until 10 has_sockets "$h2" || return
	# Its children, in the order of their ranks
	mapfile -t pids < <(cat /proc/[0-9]*/stat 2> /dev/null |
		sed -n "s/^\([0-9]*\) (.*) . $spawned .*/\1/p" | sort -n)
	kill -9 "${pids[2]}" || return
	ended "$spawned" 1 && grep -q 'rank 2 has \(died\|failed\)' "$tmp/out.$spawned"
}
try "a rank that is killed" killed

refused()
{
	local text=$1
	shift

	try "refused: $text $*" ends_with 2 "$text" dblp-perf "$@"
}

refused "--spawn or --rendezvous is needed" collective
refused "--rank and --nranks go together" collective --rank 0
refused "--rank 2: there are only 2" collective --rank 2 --nranks 2
refused "--spawn starts all ranks" collective --spawn 2 --rank 0 --nranks 2
refused "--rendezvous is" collective --rendezvous here
refused "--root 2: there are only 2" collective --spawn 2 --plan ps --root 2
refused "--server needs another rank" collective --spawn 1 --plan ps --server
refused "are for --plan ps and tree" collective --spawn 2 --server
refused "--fanin is for" collective --spawn 2 --fanin 2
refused "--levels and --radix are for" collective --spawn 4 --radix 2,2
refused "exclude each other" collective --spawn 4 --plan bcube --radix 2,2 --levels 2
refused "the product is not the number of ranks, 4" collective --spawn 4 --plan bcube --radix 2,3
refused "--size 6: float32 has 4 bytes" collective --spawn 2 --size 8,6
refused "--message takes a multiple of 8" collective --spawn 2 --message 100
refused "--carry is for a --budget" collective --spawn 2 --carry
refused "--cluster is for a --density" collective --spawn 2 --cluster 2
refused "--sparse takes a power of two" collective --spawn 2 --sparse=24
refused "--density takes a share such as" collective --spawn 2 --density 5
refused "--vectors: none: No such file" collective --spawn 2 --vectors none
refused "--vectors have one --size" collective --spawn 2 --vectors /etc/passwd --dtype int32
try "vectors that are too few" ends_with 1 "bytes are no rounds of 2 vectors with 4000" dblp-perf \
	collective --spawn 2 --proto tcp --vectors /etc/passwd -s 4000
refused "loses nothing" collective --spawn 2 --op allgather --budget 1%
refused "tcp has no --budget" collective --spawn 2 --proto tcp --budget 1%
refused "tcp has no --job" collective --spawn 2 --proto tcp --job 1
refused "--cc is for --proto tcp" collective --spawn 2 --cc bbr
refused "mode collective has no sctp" collective --spawn 2 --proto sctp
refused "mode collective has no --verify" collective --spawn 2 --verify
refused "mode collective has no --connections" collective --spawn 2 -c 2
refused "--plan is for mode collective" rr --plan ps
try "no such congestion control" ends_with 4 "tcp has no congestion control 'none'" dblp-perf \
	collective --spawn 2 --proto tcp --cc none
try "no such device" ends_with 1 "rank [01]: joining the other ranks: No such device" dblp-perf \
	collective --spawn 2 --devices none
done_testing
