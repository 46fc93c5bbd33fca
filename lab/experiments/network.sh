# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Networks of the experiments, in addition to those of lib/network.sh.

# shellcheck source=selftests/lib/network.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../selftests/lib/network.sh"

# wire NS1 DEVICE1 NS2 DEVICE2: a cable that transfers packets one by one
wire()
{
	ip -n "$1" link add "$2" type veth peer name "$4" netns "$3" &&
	ip -n "$1" link set "$2" up &&
	ip -n "$3" link set "$4" up &&
	one_by_one "$1" "$2" &&
	one_by_one "$3" "$4"
}

new_switch()
{
	ip netns add "$1" &&
	ip -n "$1" link add bridge type bridge &&
	ip -n "$1" link set bridge up
}

new_host()
{
	ip netns add "$1" &&
	ip -n "$1" link set lo up
}

# attach HOST DEVICE SWITCH ADDRESS/LENGTH RATE: a link of RATE in each direction; RATE "none" has
# no limit. The host's queue holds all data of its sockets, the switch has a queue of 100
# packets.
attach()
{
	wire "$1" "$2" "$3" "$1$2" &&
	ip -n "$3" link set "$1$2" master bridge &&
	ip -n "$1" addr add "$4" dev "$2" || return
	[ "$5" != none ] || return 0
	tc -n "$1" qdisc add dev "$2" root tbf rate "$5" burst 5k limit 2m &&
	tc -n "$3" qdisc add dev "$1$2" root netem rate "$5" limit 100
}

# lossy_port HOSTS RATE RTT: server and h0, h1, ... at a switch, each with links of RATE. Packets
# to the server are lost after the hosts' uplinks, whose time they have used, and before the
# server's port. The queue of that port holds a whole round, so it loses no packets. ARP is not
# lost, or hosts could not resolve each other.
#
# Namespaces:  h0 ... --tbf--> switch --(uplink: loss)--> port --(outlet: rate)--> server
lossy_port()
{
	local i

	new_switch switch && new_switch port && new_host server &&
	wire switch uplink port downlink &&
	ip -n switch link set uplink master bridge &&
	ip -n port link set downlink master bridge &&
	wire port outlet server eth0 &&
	ip -n port link set outlet master bridge &&
	ip -n server addr add "$server/16" dev eth0 &&
	tc -n port qdisc add dev outlet root netem rate "$2" limit 1000 &&
	tc -n server qdisc add dev eth0 root netem rate "$2" delay "$3" limit 1000 &&
	tc -n switch qdisc add dev uplink root handle 1: prio bands 2 \
		priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 &&
	tc -n switch qdisc add dev uplink parent 1:1 handle 10: netem loss 0% limit 1000 &&
	tc -n switch filter add dev uplink parent 1: protocol arp prio 2 u32 \
		match u32 0 0 flowid 1:2 || return
	for ((i = 0; i < $1; i++)); do
		new_host "h$i" &&
			attach "h$i" eth0 switch "10.77.1.$((1 + i))/16" "$2" || return
	done
	# shellcheck disable=SC2034 # used by the script that sources this
	hosts=$(seq -s, -f 'h%g' 0 $(($1 - 1)))
}

# lose_at_port LOSS: lose LOSS (%) of the packets there
lose_at_port()
{
	tc -n switch qdisc change dev uplink parent 1:1 netem loss "$1%" limit 1000
}

# spare PORT: lose no packets to this TCP port of the server
spare()
{
	tc -n switch filter add dev uplink parent 1: protocol ip prio 1 u32 \
		match ip protocol 6 0xff match ip dport "$1" 0xffff flowid 1:2
}

# star HOSTS RATE: h0, h1, ... at one switch
star()
{
	local i

	new_switch switch || return
	for ((i = 0; i < $1; i++)); do
		new_host "h$i" &&
			attach "h$i" eth0 switch "10.77.0.$((1 + i))/16" "$2" || return
	done
	# shellcheck disable=SC2034 # used by the script that sources this
	hosts=$(seq -s, -f 'h%g' 0 $(($1 - 1)))
}

# cube RATE: BCube(3,2): 9 hosts with numbers of two digits. Device n0 is at the switch of the hosts
# that differ in the low digit only, n1 at that of the high digit. Each of the 6 switches has 3
# ports and its own network. Ranks meet by eth0, which has no limits.
cube()
{
	local i low high

	star 9 none || return
	for i in 0 1 2; do
		new_switch "low$i" && new_switch "high$i" || return
	done
	for ((i = 0; i < 9; i++)); do
		low=$((i % 3)) high=$((i / 3))
		attach "h$i" n0 "low$high" "10.10.$high.$((1 + low))/24" "$1" &&
			attach "h$i" n1 "high$low" "10.20.$low.$((1 + high))/24" "$1" || return
	done
}

# racks RATE UPLINK SLOW: 3 racks of 3 hosts with links of RATE; h0 to h2 are in the first one.
# Racks have a link of UPLINK to the core, the last one a link of SLOW
racks()
{
	local i rate

	new_switch core || return
	for i in 0 1 2; do
		rate=$2
		[ $i -lt 2 ] || rate=$3
		new_switch "rack$i" &&
		wire "rack$i" uplink core "rack$i" &&
		ip -n "rack$i" link set uplink master bridge &&
		ip -n core link set "rack$i" master bridge &&
		tc -n "rack$i" qdisc add dev uplink root netem rate "$rate" limit 100 &&
		tc -n core qdisc add dev "rack$i" root netem rate "$rate" limit 100 || return
	done
	for ((i = 0; i < 9; i++)); do
		new_host "h$i" &&
			attach "h$i" eth0 "rack$((i / 3))" "10.77.0.$((1 + i))/16" "$1" || return
	done
	# shellcheck disable=SC2034 # used by the script that sources this
	hosts=$(seq -s, -f 'h%g' 0 8)
}

# routed NS DEVICE ADDRESS NET DELAY: connect a host to a router, whose port to it adds DELAY
routed()
{
	local ns=$1 router=$2 net=$3
	new_host "$ns" && wire "$ns" eth0 "$router" "$ns" &&
	ip -n "$ns" addr add "10.77.$net.1/24" dev eth0 &&
	ip -n "$router" addr add "10.77.$net.254/24" dev "$ns" &&
	ip -n "$ns" route add default via "10.77.$net.254"
}

# paths RATE DELAY SLOW: h0 and server, each behind a router, with four links between the routers:
# RATE, the last one SLOW, and DELAY each way. Routers hash addresses and ports.
paths()
{
	local i ns rate left=() right=()

	for ns in left right; do
		ip netns add $ns &&
		ip netns exec $ns sysctl -q -w net.ipv4.ip_forward=1 \
			net.ipv4.fib_multipath_hash_policy=1 net.ipv4.conf.all.rp_filter=0 || return
	done
	routed h0 left 1 && routed server right 0 || return
	for i in 0 1 2 3; do
		rate=$1
		[ $i -lt 3 ] || rate=$3
		wire left "p$i" right "p$i" &&
		ip -n left addr add "10.88.$i.1/24" dev "p$i" &&
		ip -n right addr add "10.88.$i.2/24" dev "p$i" &&
		tc -n left qdisc add dev "p$i" root netem rate "$rate" delay "$2" limit 100 &&
		tc -n right qdisc add dev "p$i" root netem rate "$rate" delay "$2" limit 100 || return
		left+=(nexthop via "10.88.$i.2")
		right+=(nexthop via "10.88.$i.1")
	done
	# shellcheck disable=SC2034 # used by the script that sources this
	hosts=h0
	ip -n left route add 10.77.0.0/24 "${left[@]}" &&
	ip -n right route add 10.77.1.0/24 "${right[@]}"
}

# darken: the last of these paths loses all packets, in both directions
darken()
{
	tc -n left qdisc replace dev p3 root netem loss 100% &&
	tc -n right qdisc replace dev p3 root netem loss 100%
}
