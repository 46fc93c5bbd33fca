#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Receive flow steering (RFS, the kernel's Documentation/networking/scaling.rst): packets are
# processed on the CPU of the reading program, where it has sent, or where it has accepted.

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

# steered: print how many packets processor 1 has processed
steered()
{
	local row

	mapfile -t row < /proc/net/softnet_stat
	read -r -a row <<< "${row[1]}"
	echo $((16#${row[0]}))
}

# goes_to client|server 4|6: run this end on processor 1, the other one on processor 0
goes_to()
{
	local before there

	rm -f "$tmp/go" && pair "$2" await "$tmp/go" send 300 50000 pause || return
	there=${1}_pid
	taskset -p 1 "$client_pid" && taskset -p 1 "$server_pid" && taskset -p 2 "${!there}" &&
	before=$(steered) && signal go && wait_until 30 settled 300 || return
	echo "$(($(steered) - before)) packets"
	[ $(($(steered) - before)) -ge 1 ]
}

# accepted 4|6: accept on processor 1 and read nothing; the client is on processor 0
accepted()
{
	local before to

	to=$(server_of "$1")
	rm -f "$tmp/go"
	spawn ip netns exec "$server" taskset 2 dblp-peer listen "$to" "$port" say listening accept \
		say accepted pause
	server_pid=$spawned
	wait_until 10 output_has "$server_pid" listening || return
	spawn ip netns exec "$client" taskset 1 dblp-peer connect "$to" "$port" await "$tmp/go" \
		send 100 50000 pause
	client_pid=$spawned
	wait_until 10 output_has "$server_pid" accepted || return
	before=$(steered) && signal go && wait_until 30 settled 100 || return
	echo "$(($(steered) - before)) packets"
	[ $(($(steered) - before)) -ge 1 ]
}

# over: end both processes; settled looks at the client's only socket
over()
{
	slay "$client_pid" "$server_pid"
	wait_until 10 no_sockets "$client"
}

echo 4096 > /proc/sys/net/core/rps_sock_flow_entries || exit 1
steer "$client" && steer "$server" || exit 1
for v in 4 6; do
	try "ipv$v: data is processed where its reader runs" goes_to server $v
	over
	try "ipv$v: ACKs are processed where data was sent" goes_to client $v
	over
	try "ipv$v: data is processed where its connection was accepted" accepted $v
	over
done

done_testing
