#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Small queues: how many packets of a socket wait in queues of its own host, and what
# happens when they leave, or never do.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/path.sh
. "$(dirname "$(readlink -f "$0")")/../lib/path.sh"

new_ns client server
# shellcheck disable=SC2154 # new_ns sets them
cable "$client" eth0 "$server" eth0 1
net=1

# slow RATE: what leaves the client
slow()
{
	tc -n "$client" qdisc replace dev eth0 root tbf rate "$1" burst 1600 limit 1000000
}

# backlog: packets that wait at the client
backlog()
{
	tc -n "$client" -s -j qdisc show dev eth0 | jq '.[0].qlen'
}

sent_beyond()
{
	[ "$(counter BytesFirst)" -gt "$1" ]
}

# Beside those two there may be an ACK and what a probe timeout sends, three packets. Window
# and pacer know the link when it has been too much for it: then it would be tens.
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
	try "ipv$v: two packets wait below" two_wait $v
done

# more_than_probes SENT TIMEOUTS: since then
more_than_probes()
{
	local sent=$(($(counter BytesFirst) - $1))

	[ "$sent" -gt $((4500 * (2 + $(counter PtoExpired) - $2))) ]
}

# No ACK comes, so that only what leaves lets the rest of the window follow, 60 kB. Without
# that, each probe timeout sends three packets at most.
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
	try "ipv$v: the next is sent when one leaves" woken $v
done

some_wait()
{
	[ "$(backlog)" -ge 2 ]
}

# A packet in 12 s leaves. Queues that go drop what they have, and all arrives.
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
	try "ipv$v: it goes on when all that waits is dropped" dropped $v
done

no_connections()
{
	[ "$(info user_timeout_ms)" = null ]
}

no_references()
{
	[ "$(cat /sys/module/dblp/refcnt)" = 0 ]
}

# Packets hold the socket that has sent them, closed or not
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
