# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # client and server, set by new_ns
#
# Shared by the tests of paths. $client and $server are the namespaces of the two ends.

# shellcheck source=selftests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=selftests/lib/link.sh
. "$(dirname "${BASH_SOURCE[0]}")/link.sh"

# cable NS1 DEVICE1 NS2 DEVICE2 N: connect two namespaces, with addresses 10.N.0.1 and
# fd0N::1, 10.N.0.2 and fd0N::2. Offloads are off, because with them packets of any size pass.
# Neighbours are permanent, because a queue that drops answers to ARP and neighbour solicitations
# would block the way back for a second.
cable()
{
	local mac=02:00:00:00:0$5:0 ns dev end

	ip link add "$2" address "${mac}1" netns "$1" type veth \
		peer name "$4" address "${mac}2" netns "$3" || exit 1
	for end in 1 2; do
		ns=$1 dev=$2
		ip -n "$ns" -batch - <<-END || exit 1
			link set $dev up
			addr add 10.$5.0.$end/24 dev $dev
			addr add fd0$5::$end/64 dev $dev nodad
			neigh add 10.$5.0.$((3 - end)) lladdr $mac$((3 - end)) dev $dev
			neigh add fd0$5::$((3 - end)) lladdr $mac$((3 - end)) dev $dev
		END
		one_by_one "$ns" "$dev" || exit 1
		set -- "$3" "$4" "$3" "$4" "$5"
	done
}

# server_of 4|6: address of the server in the network $net
server_of()
{
	[ "$1" = 4 ] && echo "10.$net.0.2" || echo "fd0$net::2"
}

# sniff NS DEVICE: log packets of the device to $log from now on
sniff()
{
	spawn ip netns exec "$1" dblp-sniff "$2"
	log=$tmp/out.$spawned
	wait_until 10 output_has "$spawned" ready
}

# pair 4|6 CLIENT-WORDS...: start $client_pid, which connects, and $server_pid, which
# receives everything. $before has words of dblp-peer to run before connect, $listen those
# before listen, and $as a prefix of the client's command.
port=7000
before=()
as=()
listen=()
pair()
{
	local to

	to=$(server_of "$1")
	shift
	spawn ip netns exec "$server" dblp-peer "${listen[@]}" listen "$to" "$port" say listening \
		accept drain
	server_pid=$spawned
	wait_until 10 output_has "$server_pid" listening || return
	spawn ip netns exec "$client" "${as[@]}" dblp-peer "${before[@]}" connect "$to" "$port" say connected "$@"
	client_pid=$spawned
	wait_until 10 output_has "$client_pid" connected
}

# info FIELD: print a field of the client's only socket
info()
{
	ip netns exec "$client" dblpctl -j socket list | jq ".[0].$1"
}

# counter NAME: print a counter of the client
counter()
{
	ip netns exec "$client" dblpctl -j stats | jq ".$1"
}

# counted NAME VALUE: has a counter of the client this value?
counted()
{
	[ "$(counter "$1")" = "$2" ]
}

# is WHAT HAVE WANT: compare two values
is()
{
	[ "$2" -eq "$3" ] || echo "$1 is $2, not $3"
	[ "$2" -eq "$3" ]
}

# segment 4|6 MTU: print the largest segment: a multiple of 8 bytes, after 32 bytes of headers
segment()
{
	echo $((($2 - ($1 == 4 ? 20 : 40) - 8 - 32) / 8 * 8))
}

# signal NAME: let a process continue that awaits $tmp/NAME
signal()
{
	touch "$tmp/$1"
}

# settled N: are N messages of the client settled?
settled()
{
	[ "$(info msgs_sent)" = "$1" ]
}

# done_with_sockets: check that no sockets are left at either end, then done_testing
done_with_sockets()
{
	local ns

	slay "${all_pids[@]}"
	for ns in client server; do
		try "no sockets are left at the $ns" wait_until 40 no_sockets "${!ns}"
	done
	done_testing
}
