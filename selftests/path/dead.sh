#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A dead path: very few packets are sent on it, and the connection continues when the path is
# back. Packets are counted, so that a slow machine sees only fewer.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/path.sh
. "$(dirname "$(readlink -f "$0")")/../lib/path.sh"

new_ns client server
# shellcheck disable=SC2154 # new_ns sets them
join "$client" "$server"

net=9

dead()
{
	netem "$client" loss 100%
}

alive()
{
	tc -n "$client" qdisc del dev eth0 root 2> /dev/null || true
}

# swallowed: print the number of packets that the client has sent since dead()
swallowed()
{
	tc -n "$client" -s -j qdisc show dev eth0 | jq '.[0].drops'
}

# at_most WHAT HAVE MOST: check a limit
at_most()
{
	echo "$1: $2, may be $3"
	[ "$2" -le "$3" ]
}

# There are 36 timeouts in the first second, and 5 per doubling of the silence; the first two send
# two packets each. The limit is half as many again, plus the packets in flight.
silence()
{
	local first

	sleep 2
	first=$(swallowed)
	at_most "packets in 2 s" "$first" $((150 + $1)) || return
	[ "$first" -ge 4 ] || return
	sleep 4
	at_most "packets in 4 s more" $(($(swallowed) - first)) 40
}

# After the path is back, the next probe is due within a sixth of the silence; slow machines get a
# few seconds more.
path_dies()
{
	local v=$1 since

	alive
	rm -f "$tmp"/go*
	pair "$v" send 5 1000 await "$tmp/go" send 1 "$2" pause || return
	wait_until 10 settled 5 || return
	dead
	since=$SECONDS
	signal go
	silence "$3" || return
	alive
	wait_until $(((SECONDS - since) / 6 + 2)) settled 6
}
for v in 4 6; do
	try "ipv$v: a small message on a dead path" path_dies $v 1 0
	try "ipv$v: a large message on a dead path" path_dies $v 1000000 1000
done

# A packet of the peer causes a probe at once: the message arrives long before the next probe
# would be due.
peer_speaks()
{
	alive
	rm -f "$tmp"/go*
	spawn ip netns exec "$server" dblp-peer listen :: 7100 say listening accept recv 1 \
		await "$tmp/go2" send 1 1 recv 1 say arrived pause
	server_pid=$spawned
	wait_until 10 output_has "$server_pid" listening || return
	spawn ip netns exec "$client" dblp-peer set user-timeout 120000 \
		connect 10.9.0.2 7100 send 1 1 await "$tmp/go" send 1 1 pause
	client_pid=$spawned
	wait_until 10 settled 1 || return
	dead
	signal go
	sleep 60
	alive
	signal go2
	wait_until 1 output_has "$server_pid" arrived
}
try_virtual "a packet of the peer ends the backoff at once" peer_speaks

# Connect to a host that does not exist
nobody_answers()
{
	alive
	dead
	spawn ip netns exec "$client" dblp-peer set user-timeout 6000 fails ETIMEDOUT \
		connect 10.9.0.2 7000
	wait_until 10 ended "$spawned" 0 || return
	at_most "INIT packets in 6 s" "$(swallowed)" 40 || return
	alive
}
try "connect() to a dead host" nobody_answers

# Keepalive probes have the same backoff.
nobody_alive()
{
	local n

	alive
	before=(set user-timeout 6000 set keepalive 100)
	pair 4 send 1 1000 fails ETIMEDOUT hangup || return
	before=()
	wait_until 10 settled 1 || return
	dead
	ended "$client_pid" 0 || return
	n=$(swallowed)
	alive
	at_most "packets in 6 s" "$n" 200
}
try "keepalive to a dead host" nobody_alive

done_with_sockets
