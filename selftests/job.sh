#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblpctl job: what it shows, what it changes, what it refuses and in which
# words.

# shellcheck disable=SC2154,SC2317 # standing_listener sets it; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/lib/ctl.sh"

standing_listener a

made()
{
	is ctl "$a" -j job list '[]' && ctl "$a" job add 7 phase critical name resnet &&
		ctl "$a" job add 9 &&
		is json "$a" . job list \
			'[{"id":7,"name":"resnet","phase":1,"sockets":0},{"id":9,"name":"","phase":0,"sockets":0}]' &&
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

in_use()
{
	refused 1 "id: there are sockets in this job" ctl "$a" job del 7 &&
		ctl "$a" socket set "$id" job none &&
		is json "$a" '[.job, .phase, .budget]' socket show "$id" '[0,0,0]'
}
try "a job in use is not deleted" in_use

before=$(json "$a" . job list)
try "no such job" refused 1 "id: there is no such job" ctl "$a" job show 8
try "no such name" refused 1 "no job is called 'x' (see dblpctl job list)" ctl "$a" job show x
try "a number that is taken" refused 1 "id: another job has this number" ctl "$a" job add 7
try "a name that is taken" refused 1 "name: another job is called so" ctl "$a" job add 8 name resnet
try "job 0" refused 1 "id: jobs are numbered 1 to 2147483647" ctl "$a" job add 0
try "a phase that there is not" refused 1 "phase: there is no such phase" ctl "$a" job set 7 phase 5
try "a socket's job that there is not" refused 1 "job: there is no such job" \
	ctl "$a" socket set "$id" phase tolerant job 8
try "which job" refused 2 "which job? (see dblpctl job list)" ctl "$a" job set
try "nothing to set" refused 2 "nothing to set: phase or name" ctl "$a" job set 7
try "nobody sets" refused 1 "no permission: this needs CAP_NET_ADMIN in the network namespace (sudo)" \
	in_ns "$a" "${nobody[@]}" dblpctl job set 7 phase tolerant
unchanged()
{
	is json "$a" . job list "$before" && is json "$a" .phase socket show "$id" 0
}
try "all that was refused changed nothing" unchanged

completion()
{
	# shellcheck disable=SC1091
	. "$(dirname "$(readlink -f "$(type -P dblpctl)")")/dblpctl.bash-completion" || return
	# shellcheck disable=SC2317
	dblpctl() { ctl "$a" "$@"; }
	is completes 'dblpctl job s' 'show set stats' && is completes 'dblpctl job set ' '7 9' &&
		is completes 'dblpctl job set 7 phase t' tolerant &&
		is completes 'dblpctl socket set 1 job ' '7 9 none'
}
try "completion" completion

deleted()
{
	ctl "$a" job del resnet && ctl "$a" job del 9 && is ctl "$a" -j job list '[]'
}
try "deleted" deleted

done_testing
