# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Networks of lab/bench and lab/experiments: hosts are namespaces, and the switch is a
# namespace with a bridge.

server=10.77.0.1

# shellcheck source=selftests/lib/link.sh
. "$(dirname "${BASH_SOURCE[0]}")/link.sh"

# plug_in NAME ADDRESS QUEUE...: connect a host to the switch. The switch's port to the host
# has a netem with QUEUE. Packets from the host are not delayed; they queue at the port of
# the receiver. Offloads are off, so that packets are lost separately.
plug_in()
{
	local name=$1 address=$2
	shift 2

	ip netns add "$name" &&
	ip -n "$name" link set lo up &&
	ip -n switch link add "$name" type veth peer name eth0 netns "$name" &&
	ip -n switch link set "$name" master bridge up &&
	ip -n "$name" addr add "$address/16" dev eth0 &&
	ip -n "$name" link set eth0 up &&
	one_by_one "$name" eth0 &&
	one_by_one switch "$name" || return
	[ $# -eq 0 ] || tc -n switch qdisc add dev "$name" root netem "$@"
}

# switched HOSTS RATE DELAY LOSS: server and h0, h1, ... at a switch, with links
# of RATE and DELAY each way and a queue of 100 packets at each port. LOSS (%) is
# the share of packets to the server that are lost before the link, so that they take no
# time on it. With RATE "none" links are unlimited.
switched()
{
	local i

	queue=(rate "$2" delay "$3" limit 100)
	[ "$2" != none ] || queue=()
	{
		ip netns add switch &&
		ip -n switch link add bridge type bridge &&
		ip -n switch link set bridge up &&
		plug_in server $server "${queue[@]}" || return
		for ((i = 0; i < $1; i++)); do
			plug_in "h$i" "10.77.1.$((1 + i))" "${queue[@]}" || return
		done
		[ "$4" = 0 ] || change_loss "$4" || return
	} > /dev/null
	# shellcheck disable=SC2034 # used by the script that sources this
	hosts=$(seq -s, -f 'h%g' 0 $(($1 - 1)))
}

# short_queue HOSTS RATE PACKETS DELAY: the switch's port to the server has RATE and a queue
# of PACKETS. The hosts make the delay, because a netem counts delayed packets as queued.
short_queue()
{
	local i

	switched "$1" none 0 0 || return
	queue=(rate "$2" limit "$3")
	for ((i = 0; i < $1; i++)); do
		tc -n "h$i" qdisc add dev eth0 root netem delay "$4" limit 100000 &&
			tc -n switch qdisc add dev "h$i" root netem delay "$4" limit 100000 || return
	done
	fresh_queue
}

# fresh_queue: replace the queue to the server, which resets its counters
fresh_queue()
{
	tc -n switch qdisc del dev server root 2> /dev/null
	tc -n switch qdisc add dev server root netem "${queue[@]}"
}

# important_first DEVICE RATE [KBYTES MIN MAX]: the switch's port to DEVICE sends packets with
# DSCP EF (control packets) first, then those with AF11 (TOS 0x28). Packets with AF12 (0x30, the
# rest of a training) and all other packets share the remaining rate equally. Their queues mark
# ECT packets between MIN and MAX kbytes, and drop others.
important_first()
{
	local limit=${3:-300} min=${4:-30} max=${5:-90} band dscp

	tc -n switch qdisc del dev "$1" root 2> /dev/null
	tc -n switch qdisc add dev "$1" root handle 1: tbf rate "$2" burst 5k limit 1m &&
	tc -n switch qdisc add dev "$1" parent 1:1 handle 10: ets bands 4 strict 2 \
		quanta 1514 1514 priomap 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 || return
	for band in 1 2; do
		tc -n switch qdisc add dev "$1" parent 10:$band handle 1$band: \
			pfifo limit $((limit * 2 / 3)) || return
	done
	for band in 3 4; do
		tc -n switch qdisc add dev "$1" parent 10:$band handle 1$band: red limit "${limit}k" \
			min "${min}k" max "${max}k" avpkt 1500 burst $((min * 2 / 3 + 1)) \
			bandwidth "$2" probability 1 ecn || return
	done
	for band in 1:0xb8 2:0x28 3:0x30; do
		dscp=${band#*:}
		tc -n switch filter add dev "$1" parent 10: protocol ip u32 \
			match ip tos "$dscp" 0xfc flowid "10:${band%:*}" &&
		tc -n switch filter add dev "$1" parent 10: protocol ipv6 u32 \
			match ip6 priority "$dscp" 0xfc flowid "10:${band%:*}" || return
	done
}

# band_counts DEVICE: packets that each class of important_first sent, marked and dropped, as
# JSON
band_counts()
{
	tc -n switch -s -j qdisc show dev "$1" | jq -c '
		[.[] | select(.handle | test("^1[1234]:$"))] | sort_by(.handle) |
		map({packets, dropped: .drops, marked: (.marked // 0)}) | {bands: .}'
}

# queue_counts: packets that the queue to the server sent and dropped, as JSON
queue_counts()
{
	tc -n switch -s -j qdisc show dev server | jq -c '{queue: .[0] | {packets, drops}}'
}

# own_uplinks HOSTS RATE DELAY: each host has its own link of RATE to the switch, and no other
# limit. Packets that the switch loses have taken time on the link.
own_uplinks()
{
	local i

	switched "$1" none 0 0 || return
	queue=(delay "$3" limit 1000)
	for ((i = 0; i < $1; i++)); do
		tc -n "h$i" qdisc add dev eth0 root netem rate "$2" limit 100 &&
			tc -n switch qdisc add dev "h$i" root netem delay "$3" limit 1000 || return
	done
	fresh_queue
}

# change_loss LOSS: set the share of packets to the server that are lost
change_loss()
{
	lose "$1%"
}

# lose MODEL...: set the loss model of packets to the server, see tc-netem(8)
lose()
{
	tc -n switch qdisc change dev server root netem "${queue[@]}" loss "$@"
}

# change_port NAME NETEM...: replace the netem of the port to a host
change_port()
{
	local name=$1
	shift

	# "tc qdisc replace" would keep old options.
	tc -n switch qdisc del dev "$name" root &&
		tc -n switch qdisc add dev "$name" root netem "$@" limit 1000
}

# cable OFFLOADS: server and h0 with a veth between them, offloads on or off
cable()
{
	local ns

	ip netns add server &&
	ip netns add h0 &&
	ip link add eth0 netns server type veth peer name eth0 netns h0 &&
	ip -n server addr add $server/16 dev eth0 &&
	ip -n h0 addr add 10.77.1.1/16 dev eth0 || return
	for ns in server h0; do
		ip -n $ns link set lo up &&
		ip -n $ns link set eth0 up || return
		[ "$1" = on ] ||
			one_by_one $ns eth0 || return
	done
	# shellcheck disable=SC2034 # used by the script that sources this
	hosts=h0
}

# no_network: delete all namespaces
no_network()
{
	local ns

	for ns in /run/netns/*; do
		[ ! -e "$ns" ] || ip netns del "${ns##*/}"
	done
}
