#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblp-train(1) over TCP: ranks end with equal parameters; a run continues from its checkpoint to
# the same bits; contradictory options are refused with a reason; a profile computes possible
# losses. Tests with AF_DBLP are in tools/ranks.sh.

# shellcheck disable=SC2154,SC2317 # host.sh sets them; functions are called by try
# shellcheck source=selftests/lib/host.sh
. "$(dirname "$(readlink -f "$0")")/../lib/host.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

small+=(--transport tcp)

# All plans, also with a server; their sums may differ in the last bits. Where a server does the
# step and loses nothing, the sums of two workers have the same bits
plans()
{
	local plan whole

	for plan in ps transpose tree bcube; do
		train 0 4 --plan "$plan" && [ -n "$(replica)" ] || return
	done
	train 0 3 --plan ps || return
	whole=$(replica)
	train 0 3 --plan ps --param-budget 0% && is replica "$whole" &&
		train 0 4 --plan transpose --param-budget 0% && [ -n "$(replica)" ] || return
	train 0 4 --plan tree --fanin 3 --rule rescale && [ -n "$(replica)" ] && train 1 1 --plan ps && says 0 "needs 2 ranks"
}
try "each plan ends with the same replicas on all ranks" plans

# refuses REASON OPTION...: dblp-train run refuses an invalid command line at once
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
		refuses "the job sets what may be lost" --job 7 --budget 1% &&
		refuses "--phases and --budget exclude each other" --phases 1%,2% --budget 1% &&
		refuses "need --transport dblp" --transport tcp --budget auto &&
		refuses "--job excludes --budget, except auto" --job 7 --budget auto --carry &&
		refuses "--budget: '101%' is more than 100%" --budget auto:101% &&
		refuses "--budget: '' is not a share" --budget auto: &&
		refuses "--budget: 'automatic' is not a share" --budget automatic &&
		refuses "need gradients" --plan average --budget auto &&
		refuses "need --transport dblp" --transport tcp --param-budget 1% &&
		refuses "--param-budget needs --plan ps or transpose" --plan ring --param-budget 0% &&
		refuses "--param-budget and --budget auto exclude" --param-budget 1% --budget auto &&
		refuses "--carry needs --budget" --carry &&
		refuses "LOW,HIGH" --phases 5% &&
		refuses "--plan is one of ps, transpose," --plan mesh &&
		refuses "--fanin needs --plan tree" --fanin 3 &&
		refuses "--levels needs --plan bcube" --levels 2 &&
		refuses "needs --rule rescale" --plan average --rule feedback &&
		refuses "need gradients" --plan average --phases 1%,2% &&
		refuses "--resume needs --checkpoint" --resume &&
		refuses "--budget: '101%' is more than 100%" --budget 101%
}
try "options that contradict each other are refused" contradictions

try "budgets are shares with a unit" texts_as_listed share dblp-train run --transport udp --budget
try "limits are times with a unit" texts_as_listed time dblp-train run --transport udp --wait
try "ports of a scheduler are given with its address" texts_as_listed addrport dblp-fabric join --scheduler

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
try "a resumed run has the bits of an uninterrupted one" goes_on

# refused_file REASON OPTION...: rank 0 refuses $tmp/bad, all ranks end, and the file is unchanged
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
	cp "$text" "$tmp/bad" && refused_file "is not a checkpoint of this version" || return
	cp "$tmp/whole" "$tmp/bad" && refused_file "is of another run: it has --seed 1, not 2" --seed 2
}
try "a checkpoint that is damaged, or of another run, is refused with the reason" damaged

disagree()
{
	local seed

	next_port
	for seed in 1 2; do
		begin $((seed - 1)) timeout 50 dblp-train run "${small[@]}" --nranks 2 --rank $((seed - 1)) \
			--seed "$seed" --rendezvous "tcp://$here:$port" "$text"
	done
	all_end 1 0 1 && says 1 "rank 1 has --seed 2, not 1" && says 0 "rank 1 has --seed 2, not 1"
}
try "ranks with different options refuse each other" disagree

# profile STATUS OPTION...: run a profile, with results in $tmp/0 and messages in $tmp/progress
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

judged()
{
	profile 0 --budgets 0.01%,90% --rule bubble --plan ps --segment 64 || return
	cat "$tmp/0"
	grep -q '0.01 %.*  too small to lose anything$' "$tmp/0" && grep -q '90 %.*  beyond it$' "$tmp/0" &&
		says 0 "P_low: none of these" && grep -c '^[0-9]*/15: budget .* loss ' "$tmp/progress" | grep -qx 15 &&
		profile 0 --budgets 1% --seeds 2 && says 0 "P_low: unknown, as nothing was lost" &&
		profile 0 --budgets 5% --segment 64 && says 0 "P_low: 5 %" &&
		profile 0 --phases 0%,5% --eta 0 --segment 64 --epoch 1 && says 0 "P_low: unknown, as nothing was lost" &&
		profile 0 --phases 0%,5% --eta 1000 --segment 64 --epoch 1 && says 0 "Phases: dblp-train run --phases 0%,5%" &&
		profile 0 --phases 0%,90% --eta 1000 --rule bubble --segment 64 --epoch 1 --json &&
		is jq -c '[.p_low_ppm, (.budgets[1] | .budget_ppm, .high_ppm, .verdict)]' "$tmp/0" '[null,0,900000,"beyond"]'
}
try "a profile reports budgets that are beyond the noise or unused" judged

# The cap of 5 % binds in 7 of 8 rounds, as the first one loses nothing; that of phases is always 0
found()
{
	local of_all=(--plan ps --segment 64 --seeds 2 --json)

	profile 0 "${of_all[@]}" --budget auto:5% &&
		is jq -c '.budgets[1] | [.budget_ppm, .verdict, (.missing_bytes / .asked_bytes * 160 | round)]' "$tmp/0" \
			'[50000,"within",7]' &&
		profile 0 "${of_all[@]}" --budget auto --phases 0%,50% --eta 0 --epoch 1 &&
		is jq -c '.budgets[1] | [.budget_ppm, .high_ppm, .missing_bytes]' "$tmp/0" '[0,500000,0]' &&
		profile 0 "${of_all[@]}" --budget auto &&
		jq -e '.budgets[1] | .missing_bytes / .asked_bytes | . > 0.01 and . < 0.2' "$tmp/0"
}
try "a budget that is found is at most its cap, and that of the phase" found

# refused_profile REASON OPTION...: dblp-train profile refuses an invalid command line at once
refused_profile()
{
	profile 2 "${@:2}" && grep -q -F -e "$1" "$tmp/progress" && [ ! -s "$tmp/0" ] && return
	echo "not: $1"
	cat "$tmp/progress"
	return 1
}

profile_refuses()
{
	refused_profile "needs --nranks 2 or more" --nranks 1 &&
		refused_profile "--plan average exchanges parameters" --plan average &&
		refused_profile "a multiple of 4" --segment 1401 &&
		refused_profile "--budgets takes ascending shares" --budgets 2%,1% &&
		refused_profile "--budgets takes ascending shares" --budgets 0%,1% &&
		refused_profile "--budgets: 'x' is not a share" --budgets 1%,x &&
		refused_profile "--budgets excludes --phases and --budget" --budgets 1% --phases 1%,2% &&
		refused_profile "--budgets excludes --phases and --budget" --budgets 1% --budget auto &&
		refused_profile "a profile takes --budget auto" --budget 1% &&
		refused_profile "needs HIGH above 0%" --phases 1%,0% &&
		refused_profile "--seeds: '1' is not a number from 2" --seeds 1 &&
		refused_profile "unrecognized option '--job'" --job 7 &&
		profile 1 --rate 10 && grep -q 'seed 1 learns nothing, even without losses' "$tmp/progress" &&
		profile 1 "$tmp/none" && grep -q 'none: No such file' "$tmp/progress"
}
try "a profile refuses invalid options" profile_refuses

averages()
{
	train 0 4 --plan average --rounds 9 && [ -n "$(replica)" ] &&
		awk '$1 == "round" && !($12 > 0 && $12 < 1) { exit 1 }' "$tmp/log.0"
}
try "parameters averaged in groups are equal on all ranks at the end" averages

# A long run, in which a rank is killed
killed()
{
	local i

	next_port
	rm -f "$tmp"/log.*
	for i in 0 1 2; do
		begin "$i" dblp-train run "${small[@]}" --rounds 1000000 --nranks 3 --rank "$i" --log "$tmp/log.$i" \
			--rendezvous "tcp://$here:$port" "$text"
	done
	wait_until 30 grep -q '^round 5 ' "$tmp/log.1" || return
	kill -9 "$pid_2"
	all_end 1 0 1 && says 0 "rank 2 has failed" && says 1 "rank 2 has failed"
}
try "all other ranks name a rank that is killed" killed

done_testing
