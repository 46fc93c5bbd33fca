#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs one scenario of the experiments in the VM: guest.sh SCENARIO [ARGUMENT...]. Its results
# are described in lib/measure.sh.

set -u -o pipefail
self=$(readlink -f "$0")
# shellcheck source=lab/experiments/network.sh
. "${self%/*}/network.sh"

# lossy_rounds LOSS SECONDS: a hook before each round. Every third round loses LOSS (%) of its
# packets, for SECONDS or, with "all", to its end
lossy_rounds()
{
	local pending=/run/pending

	[ ! -e $pending ] || kill "$(cat $pending)" 2> /dev/null
	rm -f $pending
	if [ $((DBLP_ROUND % 3)) -ne 2 ]; then
		lose_at_port 0
		return
	fi
	lose_at_port "$1" || return
	[ "$2" != all ] || return 0
	# The loss begins some milliseconds before the round.
	(sleep "$2"; lose_at_port 0) > /dev/null 2>&1 &
	echo $! > $pending
}
if [ "${1:-}" = lossy_rounds ]; then
	shift
	lossy_rounds "$@"
	exit
elif [ "${1:-}" = lose ]; then
	lose_at_port "$2"
	exit
fi

# shellcheck source=lab/lib/measure.sh
. "${self%/*}/../lib/measure.sh"
# shellcheck source=lab/experiments/training.sh
. "${self%/*}/training.sh"
# shellcheck source=lab/experiments/fabric.sh
. "${self%/*}/fabric.sh"
# Time limit of a measurement, seconds; a longer one is reported as longer.
limit=3600

# baseline NAME ROUNDS HOOK: measure the papers' baseline
baseline()
{
	record "$key" "$1" dblp-baseline --to server --from "$hosts" --address "$server" \
		--size $dblp_size --rounds "$2" --p-low 8000ppm --hook "$3" --timeout ${limit}s
}

dblp_size=300000
# dblp LOSS SECONDS: rounds of 3 workers with bursts, see lossy_rounds
dblp()
{
	local key="$1 $2" hook="$self lossy_rounds $1 $2" transport ns

	# Each transport gets a fresh network, so that all see the same one.
	for transport in baseline dblp-{0.8%-early,40.8%-eager}{,-lossy} baseline-all cubic bbr; do
		lossy_port 3 100mbit 1ms || fail "no network"
		for ns in server h0 h1 h2; do
			ip netns exec $ns sh -c 'echo 100 > /proc/sys/net/ipv4/tcp_retries2' || fail "no sysctl"
		done
		case $transport in
		baseline)
			spare 7100 || fail "nothing can be spared"
			baseline "$transport" 36 "$hook"
			;;
		baseline-all) baseline "$transport" 3 "$hook" ;;
		dblp-*) measure "$key" "$transport" fanin --size $dblp_size --warmup 0 --count 36 --hook "$hook" ;;
		*) measure "$key" "$transport" fanin --size $dblp_size --warmup 0 --count 3 --hook "$hook" ;;
		esac
		no_network
	done
}

# ltp LOSS: rounds of 8 workers; the queue holds 30 packets (1.8 ms)
ltp()
{
	local transport

	short_queue 8 200mbit 30 250us || fail "no network"
	for transport in dblp-2%-early dblp reno cubic bbr dctcp sctp; do
		if ! fresh_queue || ! change_loss "$1"; then
			fail "no loss"
		fi
		case $transport in
		dblp-*) measure "$1" $transport fanin --size 250000 --warmup 2 --count 100 ;;
		dblp) measure "$1" $transport fanin --size 250000 --warmup 2 --count 50 ;;
		*) measure "$1" $transport fanin --size 250000 --warmup 2 --count 20 ;;
		esac
	done
}

# collective KEY TRANSPORT [OPTION...]: measure dblp-perf, whose ranks all run here
collective()
{
	local key=$1 transport=$2
	shift 2

	# shellcheck disable=SC2046 # words
	record "$key" "$transport" dblp-perf collective -j --samples --timeout ${limit}s \
		--spawn "$hosts" $(flavours "$transport") "$@"
}

# bml cube: each host has two links of 16 Mbit/s; bml RATE: one link of RATE (Mbit/s)
bml()
{
	local transport plan size=900000

	if [ "$1" = cube ]; then
		cube 16mbit || fail "no network"
		for transport in dblp dblp-2%-early cubic bbr; do
			collective cube $transport --plan bcube --radix 3,3 --devices n0,n1 \
				--rendezvous tcp://10.77.0.1:7100 --size $size --count 2 --warmup 1
		done
		return
	fi
	star 9 "$1mbit" || fail "no network"
	for plan in transpose ring; do
		for transport in dblp cubic bbr; do
			collective "$1 $plan" $transport --plan $plan --size $size --count 2 --warmup 1
		done
	done
	collective "$1 ps" dblp --plan ps --size $size --count 1 --warmup 1
}

# overlap: a vector in one message, and in messages of 60 kB, whose sums return while others arrive
overlap()
{
	local plan bytes transport

	star 4 32mbit || fail "no network"
	for bytes in 1048576 60000; do
		for plan in "ps --server" transpose ring; do
			for transport in dblp cubic; do
				# shellcheck disable=SC2086 # words
				collective "${plan%% *} $bytes" $transport --plan $plan --size 600000 --message $bytes \
					--count 2 --warmup 1
			done
		done
	done
	no_network
	cube 16mbit || fail "no network"
	for bytes in 1048576 30000; do
		collective "bcube $bytes" dblp --plan bcube --radix 3,3 --devices n0,n1 \
			--rendezvous tcp://10.77.0.1:7100 --size 900000 --message $bytes --count 2 --warmup 1
	done
}

# dssync SLOW: 3 racks of 3 hosts with links of 32 Mbit/s. Links to the core have a quarter of
# the rate of a rack's hosts, the last one SLOW (Mbit/s)
dssync()
{
	local transport

	racks 32mbit 24mbit "$1mbit" || fail "no network"
	for transport in dblp cubic bbr; do
		collective "$1 transpose" $transport --plan transpose --size 600000 --count 3 --warmup 1
		# The same number of rounds by each digit
		collective "$1 average" $transport --plan average --radix 3,3 --size 600000 \
			--count 4 --warmup 2
	done
}

# dfs DENSITY: 4 workers and a server sum gradients of pictures.py from /add, in which this
# share (%) of the elements is not zero
dfs()
{
	local size transport given=(--vectors "/add/$1.f32")

	size=$(jq .size /add/pictures.json) || fail "no gradients"
	star 5 100mbit || fail "no network"
	record "$1" training cat /add/pictures.json
	for transport in dblp cubic; do
		gradients "$1 whole" $transport
		gradients "$1 segments" $transport "${given[@]}"
		gradients "$1 256" $transport "${given[@]}" --sparse=256
		gradients "$1 best" $transport "${given[@]}" --sparse
	done
}

# gradients KEY TRANSPORT [OPTION...]: sum the gradients of each round in a file once
gradients()
{
	collective "$@" --plan ps --server --size "$size" --count 5 --warmup 1
}

# eight_messages PORTS: 8 connections, each with consecutive messages of 100 kB. It runs 4 times,
# because with one port chance decides which connections share a path
eight_messages()
{
	local draw i pids status=0

	for draw in 1 2 3 4; do
		pids=()
		for i in 0 1 2 3 4 5 6 7; do
			dblp-perf latency -j --samples --timeout ${limit}s --to server --from h0 \
				--address "$server" --port $((7100 + i)) --size 100000 --warmup 4 --count 16 \
				--spray "$1" > "/run/message.$draw.$i" &
			pids+=($!)
		done
		for i in "${pids[@]}"; do
			wait "$i" || status=1
		done
	done
	jq -s -c '{samples: [.[].samples[]]}' /run/message.*.* && return $status
}

# spray equal: four paths of 20 Mbit/s; half: one of them has 10 Mbit/s; dark: one path fails half
# a second after the first message
spray()
{
	local ports slow=20mbit

	if [ "$1" = dark ]; then
		# With one port, connections on the failed path would end
		paths 20mbit 1ms 20mbit || fail "no network"
		(sleep 0.5; darken) &
		measure dark dblp-16-ports bulk --connections 8 --size 100000 --count 40
		wait
		return
	fi
	[ "$1" != half ] || slow=10mbit
	for ports in 1 16; do
		paths 20mbit 1ms $slow || fail "no network"
		measure "$1" dblp-$ports-ports bulk --connections 8 --size 100000 --count 40
		record "$1" dblp-$ports-messages eight_messages $ports
		no_network
	done
}

# Effect of budget, policy, order, rule and carry on sent and missing bytes, at 1 % loss
ablations()
{
	local budget policy order rule carry

	aside=queue_bytes
	for budget in 0 0.8 2 10 20 40.8 60 80; do
		for policy in eager early; do
			[ $budget != 0 ] || policy=full
			vary "$budget% $policy auto" --budget $budget% --policy $policy
			[ $policy != full ] || break
		done
	done
	for order in sequential shuffled; do
		vary "10% eager $order" --budget 10% --policy eager --order $order
		vary "10% early $order" --budget 10% --policy early --order $order
	done
	aside="echo {}"
	star 9 32mbit || fail "no network"
	for rule in bubble rescale feedback; do
		for carry in "" --carry; do
			for i in 0 1 2 3 4 5 6 7 8; do
				tc -n switch qdisc change dev h${i}eth0 root netem rate 32mbit limit 100 loss 1% ||
					fail "no loss"
			done
			collective "$rule${carry:+ carry}" dblp-2%-early --plan transpose --rule $rule $carry \
				--size 450000 --count 5 --warmup 1
		done
	done
	no_network
}

queue_bytes()
{
	tc -n switch -s -j qdisc show dev server | jq -c '{queue: .[0] | {bytes, packets, drops}}'
}

# vary KEY [OPTION...]: measure fan-in with these options
vary()
{
	local key=$1
	shift

	switched 8 200mbit 0 1 || fail "no network"
	measure "$key" dblp fanin --size 250000 --warmup 0 --count 10 "$@"
	no_network
}

# mlt incast QUEUE TRANSPORT: 4 hosts send gradients to a server, a fifth of them of the front
# layers, while one of the hosts also sends other data to it, reliably. The queues of the
# server's port are deep or short.
# mlt train: record the results of trainings with losses, from /add
mlt()
{
	"mlt_$1" "${@:2}"
}

mlt_incast()
{
	local options=() kbytes=() i

	aside="band_counts server"
	[ "$1" != short ] || kbytes=(12 3 9)
	switched 4 none 0 0 || fail "no network"
	for i in 0 1 2 3; do
		if ! tc -n "h$i" qdisc add dev eth0 root netem delay 250us limit 100000 ||
		   ! tc -n switch qdisc add dev "h$i" root netem delay 250us limit 100000; then
			fail "no delay"
		fi
	done
	important_first server 100mbit "${kbytes[@]}" || fail "no priorities"
	# Start at a whole second: the time of a boot varies, and so would the results
	sleep "$(printf '0.%09d' $((1000000000 - 10#$(date +%N))))"
	dblp-perf bulk --proto tcp --cc dctcp --to server --from h3 --address "$server" --port 7100 \
		--count 1000000 --timeout ${limit}s > /dev/null 2>&1 &
	case $2 in
	lanes)
		options=(--lane "share=20%,tos=40,budget=0%,policy=full"
			--lane "share=80%,tos=48,large=30%,rest=2,after,budget=0%,policy=full"
			--lane "tos=48,not-ect,after,budget=20%,policy=early")
		;;
	layers)
		options=(--lane "share=20%,tos=40,budget=0%,policy=full"
			--lane "share=80%,tos=48,not-ect,after,budget=14%,policy=early")
		;;
	dctcp) options=(--proto tcp --cc dctcp --lane share=20% --lane share=80%) ;;
	dctcp-bands) options=(--proto tcp --cc dctcp --lane "share=20%,tos=40" --lane "share=80%,tos=48") ;;
	esac
	record "incast $1" "$2" dblp-perf collective -j --samples --timeout ${limit}s \
		--spawn server,h0,h1,h2,h3 --plan ps --server --op reduce-scatter --size 200000 \
		--count 100 --warmup 5 "${options[@]}"
	# End the bulk transfer, which has no end by itself
	# shellcheck disable=SC2046 # numbers
	kill $(ip netns pids h3) $(ip netns pids server)
	wait
	no_network
}

mlt_train()
{
	local file name

	for file in /add/*.json; do
		name=${file##*/} name=${name%.json}
		record "train ${name%-*}" "${name#*-}" cat "$file"
	done
}

case $scenario in
dblp|ltp|bml|overlap|dssync|ablations|dfs|fabric|mlt|spray|train_dblp|train_auto|train_rules|train_racks) "$scenario" "$@" ;;
*) fail "there is no scenario '$scenario'" ;;
esac
