#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblpctl monitor: provokes each event of the module, and compares its values with other output of
# dblpctl. The format of events is tested in host/dblpctl.py.

# shellcheck disable=SC2016,SC2154,SC2317 # for jq; new_ns sets them; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

new_ns a b c
join "$a" "$b"

# in_tune NS: has the monitor received an event that is provoked repeatedly?
in_tune()
{
	ctl "$1" phase set 7 name tuning && grep -q tuning "$tmp/out.$spawned"
}

# monitor NS ARG...: start a monitor and wait until it has subscribed
monitor()
{
	spawn nsenter --net="/run/netns/$1" dblpctl -j monitor "${@:2}"
	wait_until 10 in_tune "$1"
}

# heard PID FILTER N: wait for N events and filter them by jq
heard()
{
	wait_until 10 has_heard "$1" "$3" >&2 && jq -c 'select(.name != "tuning") | '"$2" "$tmp/out.$1"
}

has_heard()
{
	[ "$(grep -c -v '"name":"tuning"' "$tmp/out.$1")" -ge "$2" ]
}

# With eta 0.5, the third report, half of the norm before, is critical. Events have all 64 bits of
# norms, of which jq would keep only 53 in a number. Another namespace gets only its own events.
jobs_and_phases()
{
	local here

	monitor "$c" && local there=$spawned && monitor "$a" && here=$spawned &&
		ctl "$a" job add 7 phase critical name resnet && ctl "$a" job set 7 name vgg &&
		ctl "$a" job set 7 phase tolerant && ctl "$a" job del 7 && ctl "$a" job add 7 clr on low 1% &&
		in_ns "$a" dblp-peer set job 7 norm 18446744073709551614 norm 18446744073709551615 norm 9223372036854775807 &&
		ctl "$a" job del 7 && ctl "$a" phase set 5 name mine loss 2% close early order sequential fill keep &&
		ctl "$a" phase del mine && ctl "$c" job add 9 &&
		is heard "$here" . 9 '{"event":"job-add","job":7,"phase":1,"name":"resnet"}
{"event":"job-phase","job":7,"old_phase":1,"phase":2,"name":"vgg","by":"operator"}
{"event":"job-del","job":7,"phase":2,"name":"vgg"}
{"event":"job-add","job":7,"phase":1,"name":""}
{"event":"job-phase","job":7,"old_phase":1,"phase":2,"name":"","by":"detector","norm":"18446744073709551615","previous":"18446744073709551614","change":0,"eta":500000}
{"event":"job-phase","job":7,"old_phase":2,"phase":1,"name":"","by":"detector","norm":"9223372036854775807","previous":"18446744073709551615","change":500000,"eta":500000}
{"event":"job-del","job":7,"phase":1,"name":""}
{"event":"phase-set","phase":5,"name":"mine","budget":20000,"policy":"early","order":"sequential","fill":"keep"}
{"event":"phase-del","phase":5,"name":"mine","budget":20000,"policy":"early","order":"sequential","fill":"keep"}' &&
		is heard "$there" .job 1 9
}
try "events of jobs and phases, with actor and reason; each namespace gets only its own" jobs_and_phases

# ends NS: print number and addresses of the namespace's only connection
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

connections()
{
	local here there

	monitor "$a" conn phase && here=$spawned && monitor "$b" conn phase && there=$spawned &&
		server accept say accepted drain &&
		spawn ip netns exec "$a" dblp-peer connect fd09::2 7000 say connected await "$tmp/stop" &&
		wait_until 10 output_has "$spawned" connected || return
	is heard "$here" 'select(.event == "conn-begin") | del(.event)' 1 "$(ends "$a")" &&
		is heard "$there" 'select(.event == "conn-begin") | del(.event)' 1 "$(ends "$b")" || return
	touch "$tmp/stop"
	wait_until 10 has_heard "$here" 2 && in_ns "$a" dblp-peer fails ECONNREFUSED connect fd09::2 7009 &&
		is heard "$here" 'select(.event == "conn-end") | [.peer_addr, .peer_port, .state, .error]' 3 \
			'["fd09::2",7000,"closing","none"]
["fd09::2",7009,"init-sent","ECONNREFUSED"]' &&
		is heard "$there" 'select(.event == "conn-end") | [.peer_addr, .error]' 2 '["fd09::1","none"]'
}
try "events of a connection at both ends, and of a refused one" connections

# missing N SIZE OPTION...: close N messages with bytes missing; socket and missing bytes in the
# events must agree with socket list
missing()
{
	local pid n=$1 size=$2

	monitor "$b" msg phase && pid=$spawned && server accept recv "$n" say received pause &&
		in_ns "$a" dblp-peer "${@:3}" connect fd09::2 7000 send "$n" "$size" &&
		wait_until 10 output_has "$spawned" received && heard "$pid" . "$n" > "$tmp/messages" &&
		ctl "$b" -j socket list > "$tmp/sockets" && cat "$tmp/messages" &&
		is jq -s -c --slurpfile sockets "$tmp/sockets" '[([.[].socket] | unique), (map(.missing) | add), all(.missing > 0)] ==
			($sockets[0] | map(select(.msgs_received)) | [[.[0].id], .[0].bytes_missing, true])' "$tmp/messages" true
}

# of_them FILTER WANTED: compare other fields of these events
of_them()
{
	is jq -c "$1" "$tmp/messages" "$2"
}

messages()
{
	missing 3 100000 set budget 500000 && of_them '[.event, .msg_id, .tag, .length, .budget, .reason, .missing <= 50000]' \
'["msg-closed",0,"0",100000,500000,"budget",true]
["msg-closed",1,"0",100000,500000,"budget",true]
["msg-closed",2,"0",100000,500000,"budget",true]'
}

# One event, with the missing bytes of all pieces
in_pieces()
{
	missing 2 1000000 set sndbuf 100000 set budget 500000 && of_them '[.msg_id, .length, .budget, .reason]' \
		$'[0,1000000,500000,"budget"]\n[1,1000000,500000,"budget"]'
}

# The transfer would take ten times the deadline
deadline()
{
	netem "$a" rate 8mbit && missing 1 1000000 set deadline 100000 tag 18446744073709551615 &&
		of_them '[.tag, .length, .budget, .reason, .missing > 500000]' \
			'["18446744073709551615",1000000,0,"deadline",true]'
}
try "messages that are closed with bytes missing" messages
try "a message in pieces" in_pieces
try "a message whose deadline has passed" deadline

done_testing
