#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblpctl phase against live sockets: what it shows, what it changes, what it
# refuses and in which words.

# shellcheck disable=SC2154,SC2317 # standing_listener sets it; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

standing_listener a

is_table()
{
	ctl "$a" phase list > "$tmp/table" || return
	diag < "$tmp/table"
	diff "$tmp/table" - <<-END
		ID  NAME       LOSS  CLOSE  ORDER  FILL  SOCKETS  CAP
		 0  reliable     0%  full   auto   zero        0  inherit
		 1  critical   0.8%  early  auto   zero        0  inherit
		 2  tolerant  40.8%  eager  auto   zero        0  inherit
	END
}
try "the table of a new namespace" is_table

in_json()
{
	is json "$a" '.[2]' phase list \
		'{"id":2,"name":"tolerant","budget":408000,"policy":"eager","order":"auto","fill":"zero","sockets":0,"budget_cap":"inherit"}' &&
		diff <(json "$a" '.[1]' phase list) <(json "$a" . phase show critical) &&
		is json "$a" .name phase show 0 reliable && is json "$a" length ph li 3 &&
		is json "$a" length phase 3
}
try "as JSON, by name and by number" in_json

lines()
{
	ctl "$a" phase show tolerant > "$tmp/lines" || return
	diag < "$tmp/lines"
	[ "$(wc -l < "$tmp/lines")" -eq 8 ] && grep -q -x -E 'budget +40\.8%' "$tmp/lines"
}
try "one phase as lines" lines

changed()
{
	ctl "$a" phase set tolerant loss 12.5% close early order sequential fill keep cap 1% &&
		is json "$a" '[.budget, .policy, .order, .fill, .budget_cap]' phase show 2 \
			'[125000,"early","sequential","keep",10000]' &&
		ctl "$a" phase set 2 loss 40.8% close eager order auto fill zero cap inherit &&
		is json "$a" '[.budget, .policy, .order, .fill, .budget_cap]' phase show 2 \
			'[408000,"eager","auto","zero","inherit"]'
}
try "a change of everything, and back" changed

made()
{
	ctl "$a" phase set 5 name warm-up loss 2% && is json "$a" '[.id, .budget]' phase show warm-up '[5,20000]' &&
		ctl "$a" phase set warm-up name cool-down &&
		is json "$a" 'map(.name) | join(" ")' phase list 'reliable critical tolerant cool-down' &&
		ctl "$a" phase del cool-down && is json "$a" length phase list 3
}
try "a new phase, renamed, deleted" made

# Of a program that has set nothing and knows nothing
follows()
{
	ctl "$a" socket set "$id" phase tolerant &&
		is json "$a" '[.phase, .budget, .policy]' socket show "$id" '[2,408000,"eager"]' &&
		is json "$a" .sockets phase show tolerant 1 &&
		ctl "$a" phase set tolerant loss 10% close early &&
		is json "$a" '[.phase, .budget, .policy]' socket show "$id" '[2,100000,"early"]' &&
		ctl "$a" socket set "$id" loss 1% &&
		is json "$a" '[.phase, .budget, .policy]' socket show "$id" '[2,10000,"early"]' &&
		ctl "$a" socket set "$id" loss inherit phase critical &&
		is json "$a" '[.phase, .budget, .policy]' socket show "$id" '[1,8000,"early"]' &&
		ctl "$a" socket set "$id" phase inherit &&
		is json "$a" '[.phase, .budget, .policy]' socket show "$id" '[0,0,"eager"]'
}
try "a socket follows its phase" follows

before=$(json "$a" . phase list)

in_use()
{
	ctl "$a" socket set "$id" phase critical &&
		refused 1 "id: sockets or jobs are in this phase, or a detector may choose it" ctl "$a" phase del critical &&
		ctl "$a" socket set "$id" phase inherit
}
try "a phase in use is not deleted" in_use
try "phase 0 is not deleted" refused 1 "id: sockets that choose no phase are in this one" \
	ctl "$a" phase del reliable
try "no such number" refused 1 "id: there is no such phase" ctl "$a" phase show 7
try "no such number to delete" refused 1 "id: there is no such phase" ctl "$a" phase del 7
try "a number too large" refused 1 "id: phases are numbered 0 to 7" ctl "$a" phase show 8
try "no such name" refused 1 "no phase is called 'x' (see dblpctl phase list)" \
	ctl "$a" phase set x loss 1%
try "a socket's phase that there is not" refused 1 "phase: there is no such phase" \
	ctl "$a" socket set "$id" loss 1% phase 7
try "a new one without a name" refused 1 "id: there is no such phase, and a new one needs a name" \
	ctl "$a" phase set 7 loss 1%
try "loss over 100 %" refused 1 "budget: a share of loss is at most 1000000 ppm (100 %)" \
	ctl "$a" phase set tolerant loss 101%
try "a budget that would not be used" refused 1 \
	"budget: policy full uses no budget: another one is needed" \
	ctl "$a" phase set reliable loss 1%
try "a bad name" refused 1 "name: a name is a letter, then letters, digits, - and _" \
	ctl "$a" phase set tolerant name 2nd
try "a name that is taken" refused 1 "name: another phase has this name" \
	ctl "$a" phase set tolerant name critical
try "nobody sets" refused 1 "no permission: this needs CAP_NET_ADMIN in the network namespace (sudo)" \
	in_ns "$a" "${nobody[@]}" dblpctl phase set tolerant loss 1%
nobody_looks()
{
	[ "$(in_ns "$a" "${nobody[@]}" dblpctl -j phase | jq length)" = 3 ]
}
try "nobody looks" nobody_looks

usage()
{
	try "usage: ${*:2}" refused 2 "$1" ctl "$a" "${@:2}"
}
usage "which phase? (see dblpctl phase list)" phase show
usage "which phase? (see dblpctl phase list)" phase del
usage "'x' is one word too many" phase list x
usage "'x' is one word too many" phase del 2 x
usage "'2x' is not the number of a phase" phase show 2x
usage "nothing to set: loss, close, order, fill, cap or name" phase set 2
usage "'tag' is not loss, close, order, fill, cap or name" phase set 2 tag 1
usage "'close' needs a policy: full, eager or early" phase set 2 close
usage "'never' is not a policy: full, eager or early" phase set 2 close never
usage "'2' has no unit: % or ppm" phase set 2 loss 2
usage "'loss' is given twice" phase set 2 loss 1% loss 2%

unchanged()
{
	is json "$a" . phase list "$before" &&
		is json "$a" '[.phase, .budget]' socket show "$id" '[0,0]'
}
try "all that was refused changed nothing" unchanged

completion()
{
	load_completion "$a" || return
	is completes 'dblpctl phase s' 'show set' &&
		is completes 'dblpctl phase set ' 'reliable critical tolerant' &&
		is completes 'dblpctl phase set tolerant loss 1% ' 'close order fill cap name' &&
		is completes 'dblpctl phase set tolerant close e' 'eager early' &&
		is completes 'dblpctl socket set 1 phase i' inherit
}
try "completion" completion

try "help" ctl "$a" phase help

done_testing
