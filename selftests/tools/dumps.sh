#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What dblpctl makes of dumps of very many objects, and of those amid which
# something changes.

# shellcheck disable=SC2154,SC2317 # new_ns sets it; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

new_ns a
between=$built/dump-between.so

# add FROM TO: jobs
add()
{
	seq "$1" "$2" | sed 's/^/job add /' | ctl "$a" -b -
}

# torn TIMES ARG...: dblpctl, while another job comes amid each of its first
# dumps, TIMES of them. Jobs come at the end, each counts
torn()
{
	local next=$(($(ctl "$a" -j job list | jq 'map(.id) | max') + 1))

	echo "$next" > "$tmp/next"
	# shellcheck disable=SC2016 # for the shell that it starts
	in_ns "$a" env LD_PRELOAD="$between" TIMES="$1" NEXT="$tmp/next" \
		BETWEEN='read -r n < $NEXT; echo $((n + 1)) > $NEXT; dblpctl job add $n' \
		dblpctl "${@:2}" 2> "$tmp/err"
}

count()
{
	ctl "$a" -j job list | jq length
}

whole()
{
	add 1 1000 && is torn 0 job show 1 "$(ctl "$a" job show 1)" &&
		is json "$a" 'map(.id) == [range(1; 1001)]' job list true && [ ! -s "$tmp/err" ]
}
try "a list takes several parts" whole

again()
{
	local n

	for n in 1 9; do
		torn "$n" -j job list > "$tmp/list" && [ ! -s "$tmp/err" ] || return
		is count "$(jq length "$tmp/list")" && is jq -c 'map(.id) == [range(1; length + 1)]' "$tmp/list" true ||
			return
	done
	is count 1010
}
try "a list that is torn is asked for again" again

given_up()
{
	torn 1000 -j job list > "$tmp/list" || return
	is cat "$tmp/err" "dblpctl: the list changed whenever it was read and may be inconsistent: try again" &&
		is count 1020 && is jq -c 'map(.id)[0:1019] == [range(1; 1020)]' "$tmp/list" true
}
try "ten times, then it says so" given_up

# The name is of the last one, which comes late
named()
{
	ctl "$a" job set 1020 name late && is torn 1 -j job show late "$(ctl "$a" -j job show 1020)"
}
try "a name is looked for in a list that is whole" named

flushed()
{
	ctl "$a" job flush && is count 0
}
try "all of them go" flushed

# milliseconds COMMAND...
milliseconds()
{
	local before=${EPOCHREALTIME/./}

	"$@" && echo $(((${EPOCHREALTIME/./} - before) / 1000))
}

list_ids()
{
	ctl "$a" job list > "$tmp/list"
}

many()
{
	local few many

	add 1 10000 && few=$(milliseconds list_ids) && add 10001 100000 && many=$(milliseconds list_ids) || return
	echo "10000 jobs: $few ms, 100000 jobs: $many ms"
	awk 'NR > 1 { print $1 }' "$tmp/list" | cmp - <(seq 100000) && [ "$many" -lt $((30 * few)) ]
}
try "a list of 100000" many

done_testing
