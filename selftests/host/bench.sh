#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# lab/bench/run and lab/experiments/run: existing files are neither removed nor
# mixed with results, and missing measurements are reported.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../lib/lib.sh"

# There is no kernel 0, so nothing is built or booted
keeps()
{
	local dir=$tmp/kept status

	mkdir -p "$dir" && echo precious > "$dir/$2" || return
	"$here/../../lab/$1/run" --kernel 0 --out "$dir" > "$tmp/said" 2>&1
	status=$?
	cat "$tmp/said"
	[ "$status" -eq 2 ] && grep -q "is not empty" "$tmp/said" && [ "$(cat "$dir/$2")" = precious ] &&
		[ "$(ls -A "$dir")" = "$2" ] && rm -r "$dir"
}

# refuses NAME TEXT ARGUMENT...: the script refuses these arguments with TEXT
refuses()
{
	local name=$1 text=$2 status
	shift 2

	"$here/../../lab/$name/run" --kernel 0 --out "$tmp/none" "$@" > "$tmp/said" 2>&1
	status=$?
	cat "$tmp/said"
	[ "$status" -eq 2 ] && grep -q -e "$text" "$tmp/said" && [ ! -e "$tmp/none" ]
}

# complains NAME BOOT PAGE: the reason of a failed boot is in the page, the table and the status
complains()
{
	local name=$1 dir=$tmp/complains boot=$2 page=$3 status

	mkdir -p "$dir/$boot-seed-1" && echo "it broke" > "$dir/$boot-seed-1/failed" || return
	python3 "$here/../../lab/$name/report.py" --kernel x --commit x --seeds 1 --notes "$here/../../lab/$name/notes" \
		--template "$here/../../lab/$name/results.in" --out "$dir" "${boot%%-*}" > "$tmp/said"
	status=$?
	cat "$tmp/said"
	[ "$status" -eq 1 ] && grep -q "$boot-seed-1: it broke" "$dir/$page.md" "$tmp/said" &&
		jq -e 'any(.value == null and (.met | not))' "$dir/$page.json" > /dev/null && rm -r "$dir"
}

for name in bench experiments; do
	try "$name --out: a directory with files is refused, and they stay" keeps $name thesis
	try "$name --out: hidden files are files" keeps $name .git
	try "$name: an unknown scenario is refused" refuses $name "no scenario 'nonsense'" nonsense
	try "$name: an invalid seed is refused" refuses $name "--seed takes a number" --seed 0x
done
try "bench: failures are reported" complains bench loss transport
try "experiments: failures are reported" complains experiments ltp-1 experiments
for boot in train_dblp-3 train_racks-24-1 train_rules-bubble dfs-1; do
	try "experiments: failures are reported, $boot" complains experiments $boot experiments
done

done_testing
