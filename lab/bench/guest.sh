#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs one scenario of the bench in the VM: guest.sh SCENARIO [ARGUMENT...]. Its results are
# described in lib/measure.sh.

set -u -o pipefail
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/network.sh
. "$here/../../selftests/lib/network.sh"
# shellcheck source=lab/lib/measure.sh
. "$here/../lib/measure.sh"
peers="cubic bbr dctcp sctp"

# One CPU does the work of both ends and is never idle, so its time counts instructions.
bulk()
{
	local offloads transport

	for offloads in on off; do
		cable $offloads || fail "no network"
		for transport in dblp cubic; do
			measure $offloads $transport bulk --count 100 --warmup 10
		done
		no_network
	done
}

rr()
{
	local transport

	switched 1 none 0 0 || fail "no network"
	for transport in dblp cubic sctp; do
		measure 64 $transport rr --count 5000 --warmup 200
	done
}

loss()
{
	local loss transport

	switched 1 100mbit 250us 0 || fail "no network"
	for loss in 0 0.1 0.5 1 2 5; do
		change_loss $loss || fail "no loss"
		for transport in dblp $peers; do
			measure $loss "$transport" bulk --count 20
		done
	done
}

# Delays without a queue: ACKs arrive in bunches, or the delay varies from packet to
# packet.
noise()
{
	local kind transport

	switched 1 100mbit 1ms 0 || fail "no network"
	for kind in bunches jitter; do
		case $kind in
		bunches)
			change_port server rate 100mbit delay 1ms &&
				change_port h0 delay 1ms slot 5ms 10ms ;;
		jitter)
			change_port server rate 100mbit delay 5ms 2ms &&
				change_port h0 delay 5ms 2ms ;;
		esac || fail "no noise"
		for transport in dblp $peers; do
			measure $kind "$transport" bulk --count 20
		done
	done
}

# with_and_without LOSS: rounds of fan-in at LOSS (%), without and with a budget
with_and_without()
{
	local transport

	switched 8 200mbit 0 "$1" || fail "no network"
	for transport in dblp dblp-2%; do
		measure "$1" "$transport" fanin --size 100000 --count 200 --warmup 0
	done
}

budget()
{
	with_and_without 1
}

# fanin LOSS: rounds of fan-in from 8 hosts at LOSS (%)
fanin()
{
	local transport

	with_and_without "$1"
	for transport in $peers; do
		measure "$1" "$transport" fanin --size 100000 --count 50 --warmup 0
	done
}

# many LOSS: rounds of fan-in from 128 connections at LOSS (%)
many()
{
	local transport

	switched 32 200mbit 0 "$1" || fail "no network"
	for transport in dblp dblp-2%; do
		measure "$1" "$transport" fanin --connections 4 --size 20000 --count 40 --warmup 0
	done
	for transport in $peers; do
		measure "$1" "$transport" fanin --connections 4 --size 20000 --count 10 --warmup 0
	done
}

share()
{
	switched 8 200mbit 250us 0 || fail "no network"
	measure 8 dblp share --other tcp --other-cc cubic --warmup 2s --time 10s
}

# beside QUEUE DELAY: shares of 8 flows and 8 TCP flows, and drops of the queue. At a higher
# rate the single CPU, which runs both ends, would decide the shares.
beside()
{
	local who other

	short_queue 8 100mbit "$1" "$2" || fail "no network"
	aside=queue_counts
	for other in cubic bbr; do
		for who in dblp cubic bbr dctcp; do
			# TCP beside TCP shows the effect of the queue; most hosts use cubic.
			[ $other = cubic ] || [ "$who" = bbr ] || [[ $who = dblp* ]] || continue
			fresh_queue || fail "no queue"
			# Data in send buffers at the end takes time, too.
			measure "$1 $2 $other" "$who" share --other tcp --other-cc $other \
				--buffer 1000000 --warmup 4s --time 8s
		done
	done
}

# bursts LOSS: three bursts of LOSS (%), each of 1 s after 0.5 s without loss. Prints a line
# for each: a time span within the burst, in seconds of CLOCK_MONOTONIC.
bursts()
{
	local i from until _

	for i in 1 2 3; do
		sleep 0.5
		change_loss "$1"
		read -r from _ < /proc/uptime
		sleep 1
		read -r until _ < /proc/uptime
		change_loss 0
		# /proc/uptime has hundredths, rounded down.
		echo "[$from + 0.01, $until]"
	done
}

burst_times()
{
	jq -c -n "{bursts: [$(paste -s -d , /run/bursts)]}"
}

# burst LOSS: consecutive rounds of three hosts, with bursts of LOSS (%). Their number is
# larger than can complete before the last burst ends.
burst()
{
	local budget pid
	local -A options=(["0.8%"]="early --count 130" ["40.8%"]="eager --count 200")

	aside=burst_times
	for budget in "${!options[@]}"; do
		own_uplinks 3 100mbit 250us || fail "no network"
		bursts "$1" > /run/bursts &
		pid=$!
		# shellcheck disable=SC2086 # words
		measure "$1 $budget" dblp fanin --size 287000 --warmup 0 \
			--budget "$budget" --policy ${options[$budget]}
		wait $pid
		no_network
	done
}

# runs P R LOSS: fan-in with correlated losses after Gilbert and Elliott. At each packet a
# bad period begins with a chance of P (%) and ends with a chance of R (%); in it LOSS (%) of
# the packets are lost.
runs()
{
	local transport

	switched 8 200mbit 0 0 || fail "no network"
	lose gemodel "$1%" "$2%" "$3%" 0% || fail "no loss"
	aside=queue_counts
	measure "$*" dblp fanin --size 100000 --count 200 --warmup 0 --budget 10% --policy early
	for transport in cubic bbr sctp; do
		measure "$*" "$transport" fanin --size 100000 --count 50 --warmup 0
	done
}

latency()
{
	local transport

	switched 1 100mbit 250us 1 || fail "no network"
	for transport in dblp-2%-early dblp-2%-eager dblp; do
		measure 1 $transport latency --count 100 --warmup 0
	done
	for transport in $peers; do
		measure 1 "$transport" latency --count 33 --warmup 0
	done
}

# Free memory that earlier runs left in caches, which would count otherwise.
tidy()
{
	local file

	echo 3 > /proc/sys/vm/drop_caches
	for file in /sys/kernel/slab/*/shrink; do
		echo 1 > "$file"
	done
}

idle()
{
	local transport

	switched 1 none 0 0 || fail "no network"
	# One host opens all connections, so it needs a port for each.
	ip netns exec h0 sh -c 'echo 2000 65000 > /proc/sys/net/ipv4/ip_local_port_range'
	for transport in dblp cubic; do
		tidy
		measure 10000 $transport idle --connections 10000 --time 60s
	done
}

# in_real_time KEY TRANSPORTS MODE [OPTION...]: measure all transports in this network
in_real_time()
{
	local key=$1 transports=$2 transport
	shift 2

	for transport in $transports; do
		measure "$key" "$transport" "$@"
	done
	no_network
}

# real CPUS idle|busy: measurements that depend on scheduling delay, on this number of CPUs,
# idle or with a busy process on each. Each measurement takes seconds.
real()
{
	local where="$1 $2" both="dblp cubic" loss cpu

	limit=60
	if [ "$2" = busy ]; then
		for ((cpu = 0; cpu < $1; cpu++)); do
			taskset "$(printf '%x' $((1 << cpu)))" sh -c 'while :; do :; done' &
		done
	fi
	if [ "$1" -gt 2 ]; then
		cable on || fail "no network"
		in_real_time "$where veth8" "$both" bulk --connections 8 --count 60 --warmup 5
	else
		switched 1 200mbit 250us 0 || fail "no network"
		in_real_time "$where bulk" "$both sctp" bulk --count 25 --warmup 5
		for loss in 0 1; do
			switched 8 200mbit 0 $loss || fail "no network"
			in_real_time "$where fanin-$loss" "$both" fanin --size 100000 --count 60
		done
		switched 1 100mbit 250us 0 || fail "no network"
		in_real_time "$where latency" "$both sctp" latency --count 20
		cable on || fail "no network"
		in_real_time "$where veth" "$both" bulk --count 300 --warmup 30
		switched 1 none 0 0 || fail "no network"
		in_real_time "$where rr" "$both sctp" rr --count 3000 --warmup 200
	fi
	# shellcheck disable=SC2046 # words
	[ "$2" = idle ] || kill $(jobs -p)
}

case $scenario in
bulk|rr|loss|noise|fanin|budget|many|share|beside|burst|runs|latency|idle|real) "$scenario" "$@" ;;
*) fail "there is no scenario '$scenario'" ;;
esac
