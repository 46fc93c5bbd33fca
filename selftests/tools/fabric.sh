#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblp-fabric(1): asynchronous updates are applied, joined, dropped and replicated over each
# transport, a replica takes over, who dies is noticed, and what must not come is refused.

# shellcheck disable=SC2154,SC2317 # new_ns sets them; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"

# Four workers, a server, a replica, and a scheduler: each a host, as they are told apart by address
new_ns w0 w1 w2 w3 sv re sc switch
text=$(dirname "$(readlink -f "$0")")/../lib/lib.sh
small=(--batch 8 --context 4 --hidden 8)
at=10.0.0.7:7300

join_hosts()
{
	local i=0 ns

	ip -n "$switch" link add name br0 type bridge && ip -n "$switch" link set br0 up || exit 1
	for ns in "$w0" "$w1" "$w2" "$w3" "$sv" "$re" "$sc"; do
		i=$((i + 1))
		ip link add eth0 netns "$ns" type veth peer name "p$i" netns "$switch" &&
			ip -n "$switch" link set "p$i" master br0 up &&
			ip -n "$ns" addr add "10.0.0.$i/24" dev eth0 &&
			ip -n "$ns" link set lo up && ip -n "$ns" link set eth0 up || exit 1
	done
}
join_hosts
count=$(dblp-train async --count "${small[@]}" "$text")

# begin NS NAME COMMAND...: in the background; its output in $tmp/NAME, and its pid in pid_NAME
begin()
{
	local ns=$1 name=$2
	shift 2

	ip netns exec "$ns" "$@" > "$tmp/$name" 2>&1 &
	eval "pid_$name=\$!"
	all_pids+=($!)
}

fabric()
{
	local ns=$1 name=$2
	shift 2

	begin "$ns" "$name" dblp-fabric "$@" --count "$count"
}

# members TRANSPORT DIV-MAX [OPTION of the scheduler...]
members()
{
	local transport=$1 div=$2
	shift 2

	rm -f "$tmp"/{steps,later}
	fabric "$sc" scheduler schedule --listen "$at" --workers 4 --timeout-ms 2000 "$@"
	wait_until 10 listens || return
	fabric "$sv" server serve --scheduler "$at" --transport "$transport" --eta 0.5 --div-max "$div" --log "$tmp/steps"
	fabric "$re" replica replica --scheduler "$at" --transport "$transport" --eta 0.5 --log "$tmp/later"
}

listens()
{
	ip netns exec "$sc" ss -Hltn 'sport = 7300' | grep -q LISTEN
}

joiners()
{
	local i

	for i in 0 1 2 3; do
		eval "fabric \"\$w$i\" join$i join --scheduler $at --transport $1"
	done
}

# worker N TRANSPORT OPTION...
worker()
{
	local n=$1 transport=$2
	shift 2

	rm -f "$tmp/log$n"
	eval "begin \"\$w$n\" worker$n timeout 50 dblp-train async --scheduler $at --worker $n \
		--transport $transport \"\${small[@]}\" --log \"$tmp/log$n\" \"\$@\" \"$text\""
}

# ended STATUS NAME...: each ends with it
ended()
{
	local status=$1 name pid got
	shift

	for name; do
		pid=pid_$name
		wait "${!pid}"
		got=$?
		[ "$got" -eq "$status" ] && continue
		echo "$name: status $got instead of $status"
		cat "$tmp/$name"
		return 1
	done
}

# The scheduler and all that it ends
finish()
{
	kill "$pid_scheduler" && ended 0 scheduler || return
	cat "$tmp/scheduler"
}

# says NAME TEXT
says()
{
	grep -q -F -e "$2" "$tmp/$1" && return
	echo "$1 does not say: $2"
	cat "$tmp/$1"
	return 1
}

# counter NAME COUNTER: in the last line of a process
counter()
{
	tail -n 1 "$tmp/$1" | tr ',' '\n' | sed -n "s/^ *$2 //p"
}

# What steps the replica lacked at most, and none beyond the bound $1
within()
{
	awk -v max="$1" '$5 > max * 1.000001 { print "the replica lacks " $5; bad = 1 }
		END { exit bad || !NR }' "$tmp/steps"
}

applied()
{
	local transport=$1 i

	members "$transport" 0.3 "${@:2}" || return
	[ "${2:-}" = --policy ] || joiners "$transport"
	for i in 0 1 2 3; do
		worker "$i" "$transport" --rounds 20
	done
	ended 0 worker0 worker1 worker2 worker3 && finish && ended 0 server replica || return
	cat "$tmp/server" "$tmp/replica"
	[ "$(counter scheduler applied)" -eq 80 ] && [ "$(tail -n 1 "$tmp/steps" | cut -d' ' -f2)" -eq 80 ] &&
		[ "$(counter server version)" -eq 80 ] && within 0.3
}
try "updates of all workers are applied over tcp" applied tcp
try "updates of all workers are applied over dblp" applied dblp
try "without order they are, too" applied tcp --policy fifo

# slowly COMMAND...: while the server's link is what all wait for
slowly()
{
	local status

	tc -n "$sv" qdisc add dev eth0 root tbf rate 2mbit burst 20k limit 1m &&
		tc -n "$switch" qdisc add dev p5 root tbf rate 2mbit burst 20k limit 1m || return
	"$@"
	status=$?
	tc -n "$sv" qdisc del dev eth0 root
	tc -n "$switch" qdisc del dev p5 root
	return "$status"
}

joined()
{
	applied dblp && [ "$(counter scheduler joined)" -gt 0 ] &&
		[ "$(counter scheduler messages)" -lt 80 ] && [ "$(counter server 'copies first')" -gt 0 ]
}
try "what waits for a slow link is joined to fewer messages, and the replica is not too far behind" slowly joined

has_lines()
{
	[ "$(wc -l < "$tmp/$1")" -gt "$2" ]
}

# One pauses for longer than its bound lasts
late()
{
	members tcp 100 --delay-bound 5 || return
	worker 1 tcp --seconds 8 --rounds 100000
	wait_until 20 has_lines log1 1 || return
	worker 0 tcp --rounds 2 --pause-ms 500 --pause-every 1
	ended 0 worker0 worker1 && finish || return
	[ "$(counter scheduler dropped)" -gt 0 ] && [ "$(counter scheduler failed)" -eq 0 ] &&
		awk '$6 > 5 { exit 1 }' "$tmp/steps" && grep -q '^update .* 1 1$' "$tmp/log0"
}
try "what would be beyond its delay bound is dropped before it is sent, and told" late

takeover()
{
	local lost

	members dblp 0.2 || return
	joiners dblp
	for i in 0 1 2 3; do
		worker "$i" dblp --rounds 100000 --seconds 12
	done
	wait_until 30 has_lines steps 20 && kill -9 "$pid_server" || return
	ended 0 worker0 worker1 worker2 worker3 && finish && ended 0 replica || return
	cat "$tmp/replica"
	lost=$(awk 'FNR == NR && /^promoted/ { from = $4; to = $6; next }
		$1 == "applied" && $2 > from && $2 <= to { sum += $4 } END { print sum + 0 }' "$tmp/replica" "$tmp/steps")
	echo "lost $lost"
	[ "$(counter scheduler takeovers)" -eq 1 ] && [ -s "$tmp/later" ] &&
		within 0.2 && awk -v lost="$lost" 'BEGIN { exit lost > 0.2 * 1.000001 }'
}
try "a killed server is replaced by its replica, which lacks no more than the bound" slowly takeover

no_replica()
{
	members tcp 1 && worker 0 tcp --rounds 100000 || return
	wait_until 20 grep -q '^update' "$tmp/log0" || return
	kill -9 "$pid_replica" && wait_until 20 has_lines log0 100 &&
		kill -9 "$pid_server" && ended 1 worker0 scheduler &&
		says worker0 "the server has failed, and there is no replica" &&
		says scheduler "the server has failed, and there is no replica"
}
try "without a replica all end with the reason" no_replica

no_scheduler()
{
	members tcp 1 && worker 0 tcp --rounds 100000 || return
	wait_until 20 grep -q '^update' "$tmp/log0" || return
	kill -9 "$pid_scheduler"
	ended 1 worker0 server replica && says worker0 "the scheduler has failed" &&
		says server "the scheduler has failed"
}
try "a scheduler that is killed is named by all others" no_scheduler

# A joining host and a worker die while updates are on their way
others_die()
{
	members dblp 1 || return
	joiners dblp
	for i in 0 1 2 3; do
		worker "$i" dblp --rounds 100000 --seconds 12
	done
	wait_until 30 has_lines steps 10 && kill -9 "$pid_worker3" "$pid_join0" || return
	wait_until 30 has_lines steps 20 && kill -9 "$pid_join1" || return
	ended 0 worker0 worker1 worker2 && finish && within 1
}
try "other workers go on when a worker and hosts that join have died" slowly others_die

# refused STATUS REASON COMMAND...: in the namespace of a worker
refused()
{
	local status=$1 reason=$2
	shift 2

	ends_with "$status" "$reason" ip netns exec "$w0" timeout 20 "$@"
}

bad_input()
{
	local worker=(dblp-train async --scheduler "$at" --transport tcp)

	members tcp 1 && worker 1 tcp --rounds 100000 || return
	wait_until 20 grep -q '^update' "$tmp/log1" || return
	refused 1 "fewer workers than 5" "${worker[@]}" --worker 4 "${small[@]}" "$text" &&
		refused 1 "a worker 1 already" "${worker[@]}" --worker 1 "${small[@]}" "$text" &&
		refused 1 "another number" "${worker[@]}" --worker 0 --hidden 9 "$text" &&
		refused 1 "does not have 5 elements" dblp-fabric join --scheduler "$at" --count 5 --transport tcp &&
		refused 1 "there is one already" dblp-fabric serve --scheduler "$at" --count "$count" --eta 1 --transport tcp &&
		refused 1 "there is one already" dblp-fabric replica --scheduler "$at" --count "$count" --eta 1 --transport tcp &&
		refused 2 "is not an address and a port" dblp-fabric join --scheduler host --count 5 &&
		refused 2 "one of ordered, fifo" dblp-fabric schedule --listen "$at" --workers 1 --count 5 --policy lifo &&
		refused 2 "--eta takes a number" dblp-fabric serve --scheduler "$at" --count 5 --eta nan &&
		refused 2 "needs --listen" dblp-fabric schedule --workers 1 --count 5 || return
	head -c 96 /dev/zero | ip netns exec "$w0" timeout 20 socat - "TCP:$at" > "$tmp/stranger"
	[ "$(stat -c %s "$tmp/stranger")" -eq 96 ] || return
	kill "$pid_worker1"
	wait "$pid_worker1"
	finish && [ "$(counter scheduler refused)" -eq 7 ] && [ "$(counter scheduler strangers)" -ge 7 ]
}
try "what must not come is refused with its reason, and counted" bad_input

done_testing
