#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblpctl param and cc: what new sockets of a namespace begin with.

# shellcheck disable=SC2154,SC2317 # standing_listener sets it; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

standing_listener a
initial='{"congestion":"sqrt","budget_cap":"inherit","user_timeout_ms":30000,"keepalive_ms":15000}'

try "a new namespace" is ctl "$a" -j param list "$initial"

as_text()
{
	ctl "$a" param > "$tmp/lines" || return
	diff "$tmp/lines" - <<-END
		congestion              sqrt
		budget cap              inherit
		user timeout            30s
		keepalive               15s
	END
}
try "as text" as_text

one()
{
	is ctl "$a" -j param show timeout '{"user_timeout_ms":30000}' &&
		is ctl "$a" -j par sh cong '{"congestion":"sqrt"}'
}
try "one of them" one

controls()
{
	is ctl "$a" -j cc list '[{"name":"sqrt","default":true},{"name":"lossy","default":false}]' &&
		diff <(ctl "$a" cc) - <<-END
			NAME   DEFAULT
			sqrt   yes
			lossy  no
		END
}
try "congestion controls" controls

# begins_with WANTED: a new socket, and its peer
begins_with()
{
	spawn ip netns exec "$a" dblp-peer bind ::1 7100 pause
	wait_until 10 is json "$a" 'map(select(.local_port == 7100)) | length' socket list 1 || return
	is json "$a" '.[] | select(.local_port == 7100) | [.congestion, .budget_cap]' socket list "$1"
}

changed()
{
	ctl "$a" param set congestion lossy cap 2% timeout 500ms keepalive 1.5s &&
		is ctl "$a" -j param list \
			'{"congestion":"lossy","budget_cap":20000,"user_timeout_ms":500,"keepalive_ms":1500}' &&
		is json "$a" 'map(select(.default).name)[]' cc list lossy && begins_with '["lossy",20000]'
}
try "a change, and what a socket begins with then" changed
try "those that there are stay as they are" is json "$a" '[.congestion, .budget_cap]' \
	socket show "$id" '["sqrt",0]'

# Without an answer a socket gives up after the timeout
gives_up()
{
	local start=${EPOCHREALTIME/./} ms

	ip -n "$a" link set lo up && tc -n "$a" qdisc replace dev lo root netem loss 100% || return
	in_ns "$a" dblp-peer fails ETIMEDOUT connect ::1 7000 || return
	ms=$(((${EPOCHREALTIME/./} - start) / 1000))
	tc -n "$a" qdisc del dev lo root
	echo "$ms ms"
	[ "$ms" -ge 500 ] && [ "$ms" -lt 10000 ]
}
try "the timeout is what a socket goes by" gives_up

accepts()
{
	in_ns "$a" dblp-peer connect ::1 7000 &&
		is json "$a" 'map(select(.local_port == 7000) | .budget_cap) | unique[]' socket list 0
}
try "what an old listener accepts stays as it is, too" accepts

elsewhere()
{
	new_ns b && is ctl "$b" -j param list "$initial"
}
try "another namespace has its own" elsewhere

before=$(ctl "$a" -j param list)
try "no such control" refused 1 "congestion: there is no such congestion control" \
	ctl "$a" param set congestion x
try "a cap over 100 %" refused 1 "budget_cap: a share of loss is at most 1000000 ppm (100 %)" \
	ctl "$a" param set timeout 1s cap 101%
try "no timeout" refused 1 "user_timeout_ms: a user timeout is 1 ms to 1 h" ctl "$a" param set timeout 0ms
try "too long a timeout" refused 1 "user_timeout_ms: a user timeout is 1 ms to 1 h" \
	ctl "$a" param set congestion lossy timeout 3600001ms
try "too short a keepalive" refused 1 "keepalive_ms: a keepalive time is 10 ms to 24 h" \
	ctl "$a" param set keepalive 9ms
try "too long a keepalive" refused 1 "keepalive_ms: a keepalive time is 10 ms to 24 h" \
	ctl "$a" param set keepalive 86400001ms
try "nothing to set" refused 2 "nothing to set: congestion, cap, timeout or keepalive" ctl "$a" param set
try "no such parameter" refused 2 "no parameter is called 'x' (see dblpctl param help)" \
	ctl "$a" param show x
try "which parameter" refused 2 "which parameter? (see dblpctl param list)" ctl "$a" param show
try "nobody sets" refused 1 "no permission: this needs CAP_NET_ADMIN in the network namespace (sudo)" \
	in_ns "$a" "${nobody[@]}" dblpctl param set cap 1%
try "all that was refused changed nothing" is ctl "$a" -j param list "$before"

limits()
{
	ctl "$a" param set timeout 1h keepalive 24h cap 100% && ctl "$a" param set timeout 1ms keepalive 10ms cap 0% &&
		is json "$a" '[.budget_cap, .user_timeout_ms, .keepalive_ms]' param list '[0,1,10]' &&
		ctl "$a" param set cap inherit && is json "$a" .budget_cap param show cap inherit
}
try "the limits themselves" limits

by_owner_of_namespace()
{
	# shellcheck disable=SC2016 # for the inner shell
	is "${nobody[@]}" unshare -r -n bash -c \
		'dblpctl param set cap 7% && dblpctl -j param show cap' '{"budget_cap":70000}'
}
try "who owns the namespace may set" by_owner_of_namespace

completion()
{
	load_completion "$a" || return
	is completes 'dblpctl param set ' 'congestion cap timeout keepalive' &&
		is completes 'dblpctl param set congestion lo' lossy &&
		is completes 'dblpctl param set cap 1% t' timeout && is completes 'dblpctl cc l' list
}
try "completion" completion

done_testing
