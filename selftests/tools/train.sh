#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblp-train(1): ranks end with the same parameters, over each transport and whatever
# was lost; a run goes on from its checkpoint as if nothing had been; the detector of a
# job hears of norms. A profile knows what a network can lose, and what that does.

# shellcheck disable=SC2154,SC2317 # new_ns sets them; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

new_ns a
ip -n "$a" link set lo mtu 1500 || exit 1
text=$(dirname "$(readlink -f "$0")")/../lib/lib.sh
# A ring adds in the same order each time
small=(--rounds 8 --batch 8 --context 4 --hidden 8 --plan ring)
port=7000

# train STATUS N OPTION...: N ranks that end with this status; rank I writes $tmp/I and
# $tmp/log.I. OPTIONs may override those of small
train()
{
	local status=$1 n=$2 i got pids=()
	shift 2

	port=$((port + 1))
	for ((i = 0; i < n; i++)); do
		in_ns "$a" timeout 30 dblp-train run "${small[@]}" --nranks "$n" --rank "$i" \
			--rendezvous "tcp://127.0.0.1:$port" --log "$tmp/log.$i" "$@" "$text" \
			> "$tmp/$i" 2>&1 &
		pids+=($!)
	done
	for ((i = 0; i < n; i++)); do
		wait "${pids[i]}"
		got=$?
		[ "$got" -eq "$status" ] && continue
		echo "rank $i: status $got instead of $status"
		cat "$tmp/$i"
		return 1
	done
}

# What rank 0 says of all replicas at the end
replica()
{
	sed -n 's/.* the same on all ranks: \([0-9a-f]\{16\}\)$/\1/p' "$tmp/0"
}

# says RANK TEXT
says()
{
	grep -q -F -e "$2" "$tmp/$1" && return
	echo "rank $1 does not say: $2"
	cat "$tmp/$1"
	return 1
}

# rounds LOG COLUMN: a column of the rounds in a log, by its number; the phase is 3
rounds()
{
	awk -v column="$2" '$1 == "round" { print $column }' "$tmp/$1"
}

# sum LOG COLUMN [AWK CONDITION]
sum()
{
	awk "\$1 == \"round\" && (${3:-1}) { sum += \$$2 } END { printf \"%.9g\\n\", sum }" "$tmp/$1"
}

over_both()
{
	local first

	train 0 3 --transport tcp --progress 100 && mv "$tmp/log.0" "$tmp/tcp" || return
	first=$(replica)
	[ -n "$first" ] && train 0 3 --transport dblp || return
	is replica "$first" && is rounds log.0 11 "$(rounds tcp 11)" && is grep ^end "$tmp/log.0" "$(grep ^end "$tmp/tcp")" &&
		[ "$(rounds log.0 1 | wc -l)" -eq 8 ]
}
try "without loss, dblp and tcp end with the same bits" over_both

# A server that contributes nothing, and other plans: sums may differ in their last bits
plans()
{
	local plan

	for plan in ps transpose tree bcube; do
		train 0 4 --plan "$plan" && [ -n "$(replica)" ] || return
	done
	train 0 4 --plan tree --fanin 3 --rule bubble --budget 1% --carry --wait-ms 20000 && [ -n "$(replica)" ] &&
		train 0 3 --rule rescale --budget 5% && [ -n "$(replica)" ] &&
		train 1 1 --plan ps && says 0 "needs 2 ranks"
}
try "each plan ends with the same replicas on all ranks" plans

# refuses REASON OPTION...: at once, as a wrong command line
refuses()
{
	dblp-train run --rank 0 --nranks 1 "${@:2}" "$text" > "$tmp/0" 2>&1
	[ $? -eq 2 ] && says 0 "$1"
}

contradictions()
{
	refuses "need --transport dblp" --transport tcp --budget 1% &&
		refuses "need --transport dblp" --transport tcp:reno --job 7 &&
		refuses "--transport is dblp, tcp or tcp:CC" --transport udp &&
		refuses "the job says what may be lost" --job 7 --budget 1% &&
		refuses "does not go with --budget" --phases 1%,2% --budget 1% &&
		refuses "--carry needs --budget" --carry &&
		refuses "LOW,HIGH" --phases 5% &&
		refuses "--plan is one of ps, transpose," --plan mesh &&
		refuses "--fanin needs --plan tree" --fanin 3 &&
		refuses "--levels needs --plan bcube" --levels 2 &&
		refuses "needs --rule rescale" --plan average --rule feedback &&
		refuses "are for gradients" --plan average --phases 1%,2% &&
		refuses "--resume needs --checkpoint" --resume &&
		refuses "--budget takes a number" --budget 101%
}
try "options that contradict each other are refused" contradictions

goes_on()
{
	local whole

	train 0 3 --checkpoint "$tmp/whole" --checkpoint-rounds 4 || return
	whole=$(replica)
	train 0 3 --checkpoint "$tmp/half" --checkpoint-rounds 4 --rounds 4 || return
	fails is replica "$whole" > /dev/null &&
		train 0 3 --checkpoint "$tmp/half" --checkpoint-rounds 4 --resume &&
		is replica "$whole" && cmp "$tmp/whole" "$tmp/half"
}
try "a run that goes on from a checkpoint has the bits of one that was not interrupted" goes_on

# refused_file REASON OPTION...: $tmp/bad, by rank 0, of which all hear, and the file stays
refused_file()
{
	local reason=$1
	shift

	cp "$tmp/bad" "$tmp/before"
	train 1 3 --rounds 12 --checkpoint "$tmp/bad" --resume "$@" && says 0 "$tmp/bad $reason" &&
		says 1 "rank 0 gave up" && says 2 "rank 0 gave up" && cmp "$tmp/bad" "$tmp/before"
}

damaged()
{
	head -c 3000 "$tmp/whole" > "$tmp/bad" && refused_file "is damaged: it has 3000 bytes" || return
	{ head -c 3000 "$tmp/whole"; tr '\0-\377' '\1-\377\0' < <(tail -c +3001 "$tmp/whole" | head -c 1)
		tail -c +3002 "$tmp/whole"; } > "$tmp/bad"
	[ "$(wc -c < "$tmp/bad")" -eq "$(wc -c < "$tmp/whole")" ] &&
		refused_file "is damaged: its digest is wrong" || return
	cp "$text" "$tmp/bad" && refused_file "is no checkpoint of this version" || return
	cp "$tmp/whole" "$tmp/bad" && refused_file "is of another run: it has --seed 1, not 2" --seed 2
}
try "a checkpoint that is damaged, or of another run, is refused with the reason" damaged

disagree()
{
	local seed pid=()

	port=$((port + 1))
	for seed in 1 2; do
		in_ns "$a" timeout 30 dblp-train run "${small[@]}" --nranks 2 --rank $((seed - 1)) --seed "$seed" \
			--rendezvous "tcp://127.0.0.1:$port" "$text" > "$tmp/$((seed - 1))" 2>&1 &
		pid[seed]=$!
	done
	fails wait "${pid[1]}" && fails wait "${pid[2]}" && says 1 "rank 1 has --seed 2, not 1" && says 0 "rank 1 has --seed 2, not 1"
}
try "ranks that were told different things refuse each other" disagree

# shellcheck disable=SC2016 # awk's fields
# Eager: a tenth is always missing. Checkpoints take all, and what came late with it
lossy()
{
	train 0 3 --plan transpose --hidden 64 --budget 10% --policy eager --checkpoint "$tmp/lossy" \
		--checkpoint-rounds 4 || return
	[ -n "$(replica)" ] && [ "$(sum log.0 9 '$2 % 4')" -gt 0 ] && is sum log.0 9 '$2 % 4 == 0' 0 &&
		[ "$(sum log.0 9 '$2 % 4')" -le $(($(sum log.0 8 '$2 % 4') / 10)) ] &&
		is sum log.0 5 '$2 % 4 == 0' 0 && is sum log.0 5 '$2 % 4' 600000 && is sum log.0 6 '$2 % 4' 600000
}
try "replicas are the same whatever was lost, and checkpoints lose nothing" lossy

# Budgets of 0, so that both see the same norms. Three ranks of one host report once
detectors()
{
	local own=(--plan ring --rounds 24 --rate 0.1 --epoch 2 --eta 0.1)

	ctl "$a" job add 7 phase critical clr on low 0% high 0% eta 0.1 &&
		train 0 3 "${own[@]}" --phases 0,0 && mv "$tmp/log.0" "$tmp/own" &&
		train 0 3 "${own[@]}" --job 7 || return
	rounds log.0 3 | uniq -c
	is rounds log.0 3 "$(rounds own 3)" && is json "$a" .reports job show 7 12 &&
		[ "$(rounds log.0 3 | sort -u)" = critical$'\n'tolerant ] && [ "$(rounds log.0 3 | head -1)" = critical ]
}
try "the detector of a job and that of --phases see the same phases" detectors

no_job()
{
	train 1 1 --job 8 && says 0 "there is no job 8"
}
try "a job that is not there is missed" no_job

# profile STATUS OPTION...: into $tmp/0, progress and errors into $tmp/progress
profile()
{
	local status=$1 got
	shift

	timeout 60 dblp-train profile --batch 8 --context 4 --hidden 8 --rounds 8 "$@" "$text" \
		> "$tmp/0" 2> "$tmp/progress"
	got=$?
	[ "$got" -eq "$status" ] && return
	echo "status $got instead of $status"
	cat "$tmp/0" "$tmp/progress"
	return 1
}

# shellcheck disable=SC2016 # awk's fields
# Eager loses about as much as a budget allows: which segments fit it best is drawn
profiled()
{
	local wide=(--plan transpose --hidden 64 --nranks 3)

	train 0 3 "${wide[@]}" --budget 10% --policy eager || return
	profile 0 "${wide[@]}" --budgets 1,10 --seeds 2 -j || return
	is jq -c '[.ranks, .plan, .rule, .seeds, (.budgets | length)]' "$tmp/0" '[3,"transpose","feedback",2,3]' &&
		is jq -r '.budgets[0].missing_bytes' "$tmp/0" 0 &&
		jq -e --argjson asked "$(sum log.0 8)" --argjson missing "$(sum log.0 9)" '.budgets[2] |
			($missing / $asked) as $real | (.missing_bytes / .asked_bytes) as $most |
			[$real, $most] | debug | $real > 0 and $real <= 1.1 * $most and $most <= 0.1' "$tmp/0"
}
try "a profile loses what a network could, and no more than the budget" profiled

judged()
{
	profile 0 --budgets 0.01%,90% --rule bubble --plan ps --segment 64 || return
	cat "$tmp/0"
	grep -q '0.01 %.*  too small to lose anything$' "$tmp/0" && grep -q '90 %.*  beyond it$' "$tmp/0" &&
		says 0 "P_low: none of these" && grep -c '^[0-9]*/15: budget .* loss ' "$tmp/progress" | grep -qx 15 &&
		profile 0 --budgets 1 --seeds 2 && says 0 "P_low: unknown, as nothing was lost" &&
		profile 0 --budgets 5 --segment 64 && says 0 "P_low: 5 %" &&
		profile 0 --phases 0,5 --eta 0 --segment 64 --epoch 1 && says 0 "P_low: unknown, as nothing was lost" &&
		profile 0 --phases 0,5 --eta 1000 --segment 64 --epoch 1 && says 0 "Phases: dblp-train run --phases 0%,5%" &&
		profile 0 --phases 0,90 --eta 1000 --rule bubble --segment 64 --epoch 1 --json &&
		is jq -c '[.p_low_ppm, (.budgets[1] | .budget_ppm, .high_ppm, .verdict)]' "$tmp/0" '[null,0,900000,"beyond"]'
}
try "a profile says which budgets are beyond the noise, and which say nothing" judged

# refused_profile REASON OPTION...: at once
refused_profile()
{
	profile 2 "${@:2}" && grep -q -F -e "$1" "$tmp/progress" && [ ! -s "$tmp/0" ] && return
	echo "not: $1"
	cat "$tmp/progress"
	return 1
}

profile_refuses()
{
	refused_profile "needs 2 ranks" --nranks 1 &&
		refused_profile "--plan average is of parameters" --plan average &&
		refused_profile "a multiple of 4" --segment 1401 &&
		refused_profile "--budgets rise, and are above 0" --budgets 2,1 &&
		refused_profile "--budgets rise, and are above 0" --budgets 0,1 &&
		refused_profile "--budgets takes a number" --budgets 1,x &&
		refused_profile "it does not go with --budgets" --budgets 1 --phases 1,2 &&
		refused_profile "needs a HIGH above 0" --phases 1,0 &&
		refused_profile "--seeds takes a number from 2" --seeds 1 &&
		refused_profile "unrecognized option '--job'" --job 7 &&
		profile 1 --rate 10 && grep -q 'seed 1 learns nothing, even without losses' "$tmp/progress" &&
		profile 1 "$tmp/none" && grep -q 'none: No such file' "$tmp/progress"
}
try "a profile refuses what cannot be meant" profile_refuses

averages()
{
	train 0 4 --plan average --rounds 9 && [ -n "$(replica)" ] &&
		awk '$1 == "round" && !($12 > 0 && $12 < 1) { exit 1 }' "$tmp/log.0"
}
try "what was averaged in groups is the same on all ranks at the end" averages

# Long, so that it is killed in its midst
killed()
{
	local i pids=()

	port=$((port + 1))
	rm -f "$tmp"/log.*
	for i in 0 1 2; do
		nsenter --net="/run/netns/$a" dblp-train run "${small[@]}" --rounds 1000000 --nranks 3 \
			--rank "$i" --log "$tmp/log.$i" --rendezvous "tcp://127.0.0.1:$port" "$text" \
			> "$tmp/$i" 2>&1 &
		pids+=($!)
		all_pids+=($!)
	done
	wait_until 20 grep -q '^round 5 ' "$tmp/log.1" || return
	kill -9 "${pids[2]}"
	fails wait "${pids[0]}" && fails wait "${pids[1]}" &&
		says 0 "rank 2 has failed" && says 1 "rank 2 has failed"
}
try "a rank that is killed is named by all others" killed

done_testing
