#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Receive flow steering (RFS, the kernel's Documentation/networking/scaling.rst): packets are
# processed on the CPU of the reading program, or where it has sent.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/path.sh
. "$(dirname "$(readlink -f "$0")")/../lib/path.sh"

[ "$(nproc)" -ge 2 ] || skip_all "needs two processors"

new_ns client server
# shellcheck disable=SC2154 # new_ns sets them
cable "$client" eth0 "$server" eth0 1
net=1

# steer NS: set up RFS; packets of unknown flows go to processor 0
steer()
{
	ip netns exec "$1" sh -c 'cd /sys/class/net/eth0/queues/rx-0 && echo 1 > rps_cpus &&
		echo 4096 > rps_flow_cnt'
}

# steered: print how often other processors notified processor 1 of packets. While it is busy with
# packets, it gets no further notification.
steered()
{
	local row

	mapfile -t row < /proc/net/softnet_stat
	read -r -a row <<< "${row[1]}"
	echo $((16#${row[9]}))
}

# goes_to client|server 4|6: run this end on processor 1, the other one on processor 0
goes_to()
{
	local before there

	rm -f "$tmp/go" && pair "$2" await "$tmp/go" send 300 50000 pause || return
	there=${1}_pid
	taskset -p 1 "$client_pid" && taskset -p 1 "$server_pid" && taskset -p 2 "${!there}" &&
	before=$(steered) && signal go && wait_until 30 settled 300 || return
	echo "$(($(steered) - before)) times"
	[ $(($(steered) - before)) -ge 1 ]
}

echo 4096 > /proc/sys/net/core/rps_sock_flow_entries || exit 1
steer "$client" && steer "$server" || exit 1
for v in 4 6; do
	try "ipv$v: data is processed where its reader runs" goes_to server $v
	try "ipv$v: ACKs are processed where data was sent" goes_to client $v
done

done_testing
