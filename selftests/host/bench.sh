#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# selftests/bench/run: nothing that is there already is removed or mixed with results.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../lib/lib.sh"

# No kernel is called 0, so that nothing is built or booted
keeps()
{
	local dir=$tmp/kept status

	mkdir -p "$dir" && echo precious > "$dir/$1" || return
	"$here/../bench/run" --kernel 0 --out "$dir" > "$tmp/said" 2>&1
	status=$?
	cat "$tmp/said"
	[ "$status" -eq 2 ] && grep -q "is not empty" "$tmp/said" && [ "$(cat "$dir/$1")" = precious ] &&
		[ "$(ls -A "$dir")" = "$1" ] && rm -r "$dir"
}
try "--out: a directory with files is refused, and they stay" keeps thesis
try "--out: hidden files are files" keeps .git

done_testing
