#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# End of a process, a link, a namespace, the module. Nothing may hang, leak or fail silently.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"

module=$(module_file)

# pair CLIENT-WORDS SERVER-WORDS: start two connected processes, $client_pid and $server_pid,
# in new namespaces $a and $b, which then run these words of dblp-peer
pair()
{
	local words

	new_ns a b
	# shellcheck disable=SC2154 # new_ns sets them
	join "$a" "$b"
	read -ra words <<< "$2"
	spawn ip netns exec "$b" dblp-peer set user-timeout 3000 \
		listen 10.9.0.2 7000 say listening accept say accepted "${words[@]}"
	server_pid=$spawned
	wait_until 10 output_has "$server_pid" listening || return
	read -ra words <<< "$1"
	spawn ip netns exec "$a" dblp-peer set user-timeout 1500 \
		connect 10.9.0.2 7000 say connected "${words[@]}"
	client_pid=$spawned
	wait_until 10 output_has "$client_pid" connected || return
	wait_until 10 output_has "$server_pid" accepted
}

all_gone()
{
	wait_until 20 no_sockets "$a" && wait_until 20 no_sockets "$b"
}

killed_idle_peer()
{
	pair "eof" "pause" || return
	slay "$server_pid"
	ended "$client_pid" 0 && all_gone
}
try "a peer is killed: end of file" killed_idle_peer

killed_peer_with_unread_messages()
{
	pair "send 20 5000 say sent fails ECONNRESET hangup fails EPIPE send 1 1" "pause" &&
		wait_until 20 output_has "$client_pid" sent || return
	slay "$server_pid"
	ended "$client_pid" 0 && all_gone
}
try "a peer is killed before it has read: connection reset" killed_peer_with_unread_messages

killed_sender()
{
	pair "send 30 100000 say sent pause" "drain say all" || return
	wait_until 20 output_has "$client_pid" sent || return
	slay "$client_pid"
	ended "$server_pid" 0 && all_gone
}
try "a sender is killed: what it has sent still arrives" killed_sender


dead_link()
{
	pair "await $tmp/cut send 1 1000 fails ETIMEDOUT hangup fails EPIPE send 1 1" "pause" ||
		return
	ip -n "$b" link set eth0 down
	touch "$tmp/cut"
	ended "$client_pid" 0 || return
	rm "$tmp/cut"
	slay "$server_pid"
	no_sockets "$a"
}
try "the link dies: time-out" dead_link

# The FIN is never acknowledged; still the socket is freed.
closed_on_a_dead_link()
{
	pair "pause" "pause" || return
	ip -n "$b" link set eth0 down
	slay "$client_pid"
	wait_until 10 no_sockets "$a"
}
try "a socket closed on a dead link is freed in time" closed_on_a_dead_link

vanished_link()
{
	pair "await $tmp/cut send 1 1000 fails ETIMEDOUT hangup" "pause" || return
	ip -n "$a" link del eth0
	touch "$tmp/cut"
	ended "$client_pid" 0 || return
	rm "$tmp/cut"
	no_sockets "$a"
}
try "the interface vanishes: time-out" vanished_link

# A namespace without name and process is freed with its last socket, and its end of the cable
# with it.
cable_gone()
{
	fails ip -n "$a" link show eth0
}

deleted_namespace()
{
	pair "send 10 100000 say sent pause" "leave pause" || return
	wait_until 10 output_has "$client_pid" sent || return
	ip netns del "$b"
	# The socket lives in a namespace without name and process.
	ip -n "$a" link show eth0 > /dev/null || return
	slay "$server_pid"
	wait_until 20 cable_gone || return
	slay "$client_pid"
	wait_until 20 no_sockets "$a"
}
try "a namespace is deleted under a live connection" deleted_namespace

deleted_namespace_while_sending()
{
	pair "leave send 2000 100000" "recv 3 say some drain" || return
	wait_until 20 output_has "$server_pid" some || return
	ip netns del "$a"
	slay "$client_pid"
	# The sender ends, with or without an error, and the cable is deleted.
	slay "$server_pid"
	wait_until 20 no_sockets "$b" || return
	wait_until 20 fails ip -n "$b" link show eth0
}
try "a namespace is deleted in the middle of a burst" deleted_namespace_while_sending

deleted_namespace_with_listener()
{
	new_ns a b
	join "$a" "$b"
	spawn ip netns exec "$b" dblp-peer listen :: 7000 say listening leave pause
	wait_until 10 output_has "$spawned" listening || return
	ip netns exec "$a" dblp-peer connect 10.9.0.2 7000 send 1 10 || return
	ip netns del "$b"
	slay "$spawned"
	wait_until 20 cable_gone
}
try "a namespace is deleted with a listener and an unaccepted connection" \
	deleted_namespace_with_listener

many_namespaces()
{
	local n ns

	for n in {1..10}; do
		new_ns ns
		ip netns exec "$ns" dblp-xfer --size 1000,50000 --count 4 --budget 100000 \
			> "$tmp/xfer" 2>&1 || {
			cat "$tmp/xfer"
			return 1
		}
		ip netns del "$ns" || return
	done
}
try "namespaces come and go" many_namespaces

# The module

unload()
{
	rmmod dblp
}

load()
{
	local args

	read -ra args <<< "${DBLP_MODULE_ARGS:-}"
	insmod "$module" "${args[@]}"
}

unload_is_refused()
{
	spawn dblp-peer "$@" say ready pause
	wait_until 10 output_has "$spawned" ready || return
	fails unload || return
	slay "$spawned"
	wait_until 10 unload && load
}
try "rmmod is refused while a socket is open" unload_is_refused socket
try "rmmod is refused while a socket is bound" unload_is_refused bind 127.0.0.1 7001
try "rmmod is refused while a socket listens" unload_is_refused listen :: 7001

unload_is_refused_for_the_dead()
{
	pair "pause" "pause" || return
	ip -n "$b" link set eth0 down
	slay "$client_pid" "$server_pid"
	# The FINs are in flight: the sockets exist without a process.
	fails unload || return
	wait_until 40 unload && load
}
try "rmmod is refused while a closed socket has a FIN in flight" unload_is_refused_for_the_dead

# The receiver and its socket end while messages arrive
gone_while_receiving()
{
	pair "leave send 2000 100000" "leave recv 3 say some drain" || return
	wait_until 20 output_has "$server_pid" some || return
	[ "$1" = process ] || ip netns del "$b" || return
	slay "$server_pid" "$client_pid"
	wait_until 20 no_sockets "$a" || return
	[ "$1" = namespace ] || wait_until 20 no_sockets "$b" || return
	wait_until 20 unload && load
}
try "the receiver ends in the middle of a burst, then the module" gone_while_receiving process
try "the receiver's namespace ends in the middle of a burst, then the module" \
	gone_while_receiving namespace

# A monitor does not delay the removal, and ends
listener_hears_of_it()
{
	local pid

	spawn dblpctl -j monitor
	pid=$spawned
	wait_until 10 hears "$pid" && wait_until 10 unload && ended "$pid" 1 || return
	grep -x 'dblpctl: the module was removed: load it (sudo modprobe dblp) and start again' \
		"$tmp/out.$pid" && load && [ "$(grep -c -v job "$tmp/out.$pid")" -eq 1 ]
}

hears()
{
	dblpctl job add 7 && dblpctl job del 7 && grep -q job-del "$tmp/out.$1"
}
try "rmmod ends a monitor, which prints the reason" listener_hears_of_it

reload_with_traffic()
{
	local n budget

	for ((n = 1; n <= $1; n++)); do
		budget=$((n % 2 * 400000))
		wait_until 10 unload || return
		load || return
		dblp-xfer --size 1000,40000 --count 4 --budget "$budget" --seed "$n" \
			> "$tmp/xfer" 2>&1 && continue
		echo "round $n"
		cat "$tmp/xfer"
		return 1
	done
}

# make robustness does hundreds
rounds=${RELOADS:-40}
[ "${DBLP_DEBUG:-0}" = 0 ] || rounds=20
try "$rounds times rmmod, insmod and traffic" reload_with_traffic "$rounds"

no_references()
{
	[ "$(cat /sys/module/dblp/refcnt)" = 0 ]
}
try "the module has no references at the end" wait_until 40 no_references
done_testing
