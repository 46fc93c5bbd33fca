#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblpctl monitor: each event that the module tells of is provoked, and its
# numbers are those that dblpctl shows otherwise.

# shellcheck disable=SC2154,SC2317 # new_ns sets them; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

new_ns a b c
join "$a" "$b"

# It has heard what is done for this end, once and again
in_tune()
{
	ctl "$1" phase set 7 name tuning && grep -q tuning "$tmp/out.$spawned"
}

# monitor NS ARG...: run one until it listens
monitor()
{
	spawn nsenter --net="/run/netns/$1" dblpctl "${@:2}"
	wait_until 10 in_tune "$1"
}

# heard PID FILTER N: what jq makes of the N events heard; it waits for them
heard()
{
	wait_until 10 has_heard "$1" "$3" >&2 && jq 'del(.event)' "$tmp/out.$1" | typed monitor >&2 &&
		jq -c 'select(.name != "tuning") | '"$2" "$tmp/out.$1"
}

has_heard()
{
	[ "$(jq -c 'select(.name != "tuning")' "$tmp/out.$1" | wc -l)" -ge "$2" ]
}

jobs()
{
	monitor "$a" -j monitor && ctl "$a" job add 7 phase critical name resnet &&
		ctl "$a" job set 7 name vgg && ctl "$a" job set 7 phase tolerant && ctl "$a" job del 7 &&
		is heard "$spawned" . 3 '{"event":"job-add","job":7,"phase":1,"name":"resnet"}
{"event":"job-phase","job":7,"old_phase":1,"phase":2,"name":"vgg","by":"operator"}
{"event":"job-del","job":7,"phase":2,"name":"vgg"}'
}
try "jobs come, move and go" jobs

# Half of the norm before is what eta says: the third report is the one. What
# the second moves, the detector's own numbers tell, too. jq keeps 53 bits of a number
detector()
{
	local now

	monitor "$a" -j monitor && ctl "$a" job add 7 clr on low 1% &&
		in_ns "$a" dblp-peer set job 7 norm 18446744073709551614 \
			norm 18446744073709551615 norm 9223372036854775807 &&
		now=$(json "$a" '{phase, norm, change, eta}' job show 7) && ctl "$a" job del 7 &&
		is heard "$spawned" 'select(.event == "job-phase") |
			{by, old_phase, phase, norm, previous, change, eta}' 4 \
'{"by":"detector","old_phase":1,"phase":2,"norm":"18446744073709551615","previous":"18446744073709551614","change":0,"eta":500000}
{"by":"detector","old_phase":2,"phase":1,"norm":"9223372036854775807","previous":"18446744073709551615","change":500000,"eta":500000}' &&
		is heard "$spawned" 'select(.old_phase == 2) | {phase, norm, change, eta}' 4 "$now"
}
try "the detector moves a job, and says why" detector

phases()
{
	local now

	monitor "$a" -j monitor && ctl "$a" phase set 5 name mine loss 2% close early order sequential fill keep &&
		now=$(json "$a" '{id, name, budget, policy, order, fill}' phase show 5) &&
		ctl "$a" phase del mine &&
		is heard "$spawned" 'select(.event == "phase-set") | {id: .phase, name, budget, policy, order, fill}' 2 "$now" &&
		is heard "$spawned" 'select(.event == "phase-del") | {id: .phase, name, budget, policy, order, fill}' 2 "$now"
}
try "phases are set and deleted" phases

# ends NS: what the one connection there is called
ends()
{
	json "$1" 'map(select(.state == "established")) | .[0] |
		{socket: .id, local_addr, local_port, local_scope, peer_addr, peer_port, peer_scope}' \
		socket list
}

server()
{
	spawn ip netns exec "$b" dblp-peer set cap 1000000 listen fd09::2 7000 say listening "$@"
	wait_until 10 output_has "$spawned" listening
}

connection()
{
	local here there

	monitor "$a" -j monitor conn phase && here=$spawned && monitor "$b" -j monitor conn phase && there=$spawned &&
		server accept say accepted drain &&
		spawn ip netns exec "$a" dblp-peer connect fd09::2 7000 say connected await "$tmp/stop" &&
		wait_until 10 output_has "$spawned" connected || return
	is heard "$here" 'select(.event == "conn-begin") | del(.event)' 1 "$(ends "$a")" &&
		is heard "$there" 'select(.event == "conn-begin") | del(.event)' 1 "$(ends "$b")" || return
	touch "$tmp/stop"
	is heard "$here" 'select(.event == "conn-end") | [.state, .error]' 2 '["closing","none"]' &&
		is heard "$there" 'select(.event == "conn-end") | [.peer_addr, .error]' 2 '["fd09::1","none"]'
}
try "a connection begins and ends, at both ends" connection

refusal()
{
	monitor "$a" -j monitor conn phase &&
		in_ns "$a" dblp-peer fails ECONNREFUSED connect fd09::2 7009 &&
		is heard "$spawned" '[.event, .peer_addr, .peer_port, .state, .error]' 1 \
			'["conn-end","fd09::2",7009,"init-sent","ECONNREFUSED"]'
}
try "a connection that is refused" refusal

# What is missing in all of them is what the socket counts, and no more than half
messages()
{
	local pid sum

	monitor "$b" -j monitor msg phase && pid=$spawned && server accept recv 3 say received pause &&
		in_ns "$a" dblp-peer set budget 500000 connect fd09::2 7000 send 3 100000 &&
		wait_until 10 output_has "$spawned" received &&
		sum=$(json "$b" 'map(select(.msgs_received)) | .[0] |
			[.id, .msgs_received_budget, .bytes_missing]' socket list) &&
		is heard "$pid" '[.event, .msg_id, .tag, .length, .budget, .reason, .missing > 0 and .missing <= 50000]' 3 \
'["msg-closed",0,"0",100000,500000,"budget",true]
["msg-closed",1,"0",100000,500000,"budget",true]
["msg-closed",2,"0",100000,500000,"budget",true]' &&
		heard "$pid" . 3 > "$tmp/messages" &&
		is jq -s -c '[.[0].socket, length, (map(.missing) | add)]' "$tmp/messages" "$sum"
}
try "messages that are closed with bytes missing" messages

# Ten times as long under way as it may be
deadline()
{
	local pid sum

	netem "$a" rate 8mbit && monitor "$b" -j monitor msg phase && pid=$spawned &&
		server accept recv 1 say received pause &&
		in_ns "$a" dblp-peer set deadline 100000 tag 18446744073709551615 connect fd09::2 7000 \
			send 1 1000000 &&
		wait_until 10 output_has "$spawned" received &&
		sum=$(json "$b" 'map(select(.msgs_received_deadline)) | .[0] | [.id, .bytes_missing]' socket list) &&
		is heard "$pid" '[.tag, .length, .budget, .reason, .missing > 500000]' 1 \
			'["18446744073709551615",1000000,0,"deadline",true]' &&
		is heard "$pid" '[.socket, .missing]' 1 "$sum"
}

# One event, with what all of its pieces lack
in_pieces()
{
	local pid sum

	monitor "$b" -j monitor msg phase && pid=$spawned && server accept recv 2 say received pause &&
		in_ns "$a" dblp-peer set sndbuf 100000 set budget 500000 connect fd09::2 7000 send 2 1000000 &&
		wait_until 10 output_has "$spawned" received &&
		sum=$(json "$b" 'map(select(.msgs_received)) | .[0] | .bytes_missing' socket list) &&
		is heard "$pid" '[.msg_id, .length, .budget, .reason]' 2 '[0,1000000,500000,"budget"]
[1,1000000,500000,"budget"]' &&
		heard "$pid" .missing 2 > "$tmp/messages" && is jq -s add "$tmp/messages" "$sum"
}
try "a message in pieces" in_pieces
try "a message whose deadline has passed" deadline
tc -n "$a" qdisc del dev eth0 root

kinds()
{
	monitor "$a" -j monitor phase job && ctl "$a" job add 7 &&
		in_ns "$a" dblp-peer fails ECONNREFUSED connect fd09::2 7009 &&
		ctl "$a" job del 7 && is heard "$spawned" .event 2 '"job-add"
"job-del"'
}
try "those kinds that are asked for" kinds

# What another namespace hears first is its own
elsewhere()
{
	monitor "$c" -j monitor && ctl "$a" job add 7 && ctl "$a" job del 7 && ctl "$c" job add 9 &&
		is heard "$spawned" .job 1 9
}
try "nothing of another namespace" elsewhere

# Without the time and numbers that the kernel chose
same_each_time()
{
	cut -d ' ' -f 2- "$1" | sed -E 's/(socket) 0x[0-9a-f]+/\1 N/; s/(local [^ ]*:)[0-9]+/\1P/'
}

lines()
{
	monitor "$a" -t monitor && ctl "$a" job add 7 name resnet phase critical clr on &&
		in_ns "$a" dblp-peer set job 7 norm 6442450944 norm 6442450944 && ctl "$a" job del 7 &&
		in_ns "$a" dblp-peer fails ECONNREFUSED connect fd09::2 7009 &&
		wait_until 10 grep -q ECONNREFUSED "$tmp/out.$spawned" || return
	diag < "$tmp/out.$spawned"
	grep -v tuning "$tmp/out.$spawned" > "$tmp/lines"
	fails grep -v -E '^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]{6}[+-][0-9]{4} ' "$tmp/lines" &&
		is same_each_time "$tmp/lines" \
'job-add job 7 phase 1 name resnet
job-phase job 7 from 1 phase 2 name resnet by detector norm 1.5 previous 1.5 change 0 eta 0.5
job-del job 7 phase 2 name resnet
conn-end socket N local [fd09::1]:P peer [fd09::2]:7009 state init-sent error ECONNREFUSED'
}
try "a line for each, with the time" lines

# When it has said that events were lost, its queue may still be full
heard_again()
{
	ctl "$a" job add 7 && ctl "$a" job del 7 && grep -q job-add "$tmp/out.$spawned"
}

# While the monitor stands still, more happens than its queue takes
overflow()
{
	local i

	for ((i = 0; i < 4000; i++)); do
		echo "phase set 7 loss ${i}ppm"
	done > "$tmp/many"
	monitor "$a" -j monitor && kill -STOP "$spawned" && ctl "$a" -b "$tmp/many" &&
		kill -CONT "$spawned" && wait_until 10 grep -q -x '{"event":"lost"}' "$tmp/out.$spawned" &&
		wait_until 10 heard_again
}
try "events that are lost are not lost in silence" overflow

completion()
{
	load_completion "$a" || return
	is completes 'dblpctl mon' monitor && is completes 'dblpctl monitor ' 'conn msg job phase' &&
		is completes 'dblpctl monitor job p' phase
}
try "completion" completion
try "nobody listens" refused 1 "no permission: this needs CAP_NET_ADMIN in the network namespace (sudo)" \
	in_ns "$a" "${nobody[@]}" dblpctl monitor
try "a kind that there is not" refused 2 "'x' is not conn, msg, job or phase" ctl "$a" monitor job x

done_testing
