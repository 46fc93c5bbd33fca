#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# TCP small queues for AF_DBLP: the number of a socket's packets in queues of its own host, and what
# happens when they are sent or dropped.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/path.sh
. "$(dirname "$(readlink -f "$0")")/../lib/path.sh"

new_ns client server
# shellcheck disable=SC2154 # new_ns sets them
cable "$client" eth0 "$server" eth0 1
net=1

# slow RATE: limit the client's rate
slow()
{
	tc -n "$client" qdisc replace dev eth0 root tbf rate "$1" burst 1600 limit 1000000
}

# backlog: print the number of packets queued at the client
backlog()
{
	tc -n "$client" -s -j qdisc show dev eth0 | jq '.[0].qlen'
}

sent_beyond()
{
	[ "$(counter BytesFirst)" -gt "$1" ]
}

# In addition to two packets there may be an ACK and the three packets of a probe timeout. Without
# small queues there would be tens, until window and pacer have adapted to the link.
two_wait()
{
	local sent most=0 n

	slow 2mbit && netem "$server" delay 200ms || return
	sent=$(counter BytesFirst)
	pair "$1" send 8 100000 pause || return
	until sent_beyond $((sent + 700000)); do
		n=$(backlog)
		most=$((n > most ? n : most))
	done
	tc -n "$server" qdisc del dev eth0 root || return
	echo "$most packets waited"
	[ "$most" -ge 1 ] && [ "$most" -le 6 ]
}
for v in 4 6; do
	try "ipv$v: at most two packets are queued below the socket" two_wait $v
done

# more_than_probes SENT TIMEOUTS: has the client sent more packets than its probes since then?
more_than_probes()
{
	local sent=$(($(counter BytesFirst) - $1))

	[ "$sent" -gt $((4500 * (2 + $(counter PtoExpired) - $2))) ]
}

# No ACK arrives, so that only packets leaving the queue let the rest of the window, 60 kB, follow.
# Otherwise only probe timeouts would send, at most three packets each.
woken()
{
	local timeouts sent

	rm -f "$tmp/go" && netem "$server" delay 200ms || return
	pair "$1" send 1 1000 await "$tmp/go" send 1 300000 pause || return
	wait_until 10 settled 1 || return
	slow 256kbit && netem "$server" loss 100% || return
	timeouts=$(counter PtoExpired)
	sent=$(counter BytesFirst)
	signal go
	wait_until 30 more_than_probes "$sent" "$timeouts" || return
	tc -n "$server" qdisc del dev eth0 root
}
for v in 4 6; do
	try "ipv$v: a packet that leaves the queue lets the next one follow" woken $v
done

some_wait()
{
	[ "$(backlog)" -ge 2 ]
}

# One packet leaves in 12 s. A deleted queue drops its packets, and still all data arrives.
dropped()
{
	rm -f "$tmp/go" && pair "$1" await "$tmp/go" send 1 300000 pause || return
	slow 1kbit || return
	signal go
	wait_until 10 some_wait || return
	tc -n "$client" qdisc del dev eth0 root || return
	wait_until 20 settled 1
}
for v in 4 6; do
	try "ipv$v: the transfer continues when queued packets are dropped" dropped $v
done

no_connections()
{
	[ "$(info user_timeout_ms)" = null ]
}

no_references()
{
	[ "$(cat /sys/module/dblp/refcnt)" = 0 ]
}

# A packet holds a reference to its socket, closed or not
outlived()
{
	slay "${all_pids[@]}"
	wait_until 40 no_references || return
	rm -f "$tmp/go" && before=(set user-timeout 1000)
	pair "$1" await "$tmp/go" send 1 300000 hangup || return
	slow 1kbit || return
	signal go
	wait_until 10 some_wait || return
	slay "$server_pid"
	wait_until 20 no_connections || return
	slay "$client_pid"
	[ "$(backlog)" -ge 1 ] && ! no_references || return
	tc -n "$client" qdisc del dev eth0 root || return
	wait_until 20 no_references
}
for v in 4 6; do
	try "ipv$v: packets outlive their socket" outlived $v
done
done_with_sockets
