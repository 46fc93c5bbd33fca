#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Captures a scene with every type of packet and frame to /out/capture. The captured packets agree
# with the counters; selftests/tools/dissector reads the capture outside.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/path.sh
. "$(dirname "$(readlink -f "$0")")/../lib/path.sh"

[ "${DBLP_VIRTUAL_TIME:-0}" = 1 ] || skip_all "runs in virtual time"

# Wireshark assigns port 7000 to another protocol
port=17000
out=/out/capture
mkdir -p "$out"
new_ns client server
# shellcheck disable=SC2154 # new_ns sets them
cable "$client" eth0 "$server" eth0 1

net=1

# capture NAME: capture packets of the client; sent packets before losses
capture()
{
	spawn ip netns exec "$client" dblp-sniff -w "$out/$1.pcap" eth0
	wait_until 10 output_has "$spawned" ready || exit 1
	sniffer=("${all_pids[@]}")
	log=$tmp/out.$spawned
	all_pids=()
}

# As many packets as the client has counted since the start of the capture
captured()
{
	slay "${sniffer[@]}"
	cp "$log" "$out/$1.lines"
	# One of them was not sent by AF_DBLP: see resets
	is "captured out" "$(numbered out)" $(($(counter PktSent) + 1)) &&
		is "captured in" "$(numbered in)" \
			"$(ip netns exec "$server" dblpctl -j stats | jq .PktSent)" &&
		is "captured ACKs" "$(grep -c ' out .* ACK$' "$log")" "$(counter AckSent)"
}

# numbered in|out: print the number of packets with packet numbers
numbered()
{
	awk -v way="$1" '$2 == way && $9 ~ /^(DATA|CTRL|PROBE)$/ { n++ } END { print n + 0 }' "$log"
}

# Lose every tenth packet to the server, or none
lose()
{
	tc -n "$server" qdisc del dev eth0 ingress 2>/dev/null
	[ "$1" != none ] || return 0
	tc -n "$server" qdisc add dev eth0 handle ffff: ingress &&
		tc -n "$server" filter add dev eth0 parent ffff: matchall \
			action pass random determ drop 10
}

xfer()
{
	dblp-xfer --from "$client" --to "$server" --address "$(server_of "$1")" "${@:2}"
}

capture scene

# INIT ... COOKIE-ACK, DATA, ACK, FIN; CLOSE and LOSSMAP of withheld bytes; META of a tag
budgets()
{
	lose 10 && xfer 4 --budget 408000 --size 30000,1000 --count 8 --expect-missing 1 &&
		xfer 6 --budget 100000 --policy early --size 30000 --count 8 --critical 8000 &&
		lose none
}
try "budgets, with loss" budgets

elided()
{
	xfer 6 --zeros 60 --size 60000 --count 4 --expect-elided 1
}
try "zero maps" elided

deadline()
{
	netem "$client" rate 10mbit limit 100000 && xfer 4 --deadline 20000 --size 100000 &&
		netem "$client"
}
try "a deadline" deadline

# Several receivers with open messages; the budget of one message changes
shared()
{
	local n id begun

	begun=$(counter BytesFirst)
	netem "$client" rate 2mbit delay 5ms limit 100000 || return
	spawn ip netns exec "$server" dblp-peer set cap 1000000 listen 10.1.0.2 $((port + 1)) say listening fork accept \
		recv 1 say received drain
	receivers=$spawned
	wait_until 10 output_has "$receivers" listening || return
	for n in 1 2; do
		spawn ip netns exec "$client" dblp-peer set budget 10000 connect 10.1.0.2 $((port + 1)) \
			send 1 200000 await "$tmp/end" close
	done
	wait_until 10 sent $((begun + 50000)) || return
	id=$(ip netns exec "$client" dblpctl -j socket list | jq '.[0].id')
	ip netns exec "$client" dblpctl socket set "$id" loss 50% || return
	wait_until 20 both_received && signal end &&
		netem "$client" &&
		wait_until 10 no_sockets "$client"
}
both_received()
{
	[ "$(grep -c -x received "$tmp/out.$receivers")" -eq 2 ]
}
sent()
{
	[ "$(counter BytesFirst)" -ge "$1" ]
}
try "several receive, and a budget changes on the way" shared

# The window is full, and all sent bytes have arrived
stalled()
{
	[ "$(info inflight)" -eq 0 ] && [ "$(info 'bytes_first | tonumber')" -ge 30000 ]
}

# The sender requests credit
sent_since()
{
	[ "$(counter PktSent)" -gt "$1" ]
}

# A receiver that does not read
full()
{
	local asked

	spawn ip netns exec "$server" dblp-peer set rcvbuf 40000 listen fd01::2 "$port" say listening \
		accept await "$tmp/read" drain
	wait_until 10 output_has "$spawned" listening || return
	spawn ip netns exec "$client" dblp-peer connect fd01::2 "$port" send 8 10000 say sent close
	wait_until 20 stalled && asked=$(counter PktSent) &&
		wait_until 20 sent_since "$asked" && signal read &&
		wait_until 20 output_has "$spawned" sent && wait_until 10 no_sockets "$client"
}
try "a receiver that does not read" full

# A message is cancelled halfway
given_up()
{
	local begun

	begun=$(counter BytesFirst)
	netem "$client" rate 2mbit limit 100000 && pair 4 tag 9 send 1 200000 await "$tmp/begun" cancel 9 close || return
	wait_until 10 sent $((begun + 50000)) && signal begun && wait_until 10 no_sockets "$client" && netem "$client"
}
try "a cancelled message" given_up

# Every ECT packet is marked
marks()
{
	tc -n "$client" qdisc replace dev eth0 clsact &&
		tc -n "$client" filter add dev eth0 egress protocol ip flower ip_tos 0x2/0x3 \
			action pedit ex munge ip tos set 3 retain 3 pipe action csum ip4h &&
		xfer 4 --cc lossy --size 20000 --count 2 && tc -n "$client" qdisc del dev eth0 clsact
}
try "marks" marks

# Large packets are dropped, and other sizes are probed
hole()
{
	pair 4 send 1 1000 await "$tmp/go" send 40 3000 say sent pause || return
	wait_until 10 settled 1 && ip -n "$server" link set eth0 mtu 1300 && signal go &&
		wait_until 30 settled 41 && wait_until 10 grep -q PROBE "$log" &&
		ip -n "$server" link set eth0 mtu 1500
}
try "a hole for large packets" hole

# stray LENGTH BYTES...: send these bytes, then zeroes
stray()
{
	{ printf '%b' "${@:2}" && head -c "$1" /dev/zero; } | head -c "$1" > "$tmp/stray"
	ip netns exec "$client" bash -c "cat $tmp/stray > /dev/udp/10.1.0.2/$port"
}

# Of another version; of no connection; without a listener; with unread messages
resets()
{
	local cid='\x01\x02\x03\x04\x05\x06\x07\x08' none='\0\0\0\0\0\0\0\0'
	local nothing='\x0d\x02\0\0\0\0\0\0\x0d\x02\0\0\0\0\0\0'

	spawn ip netns exec "$server" dblp-peer listen 10.1.0.2 "$port" say listening accept say one \
		await "$tmp/close"
	wait_until 10 output_has "$spawned" listening || return
	stray 128 '\x11\0\0\0\0\0\0\0' "$none" "$cid" && wait_until 10 grep -q VERSION "$log" &&
		stray 32 '\x38\x04\0\0\0\0\0\0' "$cid" "$nothing" && wait_until 10 grep -q RST "$log" ||
		return
	spawn ip netns exec "$client" dblp-peer connect 10.1.0.2 "$port" send 1 1000 say sent \
		fails ECONNRESET hangup say reset
	wait_until 10 output_has "$spawned" sent &&
		ip netns exec "$client" dblp-peer fails ECONNREFUSED connect 10.1.0.2 "$port" &&
		signal close && wait_until 10 output_has "$spawned" reset
}
try "other versions, and resets" resets

# With a key
tags()
{
	head -c 32 /dev/urandom > "$tmp/key"
	dblp-perf bulk --from "$client" --to "$server" -a 10.1.0.2 -p "$port" \
		--key "$tmp/key" -s 20000 -n 4 -w 0 && wait_until 10 no_sockets "$client"
}
try "with a key" tags

# From several ports
ports()
{
	dblp-perf bulk --from "$client" --to "$server" -a 10.1.0.2 -p "$port" \
		--spray 4 -s 20000 -n 4 -w 0 && wait_until 10 no_sockets "$client"
}
try "from several ports" ports

try "all packets were captured" captured scene

# Trains, as sent by a machine whose devices segment them
already=$(counter PktSent)
for ns in "$client" "$server"; do
	ip netns exec "$ns" ethtool -K eth0 gso on tx-udp-segmentation on > /dev/null
done
capture trains
trains()
{
	xfer 4 --size 200000 --count 2 && wait_until 10 no_sockets "$client" || return
	slay "${sniffer[@]}"
	cp "$log" "$out/trains.lines"
	awk '$4 > 1500 { n++ } END { print n + 0, "larger than the path takes"; exit !n }' "$log" &&
		echo $(($(counter PktSent) - already)) > "$out/trains.sent"
}
try "trains" trains

try "no sockets are left" wait_until 40 no_sockets "$client"
done_testing
