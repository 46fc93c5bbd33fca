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
# dumps, TIMES of them, or what else change does. Jobs come at the end, each counts
# shellcheck disable=SC2016 # for the shell that runs it
change='dblpctl job add $n'
torn()
{
	local next=$(($(ctl "$a" -j job list | jq 'map(.id) | max') + 1))

	echo "$next" > "$tmp/next"
	# shellcheck disable=SC2016 # for the shell that it starts
	in_ns "$a" env LD_PRELOAD="$between" TIMES="$1" NEXT="$tmp/next" \
		BETWEEN='read -r n < $NEXT; echo $((n + 1)) > $NEXT; '"$change" \
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

# Ten dumps of jobs, and one of the names of their phases
given_up()
{
	local status

	torn 1000 -j job list > "$tmp/list"
	status=$?
	is echo "$status" 3 || return
	is cat "$tmp/err" "dblpctl: the list changed whenever it was read and may be inconsistent: try again" &&
		is count 1021 && is jq -c 'map(.id)[0:1019] == [range(1; 1020)]' "$tmp/list" true &&
		is jq -c 'map(.phase_name) | unique' "$tmp/list" '["reliable"]'
}
try "ten times, then it says so, and ends in a status of its own" given_up

# What changes all the time is neither saved nor taken for all there is
given_up_elsewhere()
{
	local status

	echo precious > "$tmp/kept"
	torn 1000 save "$tmp/kept"
	status=$?
	is echo "$status" 3 && is cat "$tmp/kept" precious || return
	torn 1000 job show nosuch
	status=$?
	is echo "$status" 3
}

# No list changes, but something else each time
between_lists()
{
	# shellcheck disable=SC2016 # for the shell that runs it
	local status change='dblpctl param set cap ${n}ppm'

	torn 1 save "$tmp/saved" && is cat "$tmp/saved" "$(ctl "$a" save)" && torn 1000 save "$tmp/kept"
	status=$?
	is echo "$status" 3 && is cat "$tmp/kept" precious &&
		is cat "$tmp/err" "dblpctl: what is to be saved changes all the time: try again"
}
try "a name that is looked for, and what is to be saved" given_up_elsewhere
try "what changes between the lists that are saved" between_lists

# changing FROM: save, while a job changes amid each dump of phases, so that no two readings
# are the same; from dump number FROM on, amid each dump
changing()
{
	echo 0 > "$tmp/n"
	# shellcheck disable=SC2016 # for the shell that it starts
	in_ns "$a" env LD_PRELOAD="$between" TIMES=1000 N="$tmp/n" FROM="$1" \
		BETWEEN='read -r n < $N; n=$((n + 1)); echo $n > $N
			[ $((n % 2)) -eq 0 ] && [ $n -lt $FROM ] || dblpctl job replace 1 name n$n' \
		dblpctl save "$tmp/kept" 2> "$tmp/err"
}

never_the_same()
{
	local status

	changing 1000
	status=$?
	is echo "$status" 3 && is cat "$tmp/err" "dblpctl: what is to be saved changes all the time: try again" || return
	# The jobs of the eleventh and last reading
	changing 22
	status=$?
	is echo "$status" 3 && is cat "$tmp/kept" precious &&
		is cat "$tmp/err" "dblpctl: the list changed whenever it was read and may be inconsistent: try again"
}
try "what is never the same, and what fails at last" never_the_same

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
	awk 'NR > 1 { print $1 }' "$tmp/list" | cmp - <(seq 100000) || return
	# A busy machine may be busier in the one than in the other
	[ "${DBLP_VIRTUAL_TIME:-0}" = 0 ] || [ "$many" -lt $((30 * few)) ]
}
try "a list of 100000" many

done_testing
