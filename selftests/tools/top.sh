#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblpctl top: what it says of jobs whose traffic is known, to whom, and what it does to
# a terminal. How rates come from counts is tested in tools/dblpctl/units-test.c.

# shellcheck disable=SC2016,SC2154,SC2317 # for awk; new_ns sets them; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

needs socat
new_ns a b c
join "$a" "$b"

nothing()
{
	is ctl "$a" -j top -i 10ms '[]' && is ctl "$a" -j top -i 10ms -c 2 $'[]\n[]' &&
		is ctl "$a" top -i 10ms -c 2 $'no jobs and no sockets\n\nno jobs and no sockets'
}
try "no job, no socket" nothing

# The sockets of the rest: in job 7 one that sends and loses, and at the other end of it one
# in job 8; nobody's, in root's job 9, and one without a job
setup()
{
	spawn ip netns exec "$b" dblp-peer set cap 1000000 listen 10.9.0.2 7000 accept drain
	spawn ip netns exec "$b" dblp-peer set cap 1000000 listen 10.9.0.2 7001 accept drain
	for port in 7000 7001; do
		wait_until 10 has_sockets "$b" ".local_port == $port" 1 || return
	done
	spawn ip netns exec "$a" dblp-peer connect 10.9.0.2 7000 await "$tmp/go" send 40 250000 say sent pause
	sender=$spawned
	spawn ip netns exec "$a" "${nobody[@]}" dblp-peer connect 10.9.0.2 7001 say connected pause
	wait_until 10 output_has "$spawned" connected || return
	spawn ip netns exec "$a" dblp-peer bind 10.9.0.1 7002 say bound pause
	wait_until 10 output_has "$spawned" bound && wait_until 10 has_sockets "$a" '.peer_port == 7000' 1 &&
		wait_until 10 has_sockets "$b" '.state == "established"' 2 &&
		ctl "$a" job add 7 name resnet phase tolerant && ctl "$a" job add 9 && ctl "$a" job add 3 name idle phase critical &&
		ctl "$b" job add 8 name sums &&
		ctl "$a" socket set "$(id_of "$a" '.peer_port == 7000')" job 7 &&
		ctl "$a" socket set "$(id_of "$a" '.peer_port == 7001')" job 9 &&
		ctl "$b" socket set "$(id_of "$b" '.local_port == 7000')" job 8
}

# has_sockets NS CONDITION N
has_sockets()
{
	ctl "$1" -j socket list | jq -e "map(select($2)) | length == $3"
}

# id_of NS CONDITION
id_of()
{
	ctl "$1" -j socket list | jq -e ".[] | select($2) | .id"
}

setup || { diag < "$tmp/out.$spawned"; exit 1; }
# They stay for all tests, not for the next one only.
standing=("${all_pids[@]}")
all_pids=()
trap 'all_pids+=("${standing[@]}"); cleanup' EXIT

# Each block has all jobs, the busiest first; none goes at rest
at_rest()
{
	ctl "$a" -j top -i 10ms > "$tmp/top" && cat "$tmp/top" &&
		jq -c '.[]' "$tmp/top" | typed top &&
		is jq -c 'map([.job, .name, .phase, .phase_name, .sockets])' "$tmp/top" \
			'[[3,"idle",1,"critical",0],[7,"resnet",2,"tolerant",1],[9,"",0,"reliable",1],[0,"",null,null,1]]' &&
		is jq -c 'map([.asked, .delivered, .forgiven, .received, .missing]) | add | unique' "$tmp/top" '[0]' &&
		is jq -r '.[0] | keys_unsorted | join(" ")' "$tmp/top" \
			"job name phase phase_name asked delivered forgiven srtt_us loss sockets received missing" &&
		is jq -r '.[3] | keys_unsorted | join(" ")' "$tmp/top" \
			"job name asked delivered forgiven srtt_us loss sockets received missing"
}
try "jobs at rest, and sockets without one last" at_rest

# over FILE JOB FILTER: what jq makes of the blocks about it
over()
{
	jq -s -e "map(.[] | select(.job == $2)) | $3" "$1"
}

# Two looks at least before it begins, and until nothing goes any more
traffic()
{
	local here there sums

	spawn ip netns exec "$a" dblpctl -j top -i 2s -c 1000
	here=$tmp/out.$spawned
	spawn ip netns exec "$b" dblpctl -j top -i 2s -c 1000
	there=$tmp/out.$spawned
	wait_until 30 over "$here" 7 'length > 0' && wait_until 30 over "$there" 8 'length > 0' || return
	: > "$tmp/go"
	wait_until 30 output_has "$sender" sent || return
	wait_until 30 over "$here" 7 'any(.asked > 0) and last.asked == 0' &&
		wait_until 30 over "$there" 8 'any(.received > 0) and last.received == 0' || return
	cat "$here" "$there"
	sums=$(json "$a" '[.bytes_delivered, .bytes_forgiven_unsent + .bytes_forgiven_sent]' \
		socket show "$(id_of "$a" '.peer_port == 7000')") || return
	echo "sent: $sums"
	# How long an interval really was remains with the machine, but not for its shares
	over "$here" 7 "(map(.asked) | add) * 2 / ($sums | add) | . > 0.6 and . < 1.4" &&
		over "$here" 7 "(map(.forgiven) | add) * 2 / ${sums}[1] | . > 0.6 and . < 1.4" &&
		over "$here" 7 'all(.asked - .delivered - .forgiven | . >= -1 and . <= 1)' &&
		over "$here" 7 'map(select(.asked > 0)) | all(.srtt_us > 0 and .received == 0 and .loss <= 1000000)' &&
		over "$here" 7 'last | .srtt_us == 0 and .loss == 0' &&
		over "$there" 8 "(map(.received) | add) * 2 / 10000000 | . > 0.6 and . < 1.4" &&
		over "$there" 8 'all(.asked == 0 and .missing <= .received) and any(.missing > 0)' &&
		over "$here" 0 'all(.asked == 0)' && over "$here" 9 'all(.asked == 0)' &&
		jq -s -e 'map(select(any(.asked > 0))) | all(.[0].job == 7 and last.job == 0)' "$here"
}
try "rates of what a job sends, and of what one receives" traffic

# No count goes back, whoever comes and goes, and no socket that was there before comes anew
come_and_go()
{
	local top n

	spawn ip netns exec "$a" dblpctl -j top -i 100ms -c 1000
	top=$tmp/out.$spawned
	spawn ip netns exec "$b" dblp-peer listen 10.9.0.2 7003 pause
	wait_until 10 over "$top" 7 'length > 0' || return
	for n in {1..10}; do
		in_ns "$a" dblp-peer set job 3 connect 10.9.0.2 7003 send 1 100000 sleep 30 || return
	done
	# Those may all have lived between two looks; this one stays until it was seen
	spawn ip netns exec "$a" dblp-peer set job 3 connect 10.9.0.2 7003 send 1 100000 await "$tmp/seen"
	wait_until 10 over "$top" 3 'last.sockets > 0' || return
	: > "$tmp/seen"
	wait_until 10 over "$top" 3 'last.sockets == 0' || return
	over "$top" 7 'all(.asked == 0)' &&
		jq -s -e 'all(.[][]; [.asked, .delivered, .forgiven] | all(. >= 0 and . < 1000000000))' "$top"
}
try "sockets that come and go" come_and_go

# Its own sockets, with the number of a job that it does not see
nobody_looks()
{
	in_ns "$a" "${nobody[@]}" dblpctl -j top -i 10ms > "$tmp/top" && jq -c '.[]' "$tmp/top" | typed top &&
		is jq -c 'map([.job, .name, .phase, .sockets])' "$tmp/top" '[[9,"",null,1]]' &&
		in_ns "$a" "${nobody[@]}" dblpctl top -i 10ms -c 1 > "$tmp/top" && diag < "$tmp/top" &&
		is awk 'NR == 2 { print $1, $2, $3 }' "$tmp/top" '9 - 0'
}
try "nobody sees its own sockets" nobody_looks

text()
{
	ctl "$a" -t top -i 10ms -c 2 > "$tmp/top" || return
	diag < "$tmp/top"
	[ "$(grep -c '^time  *20[0-9-]*T' "$tmp/top")" -eq 2 ] && [ "$(grep -c '^$' "$tmp/top")" -eq 1 ] &&
		is eval "xargs < <(sed -n 2p '$tmp/top')" \
			'JOB NAME PHASE ASKED DELIVERED FORGIVEN RTT LOSS SOCKETS RECEIVED MISSING' &&
		grep -q -x -E ' *7  resnet  2 \(tolerant\)  +0 +0 +0 +- +- +1 +0 +0' "$tmp/top" &&
		is awk '{ print $1 }' <(sed -n '3,6p' "$tmp/top") $'3\n7\n9\nnone' &&
		fails grep -n $'\e' "$tmp/top"
}
try "as text, one table after the other" text

# on_terminal ARG...: dblpctl top on one of 40 columns and 10 rows, which gets what is typed on
# the standard input. Its modes, before and after, in $tmp/modes
on_terminal()
{
	cat > "$tmp/terminal" <<-END
		#!/bin/bash
		trap : INT
		stty cols 40 rows 10 && stty -g > $tmp/modes
		nsenter --net=/run/netns/$c dblpctl top $*
		echo \$? > $tmp/status
		stty -g >> $tmp/modes
	END
	chmod +x "$tmp/terminal" && socat -t 30 - "EXEC:$tmp/terminal,pty,setsid,ctty" | tr -d '\r' > "$tmp/screen"
}

# Lines that are longer would wrap, and more of them scroll
fits()
{
	seq 1 20 | sed 's/^/job add /' | ctl "$c" -b - || return
	spawn ip netns exec "$c" dblp-peer bind ::1 7000 pause
	wait_until 10 has_sockets "$c" true 1 && on_terminal -i 10ms -c 2 < /dev/null || return
	cat -A "$tmp/screen"
	# What was on it is scrolled up once
	is cat "$tmp/status" 0 && [ "$(grep -c -x '' "$tmp/screen")" -eq 10 ] &&
		[ "$(grep -c $'^\e\\[H\e\\[J JOB  NAME' "$tmp/screen")" -eq 2 ] &&
		[ "$(sed $'s/\e.[HJ]//g' "$tmp/screen" | wc -L)" -eq 40 ] &&
		is eval "tail -n 8 '$tmp/screen' | awk '{ print \$1, \$2 }' | tail -n 7 | xargs" \
			'1 0 2 0 3 0 4 0 5 0 none - 15 more'
}
try "a terminal is filled, not more" fits

# Types Ctrl-C when it has been drawn
interrupt()
{
	wait_until 20 grep -q JOB "$tmp/screen"
	printf '\003'
	wait_until 20 [ -s "$tmp/status" ]
}

interrupted()
{
	rm -f "$tmp/status" "$tmp/screen"
	interrupt | on_terminal -i 10ms
	cat "$tmp/modes"
	# No mode of the terminal was left on, which escape sequences with a ? set
	is cat "$tmp/status" 130 && [ "$(wc -l < "$tmp/modes")" -eq 2 ] && [ "$(uniq "$tmp/modes" | wc -l)" -eq 1 ] &&
		fails grep -q $'\e\\[?' "$tmp/screen"
}
try "Ctrl-C ends it, and leaves the terminal as it was" interrupted

usage()
{
	refused 2 "'x' is one word too many" dblpctl top x && refused 2 "'0' is not a time above 0" dblpctl top -i 0 &&
		refused 2 "'-c' needs how many times" dblpctl top -i 1 -c && refused 2 "'x' is one word too many" dblpctl top help x
}
try "words that it does not know" usage

completion()
{
	load_completion "$a" && is completes 'dblpctl to' top && is completes 'dblpctl top ' '-i -c help' &&
		is completes 'dblpctl top -i ' 1 && is completes 'dblpctl top -i 1 ' -c
}
try "completion" completion

done_testing
