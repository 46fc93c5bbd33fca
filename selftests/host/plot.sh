#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# lab/demo: plot plots all existing logs, and reports errors; report.py.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../lib/lib.sh"
plot=$here/../../lab/demo/plot

# log FILE NAME: write the log of a run of 20 rounds, two of them with a burst
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

# Three panels with a curve for each log, with its name, and the two bursts
plots()
{
	mkdir "$tmp/a b" && log "$tmp/a b/tcp" TCP && log "$tmp/a b/phases" "DBLP phases" &&
		"$plot" "$tmp/a b" && [ "$(ls "$tmp/a b")" = $'phases\nrounds.svg\ntcp' ] || return
	grep -q '</svg>' "$tmp/a b/rounds.svg" &&
		[ "$(grep -c '<title>TCP</title>' "$tmp/a b/rounds.svg")" -eq 3 ] &&
		[ "$(grep -c '<title>DBLP phases</title>' "$tmp/a b/rounds.svg")" -eq 3 ] &&
		[ "$(grep -c "190, 190, 190)'[^>]* d='M[^M]*M[^M]*'" "$tmp/a b/rounds.svg")" -eq 3 ]
}
try "all existing logs are plotted, with their names" plots

# Logs without counts of bytes have no panel for them
plots_torch()
{
	mkdir "$tmp/torch" && log "$tmp/torch/dblp" DBLP && sed -i 's/ 1000 [0-9]* 0.5/ 0 0 0/' "$tmp/torch/dblp" &&
		"$plot" "$tmp/torch" && [ "$(grep -c '<title>DBLP</title>' "$tmp/torch/rounds.svg")" -eq 2 ]
}
try "logs of the demo with PyTorch are plotted, too" plots_torch

same()
{
	cp "$tmp/a b/rounds.svg" "$tmp/first" && "$plot" "$tmp/a b" && cmp "$tmp/first" "$tmp/a b/rounds.svg"
}
try "the same logs give the same plot" same

# says STATUS TEXT COMMAND...: the command ends with STATUS and prints TEXT
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
try "without gnuplot, logs or a directory the reason is printed, and no plot written" cannot

# ranks RUN MS REPLICA...: add the output of four ranks in ten rounds of MS, one of which takes ten
# times as long, of training $seed. Rank 1 begins its rounds earlier than the others.
ranks()
{
	local run=$1 ms=$2 rank i took seed=${seed:-1}

	shift 2
	for ((rank = 0; rank < 4; rank++)); do
		for ((i = 1; i <= 10; i++)); do
			took=$((i == 10 ? 10 * ms : ms))
			echo "[$rank] seed $seed round $i of 10: backward $((rank == 1 ? 3 * took : took)).500 ms until ${i}0000.5, loss 1.5"
		done
		echo "[$rank] seed $seed end: rank $rank of 4, 9 parameters, accuracy 0.5000, replica $((rank == 3 ? $2 : $1))"
	done >> "$tmp/report/$run.log"
}

# Quantiles are those of the slowest rank, and faults are reported
report()
{
	mkdir "$tmp/report" && ranks gloo-bbr 500 1 1 && ranks tcp-bbr 100 1 2 && ranks dblp 80 1 1 &&
		ranks fsdp 400 1 1 && seed=2 ranks fsdp 120 1 1 && seed=3 ranks fsdp 100 1 1 || return
	for ((rank = 0; rank < 3; rank++)); do
		echo "[$((rank == 2 ? 3 : rank))] rank $((rank ? 2 : 1)) has failed: Connection reset by peer"
	done >> "$tmp/report/dblp.log"
	/usr/bin/python3 "$here/../../lab/demo/report.py" "$tmp/report" > "$tmp/said" || return
	cat "$tmp/said"
	grep -q -x 'Gloo, bbr  *5 %  *10  *500.5  *500.5  *5000.5  *0.500  *equal' "$tmp/said" &&
		grep -q -x 'dblp-run --transport tcp:bbr .* DIFFER' "$tmp/said" &&
		grep -q '^p90 .* Gloo over bbr  *0.1608  *<= 0.2  met' "$tmp/said" &&
		grep -q -x 'FSDP2, dblp, nothing lost  *5 %  *10  *120.5  *120.5  *1200.5  *0.500  *equal' "$tmp/said" &&
		grep -q '^p90 .* FSDP2 .*  *0.2509  *<= 0.4  met .*dblp ms 100.5, Gloo ms 400.5$' "$tmp/said" &&
		grep -q '^p90 .* over tcp:bbr  *0.801  *<= 0.4  MISSED' "$tmp/said" &&
		grep -q '^trainings .* differ  *1  *<= 0  MISSED' "$tmp/said" &&
		grep -q '^ranks that name .*  *2  *>= 3  MISSED' "$tmp/said" &&
		jq -e 'map(select(.value and (.met | not)).name) == ["p90-tcp-bbr", "replicas", "killed"]' "$tmp/report/rows.json" &&
		"$plot" "$tmp/report"
}
try "the report of the demo with PyTorch: quantiles, and bars that are missed" report

done_testing
