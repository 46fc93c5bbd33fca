#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Routes and headers of packets: routes that change under a connection, devices, marks, flow
# labels, DSCP. Also: small messages are not delayed.

# shellcheck disable=SC2016,SC2317 # awk has its own $; functions are called by try
# shellcheck source=selftests/lib/path.sh
. "$(dirname "$(readlink -f "$0")")/../lib/path.sh"

# Two cables, and addresses on other devices
new_ns client server
# shellcheck disable=SC2154 # new_ns sets them
cable "$client" eth0 "$server" eth0 1
cable "$client" eth1 "$server" eth1 2
for ns in client server; do
	here=$([ $ns = client ] && echo 1 || echo 2)
	ip -n "${!ns}" -batch - <<-END || exit 1
		addr add 10.8.0.$here/32 dev lo
		addr add fd08::$here/128 dev lo nodad
	END
	# Packets and answers may use different cables
	for v in net.ipv4.conf.all.rp_filter net.ipv4.conf.eth0.rp_filter \
		net.ipv4.conf.eth1.rp_filter; do
		ip netns exec "${!ns}" sysctl -q -w $v=0 || exit 1
	done
	ip netns exec "${!ns}" sysctl -q -w net.ipv6.conf.all.keep_addr_on_down=1 \
		net.ipv6.conf.eth0.keep_addr_on_down=1 \
		net.ipv6.conf.eth1.keep_addr_on_down=1 || exit 1
done

# by N: route both directions over cable N
by()
{
	ip -n "$client" route replace 10.8.0.2 via "10.$1.0.2" src 10.8.0.1 &&
		ip -n "$client" route replace fd08::2 via "fd0$1::2" src fd08::1 &&
		ip -n "$server" route replace 10.8.0.1 via "10.$1.0.1" src 10.8.0.2 &&
		ip -n "$server" route replace fd08::1 via "fd0$1::1" src fd08::2
}

net=8

# server_on 4|6 N: print the server's address on cable N
server_on()
{
	[ "$1" = 4 ] && echo "10.$2.0.2" || echo "fd0$2::2"
}

# sniff_to NAME NS DEVICE: log packets to ${NAME}_log
sniff_to()
{
	sniff "$2" "$3" && printf -v "$1_log" '%s' "$log"
}

# seen LOG CONDITION: count packets by the fields $1 ... of dblp-sniff
seen()
{
	awk "/ready/ { next } $2 { n++ } END { print n + 0 }" "$1"
}

has_seen()
{
	[ "$(seen "$2" "$3")" -ge "$1" ]
}

# sees N LOG CONDITION: wait for at least N such packets in the log
sees()
{
	wait_until 10 has_seen "$@"
}

by 1

# The rest of a transfer uses the other cable.
replaced_route()
{
	local v=$1

	by 1 && sniff_to second "$client" eth1 || return
	netem "$client" rate 50mbit
	dblp-xfer --from "$client" --to "$server" --address "$(server_of "$v")" \
		--size 200000 --count 10 --halfway "sh -c '
		ip -n $client route replace 10.8.0.2 via 10.2.0.2 src 10.8.0.1
		ip -n $client route replace fd08::2 via fd02::2 src fd08::1
		ip -n $server route replace 10.8.0.1 via 10.2.0.1 src 10.8.0.2
		ip -n $server route replace fd08::1 via fd02::1 src fd08::2
		ip -n $client link set eth0 down'" || return
	tc -n "$client" qdisc del dev eth0 root
	ip -n "$client" link set eth0 up || return
	# shellcheck disable=SC2154 # sniff_to sets it
	sees 20 "$second_log" '$2 == "out" && $9 == "DATA"'
}
for v in 4 6; do
	try "ipv$v: another route in the middle of a transfer" replaced_route $v
done

# The device goes down for a second during a transfer
flapping_device()
{
	local v=$1

	dblp-xfer --from "$client" --to "$server" --address "$(server_on "$v" 1)" \
		--size 200000 --count 10 --halfway "ip -n $client link set eth0 down
		{ sleep 1; ip -n $client link set eth0 up; } &"
}
for v in 4 6; do
	try "ipv$v: the device goes down and comes up" flapping_device $v
done

# The MTU of one path does not affect the next path.
new_path_new_mtu()
{
	local v=$1

	rm -f "$tmp"/go*
	by 1 && ip -n "$server" link set eth0 mtu 1400 || return
	pair "$v" send 1 1000 await "$tmp/go" send 60 1400 await "$tmp/go2" send 1 1 pause || return
	wait_until 10 settled 1 || return
	signal go
	wait_until 30 settled 61 || return
	[ "$(info seg_size)" -lt "$(segment "$v" 1450)" ] || return
	by 2 || return
	signal go2
	wait_until 10 settled 62 || return
	is segment "$(info seg_size)" "$(segment "$v" 1500)" || return
	ip -n "$server" link set eth0 mtu 1500
}
for v in 4 6; do
	try "ipv$v: another next hop begins with its own MTU" new_path_new_mtu $v
done

# The source address of a connection never changes; without it the connection times out.
lost_address()
{
	local v=$1 addr

	addr=$([ "$v" = 4 ] && echo 10.8.0.1/32 || echo fd08::1/128)
	rm -f "$tmp"/go*
	by 1 || return
	before=(set user-timeout 1500)
	pair "$v" send 1 1000 await "$tmp/go" send 1 1000 fails ETIMEDOUT hangup || return
	before=()
	wait_until 10 settled 1 || return
	ip -n "$client" addr del "$addr" dev lo || return
	signal go
	ended "$client_pid" 0 || return
	if [ "$v" = 4 ]; then
		ip -n "$client" addr add "$addr" dev lo
	else
		ip -n "$client" addr add "$addr" dev lo nodad
	fi && by 1
}
for v in 4 6; do
	try "ipv$v: the source address is taken away: time-out" lost_address $v
done

# Both ends have two routes and use that of the device they are bound to.
bound_client()
{
	local v=$1

	by 1 || return
	ip -n "$client" route replace 10.8.0.2 via 10.2.0.2 src 10.8.0.1 metric 100 || return
	ip -n "$client" route replace fd08::2 via fd02::2 src fd08::1 metric 2000 || return
	ip -n "$server" route replace 10.8.0.1 via 10.2.0.1 src 10.8.0.2 || return
	ip -n "$server" route replace fd08::1 via fd02::1 src fd08::2 || return
	sniff_to first "$client" eth0 && sniff_to second "$client" eth1 || return
	rm -f "$tmp"/go*
	before=(device eth1)
	pair "$v" send 1 1000 await "$tmp/go" send 2 1000 pause || return
	before=()
	wait_until 10 settled 1 || return
	# Routes that were looked up before are not valid any more
	ip -n "$client" route replace 10.8.0.2 via 10.2.0.2 src 10.8.0.1 metric 200 || return
	ip -n "$client" route replace fd08::2 via fd02::2 src fd08::1 metric 3000 || return
	signal go
	wait_until 10 settled 3 || return
	sees 3 "$second_log" '$2 == "out" && $9 == "DATA"' || return
	# shellcheck disable=SC2154 # sniff_to sets it
	is "packets out by eth0" "$(seen "$first_log" '$2 == "out" && $3 == '"$v")" 0
}

bound_server()
{
	local v=$1

	spawn ip netns exec "$server" dblp-peer device eth1 listen :: 7000 say listening \
		accept drain
	wait_until 10 output_has "$spawned" listening || return
	ip netns exec "$client" dblp-peer fails ECONNREFUSED connect "$(server_on "$v" 1)" 7000 ||
		return
	ip netns exec "$client" dblp-peer connect "$(server_on "$v" 2)" 7000 send 3 1000 close ||
		return
	ended "$spawned" 0
}

# SO_MARK selects the route, and filters see it on packets.
marked()
{
	local v=$1 n

	by 1 || return
	ip -n "$client" rule add fwmark 7 lookup 100 || return
	ip -n "$client" -6 rule add fwmark 7 lookup 100 || return
	ip -n "$client" route replace 10.8.0.2 via 10.2.0.2 src 10.8.0.1 table 100 || return
	ip -n "$client" route replace fd08::2 via fd02::2 src fd08::1 table 100 || return
	tc -n "$client" qdisc replace dev eth1 root handle 1: prio || return
	tc -n "$client" qdisc add dev eth1 parent 1:3 handle 30: pfifo || return
	tc -n "$client" filter add dev eth1 parent 1: protocol all handle 7 fw flowid 1:3 || return
	before=(set mark 7)
	pair "$v" send 3 1000 pause || return
	before=()
	wait_until 10 settled 3 || return
	n=$(tc -n "$client" -s -j qdisc show dev eth1 | jq '.[] | select(.handle == "30:").packets')
	tc -n "$client" qdisc del dev eth1 root
	ip -n "$client" rule del fwmark 7 lookup 100
	ip -n "$client" -6 rule del fwmark 7 lookup 100
	[ "$n" -ge 5 ]
}

# The user of the socket selects the route.
by_user()
{
	local v=$1 n

	by 1 || return
	ip -n "$client" rule add uidrange 4711-4711 lookup 100 || return
	ip -n "$client" -6 rule add uidrange 4711-4711 lookup 100 || return
	n=$(ip -n "$client" -s -j link show dev eth1 | jq '.[].stats64.tx.packets')
	as=(setpriv --reuid 4711)
	pair "$v" send 3 1000 pause || return
	as=()
	wait_until 10 settled 3 || return
	n=$(($(ip -n "$client" -s -j link show dev eth1 | jq '.[].stats64.tx.packets') - n))
	ip -n "$client" rule del uidrange 4711-4711 lookup 100
	ip -n "$client" -6 rule del uidrange 4711-4711 lookup 100
	[ "$n" -ge 5 ]
}

prioritized()
{
	local v=$1 n

	by 1 && tc -n "$client" qdisc replace dev eth0 root handle 1: prio || return
	tc -n "$client" qdisc add dev eth0 parent 1:1 handle 10: pfifo || return
	before=(set priority 6)
	pair "$v" send 3 1000 pause || return
	before=()
	wait_until 10 settled 3 || return
	n=$(tc -n "$client" -s -j qdisc show dev eth0 | jq '.[] | select(.handle == "10:").packets')
	tc -n "$client" qdisc del dev eth0 root
	[ "$n" -ge 5 ]
}

# Data packets have the DSCP of DBLP_TOS, control packets always EF.
differentiated()
{
	local v=$1

	by 1 && sniff_to first "$client" eth0 || return
	before=(fails EINVAL set tos 41 fails EINVAL set tos 256 set tos 40)
	pair "$v" send 3 1000 set tos 0 send 1 1 pause || return
	before=()
	wait_until 10 settled 4 || return
	# With or without ECT(0); more if a slow machine repeats one
	sees 3 "$first_log" '$9 == "DATA" && $5 ~ /^0x2[8a]$/' || return
	sees 1 "$first_log" '$9 == "DATA" && $5 ~ /^0(x2)?$/' || return
	is "other data packets" \
		"$(seen "$first_log" '$9 == "DATA" && $5 !~ /^0(x2[8a]?)?$/')" 0 || return
	is "others" "$(seen "$first_log" '$9 != "DATA" && $5 != "0xb8"')" 0
}
for v in 4 6; do
	try "ipv$v: a client bound to a device" bound_client $v
	try "ipv$v: a server bound to a device" bound_server $v
	try "ipv$v: SO_MARK" marked $v
	try "ipv$v: a rule for a user" by_user $v
	try "ipv$v: SO_PRIORITY" prioritized $v
	try "ipv$v: DBLP_TOS" differentiated $v
done

# labels LOG DIRECTION: print the flow labels of numbered packets and ACKs
labels()
{
	awk -v way="$2" '$2 == way && $9 ~ /^(DATA|CTRL|ACK)$/ { print $6 }' "$1" | sort -u
}

# Do not count the end of a connection: either end may repeat its last packets with another label.
quiet()
{
	wait_until 20 no_sockets "$client" && wait_until 20 no_sockets "$server"
}

# A timeout of a busy machine changes the label, see below
automatic_labels()
{
	local n log words=() changes

	by 1 && quiet || return
	for n in 1 2; do
		sniff_to "label$n" "$client" eth0 && changes=$(counter Rehash) || return
		pair 6 send 5 1000 pause || return
		log=label${n}_log
		wait_until 10 settled 5 && sees 5 "${!log}" '$9 == "DATA"' || return
		changes=$(($(counter Rehash) - changes))
		words[n]=$(labels "${!log}" out)
		slay "$client_pid" "$server_pid"
		quiet || return
		echo "labels of connection $n: ${words[n]}, $changes times changed"
		[ "$(wc -w <<< "${words[n]}")" -le $((1 + changes)) ] || return
		[ "${words[n]}" != 0 ] || return
	done
	[ "${words[1]}" != "${words[2]}" ]
}
try "ipv6: each connection has a flow label" automatic_labels

given_labels()
{
	by 1 && quiet && sniff_to first "$client" eth0 || return
	before=(label 0x12345)
	listen=(label 0xabcde)
	pair 6 send 5 1000 pause || return
	before=()
	listen=()
	wait_until 10 settled 5 && sees 5 "$first_log" '$9 == "DATA"' || return
	labels "$first_log" out
	labels "$first_log" in
	[ "$(labels "$first_log" out)" = 0x12345 ] && [ "$(labels "$first_log" in)" = 0xabcde ]
}
try "ipv6: requested flow labels" given_labels

no_labels()
{
	by 1 && quiet && sniff_to first "$client" eth0 || return
	ip netns exec "$client" sysctl -q -w net.ipv6.auto_flowlabels=0 || return
	pair 6 send 5 1000 pause || return
	wait_until 10 settled 5 && sees 5 "$first_log" '$9 == "DATA"' || return
	ip netns exec "$client" sysctl -q -w net.ipv6.auto_flowlabels=1 || return
	[ "$(labels "$first_log" out)" = 0 ]
}
try "ipv6: none where they are switched off" no_labels

# If routers hash the flow label, a new label after timeouts selects another path.
another_label_seen()
{
	[ "$(labels "$first_log" out | wc -w)" -gt 1 ]
}

another_label()
{
	rm -f "$tmp"/go*
	by 1 && quiet && sniff_to first "$client" eth0 || return
	pair 6 send 1 1000 await "$tmp/go" send 1 1000 pause || return
	wait_until 10 settled 1 || return
	netem "$server" loss 100%
	signal go
	wait_until 10 another_label_seen || return
	tc -n "$server" qdisc del dev eth0 root
	wait_until 10 settled 2
}
try "ipv6: timeouts change the flow label" another_label

# As for TCP
no_addresses()
{
	local off device

	new_ns off
	cable "$off" eth0 "$server" eth2 3
	for device in all lo eth0; do
		ip netns exec "$off" sysctl -q -w "net.ipv6.conf.$device.disable_ipv6=1" || return
	done
	ip netns exec "$off" dblp-peer fails EADDRNOTAVAIL connect fd03::2 7000 \
		fails EADDRNOTAVAIL connect ::1 7000 fails EADDRNOTAVAIL bind fd03::1 0 listen :: 7000
}
try "ipv6: no address where it is switched off" no_addresses

# Each message is sent at once although none is acknowledged: count those sent long before an ACK of
# the first can arrive. The message before them is larger and may still be probed.
no_nagle()
{
	local v=$1 words=() n

	rm -f "$tmp"/go*
	by 1 && netem "$client" delay 1s && netem "$server" delay 1s || return
	for n in {1..9}; do
		words+=(send 1 1 sleep 2)
	done
	# The first message measures the RTT
	pair "$v" send 1 1000 await "$tmp/go" "${words[@]}" pause || return
	wait_until 40 settled 1 || return
	sniff_to first "$client" eth0 || return
	signal go
	wait_until 40 settled 10 || return
	tc -n "$client" qdisc del dev eth0 root
	tc -n "$server" qdisc del dev eth0 root
	n=$(awk '$2 == "out" && $9 == "DATA" && $4 < 100 {
			first = first ? first : $1; n += $1 < first + 1600000 }
		END { print n }' "$first_log")
	echo "$n messages under way"
	# More if a busy machine repeats some
	[ "$n" -ge 9 ]
}
for v in 4 6; do
	try "ipv$v: small messages do not wait for each other" no_nagle $v
done

done_with_sockets
