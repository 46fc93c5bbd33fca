#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblpctl job: what it shows, what it changes, what it refuses and in which
# words.

# shellcheck disable=SC2154,SC2317 # standing_listener sets it; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

standing_listener a

off='"clr":"off","low":"inherit","high":"inherit","low_phase":1,"high_phase":2,"eta":500000,"hold":0,"regime":"critical","norm":"0","change":0,"reports":0,"owner":0,"budget_cap":"inherit"'
made()
{
	is ctl "$a" -j job list '[]' && ctl "$a" job add 7 phase critical name resnet &&
		ctl "$a" job add 9 &&
		is json "$a" . job list \
			'[{"id":7,"name":"resnet","phase":1,"sockets":0,'"$off"',"phase_name":"critical"},{"id":9,"name":"","phase":0,"sockets":0,'"$off"',"phase_name":"reliable"}]' &&
		is json "$a" .id job show resnet 7 && is json "$a" .phase job show 9 0
}
try "two jobs" made

moves()
{
	ctl "$a" socket set "$id" job resnet &&
		is json "$a" '[.job, .phase, .budget]' socket show "$id" '[7,1,8000]' &&
		ctl "$a" job set 7 phase tolerant &&
		is json "$a" '[.job, .phase, .budget]' socket show "$id" '[7,2,408000]' &&
		is json "$a" .sockets job show 7 1 &&
		is json "$a" 'map(.phase)' job stats 7 '[1,2]'
}
try "a job moves a program that knows nothing of it" moves

# As the design has it. What is set by hand holds until clr is set to on again
detector()
{
	ctl "$a" job add 8 phase critical clr on low 1% high 50% eta 0.25 &&
		ctl "$a" socket set "$id" job 8 &&
		is json "$a" '[.clr, .low, .high, .eta, .hold, .phase]' job show 8 \
			'["on",10000,500000,250000,0,1]' &&
		is json "$a" '[.phase, .budget, .policy]' socket show "$id" '[1,10000,"early"]' &&
		ctl "$a" job set 8 phase tolerant && is json "$a" '[.clr, .phase]' job show 8 '["held",2]' &&
		is json "$a" '[.phase, .budget, .policy]' socket show "$id" '[2,500000,"eager"]' &&
		ctl "$a" job set 8 clr on && is json "$a" '[.clr, .phase]' job show 8 '["on",1]' &&
		ctl "$a" job set 8 low inherit hold 3 low-phase reliable &&
		is json "$a" '[.clr, .low, .hold, .phase]' job show 8 '["on","inherit",3,0]' &&
		is json "$a" '[.phase, .budget]' socket show "$id" '[0,0]' &&
		ctl "$a" job show 8 > "$tmp/lines" && diag < "$tmp/lines" &&
		grep -q -x -E 'eta +0\.25' "$tmp/lines" && grep -q -x -E 'high +50%' "$tmp/lines" &&
		ctl "$a" job set 8 clr off && is json "$a" '[.clr, .phase]' job show 8 '["off",0]' &&
		ctl "$a" socket set "$id" job resnet && ctl "$a" job del 8
}
try "the detector of critical regimes" detector

# Beside its number, with which alone programs reckon. A name is that of now
named_phase()
{
	is json "$a" '[.phase, .phase_name]' job show 7 '[2,"tolerant"]' &&
		ctl "$a" job list > "$tmp/table" && diag < "$tmp/table" &&
		grep -q -x -E 'ID +NAME +PHASE +SOCKETS .*' <(sed 's/^ *//' "$tmp/table") &&
		grep -q -E '^ *7 +resnet +2 \(tolerant\) +1 ' "$tmp/table" &&
		grep -q -E '^ *9 +0 \(reliable\) +0 ' "$tmp/table" &&
		is show_line phase '2 (tolerant)' && is show_line 'low phase' '1 (critical)' &&
		is show_line "phase name" "" &&
		printf 'job list\nphase set 2 name calm\njob list\n' | ctl "$a" -j -b - |
			jq -s -e 'map(.[0].phase_name) == ["tolerant", "calm"]' &&
		ctl "$a" phase set calm name tolerant
}

# show_line NAME: what is said of job 7
show_line()
{
	ctl "$a" job show 7 | sed -n "s/^$1   *//p"
}
try "a phase is shown with its name" named_phase

in_use()
{
	refused 1 "id: there are sockets in this job" ctl "$a" job del 7 &&
		ctl "$a" socket set "$id" job none &&
		is json "$a" '[.job, .phase, .budget]' socket show "$id" '[0,0,0]'
}
try "a job in use is not deleted" in_use

# Only the programs of its owner
owned()
{
	local as_nobody=(in_ns "$a" "${nobody[@]}")

	"${as_nobody[@]}" dblp-peer socket fails EPERM set job 7 && ctl "$a" job set 7 owner nobody &&
		is json "$a" .owner job show 7 65534 && "${as_nobody[@]}" dblp-peer socket set job 7 norm 1 &&
		is json "$a" .reports job show 7 1 &&
		[ "$("${as_nobody[@]}" dblpctl -j job list | jq -c 'map(.id)')" = '[7]' ] &&
		refused 1 "id: this is another user's: CAP_NET_ADMIN is needed" "${as_nobody[@]}" dblpctl job show 9 &&
		ctl "$a" job set 7 owner 0 && "${as_nobody[@]}" dblp-peer socket fails EPERM set job 7
}
try "a job has an owner" owned

before=$(json "$a" . job list)
try "no such job" refused 1 "id: there is no such job" ctl "$a" job show 8
try "no such name" refused 1 "no job is called 'x' (see dblpctl job list)" ctl "$a" job show x
try "a number that is taken" refused 1 "id: another job has this number" ctl "$a" job add 7
try "a name that is taken" refused 1 "name: another job has this name" ctl "$a" job add 8 name resnet
try "job 0" refused 1 "id: jobs are numbered 1 to 2147483647" ctl "$a" job add 0
try "a phase that there is not" refused 1 "phase: there is no such phase" ctl "$a" job set 7 phase 5
try "a socket's job that there is not" refused 1 "job: there is no such job" \
	ctl "$a" socket set "$id" phase tolerant job 8
try "a detector that is held" refused 2 "'held' is not on or off" ctl "$a" job set 7 clr held
try "a detector's phase that there is not" refused 1 "high_phase: there is no such phase" \
	ctl "$a" job set 7 high-phase 6
try "one phase for both" refused 1 "low_phase: low-phase and high-phase are the same" \
	ctl "$a" job set 7 low-phase tolerant
try "a phase against the detector" refused 1 \
	"phase: with clr on, the detector chooses the phase: at the start low-phase" \
	ctl "$a" job add 8 phase tolerant clr on
try "eta 0" refused 1 "eta: integer out of range" ctl "$a" job set 7 eta 0
try "eta in percent" refused 2 "'50%' is not a ratio such as 0.5" ctl "$a" job set 7 eta 50%
try "high over 100 %" refused 1 "high: a share of loss is at most 1000000 ppm (100 %)" \
	ctl "$a" job set 7 high 101%
try "which job" refused 2 "which job? (see dblpctl job list)" ctl "$a" job set
try "nothing to set" refused 2 "nothing to set: phase, name, clr, low, high, low-phase, high-phase, eta, hold, owner or cap" ctl "$a" job set 7
try "an owner who is nobody" refused 2 "'nobody2' is not a user, by name or number" \
	ctl "$a" job set 7 owner nobody2
try "nobody sets" refused 1 "no permission: this needs CAP_NET_ADMIN in the network namespace (sudo)" \
	in_ns "$a" "${nobody[@]}" dblpctl job set 7 phase tolerant
unchanged()
{
	is json "$a" . job list "$before" && is json "$a" .phase socket show "$id" 0
}
try "all that was refused changed nothing" unchanged

completion()
{
	load_completion "$a" || return
	is completes 'dblpctl job s' 'show set stats' && is completes 'dblpctl job set ' '7 9' &&
		is completes 'dblpctl job set 7 phase t' tolerant &&
		is completes 'dblpctl job set 7 clr on low 1% h' 'high high-phase hold' &&
		is completes 'dblpctl job add 5 clr ' 'on off' && is completes 'dblpctl job set 7 owner no' nobody &&
		is completes 'dblpctl job set 7 clr on low 1% high-phase t' tolerant &&
		is completes 'dblpctl socket set 1 job ' '7 9 none'
}
try "completion" completion

deleted()
{
	ctl "$a" job del resnet && ctl "$a" job del 9 && is ctl "$a" -j job list '[]'
}
try "deleted" deleted

now_ms()
{
	echo $((${EPOCHREALTIME/./} / 1000))
}

# spent PHASE MS: so long it was in that phase, the present one counted, too
spent()
{
	ctl "$a" -j job stats 70 | jq -e "any(.phase == $1 and (.time_ms | tonumber) >= $2)"
}

# Twice in one phase, and in another, never in the third; each between what has
# passed at least and at most
time_in_phases()
{
	local t0 t1 t2 t3 t4 t5 t6 t7

	t0=$(now_ms) && ctl "$a" job add 70 phase reliable && t1=$(now_ms) && wait_until 10 spent 0 200 &&
		t2=$(now_ms) && ctl "$a" job set 70 phase critical && t3=$(now_ms) && wait_until 10 spent 1 400 &&
		t4=$(now_ms) && ctl "$a" job set 70 phase reliable && t5=$(now_ms) && wait_until 10 spent 0 400 &&
		t6=$(now_ms) && ctl "$a" job set 70 phase critical && t7=$(now_ms) && ctl "$a" -j job stats 70 > "$tmp/stats" || return
	cat "$tmp/stats"
	jq -e "map({key: .phase | tostring, value: .time_ms}) | from_entries | keys == [\"0\", \"1\"] and
		.[\"0\"] >= $((t2 - t1 + t6 - t5 - 2)) and .[\"0\"] <= $((t3 - t0 + t7 - t4)) and
		.[\"1\"] >= $((t4 - t3 - 1)) and .[\"1\"] <= $((t5 - t2 + $(now_ms) - t6))" "$tmp/stats" &&
		ctl "$a" job del 70
}
try "how long a job was in each phase" time_in_phases

done_testing
