#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# selftests/demo/plot: it plots the logs that are there, and says why it cannot.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../lib/lib.sh"
plot=$here/../demo/plot

# log FILE NAME: a run of 20 rounds with a burst in two of them
log()
{
	local i event

	printf 'dblp-train log 2\nname %s\nsetup dblp 3 100 192 4.5\n' "$2"
	for ((i = 1; i <= 20; i++)); do
		event=-
		((i % 8)) || event=burst
		echo "round $i fixed 8000 8000 8000 $((100000 + i)) 1000 $((i * 10)) 0.5 $((5 - i / 10)).5 0 $event"
	done
	echo 'end 2.5'
} > "$1"

# Three panels with a curve for each log, named as the log says, and the two bursts
plots()
{
	mkdir "$tmp/a b" && log "$tmp/a b/tcp" TCP && log "$tmp/a b/phases" "DBLP phases" &&
		"$plot" "$tmp/a b" && [ "$(ls "$tmp/a b")" = $'phases\nrounds.svg\ntcp' ] || return
	grep -q '</svg>' "$tmp/a b/rounds.svg" &&
		[ "$(grep -c '<title>TCP</title>' "$tmp/a b/rounds.svg")" -eq 3 ] &&
		[ "$(grep -c '<title>DBLP phases</title>' "$tmp/a b/rounds.svg")" -eq 3 ] &&
		[ "$(grep -c "190, 190, 190)'[^>]* d='M[^M]*M[^M]*'" "$tmp/a b/rounds.svg")" -eq 3 ]
}
try "the logs that are there are plotted, by their names" plots

same()
{
	cp "$tmp/a b/rounds.svg" "$tmp/first" && "$plot" "$tmp/a b" && cmp "$tmp/first" "$tmp/a b/rounds.svg"
}
try "the same logs give the same plot" same

# says STATUS TEXT COMMAND...
says()
{
	local status=$1 text=$2
	shift 2

	"$@" > "$tmp/said" 2>&1
	[ $? -eq "$status" ] && grep -q -F -e "$text" "$tmp/said" && return
	cat "$tmp/said"
	return 1
}

cannot()
{
	mkdir "$tmp/empty" "$tmp/bin" && ln -s "$(type -P bash)" "$(type -P dirname)" "$tmp/bin" || return
	says 1 "there are no logs of the demo in $tmp/empty" "$plot" "$tmp/empty" &&
		says 2 "unknown option '-x'" "$plot" -x && says 2 "one directory" "$plot" a b &&
		says 1 "No such file" "$plot" "$tmp/none" &&
		says 3 "apt-get install gnuplot-nox" env PATH="$tmp/bin" bash "$plot" "$tmp/a b" &&
		echo 'round 1 nonsense' > "$tmp/empty/tcp" && says 1 '' "$plot" "$tmp/empty" &&
		[ ! -e "$tmp/empty/rounds.svg" ]
}
try "without gnuplot, logs or a directory it says so, and leaves no plot" cannot

done_testing
