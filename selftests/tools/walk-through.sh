#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Types what Documentation/walk-through.rst says, and leaves what is then to be
# seen in /out/walk-through/session. Documentation/walk-through compares the two.
# What is about time is checked here.

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

# host TERMINAL: the namespace that it is of
host()
{
	case $1 in
	server|wire) echo "$server" ;;
	*) echo "$worker" ;;
	esac
}

# has_lines FILE COUNT
has_lines()
{
	[ "$(wc -l < "$1")" -ge "$2" ]
}

# look TERMINAL COUNT: what has appeared there since, which the document says to be so
# many lines. If it is fewer, these are shown.
look()
{
	local appeared=$tmp/$1 already=${shown[$1]:-0}

	wait_until 20 has_lines "$appeared" $((already + $2))
	shown[$1]=$(wc -l < "$appeared")
	tail -n +$((already + 1)) "$appeared"
}

# ready TERMINAL PID: has the command there ended, or got to where it stays?
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

# in_list NS CONDITION
in_list()
{
	ip netns exec "$1" dblpctl -j socket list | jq -e "$2"
}

# of_the_job: what was on its way when the job got the socket is over, and some more
of_the_job()
{
	ip netns exec "$worker" dblpctl -j job stats 7 |
		jq -e 'any(.phase == 1 and (.messages | tonumber) >= 3)'
}

# type_at TERMINAL COMMAND: an operator waits until it ends
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
try "all of it is typed" all_typed
all_pids=("${standing[@]}")

# micros TIME: of a day, in microseconds
micros()
{
	sed -E 's/.*T0*([0-9]+):0*([0-9]+):0*([0-9]+)\.([0-9]{6}).*/((\1*60+\2)*60+\3)*1000000+1\4-1000000/' \
		<<< "$1"
}

# The longest round trip that the socket's list shows, in microseconds
round_trip()
{
	awk '$2 == "established" && $7 ~ /^[0-9.]+ms$/ { rtt = $7 * 1000; if (rtt > most) most = rtt }
		END { print most + 0 }' "$session"
}

# The first new budget comes to the server within a round trip of its change
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
try "a budget is told of within a round trip" at_once

done_testing
