#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Documentation/examples/dblp.service: when systemd runs it, and what it runs.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../lib/lib.sh"
top=$here/../..
unit=$top/Documentation/examples/dblp.service

# conditions STATUS WORD...: of the unit, for $tmp/batch
conditions()
{
	local lines

	mapfile -t lines < <(grep -E '^(Condition|Assert)' "$unit" | sed "s,/etc/dblp.batch,$tmp/batch,")
	systemd-analyze condition "${lines[@]}" > "$tmp/said" 2>&1
	[ $? -eq "$1" ] && grep -q -x "$2" "$tmp/said" && grep -q -x "$3" "$tmp/said"
	local status=$?
	cat "$tmp/said"
	return "$status"
}

try "without a file it is left out" conditions 1 'Conditions failed.' 'Asserts failed.'
empty()
{
	: > "$tmp/batch" && conditions 1 'Asserts failed.' 'Conditions succeeded.'
}
try "an empty file is an error" empty
some()
{
	echo begin > "$tmp/batch" && conditions 0 'Asserts succeeded.' 'Conditions succeeded.'
}
try "it runs with a file that has something" some

# Its command, of what make installs
refuses()
{
	local words

	make -s -C "$top/tools/dblpctl" install DESTDIR="$tmp/root" > /dev/null &&
		read -ra words < <(sed -n 's/^ExecStart=//p' "$unit" | sed "s,/etc/dblp.batch,$tmp/batch,") &&
		fails "$tmp/root${words[0]}" "${words[@]:1}" 2> "$tmp/said" && cat "$tmp/said" &&
		grep -q "does not end with 'complete'.* nothing is done" "$tmp/said"
}
try "its command is installed there, and refuses a file that was cut off" refuses

done_testing
