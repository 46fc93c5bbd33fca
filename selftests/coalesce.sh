#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Packets that come one by one, many in one softirq, are handled as trains. That
# must lose nothing, change no order and outlive no one.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/lib/ctl.sh"
# shellcheck source=selftests/lib/link.sh
. "$(dirname "$(readlink -f "$0")")/lib/link.sh"

dir=/sys/kernel/tracing/instances/dblp-$$
mkdir "$dir" || exit 1

end()
{
	echo 0 > "$dir/events/enable"
	rmdir "$dir"
	cleanup
}
trap end EXIT

echo 16384 > "$dir/buffer_size_kb"
echo 1 > "$dir/events/dblp/dblp_packet_received/enable"

# cable: fresh namespaces $a and $b, and nothing between them that merges packets
cable()
{
	new_ns a b
	# shellcheck disable=SC2154 # new_ns sets them
	join "$a" "$b"
	one_by_one "$a" eth0 && one_by_one "$b" eth0
}

# received: of the numbered packets at $b, "lots packets late": in how many lots they
# were handled, how many they were, how often one came behind one sent later
received()
{
	local netns

	netns=$(stat -L -c %i "/run/netns/$b")
	sed -n "s/.*dblp_packet_received: .*netns=$netns .*sock=\([^ ]*\) .*type=\(DATA\|CTRL\|PROBE\) pn=\([0-9]*\) n=\([0-9]*\) .*/\1 \3 \4/p" \
		"$dir/trace" | awk '
		{
			late += $2 < next_pn[$1]
			next_pn[$1] = $2 + $3
			packets += $3
		}
		END { print NR, packets + 0, late + 0 }'
}

# judge LEAST MANY: the last transfer had LEAST packets or more, nothing came twice or
# out of turn, and MANY were handled at a time. In real time the host has a say in
# when packets come: some can be late, or alone, without anybody's fault.
judge()
{
	local lots packets late

	read -r lots packets late <<< "$(received)"
	echo "$packets packets in $lots lots, $late of them late"
	[ "$packets" -gt "$1" ] || return
	[ "${DBLP_VIRTUAL_TIME:-0}" = 1 ] || return 0
	[ "$late" -eq 0 ] && [ $((lots * $2)) -lt "$packets" ] || return
	is json "$b" '[.DropDuplicate, .DropField, .DropMemory, .DropWrongPeer]' stats '[0,0,0,0]'
}

# How much is sent; a kernel that looks for bugs takes long for each packet
part=1
if [ -n "${KSFT_MACHINE_SLOW:-}" ]; then
	part=5
	echo "# a slow machine: a fifth of all is sent"
fi

# transfer ADDRESS OPTION...: on a cable, where nothing gets lost
transfer()
{
	local address=$1
	shift

	cable || return
	echo > "$dir/trace"
	dblp-xfer --from "$a" --to "$b" --address "$address" --seed 7 "$@" || return
	judge $((2000 / part)) 4
}
try "ipv4: in order, and many at a time" transfer 10.9.0.2 --size 1000000 \
	--count $((10 / part))
try "ipv6: in order, and many at a time" transfer fd09::2 --size 1000000 \
	--count $((10 / part))
try "messages of a few packets" transfer 10.9.0.2 --size 20000 \
	--count $((200 / part))

# Packets of four connections, in one another's way at one UDP socket
side_by_side()
{
	cable || return
	echo > "$dir/trace"
	dblp-perf bulk --to "$b" --from "$a" --address 10.9.0.2 --connections 4 \
		--count $((40 / part)) --size 100000 || return
	judge $((2500 / part)) 2
}
try "connections side by side" side_by_side

# Whoever goes in the middle of a burst, and with him the socket it is for
one_goes()
{
	local client server

	cable || return
	spawn ip netns exec "$b" dblp-peer set user-timeout 3000 listen 10.9.0.2 7000 \
		say listening accept leave recv 3 say some drain
	server=$spawned
	wait_until 10 output_has "$server" listening || return
	spawn ip netns exec "$a" dblp-peer set user-timeout 1500 connect 10.9.0.2 7000 \
		leave send 2000 100000
	client=$spawned
	wait_until 20 output_has "$server" some || return
	case $1 in
	sender) slay "$client" ;;
	receiver) slay "$server" ;;
	namespace) ip netns del "$b" && slay "$server" ;;
	esac
	slay "$client" "$server"
	wait_until 20 no_sockets "$a" || return
	[ "$1" = namespace ] || wait_until 20 no_sockets "$b" || return
	wait_until 20 rmmod dblp && insmod "${DBLP_KO:-/dblp.ko}"
}
echo 0 > "$dir/events/enable"
for who in sender receiver namespace; do
	for n in 1 2 3; do
		try "the $who goes in the middle of a burst, $n" one_goes $who
	done
done

done_testing
