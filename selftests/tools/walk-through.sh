#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs the commands of Documentation/walk-through.rst, and writes their output to
# /out/walk-through/session, which Documentation/walk-through compares with the document.
# Statements about times are checked here.

# shellcheck disable=SC2154,SC2317 # new_ns sets them; functions are called by try
# shellcheck source=selftests/lib/path.sh
. "$(dirname "$(readlink -f "$0")")/../lib/path.sh"

[ "${DBLP_VIRTUAL_TIME:-0}" = 1 ] || skip_all "runs in virtual time"

session=/out/walk-through/session
mkdir -p "${session%/*}"
new_ns worker server
cable "$worker" eth0 "$server" eth0 1
netem "$worker" delay 5ms rate 100mbit && netem "$server" delay 5ms || exit 1
declare -A shown

# host TERMINAL: print the namespace of a terminal
host()
{
	case $1 in
	server|wire) echo "$server" ;;
	*) echo "$worker" ;;
	esac
}

# has_lines FILE COUNT: has the file at least COUNT lines?
has_lines()
{
	[ "$(wc -l < "$1")" -ge "$2" ]
}

# look TERMINAL COUNT: print the new output of a terminal, which has COUNT lines in the document.
# If it has fewer, print these.
look()
{
	local appeared=$tmp/$1 already=${shown[$1]:-0}

	wait_until 20 has_lines "$appeared" $((already + $2))
	shown[$1]=$(wc -l < "$appeared")
	tail -n +$((already + 1)) "$appeared"
}

# ready TERMINAL PID: has the command ended, or reached the state in which it waits?
ready()
{
	[ -e "/proc/$2" ] || return 0
	case $1 in
	server) in_list "$server" '.[0].state == "listen"' ;;
	worker) in_list "$worker" '.[0].bytes_first | tonumber > 10000000' ;;
	monitor) ip netns exec "$worker" grep -q -E '^[0-9a-f]+ 16 +[0-9]+ +0*[1-9a-f]' /proc/net/netlink ;;
	wire) [ "$(ip netns exec "$server" cat /proc/net/packet | wc -l)" -gt 1 ] ;;
	*) return 1 ;;
	esac
}

# in_list NS CONDITION: does a socket of the list meet the condition?
in_list()
{
	ip netns exec "$1" dblpctl -j socket list | jq -e "$2"
}

# of_the_job: messages in flight when the socket got the job are settled, and some more
of_the_job()
{
	ip netns exec "$worker" dblpctl -j job stats 7 |
		jq -e 'any(.phase == 1 and (.messages | tonumber) >= 3)'
}

# type_at TERMINAL COMMAND: run a command, and wait until it is ready
type_at()
{
	[ "$1" != wire ] || wait_until 20 of_the_job || return
	if [ "$1" = operator ]; then
		ip netns exec "$(host "$1")" bash -c "$2" 2>&1
		return 0
	fi
	ip netns exec "$(host "$1")" bash -c "exec < /dev/null; $2" >> "$tmp/$1" 2>&1 &
	standing+=($!)
	wait_until 20 ready "$1" $!
}

all_typed()
{
	local line

	while IFS= read -r line; do
		case $line in
		'['*)
			echo "${line% *}"
			line=${line#[}
			look "${line%]*}" "${line##* }"
			;;
		*)
			echo "$line"
			type_at "${line%%[\$#]*}" "${line#*[\$#] }"
			;;
		esac || return
	done < "$built/walk-through" > "$session"
	cat "$tmp/server" "$tmp/worker"
	[ ! -s "$tmp/server" ] && [ ! -s "$tmp/worker" ]
}
standing=()
try "all commands run" all_typed
all_pids=("${standing[@]}")

# micros TIME: print a time of day in microseconds
micros()
{
	sed -E 's/.*T0*([0-9]+):0*([0-9]+):0*([0-9]+)\.([0-9]{6}).*/((\1*60+\2)*60+\3)*1000000+1\4-1000000/' \
		<<< "$1"
}

# Print the longest round trip in socket list, in microseconds
round_trip()
{
	awk '$2 == "established" && $9 ~ /^[0-9.]+ms$/ { rtt = $9 * 1000; if (rtt > most) most = rtt }
		END { print most + 0 }' "$session"
}

# The first new budget arrives at the server within a round trip of the change
at_once()
{
	local changed told rtt

	grep -m 1 'job-phase.*by operator' "$session" | tee "$tmp/changed"
	grep -m 1 'in .* BUDGET' "$session" | tee "$tmp/told"
	changed=$(micros "$(cat "$tmp/changed")") told=$(micros "$(cat "$tmp/told")")
	rtt=$(round_trip)
	echo "$((told - changed)) us, a round trip has $rtt"
	[ $((told - changed)) -ge 5000 ] && [ $((told - changed)) -le "$rtt" ]
}
try "a new budget arrives within a round trip" at_once

done_testing
