#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A program that does not know AF_DBLP but supports SOCK_SEQPACKET works with the number of the
# family and an address: stock socat, 50 MiB in each direction at the same time, over a
# network that loses packets; less in real time.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"

needs socat

new_ns client server
# shellcheck disable=SC2154 # new_ns sets them
join "$client" "$server"

mib=$((1 << 20))

# address 4|6 PORT: print a struct sockaddr_dblp without the family in the syntax of socat:
# port, flow label, address, scope
address()
{
	local ip=fd090000000000000000000000000002

	[ "$1" = 6 ] || ip=00000000000000000000ffff0a090002
	printf 'x%04x%08x%s%08x' "$2" 0 "$ip" 0
}

# Family 18, protocol 0, SOCK_SEQPACKET
listen()
{
	printf 'SOCKET-LISTEN:18:0:%s,type=5' "$(address "$1" "$2")"
}

connect()
{
	printf 'SOCKET-CONNECT:18:0:%s,type=5,retry=50,interval=0.1' "$(address "$1" "$2")"
}

# random BYTES FILE: write unique contents
random()
{
	head -c "$1" /dev/urandom > "$2"
}

gone()
{
	wait_until 40 no_sockets "$client" &&
		wait_until 40 no_sockets "$server"
}

# exchange 4|6 BYTES: transfer in both directions at once
exchange()
{
	local listening connecting

	random "$2" "$tmp/up"
	random "$2" "$tmp/down"
	spawn ip netns exec "$server" socat -t 60 "$(listen "$1" 4000)" \
		"OPEN:$tmp/down,rdonly!!CREATE:$tmp/up.got"
	listening=$spawned
	spawn ip netns exec "$client" socat -t 60 "OPEN:$tmp/up,rdonly!!CREATE:$tmp/down.got" \
		"$(connect "$1" 4000)"
	connecting=$spawned
	wait_until 120 process_gone "$connecting" || return
	ended "$connecting" 0 && ended "$listening" 0 &&
		cmp "$tmp/up" "$tmp/up.got" && cmp "$tmp/down" "$tmp/down.got" && gone
}

try "ipv4, 1 MiB each way" exchange 4 $mib

# echo_server 4|6: a server that forks for each of several concurrent clients
echo_server()
{
	local n pids=()

	spawn ip netns exec "$server" socat -t 60 "$(listen "$1" 4001),fork,backlog=32" EXEC:cat
	for n in {1..12}; do
		random $((n * 9973)) "$tmp/in.$n"
		spawn ip netns exec "$client" socat -t 60 \
			"OPEN:$tmp/in.$n,rdonly!!CREATE:$tmp/out.$n" "$(connect "$1" 4001)"
		pids+=("$spawned")
	done
	for n in {1..12}; do
		ended "${pids[n - 1]}" 0 && cmp "$tmp/in.$n" "$tmp/out.$n" || return
	done
}
try "ipv4, an echo server that forks" echo_server 4
try "ipv6, an echo server that forks" echo_server 6

# In real time less, because delays of a busy host look like a queue, to which the sender
# gives way: 50 MiB could take minutes.
much=50
[ "${DBLP_VIRTUAL_TIME:-0}" = 1 ] || much=4

netem "$client" delay 1ms loss 2%
netem "$server" delay 1ms loss 2%
try "ipv4, 2% loss, $much MiB each way" exchange 4 $((much * mib))
try "ipv6, 2% loss, $much MiB each way" exchange 6 $((much * mib))

done_testing
