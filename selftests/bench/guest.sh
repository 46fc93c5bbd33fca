#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# One scenario of the bench, in the VM: guest.sh SCENARIO [ARGUMENT...]. Each
# figure becomes a line of /out/results:
#
#	{"scenario", "key", "transport", "status", "error", "result"}
#
# Lines with the same scenario and key are compared. status is the exit status of
# dblp-perf, and result the JSON object that it printed.

set -u -o pipefail
# shellcheck source=selftests/bench/network.sh
. "$(dirname "$(readlink -f "$0")")/network.sh"

scenario=${1:?}
shift
uname -r > /out/release
results=/out/results
# In virtual seconds. Peers with long timeouts take their time.
limit=1500

fail()
{
	printf 'bench: %s\n' "$*" >&2
	exit 1
}

# The options of dblp-perf for a transport
flavours()
{
	case $1 in
	dblp) echo ;;
	dblp-swift) echo --cc swift ;;
	dblp-2%) echo --budget 2% ;;
	dblp-2%-*) echo --budget 2% --policy "${1##*-}" ;;
	sctp) echo --proto sctp ;;
	*) echo --proto tcp --cc "$1" ;;
	esac
}
peers="cubic bbr dctcp sctp"

# measure KEY TRANSPORT MODE [OPTION...]
measure()
{
	local key=$1 transport=$2 mode=$3 status json
	shift 3

	# shellcheck disable=SC2046,SC2154 # words; network.sh sets hosts
	json=$(dblp-perf "$mode" -j --samples --timeout $limit --to server --from "$hosts" \
		--address $server $(flavours "$transport") "$@" 2> /run/error)
	status=$?
	[ $status -eq 0 ] || json=null
	printf '%s %s %s: status %s %s\n' "$scenario" "$key" "$transport" $status "$(cat /run/error)"
	jq -c -n --arg scenario "$scenario" --arg key "$key" --arg transport "$transport" \
		--argjson status $status --rawfile error /run/error --argjson result "$json" \
		'$ARGS.named' >> $results || fail "no room for the results"
}

# One CPU does the work of both ends and is never idle: time counts instructions.
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

# Delay that no queue causes: ACKs come in bunches, or the delay differs from packet
# to packet.
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
		for transport in dblp dblp-swift $peers; do
			measure $kind "$transport" bulk --count 20
		done
	done
}

# fanin LOSS
fanin()
{
	local transport

	switched 8 200mbit 0 "$1" || fail "no network"
	for transport in dblp dblp-2%; do
		measure "$1" "$transport" fanin --size 100000 --count 200 --warmup 0
	done
	for transport in $peers; do
		measure "$1" "$transport" fanin --size 100000 --count 50 --warmup 0
	done
}

# many LOSS
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
	measure 8 dblp share --other tcp --other-cc cubic --warmup 2 --time 10
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

# Free the memory that earlier runs left in caches, so that it is not counted.
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
	# One host opens all connections, so it needs as many ports.
	ip netns exec h0 sh -c 'echo 2000 65000 > /proc/sys/net/ipv4/ip_local_port_range'
	for transport in dblp cubic; do
		tidy
		measure 10000 $transport idle --connections 10000 --time 60
	done
}

case $scenario in
bulk|rr|loss|noise|fanin|many|share|latency|idle) "$scenario" "$@" ;;
*) fail "there is no scenario '$scenario'" ;;
esac
