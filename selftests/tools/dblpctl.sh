#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblpctl against live sockets: what it shows, what it changes, what it refuses
# and in which words.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

module=$(module_file)
new_ns a b c
# shellcheck disable=SC2154 # new_ns sets them
join "$a" "$b"

# sock NS JQ-CONDITION: number of the one socket that it holds for
sock()
{
	ctl "$1" -j socket list | jq -e "map(select($2)) |
		if length == 1 then .[0].id else error(\"there are \(length)\") end"
}

# value NS ID KEY
value()
{
	json "$1" ".$3" socket show "$2"
}

nothing_there()
{
	is ctl "$a" -j socket list '[]' && is ctl "$a" socket list ''
}
try "no socket: an empty list" nothing_there

all_zero()
{
	ctl "$a" -j stats | jq -e 'length > 40 and all(. == 0)' && is ctl "$a" -j stats nonzero '{}' &&
		is ctl "$a" stats nonzero ''
}
try "a new namespace has counted nothing" all_zero

# The sockets of the rest: a listener with a connection over IPv4, and one with
# a connection over IPv6, whose client is nobody's.
setup()
{
	spawn ip netns exec "$b" dblp-peer listen :: 7000 say listening pause
	listener=$spawned
	spawn ip netns exec "$b" dblp-peer set cap 1000000 listen fd09::2 7001 accept say accepted \
		recv 3 await "$tmp/stop6"
	server6=$spawned
	spawn ip netns exec "$b" dblp-peer listen 10.9.0.2 7002 accept say accepted \
		drain
	server4=$spawned
	wait_until 10 output_has "$listener" listening || return
	wait_until 10 sock "$b" '.local_port == 7001' || return
	wait_until 10 sock "$b" '.local_port == 7002' || return
	spawn ip netns exec "$a" "${nobody[@]}" dblp-peer set budget 8000 set cap 500000 \
		connect fd09::2 7001 send 3 100000 say sent await "$tmp/stop6"
	client6=$spawned
	spawn ip netns exec "$a" dblp-peer connect 10.9.0.2 7002 say connected pause
	client4=$spawned
	wait_until 10 output_has "$client6" sent || return
	wait_until 10 output_has "$client4" connected || return
	wait_until 10 output_has "$server6" accepted || return
	wait_until 10 output_has "$server4" accepted || return
	wait_until 10 idle "$a" && wait_until 10 idle "$b"
}

# Everything that was sent is acknowledged
idle()
{
	ctl "$1" -j socket list | jq -e 'all(.inflight == 0) and
		all(.bytes_first == .bytes_delivered)'
}

setup || { diag < "$tmp/out.$spawned"; exit 1; }
# They stay for all tests, not for the next one only.
standing=("${all_pids[@]}")
all_pids=()
trap 'all_pids+=("${standing[@]}"); cleanup' EXIT
id6=$(sock "$a" '.peer_port == 7001') || exit 1
id4=$(sock "$a" '.peer_port == 7002') || exit 1
peer6=$(sock "$b" '.local_port == 7001 and .state == "established"') || exit 1
peer4=$(sock "$b" '.local_port == 7002 and .state == "established"') || exit 1

try "a listener" sock "$b" '.state == "listen" and .local_addr == "::" and
	.local_port == 7000 and .peer_addr == "::" and .peer_port == 0 and .cwnd == 0'

both_ends()
{
	local mine theirs

	mine=$(ctl "$a" -j socket show "$id4" | jq '[.state, .local_addr, .local_port, .peer_addr, .peer_port]') || return
	theirs=$(ctl "$b" -j socket show "$peer4" | jq '[.state, .peer_addr, .peer_port, .local_addr, .local_port]') || return
	echo "$mine" | jq -e '.[0] == "established" and .[1] == "10.9.0.1" and .[2] > 0 and
		.[3] == "10.9.0.2" and .[4] == 7002' && [ "$mine" = "$theirs" ]
}
try "both ends of a connection over IPv4 agree" both_ends

# What dblp.rst says of it: the UDP socket of each port, of no process, and no more
other_tools()
{
	ip netns exec "$b" ss -H -a -n -p -A all | awk '$1 != "nl" { print $1, $2, $5, NF }' | sort |
		tee "$tmp/ss"
	is cat "$tmp/ss" "$(printf 'udp UNCONN %s 6\n' '*:7000' '10.9.0.2:7002' '[fd09::2]:7001')"
}
try "ss shows the UDP sockets alone" other_tools

try "a connection over IPv6, with all that was set" sock "$a" '.id == '"$id6"' and
	.local_addr == "fd09::1" and .peer_addr == "fd09::2" and .budget == 8000 and
	.budget_cap == 500000 and .peer_budget_cap == 1000000 and .policy == "eager" and
	.order == "auto" and .fill == "zero" and (.congestion | length) > 0 and
	.srtt_us > 0 and .min_rtt_us > 0 and .min_rtt_us <= .srtt_us + .rttvar_us and
	.cwnd > 0 and .seg_size > 500 and .peer_msg_max >= 100000'

try "what it sent is accounted for" sock "$a" '.id == '"$id6"' and .msgs_sent == 3 and
	.bytes_first <= 300000 and .bytes_delivered >= 297600 and .pkts_sent >= 200 and
	.bytes_delivered + .bytes_forgiven_unsent + .bytes_forgiven_sent == 300000 and
	.msgs_sent_complete + .msgs_sent_budget == 3 and
	.msgs_sent_budget == .msgs_sent_early and .msgs_sent_deadline == 0'

try "and what it received is accounted for" sock "$b" '.local_port == 7001 and
	.state == "established" and .msgs_received == 3 and .bytes_received == 300000 and
	.bytes_missing <= 2400 and .pkts_received >= 200'

# The inode of a process's socket, from /proc
inode()
{
	local fd

	for fd in "/proc/$1"/fd/*; do
		case $(readlink "$fd") in
		socket:*) readlink "$fd" | tr -cd 0-9 ;;
		esac
	done
}

owner()
{
	is value "$a" "$id4" inode "$(inode "$client4")" && is value "$a" "$id4" uid 0 &&
		is value "$a" "$id6" inode "$(inode "$client6")" && is value "$a" "$id6" uid 65534 &&
		is value "$b" "$peer4" inode "$(inode "$server4")"
}
try "owner and inode" owner

# processes_at PORT WORD...: of the socket with this port in $c, as WORD... list it
# shellcheck disable=SC2154 # new_ns sets it
processes_at()
{
	in_ns "$c" "${@:2}" -j socket list -p local ::1 | jq -c "map(select(.local_port == $1).processes)"
}

# Two after a fork; nobody has a connection that waits to be accepted
# shellcheck disable=SC2016 # for awk
processes()
{
	local server child

	spawn ip netns exec "$c" dblp-peer listen ::1 7000 fork say forked await "$tmp/stop_forked"
	server=$spawned
	wait_until 10 eval "[ \"\$(grep -c forked '$tmp/out.$server')\" -eq 2 ]" || return
	child=$(processes_at 7000 dblpctl | jq ".[0][].pid | select(. != $server)") &&
		is sed 's/.*) [A-Z] \([0-9]*\) .*/\1/' "/proc/$child/stat" "$server" &&
		is processes_at 7000 dblpctl "[$(printf '{"pid":%s,"name":"dblp-peer"}\n' "$server" "$child" | jq -s -c 'sort_by(.pid)')]" || return
	spawn ip netns exec "$c" dblp-peer connect ::1 7000 say connected await "$tmp/stop_forked"
	wait_until 10 output_has "$spawned" connected || return
	ctl "$c" socket list local ::1 -p state established > "$tmp/table"
	diag < "$tmp/table"
	is awk '{ print $NF }' "$tmp/table" $'PROCESSES\n'"$spawned/dblp-peer"$'\n-' &&
		ctl "$c" socket list -p state listen | grep -e " $server/dblp-peer,$child/dblp-peer\$" &&
		ctl "$c" socket list | fails grep -e dblp-peer -e PROCESSES && : > "$tmp/stop_forked" && ended "$server" 0
}
try "the processes that have a socket open" processes

# A name may have line ends in it, which are shown as no others: a line is a socket
# shellcheck disable=SC2016 # for awk
odd_name()
{
	local name=$'two\nlines'

	ln -s "$(command -v dblp-peer)" "$tmp/$name" &&
		spawn ip netns exec "$c" "$tmp/$name" listen ::1 7003 pause &&
		wait_until 10 sock "$c" '.local_port == 7003' || return
	is processes_at 7003 dblpctl "[[$(jq -n -c --arg name "$name" "{pid: $spawned, \$name}")]]" &&
		ctl "$c" socket list -p state listen | grep -F " $spawned/two\\x0alines" && kill "$spawned"
}
try "a process name of two lines" odd_name

# A user may not look into a process that has a capability which this user lacks
not_shown()
{
	local own hidden

	spawn ip netns exec "$c" "${nobody[@]}" dblp-peer listen ::1 7001 pause
	own=$spawned
	spawn ip netns exec "$c" "${nobody[@]}" --inh-caps +net_raw --ambient-caps +net_raw dblp-peer listen ::1 7002 pause
	hidden=$spawned
	wait_until 10 sock "$c" '.local_port == 7001' && wait_until 10 sock "$c" '.local_port == 7002' || return
	is processes_at 7001 "${nobody[@]}" dblpctl "[[{\"pid\":$own,\"name\":\"dblp-peer\"}]]" &&
		is processes_at 7002 "${nobody[@]}" dblpctl '[[]]' &&
		is processes_at 7002 dblpctl "[[{\"pid\":$hidden,\"name\":\"dblp-peer\"}]]"
}
try "processes that one may not look at are not shown" not_shown

# Scripts rely on them: a key may be added, at the end here, and none may go.
keys=$(echo '
	id state local_addr local_port local_scope peer_addr peer_port peer_scope
	uid inode budget budget_cap peer_budget_cap policy order fill congestion auth
	peer_msg_max seg_size srtt_us rttvar_us min_rtt_us cwnd inflight pto_count
	reordering pacing_rate delivery_rate bytes_first bytes_again bytes_delivered
	bytes_forgiven_unsent bytes_forgiven_sent bytes_received bytes_missing msgs_sent
	msgs_sent_early msgs_received msgs_received_early pkts_sent pkts_lost
	pkts_received spurious phase job
	msgs_sent_complete msgs_sent_budget msgs_sent_deadline
	msgs_received_complete msgs_received_budget msgs_received_deadline
	bytes_elided own whole_max reports msgs_sent_cancelled msgs_received_cancelled
	sends_all receives_all' | xargs)

stable_keys()
{
	is json "$a" 'map(keys_unsorted | join(" ")) | unique[]' socket list "$keys"
}
try "the keys of a socket in JSON" stable_keys

list_is_show()
{
	local list shown

	list=$(ctl "$a" -j socket list | jq -S ".[] | select(.id == $id4)") || return
	shown=$(ctl "$a" -j socket show "$id4" | jq -S .) || return
	diff <(echo "$list") <(echo "$shown")
}
try "list and show say the same" list_is_show

pretty()
{
	[ "$(ctl "$a" -p -j socket list | wc -l)" -gt 80 ] &&
		diff <(ctl "$a" -jp socket list | jq -c .) <(ctl "$a" -j socket list)
}
try "pretty JSON is the same JSON" pretty

table()
{
	ctl "$a" socket list > "$tmp/table" || return
	diag < "$tmp/table"
	is xargs -a <(head -n 1 "$tmp/table") \
		'ID STATE LOCAL PEER BUDGET CAP RTT SENT AGAIN FORGIVEN RECEIVED MISSING' &&
		[ "$(wc -l < "$tmp/table")" -eq 3 ] &&
		grep -q -E "^ *$(printf '%#x' "$id4") +established +10\.9\.0\.1:[0-9]+ +10\.9\.0\.2:7002 +0% +0% " "$tmp/table" &&
		grep -q -E "^ *$(printf '%#x' "$id6") +established +\[fd09::1\]:[0-9]+ +\[fd09::2\]:7001 +0\.8% +50% .* (29[0-9]|300)k " "$tmp/table" &&
		fails grep -n ' $' "$tmp/table"
}
try "the list as a table" table

lines()
{
	ctl "$a" socket show "$id6" > "$tmp/lines" || return
	diag < "$tmp/lines"
	grep -q -x -E "id +$(printf '%#x' "$id6")" "$tmp/lines" &&
		grep -q -x -E 'budget cap +50%' "$tmp/lines" &&
		grep -q -x -E 'peer addr +\[fd09::2\]:7001' "$tmp/lines" &&
		grep -q -x -E 'srtt +[0-9.]+(us|ms|s)' "$tmp/lines" &&
		grep -q -x -E 'bytes first +[0-9]{6}' "$tmp/lines" &&
		grep -q -x -E 'own +budget,budget_cap' "$tmp/lines" && fails grep ' all ' "$tmp/lines" &&
		[ "$(wc -l < "$tmp/lines")" -eq "$(($(wc -w <<< "$keys") - 2))" ]
}
try "one socket as lines" lines

# What is its own, and why nothing may be missing although there is a budget
explained()
{
	local own=budget,budget_cap

	is value "$a" "$id4" own '' && is value "$a" "$id6" own "$own" && is value "$a" "$id6" sends_all '' &&
		is value "$a" "$id4" sends_all 'its budget is 0' &&
		ctl "$b" socket set "$peer6" cap 0% &&
		wait_until 10 is value "$a" "$id6" peer_budget_cap 0 &&
		is value "$a" "$id6" sends_all \
			'the cap of its peer is 0: nobody there has asked for messages with bytes missing' &&
		ctl "$a" socket show "$id6" | grep '^sends all  *the cap of its peer is 0:' &&
		is value "$b" "$peer6" own budget_cap && is value "$b" "$peer6" receives_all 'its own cap is 0' &&
		ctl "$b" socket set "$peer6" cap inherit && is value "$b" "$peer6" own '' &&
		is value "$b" "$peer6" budget_cap 0 &&
		json "$b" .receives_all socket show "$peer6" | grep '^its cap is 0: neither its program' &&
		ctl "$b" socket show "$peer6" | grep -x 'own  *nothing' &&
		ctl "$b" phase set 0 cap 70% && is value "$b" "$peer6" budget_cap 700000 &&
		wait_until 10 is value "$a" "$id6" peer_budget_cap 700000 &&
		ctl "$b" phase set 0 cap inherit && ctl "$b" socket set "$peer6" cap 100%
}
try "what is its own, and why nothing may be missing" explained

short()
{
	is json "$a" length so li 2 && is json "$a" length s 2 &&
		is json "$a" .id s sh "$id4" "$id4" && is json "$a" .ConnActive st n 2
}
try "abbreviations" short

# chosen IDS FILTER...: it lets through these sockets of $a
chosen()
{
	is json "$a" 'map(.id) | sort | map(tostring) | join(" ")' socket list "${@:2}" "$1"
}
both=$(printf '%s\n' "$id4" "$id6" | sort -n | xargs)
try "filter: an IPv4 prefix" chosen "$id4" peer 10.9.0.0/24
try "filter: an IPv6 prefix" chosen "$id6" peer fd09::/64
try "filter: an address" chosen "$id4" peer 10.9.0.2
try "filter: the next address" chosen '' peer 10.9.0.3
try "filter: all there are" chosen "$both" peer ::/0
try "filter: a local address" chosen "$id6" local fd09::1
try "filter: a state" chosen "$both" state established
try "filter: another state" chosen '' state listen
try "filter: an abbreviated state" chosen "$both" st est
try "filter: two at once" chosen "$id4" state established peer 10.0.0.0/8

by_phase_and_job()
{
	ctl "$a" job add 7 name resnet && ctl "$a" socket set "$id6" job 7 phase tolerant &&
		chosen "$id6" job 7 && chosen "$id6" job resnet && chosen "$id4" job none &&
		chosen "$id6" phase tolerant && chosen "$id4" phase reliable &&
		chosen '' phase reliable job resnet &&
		ctl "$a" socket set "$id6" job none phase inherit && ctl "$a" job del 7
}
try "filter: a phase, a job" by_phase_and_job

# A listener has a local address and none of a peer
of_a_listener()
{
	is json "$b" 'map(.state) | unique[]' socket list peer ::/0 established &&
		json "$b" 'map(.local_port)' socket list state listen local ::/0 | jq -e 'index(7000)'
}
try "filter: a socket without a peer" of_a_listener
try "filter: no such job" refused 1 "no job is called 'x' (see dblpctl job list)" \
	ctl "$a" socket list job x

# Setting

tuned()
{
	ctl "$a" socket set "$id4" loss "$1" && is value "$a" "$id4" budget "$2" &&
		is value "$a" "$id4" budget_cap 0 && is value "$a" "$id6" budget 8000
}
try "loss 40.8%" tuned 40.8% 408000
try "loss 1ppm" tuned 1ppm 1
try "loss 0.0001%" tuned 0.0001% 1
try "loss 100%" tuned 100% 1000000
try "loss 0%" tuned 0% 0

by_hex_number()
{
	ctl "$a" s se "$(printf '%#x' "$id4")" l 2% && is value "$a" "$id4" budget 20000
}
try "the number in hexadecimal, as the list has it" by_hex_number

caps()
{
	ctl "$b" socket set "$peer4" cap 12.5% && is value "$b" "$peer4" budget_cap 125000 &&
		is value "$b" "$peer4" budget 0 &&
		wait_until 10 is value "$a" "$id4" peer_budget_cap 125000
}
try "a cap, which the peer is told" caps

both_at_once()
{
	ctl "$a" socket set "$id4" cap 3% loss 4% && is value "$a" "$id4" budget 40000 &&
		is value "$a" "$id4" budget_cap 30000
}
try "both at once" both_at_once

by_owner_of_namespace()
{
	# shellcheck disable=SC2016 # for the inner shell
	"${nobody[@]}" unshare -r -n bash -c '
		dblp-peer bind :: 7000 pause &
		trap "kill $!" EXIT
		for try in {1..100}; do
			id=$(dblpctl -j socket list | jq -e ".[0].id") && break
			sleep 0.05
		done
		dblpctl socket set "$id" loss 7% &&
			[ "$(dblpctl -j socket show "$id" | jq "[.budget, .uid]" -c)" = "[70000,0]" ]'
}
try "who owns the namespace may set, and user IDs are his" by_owner_of_namespace

# Refusals: nothing may have changed

state_of_all()
{
	for ns in "$a" "$b"; do
		ctl "$ns" -j socket list | jq -c '.[] | [.id, .budget, .budget_cap, .policy]'
	done
}
state_of_all > "$tmp/before"

try "no such socket: show" refused 1 "id: no socket has this number in this network namespace" \
	ctl "$a" socket show 0xfffffff0
try "no such socket: set" refused 1 "id: no socket has this number in this network namespace" \
	ctl "$a" socket set 0 loss 1%
# Numbers of the namespaces have nothing to do with each other.
elsewhere=$(json "$b" 'map(.id) | max' socket list)
try "a socket of another namespace" refused 1 "id: no socket has this number in this network namespace" \
	ctl "$a" socket set "$elsewhere" loss 1%
try "loss over 100 %" refused 1 "budget: a share of loss is at most 1000000 ppm (100 %)" \
	ctl "$a" socket set "$id4" loss 100.0001%
try "a cap over 100 %" refused 1 "budget_cap: a share of loss is at most 1000000 ppm (100 %)" \
	ctl "$a" socket set "$id4" cap 4294967294ppm
try "one of two over 100 %" refused 1 "budget_cap: a share of loss is at most 1000000 ppm (100 %)" \
	ctl "$a" socket set "$id4" loss 1% cap 101%
try "nobody sets" refused 1 "no permission: this needs CAP_NET_ADMIN in the network namespace (sudo)" \
	in_ns "$a" "${nobody[@]}" dblpctl socket set "$id6" loss 1%
# There is one of its own, and one of root's
nobody_looks()
{
	is in_ns "$a" "${nobody[@]}" dblpctl -j socket list "$(json "$a" '[.]' socket show "$id6")" &&
		refused 1 "id: this is another user's: CAP_NET_ADMIN is needed" \
			in_ns "$a" "${nobody[@]}" dblpctl socket show "$id4"
}
try "nobody looks" nobody_looks

# As nobody, in $a
by_nobody()
{
	in_ns "$a" "${nobody[@]}" dblpctl "$@"
}

# shellcheck disable=SC2086 # words
allowed()
{
	local words

	for words in "$@"; do
		by_nobody $words > "$tmp/said" 2> "$tmp/err" || { cat "$tmp/err"; echo "failed: $words"; return 1; }
		[ -s "$tmp/said" ] && [ ! -s "$tmp/err" ] || return
		case $words in
		stats*|job*|top\ -i*|socket\ list*) ;;
		*) ctl "$a" $words | diff - "$tmp/said" || return ;;
		esac
	done
}

# shellcheck disable=SC2086 # words
not_allowed()
{
	local words

	for words in "$@"; do
		refused 1 "no permission: this needs CAP_NET_ADMIN in the network namespace (sudo)" by_nobody $words ||
			{ echo "not refused: $words"; return 1; }
	done
}

# state: what is set in $a
state()
{
	state_of_all && ctl "$a" save
}

nobody_tries_all()
{
	local object verb words reads writes

	not_allowed 'job flush' && ctl "$a" job add 7 name mine owner nobody && ctl "$a" job add 8 name other &&
		ctl "$a" phase set 5 name spare && state > "$tmp/state" && ctl "$a" save > "$tmp/saved" || return
	reads=('socket list' 'socket list -p' "socket show $id6" 'socket help' 'phase list' 'phase show spare' 'phase help'
		'job list' 'job show mine' 'job stats 7' 'job help' 'param list' 'param show cap' 'param help'
		'cc list' 'cc help' stats 'stats nonzero' 'stats all -i 10ms -c 1' 'stats help'
		'top -i 10ms -c 1' 'top help' 'monitor help' 'save help'
		doctor 'doctor help' version 'version help' help)
	writes=("socket set $id6 loss 1%" "socket set $id4 job none" 'phase set 2 loss 1%' 'phase del spare' 'phase flush'
		'job add 9' 'job set mine phase 0' 'job set 8 name x' 'job replace 7 phase 1' 'job replace 9'
		'job del mine' 'job del 8' 'job flush' 'param set cap 1%' monitor save "save $tmp/new")
	allowed "${reads[@]}" && not_allowed "${writes[@]}" && [ ! -e "$tmp/new" ] || return
	refused 1 "$tmp/saved:2: no permission: this needs CAP_NET_ADMIN in the network namespace (sudo)" \
		by_nobody -b "$tmp/saved" || return
	for words in 'job show 8' 'job stats 8' "socket show $id4"; do
		# shellcheck disable=SC2086 # words
		refused 1 "id: this is another user's: CAP_NET_ADMIN is needed" by_nobody $words || return
	done
	for words in 'job show other' 'job set other phase 0' 'job del other' 'socket list job other'; do
		# shellcheck disable=SC2086 # words
		refused 1 "no job of yours is called 'other': those of others need CAP_NET_ADMIN in the network namespace (sudo)" \
			by_nobody $words || return
	done
	state | diff "$tmp/state" - && load_completion "$a" || return
	# Objects and verbs that completion knows of. Not through a pipe: grep -q does not read all of it
	printf '%s\n' "${reads[@]}" "${writes[@]}" > "$tmp/tried"
	for object in $(completes 'dblpctl '); do
		grep -q "^$object" "$tmp/tried" || { echo "not tried: $object"; return 1; }
	done
	for object in socket phase job param cc; do
		for verb in $(completes "dblpctl $object "); do
			grep -q "^$object $verb" "$tmp/tried" ||
				{ echo "not tried: $object $verb"; return 1; }
		done
	done
	unset -f dblpctl
	ctl "$a" job del 7 && ctl "$a" job del 8 && ctl "$a" phase del 5
}
try "nobody tries all: what only shows works, what changes says that it is not allowed" nobody_tries_all

# What programs choose has 64 bits, which jq would not keep
types_in_json()
{
	ctl "$a" job add 17 clr on low 1% && in_ns "$a" dblp-peer set job 17 norm 9007199254740993 || return
	is json "$a" .norm job show 17 9007199254740993 && ctl "$a" -j socket list -p | typed socket &&
		ctl "$a" -j job list | typed job && ctl "$a" -j phase list | typed phase &&
		ctl "$a" -j param list | typed param || return
	# Each key that it names is there
	for object in socket job phase; do
		# shellcheck disable=SC2046 # a word or none
		is json "$a" '.[0] | keys | join(" ")' "$object" list $([ "$object" != socket ] || echo -p) \
			"$(sed -n "s/^$object \([^ ]*\) .*/\1/p" "$built/json-types" | LC_ALL=C sort | xargs)" || return
	done
	wait_until 10 ctl "$a" job del 17
}
try "types in JSON are those of the manual page, and 64 bits are kept" types_in_json

# No question for the kernel, so none for the namespace
usage()
{
	try "usage: ${*:2}" refused 2 "$1" dblpctl "${@:2}"
}
usage "there is no object 'sockets' (see dblpctl help)" sockets
usage "there is no object '' (see dblpctl help)" ''
usage "there is no verb 'destroy' (see dblpctl help)" socket destroy
usage "'x' is not job, phase, state, peer or local" socket list x
usage "'peer' needs a prefix, such as 10.0.0.0/24" socket list peer
usage "'10.0.0.0/33' has more bits than an address" socket list peer 10.0.0.0/33
usage "'x' is not an address or a prefix, such as 10.0.0.0/24 or fd00::/8" socket list local x
usage "'open' is not a state, such as established" socket list state open
usage "'-i' needs a time, such as 1 or 500ms" stats -i
usage "'1x' is not a time such as 500ms or 10s" stats -i 1x
usage "'0' is not a time above 0" stats -i 0
usage "'-c' needs how many times" stats -i 1 -c
usage "'0' is not a number of times" stats -i 1 -c 0
usage "-c needs -i TIME" stats -c 1
usage "'nonzero' is one word too many" stats all nonzero
usage "'x' is one word too many" socket show "$id4" x
usage "'x' is one word too many" stats all x
usage "which socket? (see dblpctl socket list)" socket show
usage "'4294967295ppm' is too large" socket set 2 cap 4294967295ppm
usage "which socket? (see dblpctl socket list)" socket set
usage "'0x1g' is not the number of a socket, such as 0x1f or 31" socket show 0x1g
usage "'-1' is not the number of a socket, such as 0x1f or 31" socket show -1
usage "'4294967296' is too large" socket show 4294967296
usage "nothing to set: loss, cap, phase or job" socket set "$id4"
usage "'loss' needs a share, such as 2%" socket set "$id4" loss
usage "'loss' is given twice" socket set "$id4" loss 1% loss 2%
usage "'lost' is not loss, cap, phase or job" socket set "$id4" lost 1%
usage "'2' has no unit: % or ppm" socket set "$id4" loss 2
usage "'-2%' is not a share such as 2% or 8000ppm" socket set "$id4" loss -2%
usage "'0.00001%' is finer than 0.0001% (1ppm)" socket set "$id4" loss 0.00001%
usage "'429496.7296%' is too large" socket set "$id4" loss 429496.7296%

unchanged()
{
	diff "$tmp/before" <(state_of_all)
}
try "all that was refused changed nothing" unchanged

full()
{
	ctl "$a" socket list > /dev/full
}
try "a full disk is an error" refused 1 "cannot write: No space left on device" full

# Read to the end: dblpctl would not survive a pipe that is closed before
help_has()
{
	dblpctl "${@:2}" | grep -e "$1" > /dev/null
}
help_everywhere()
{
	help_has 'socket show ID' help && help_has 'socket show ID' --help &&
		help_has 'loss   share' socket help && help_has '^  PktSent ' stats help
}
try "help at each level" help_everywhere

version()
{
	is dblpctl -V "dblpctl $(dblpctl -j version | jq -r .version)"
}
try "the version" version

# Counters

# delta NS COUNTER: what it rose by since counted()
counted()
{
	for ns in "$a" "$b"; do
		ctl "$ns" -j stats > "$tmp/stats.$ns"
	done
}

delta()
{
	ctl "$1" -j stats | jq --slurpfile old "$tmp/stats.$1" ".$2 - \$old[0].$2"
}

counters()
{
	counted
	spawn ip netns exec "$b" dblp-peer listen 10.9.0.2 7003 accept recv 5
	wait_until 10 sock "$b" '.local_port == 7003' || return
	in_ns "$a" dblp-peer connect 10.9.0.2 7003 send 5 40000 shutdown eof || return
	ended "$spawned" 0 || return
	is delta "$a" ConnActive 1 && is delta "$a" ConnPassive 0 && is delta "$a" MsgSent 5 &&
		is delta "$a" BytesFirst 200000 && is delta "$a" MsgReceived 0 &&
		is delta "$b" ConnActive 0 && is delta "$b" ConnPassive 1 &&
		is delta "$b" MsgReceived 5 && is delta "$b" BytesReceived 200000 &&
		is delta "$b" BytesMissing 0 && is delta "$b" MsgSent 0 || return
	[ "$(delta "$a" PktSent)" -ge 130 ] && [ "$(delta "$b" PktReceived)" -ge 130 ] &&
		[ "$(delta "$b" CookieSent)" -ge 1 ] && [ "$(delta "$b" AckSent)" -ge 1 ]
}
try "a transfer counts, each end its own" counters

refused_connection()
{
	counted
	in_ns "$a" dblp-peer fails ECONNREFUSED connect 10.9.0.2 9 || return
	is delta "$a" ConnRefused 1
}
try "so does a connection refused" refused_connection

nonzero()
{
	diff <(ctl "$a" -j stats | jq -c 'with_entries(select(.value != 0))') \
		<(ctl "$a" -j stats nonzero) &&
		ctl "$a" -j stats | jq -e 'any(. == 0)'
}
try "stats nonzero leaves out zeroes, and nothing else" nonzero

stats_text()
{
	diff <(ctl "$a" stats | awk '{ print $1, $2 }') \
		<(ctl "$a" -j stats | jq -r 'to_entries[] | "\(.key) \(.value)"') &&
		diff <(ctl "$a" -j stats | jq -r 'keys_unsorted[]') \
			<(dblpctl stats help | awk '/^  [A-Z]/ { print $1 }')
}
try "counters are the same as text, as JSON and in the help" stats_text

# rows_end N PID: it has printed N rows or more, and in the last nothing rose
rows_end()
{
	jq -s -e "length >= $1 and last == {}" "$tmp/out.$2"
}

# Its first sample is taken before anything rises, and it goes on until all is in:
# only how long an interval really was remains with the machine
rates()
{
	local n

	spawn ip netns exec "$b" dblp-peer listen 10.9.0.2 7004 accept recv 200
	wait_until 10 sock "$b" '.local_port == 7004' || return
	spawn ip netns exec "$a" dblpctl -j stats -i 2s
	n=$spawned
	wait_until 30 rows_end 1 "$n" || return
	counted
	in_ns "$a" dblp-peer connect 10.9.0.2 7004 send 200 10000 shutdown eof || return
	wait_until 30 rows_end 3 "$n" || return
	kill "$n"
	jq -s -e "(map(.MsgSent // 0) | add) * 2 / $(delta "$a" MsgSent) | . > 0.6 and . < 1.4" \
		"$tmp/out.$n" && jq -s -e 'all(.[]; all(.[]; . != 0))' "$tmp/out.$n"
}
try "stats -i: rates of what rises" rates

rates_of_all()
{
	local n

	n=$(ctl "$a" -j stats | jq length) || return
	ctl "$a" -jt stats all -i 10ms -c 2 > "$tmp/rates" || return
	jq -s -e "map(length) == [$n + 1, $n + 1] and
		(.[0].time | test(\"^[0-9-]{10}T[0-9:]{8}[.][0-9]{6}[+-][0-9]{4}\$\")) and
		.[0].time < .[1].time" "$tmp/rates" || return
	ctl "$a" -t stats nonzero -i 10ms -c 2 > "$tmp/rates" || return
	diag < "$tmp/rates"
	[ "$(grep -c '^time ' "$tmp/rates")" -eq 2 ] && [ "$(grep -c '^$' "$tmp/rates")" -eq 1 ]
}
try "stats all -i: those that do not rise, too; -t: the time" rates_of_all

completion()
{
	load_completion "$a" || return
	is completes 'dblpctl ' 'socket phase job param cc stats top monitor save doctor version help' && is completes 'dblpctl so' socket &&
		is completes 'dblpctl -j stats n' nonzero && is completes 'dblpctl stats all ' -i &&
		is completes 'dblpctl socket list state e' established &&
		is completes 'dblpctl socket list state listen p' 'phase peer' &&
		is completes 'dblpctl socket list -p p' 'phase peer' && is completes 'dblpctl socket list -p state e' established &&
		is completes 'dblpctl socket list phase 1 ' 'job state peer local -p' &&
		is completes "dblpctl -j -N ${a%-*}" "$a" && is completes "dblpctl -N $a vers" version && is completes 'dblpctl socket s' 'show set' &&
		is completes 'dblpctl socket show ' "$(ctl "$a" -j socket list | jq -r '.[].id' |
			xargs printf '%#x\n' | xargs)" &&
		is completes 'dblpctl socket set 0x1 loss 1% ' 'cap phase job' &&
		is completes 'dblpctl --j' --json
}
try "completion" completion

# The end

: > "$tmp/stop6"
teardown()
{
	kill "$client4" "$listener"
	ended "$client6" 0 && ended "$server6" 0 && ended "$server4" 0 &&
		wait_until 10 no_sockets "$a" && wait_until 10 no_sockets "$b"
}
try "nothing is left" teardown

unloaded()
{
	# What was closed is freed a little later
	wait_until 10 rmmod dblp || return
	refused 1 "the module dblp is not loaded; load it with: sudo modprobe dblp (or sudo insmod dblp.ko)" \
		dblpctl socket list
	local status=$?
	insmod "$module" && is dblpctl -j socket list '[]' && return "$status"
}
try "without the module: how to load it" unloaded

# The kernel asks for a module with an alias that ours has. Where it is installed, modprobe
# finds it; here this does.
loaded_by_the_kernel()
{
	local modprobe alias

	modprobe=$(cat /proc/sys/kernel/modprobe)
	cat > "$tmp/modprobe" <<-END
		#!/bin/bash
		echo "\${!#}" >> $tmp/asked
		exec insmod $module
	END
	chmod 755 "$tmp" "$tmp/modprobe"
	rmmod dblp && echo "$tmp/modprobe" > /proc/sys/kernel/modprobe || return
	is "${nobody[@]}" dblpctl -j socket list '[]'
	local status=$?
	echo "$modprobe" > /proc/sys/kernel/modprobe
	[ "$status" -eq 0 ] || insmod "$module"
	alias=$(head -n 1 "$tmp/asked") && modinfo -F alias "$module" | grep -x -- "$alias" && return "$status"
}
try "who asks for the family has the module loaded" loaded_by_the_kernel

done_testing
