#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblpctl doctor: creates each fault of devices and of the path to a peer, checks that it is found,
# and fixes it by the printed command. Files of the machine are simulated in host/dblpctl.py.

# shellcheck disable=SC2154,SC2317 # new_ns sets it; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

module=$(module_file)
version=$(dblpctl -j version | jq -r .version)
new_ns a b
join "$a" "$b"
# GRO is off by default on veth, unlike other devices
in_ns "$a" ethtool -K eth0 gro on > /dev/null || exit 1

sudo()
{
	"$@"
}
export -f sudo

# finds STATUS CHECK RESULT [WORD...]: run doctor WORD... in $a and check status and result;
# $command is the printed fix
finds()
{
	local status

	ctl "$a" -j doctor "${@:4}" > "$tmp/found"
	status=$?
	cat "$tmp/found"
	[ "$status" -eq "$1" ] || { echo "status $status instead of $1"; return 1; }
	also "$2" "$3"
}

# also CHECK RESULT: the same run also has this result
also()
{
	local said

	mapfile -t said < <(jq -r ".[] | select(.check == \"$1\") | .result, .command" "$tmp/found")
	command=${said[1]:-}
	is echo "${said[0]:-}" "$2"
}

# mended CHECK [WORD...]: $command fixes the fault
mended()
{
	[ -n "$command" ] && in_ns "$a" bash -c "$command" && finds 0 "$1" ok "${@:2}" && [ -z "$command" ]
}

healthy()
{
	finds 0 module ok && jq -e 'map({(.check): .result}) | add | .gro == "ok" and .["tx-udp-segmentation"] == "ok" and
		.queue == "ok" and .kernel == "ok" and all(. != "bad")' "$tmp/found" && ctl "$a" doctor > "$tmp/table" || return
	diag < "$tmp/table"
	head -n 1 "$tmp/table" | grep -q -x 'RESULT *CHECK *FOUND *FIX' &&
		grep -q -x "ok *module *dblp and dblpctl are of version $version *" "$tmp/table"
}
try "a healthy machine has no findings; module and tool have one version" healthy

# fault CHECK COMMAND...: COMMAND creates a fault in $a, which is found and fixed
fault()
{
	in_ns "$a" "${@:2}" > /dev/null && finds 1 "$1" bad && mended "$1"
}
# GRO is not important on a veth, where packets arrive unsegmented
gro()
{
	in_ns "$a" ethtool -K eth0 gro off > /dev/null && finds 0 gro note && mended gro
}
try "GRO is off" gro
try "UDP segmentation is off" fault tx-udp-segmentation ethtool -K eth0 tx-udp-segmentation off
try "a short queue" fault queue ip link set dev eth0 txqueuelen 10
down()
{
	ip -n "$a" link set dev eth0 down txqueuelen 10 && finds 0 queue '' &&
		ip -n "$a" link set dev eth0 up txqueuelen 1000 &&
		ip -n "$a" addr add fd09::1/64 dev eth0 nodad
}
try "a device that is down is ignored" down

# Names of devices may have any bytes
strange_name()
{
	local a name=$'q\e[7m\xff;"$x\''

	new_ns a
	ip -n "$a" link add name "$name" txqueuelen 10 up type dummy && finds 1 queue bad &&
		ctl "$a" doctor > "$tmp/table" && return 1
	LC_ALL=C grep '[^ -~]' "$tmp/table" && return 1
	grep -F 'q\x1b[7m\xff;' "$tmp/table" && mended queue &&
		is ip netns exec "$a" cat "/sys/class/net/$name/tx_queue_len" 1000
}
try "names of devices are quoted in commands, and unprintable bytes are escaped" strange_name

# Limits of the whole machine are reported in its first namespace
limits()
{
	sysctl -w net.core.netdev_max_backlog=10 && fails dblpctl -j doctor > "$tmp/found" || return
	command=$(jq -r '.[] | select(.check == "netdev_max_backlog").command' "$tmp/found") && bash -c "$command" &&
		dblpctl -j doctor > "$tmp/found" && jq -e 'map({(.check): .result}) | add | .netdev_max_backlog == "ok" and
			has("rmem_max") and has("wmem_max")' "$tmp/found"
}
try "limits" limits

# narrow ADDRESS MTU PEER: the peer has a smaller MTU. A veth accepts four bytes more than its MTU,
# for a VLAN tag
narrow()
{
	ip -n "$a" link set dev eth0 mtu "$2" && ip -n "$b" link set dev eth0 mtu "$3" && finds 1 mtu bad "$1" &&
		[[ $command == *" mtu $(($3 + 4))" ]] && mended mtu "$1" && ip -n "$a" link set dev eth0 mtu 1500 &&
		ip -n "$b" link set dev eth0 mtu 1500
}
try "a peer with a smaller MTU, by IPv4" narrow 10.9.0.2 1500 1337
try "a peer with a smaller MTU, by IPv6" narrow fd09::2 3000 1400
silent()
{
	netem "$a" loss 100% && finds 1 mtu note 10.9.0.2 7000 && also port bad &&
		[[ $command == *'udp dport 7000 accept'* ]] && tc -n "$a" qdisc del dev eth0 root
}
try "a blocked port" silent
try "a port without a listener" finds 1 port bad 10.9.0.2 7000
listens()
{
	spawn ip netns exec "$b" dblp-peer listen :: 7000 say listening pause
	wait_until 10 output_has "$spawned" listening && finds 0 port ok 10.9.0.2 7000 && also mtu ok &&
		finds 0 port ok fd09::2 7000 && also mtu ok
}
try "a port with a listener, and packets of full size reach it" listens
try "no route to the peer" finds 1 route bad 192.0.2.1

# Some kernels have the tunnel modules built in
unloaded()
{
	local status

	wait_until 10 rmmod dblp && finds 1 module bad && is echo "$command" 'sudo modprobe dblp' &&
		{ ! grep -q '^ip6_udp_tunnel ' /proc/modules || without_tunnels; }
	status=$?
	insmod "$module" && finds 0 module ok && return "$status"
}

without_tunnels()
{
	rmmod udp_tunnel ip6_udp_tunnel && finds 1 module bad &&
		is echo "$command" 'sudo modprobe -a udp_tunnel ip6_udp_tunnel && sudo modprobe dblp'
	local status=$?
	modprobe -a udp_tunnel ip6_udp_tunnel && return "$status"
}
try "the module is not loaded, nor the modules it needs" unloaded

done_testing
