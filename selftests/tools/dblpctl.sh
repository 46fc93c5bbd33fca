#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblpctl and the module: output about live sockets, and effects of settings. Formatting and errors
# of dblpctl itself are tested without a VM, see host/dblpctl.py.

# shellcheck disable=SC2016,SC2154,SC2317 # for jq; new_ns sets them; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

module=$(module_file)
new_ns a b c
join "$a" "$b"

new_namespace()
{
	{ for words in 'socket list' 'job list' 'stats nonzero' stats 'phase list' 'param list' 'cc list' \
		'top -i 1ms'; do
		# shellcheck disable=SC2086 # words
		ctl "$a" -j $words || return
	done; } > "$tmp/new"
	jq -c . "$tmp/new"
	jq -s -e '.[0] == [] and .[1] == [] and .[2] == {} and (.[3] | length > 40 and all(. == 0)) and
		(.[4] | map([.id, .name, .budget]) == [[0, "reliable", 0], [1, "critical", 8000], [2, "tolerant", 408000]]) and
		.[5] == {congestion: "sqrt", budget_cap: "inherit", user_timeout_ms: 30000, keepalive_ms: 15000, gso: "on"} and
		.[6] == [{name: "sqrt", default: true}, {name: "lossy", default: false}] and .[7] == []' "$tmp/new"
}
try "a new namespace" new_namespace

# holds CONDITION: the jq condition is true for the sockets and counters of $a and $b
holds()
{
	for ns in a b; do
		ctl "${!ns}" -j socket list && ctl "${!ns}" -j stats || return
	done > "$tmp/all"
	jq -s -e --slurpfile old "$tmp/old" "$definitions$1" "$tmp/all"
}
definitions='def one(condition): map(select(condition)) | if length == 1 then .[0] else error("\(length) of them") end;
	def since($old): with_entries(.value -= $old[.key]);
	def is($wanted): . as $it | $wanted | to_entries | all($it[.key] == .value);
	. as [$a, $astats, $b, $bstats] | ($astats | since($old[1])) as $anew | ($bstats | since($old[3])) as $bnew |
	($a | map(select(.peer_port == 7001))[0]) as $six | ($a | map(select(.peer_port == 7002))[0]) as $four |
	($b | map(select(.local_port == 7001 and .state == "established"))[0]) as $peer6 |
	($b | map(select(.local_port == 7002 and .state == "established"))[0]) as $peer4 | '
ctl "$a" -j stats | jq -c '[., ., ., .]' > "$tmp/zero" && jq -c '.[]' "$tmp/zero" > "$tmp/old"

# Sockets for the following tests: a listener with a connection over IPv4, and one with a connection
# over IPv6, whose client belongs to user nobody.
setup()
{
	spawn ip netns exec "$b" dblp-peer listen :: 7000 say listening pause
	listener=$spawned
	spawn ip netns exec "$b" dblp-peer set cap 1000000 listen fd09::2 7001 say listening accept say accepted \
		recv 3 await "$tmp/stop6"
	server6=$spawned
	spawn ip netns exec "$b" dblp-peer listen 10.9.0.2 7002 say listening accept say accepted drain
	server4=$spawned
	for pid in "$listener" "$server6" "$server4"; do
		wait_until 10 output_has "$pid" listening || return
	done
	spawn ip netns exec "$a" "${nobody[@]}" dblp-peer set budget 8000 set cap 500000 \
		connect fd09::2 7001 send 3 100000 say sent await "$tmp/stop6"
	client6=$spawned
	spawn ip netns exec "$a" dblp-peer connect 10.9.0.2 7002 say sent pause
	client4=$spawned
	for pid in "$client6" "$client4"; do
		wait_until 10 output_has "$pid" sent || return
	done
	for pid in "$server6" "$server4"; do
		wait_until 10 output_has "$pid" accepted || return
	done
	# Wait until all sent bytes are acknowledged
	wait_until 10 holds '$a + $b | all(.inflight == 0 and .bytes_first == .bytes_delivered)'
}

setup || { diag < "$tmp/out.$spawned"; exit 1; }
keep_running
id6=$(holds '$six.id') && id4=$(holds '$four.id') && peer4=$(holds '$peer4.id') || exit 1

# Print the inode of a process's socket, from /proc
inode()
{
	find "/proc/$1/fd" -lname 'socket:*' -printf '%l' | tr -cd 0-9
}

try "both ends of a connection agree, with owner and inode" holds '($b | one(.local_port == 7000) |
	is({state: "listen", local_addr: "::", peer_addr: "::", peer_port: 0, cwnd: 0})) and
	($four | is({state: "established", local_addr: "10.9.0.1", peer_addr: "10.9.0.2", uid: 0,
		inode: '"$(inode "$client4")"', local_port: $peer4.peer_port})) and
	($peer4 | is({state: "established", local_addr: "10.9.0.2", peer_addr: "10.9.0.1", inode: '"$(inode "$server4")"'})) and
	($six | is({uid: 65534, inode: '"$(inode "$client6")"'}))'

try "a connection over IPv6, with all that was set" holds '$six | is({local_addr: "fd09::1", peer_addr: "fd09::2",
	budget: 8000, budget_cap: 500000, peer_budget_cap: 1000000, policy: "eager", order: "auto", fill: "zero",
	own: "budget,budget_cap", sends_all: ""}) and (.congestion | length) > 0 and .srtt_us > 0 and .min_rtt_us > 0 and
	.min_rtt_us <= .srtt_us + .rttvar_us and .cwnd > 0 and .seg_size > 500 and .peer_msg_max >= 100000'

try "what it sent is accounted for, and what its peer received" holds '($six | .msgs_sent == 3 and
	.bytes_first <= 300000 and .bytes_delivered >= 297600 and .pkts_sent >= 200 and
	.bytes_delivered + .bytes_forgiven_unsent + .bytes_forgiven_sent == 300000 and
	.msgs_sent_complete + .msgs_sent_budget == 3 and
	.msgs_sent_budget == .msgs_sent_early and .msgs_sent_deadline == 0) and ($peer6 | .msgs_received == 3 and
	.bytes_received == 300000 and .bytes_missing <= 2400 and .pkts_received >= 200)'

# One of three messages is read, a connection waits for accept(), and in placement mode a message
# larger than the receive buffer begins to arrive
queues()
{
	local pids=() pid

	spawn ip netns exec "$b" dblp-peer listen 10.9.0.2 7004 say listening accept recv 1 pause && pids+=("$spawned")
	spawn ip netns exec "$b" dblp-peer listen 10.9.0.2 7005 say listening pause && pids+=("$spawned")
	spawn ip netns exec "$b" dblp-peer set placement 1 set rcvbuf 50000 listen 10.9.0.2 7006 say listening accept pause &&
		pids+=("$spawned")
	for pid in "${pids[@]}"; do
		wait_until 10 output_has "$pid" listening || return
	done
	spawn ip netns exec "$a" dblp-peer connect 10.9.0.2 7004 send 3 40000 pause && pids+=("$spawned")
	spawn ip netns exec "$a" dblp-peer connect 10.9.0.2 7005 pause && pids+=("$spawned")
	spawn ip netns exec "$a" dblp-peer connect 10.9.0.2 7006 send 1 400000 pause && pids+=("$spawned")
	wait_until 10 holds '($b | (one(.local_port == 7004) | is({recv_queue: 80000, send_queue: 0})) and
			(one(.local_port == 7005 and .state == "listen") | is({recv_queue: 1, send_queue: 16})) and
			(one(.local_port == 7006).recv_queue | . > 0 and . < 400000)) and
		($a | (one(.peer_port == 7004) | is({recv_queue: 0, send_queue: 0})) and
			(one(.peer_port == 7006).send_queue | . > 0 and . <= 400000))'
	local status=$?
	kill "${pids[@]}"
	return "$status"
}
try "bytes that wait to be read and settled, and connections that wait" queues

# As in dblp.rst: ss shows only the UDP socket of each port, without a process
other_tools()
{
	ip netns exec "$b" ss -H -a -n -p -A all | awk '$1 != "nl" { print $1, $2, $5, NF }' | sort |
		tee "$tmp/ss"
	is cat "$tmp/ss" "$(printf 'udp UNCONN %s 6\n' '*:7000' '10.9.0.2:7002' '[fd09::2]:7001')"
}
try "ss shows the UDP sockets alone" other_tools

# A user may not inspect a process that has more capabilities
processes()
{
	local own hidden

	spawn ip netns exec "$c" "${nobody[@]}" dblp-peer listen ::1 7001 say listening pause
	own=$spawned
	wait_until 10 output_has "$own" listening || return
	spawn ip netns exec "$c" "${nobody[@]}" --inh-caps +net_raw --ambient-caps +net_raw \
		dblp-peer listen ::1 7002 say listening pause
	hidden=$spawned
	wait_until 10 output_has "$hidden" listening || return
	{ in_ns "$c" "${nobody[@]}" dblpctl -j socket list -p && ctl "$c" -j socket list -p; } > "$tmp/list" &&
		is jq -c 'sort_by(.local_port) | map(.processes)' "$tmp/list" "$(printf '[[{"pid":%s,"name":"dblp-peer"}],%s]\n' \
			"$own" '[]' "$own" "[{\"pid\":$hidden,\"name\":\"dblp-peer\"}]")"
}
try "visible processes that have a socket open" processes

# Change settings in both directions, and check the effects
settings()
{
	ctl "$a" job add 7 name resnet phase critical && ctl "$a" phase set 5 name mine loss 2% close early &&
		ctl "$a" socket set "$id6" job resnet phase mine loss inherit &&
		ctl "$a" s se "$(printf '%#x' "$id4")" l 40.8% && ctl "$b" socket set "$peer4" cap 12.5% &&
		wait_until 10 holds '($four | .budget == 408000 and .peer_budget_cap == 125000) and
			($six | .budget == 20000 and .phase == 5 and .job == 7 and .policy == "early")' &&
		refused 1 "id: there are sockets in this job" ctl "$a" job del 7 &&
		{ ctl "$a" -j socket list job resnet phase mine peer fd09::/64 && ctl "$a" -j top -i 1ms &&
			ctl "$a" -j job stats 7 && ctl "$a" -j phase list; } > "$tmp/shown" &&
		jq -s -e '(.[0] | map(.id)) == ['"$id6"'] and (.[1] | map([.job, .sockets])) == [[7, 1], [0, 1]] and
			(.[2] | map(.phase) == [1]) and (.[3] | map(.sockets)) == [0, 0, 0, 1]' "$tmp/shown" &&
		ctl "$a" socket set "$id6" job none phase inherit && ctl "$a" job flush && ctl "$a" phase flush &&
		is ctl "$a" -j job list '[]' && is json "$a" 'map(.id)' phase list '[0]'
}
try "settings of a live socket, of its phase and its job" settings

# in_proc TEXT: sockets, memory pressure, slab and module in /proc/net/protocols of $d are TEXT
in_proc()
{
	is in_ns "$d" awk '$1 == "DBLP" { print $3, $5, $7, $8 }' /proc/net/protocols "$1"
}
protocols()
{
	local d

	new_ns d
	in_proc '0 no yes dblp' || return
	spawn ip netns exec "$d" dblp-peer listen ::1 7000 say listening pause
	wait_until 10 output_has "$spawned" listening && in_proc '1 no yes dblp' && kill "$spawned" &&
		wait_until 10 in_proc '0 no yes dblp'
}
try "/proc/net/protocols counts the sockets of the namespace" protocols

# Existing sockets keep their settings
params()
{
	spawn ip netns exec "$c" dblp-peer listen ::1 7000 say listening pause
	wait_until 10 output_has "$spawned" listening && ctl "$c" -b - <<-END || return
		# Maximum and minimum values
		param set timeout 1h keepalive 24h cap 100%
		param set timeout 1ms keepalive 10ms cap 0%
		param set congestion lossy cap 2% timeout 2s
	END
	spawn ip netns exec "$c" dblp-peer bind ::1 7100 say bound pause
	wait_until 10 output_has "$spawned" bound && in_ns "$c" dblp-peer connect ::1 7000 &&
		is json "$c" 'map(select(.local_port | . == 7000 or . == 7100) | [.local_port, .congestion, .budget_cap]) | unique[]' \
			socket list $'[7000,"sqrt",0]\n[7100,"lossy",20000]'
}
try "parameters are the defaults of new sockets" params

# Without an answer a socket ends after the timeout
gives_up()
{
	local start=${EPOCHREALTIME/./} ms

	tc -n "$c" qdisc replace dev lo root netem loss 100% &&
		in_ns "$c" dblp-peer fails ETIMEDOUT connect ::1 7000 || return
	ms=$(((${EPOCHREALTIME/./} - start) / 1000))
	tc -n "$c" qdisc del dev lo root
	echo "$ms ms"
	[ "$ms" -ge 2000 ] && [ "$ms" -lt 20000 ]
}
try "sockets use the timeout of the namespace" gives_up

now_ms()
{
	echo $((${EPOCHREALTIME/./} / 1000))
}

# The job is twice in one phase, once in another, never in the third; each time is between the
# minimum and the maximum elapsed time
time_in_phases()
{
	local t0 t1 t2 t3 t4 t5 t6 t7

	t0=$(now_ms) && ctl "$c" job add 70 phase reliable && t1=$(now_ms) && sleep 0.2 &&
		t2=$(now_ms) && ctl "$c" job set 70 phase critical && t3=$(now_ms) && sleep 0.4 &&
		t4=$(now_ms) && ctl "$c" job set 70 phase reliable && t5=$(now_ms) && sleep 0.2 &&
		t6=$(now_ms) && ctl "$c" job set 70 phase critical && t7=$(now_ms) && ctl "$c" -j job stats 70 > "$tmp/stats" || return
	cat "$tmp/stats"
	jq -e "map({key: .phase | tostring, value: .time_ms}) | from_entries | keys == [\"0\", \"1\"] and
		.[\"0\"] >= $((t2 - t1 + t6 - t5 - 2)) and .[\"0\"] <= $((t3 - t0 + t7 - t4)) and
		.[\"1\"] >= $((t4 - t3 - 1)) and .[\"1\"] <= $((t5 - t2 + $(now_ms) - t6))" "$tmp/stats"
}
try "how long a job was in each phase" time_in_phases

# User nobody has a socket, and root has one
nobody_tries()
{
	local as_nobody=(in_ns "$a" "${nobody[@]}" dblpctl)

	is "${as_nobody[@]}" -j socket list "$(json "$a" '[.]' socket show "$id6")" &&
		refused 1 "id: it belongs to another user: CAP_NET_ADMIN is needed" "${as_nobody[@]}" socket show "$id4" || return
	for words in "socket set $id6 loss 1%" 'job flush' save monitor; do
		# shellcheck disable=SC2086 # words
		refused 1 "no permission: this needs CAP_NET_ADMIN in the network namespace (sudo)" "${as_nobody[@]}" $words ||
			return
	done
	refused 1 "no permission: entering network namespace '$a' needs CAP_SYS_ADMIN (sudo)" \
		"${nobody[@]}" dblpctl -N "$a" job list
}
try "an ordinary user sees only its own objects, and changes nothing" nobody_tries

elsewhere()
{
	dblpctl -N "$a" job add 7 name resnet && is json "$a" 'map(.name)[]' job list resnet &&
		is dblpctl -j --netns "$b" job list '[]' &&
		is dblpctl -N "/run/netns/$a" -j job show resnet "$(ctl "$a" -j job show 7)" && ctl "$a" job del 7
}
try "-N: another namespace, by name and by file" elsewhere

counters()
{
	spawn ip netns exec "$b" dblp-peer listen 10.9.0.2 7003 say listening accept recv 5
	wait_until 10 output_has "$spawned" listening && holds true && cp "$tmp/all" "$tmp/old" &&
		in_ns "$a" dblp-peer connect 10.9.0.2 7003 send 5 40000 shutdown eof && ended "$spawned" 0 &&
		in_ns "$a" dblp-peer fails ECONNREFUSED connect 10.9.0.2 9 &&
		holds '($anew | is({ConnActive: 2, ConnPassive: 0, MsgSent: 5, BytesFirst: 200000, MsgReceived: 0, ConnRefused: 1}) and
			.PktSent >= 130) and ($bnew | is({ConnActive: 0, ConnPassive: 1, MsgReceived: 5, BytesReceived: 200000,
			BytesMissing: 0, MsgSent: 0}) and .PktReceived >= 130 and .CookieSent >= 1 and .AckSent >= 1)'
}
try "a transfer and a refused connection are counted at both ends" counters

: > "$tmp/stop6"
teardown()
{
	kill "$client4" "$listener"
	ended "$client6" 0 && ended "$server6" 0 && ended "$server4" 0 &&
		wait_until 10 no_sockets "$a" && wait_until 10 no_sockets "$b"
}
try "nothing is left" teardown

# The kernel requests the module by its alias. An installed module is found by modprobe; here a
# script replaces modprobe.
loaded_by_the_kernel()
{
	local modprobe alias

	modprobe=$(cat /proc/sys/kernel/modprobe)
	cat > "$tmp/modprobe" <<-END
		#!/bin/bash
		echo "\${!#}" >> $tmp/asked
		exec insmod $module
	END
	chmod 755 "$tmp" "$tmp/modprobe"
	# Closed sockets are freed a little later
	wait_until 10 rmmod dblp || return
	echo /bin/false > /proc/sys/kernel/modprobe
	refused 1 "the module dblp is not loaded; load it with: sudo modprobe dblp (or sudo insmod dblp.ko)" \
		dblpctl socket list
	local status=$?
	echo "$tmp/modprobe" > /proc/sys/kernel/modprobe
	is "${nobody[@]}" dblpctl -j socket list '[]' || status=1
	echo "$modprobe" > /proc/sys/kernel/modprobe
	[ "$status" -eq 0 ] || insmod "$module"
	alias=$(head -n 1 "$tmp/asked") && modinfo -F alias "$module" | grep -x -- "$alias" && return "$status"
}
try "without the module: the error says how to load it; socket() loads it" loaded_by_the_kernel

done_testing
