#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblp-fabric(1) over TCP: asynchronous updates are applied, or dropped if they are late; errors
# name a killed process; invalid input is refused. Tests with AF_DBLP and with several hosts are
# in tools/ranks.sh.

# shellcheck disable=SC2154,SC2317 # host.sh sets them; functions are called by try
# shellcheck source=selftests/lib/host.sh
. "$(dirname "$(readlink -f "$0")")/../lib/host.sh"

count=$(count)

# members DIV-MAX [OPTION of the scheduler...]: start scheduler, server and replica
members()
{
	local eta=(--transport tcp --eta 0.5 --div-max "$1")
	shift

	next_port
	at=$here:$port
	scheduler "$@" && fabric server serve --scheduler "$at" "${eta[@]}" --log "$tmp/steps" &&
		fabric replica replica --scheduler "$at" "${eta[@]}" --log "$tmp/later"
}

# endless N [OPTION...]: start a worker that does not end by itself
endless()
{
	worker "$1" --transport tcp --rounds 100000 "${@:2}"
}

all_applied()
{
	local i

	members 0.3 "$@" || return
	for i in 0 1 2 3; do
		worker "$i" --transport tcp --rounds 20
	done
	all_end 0 worker0 worker1 worker2 worker3 && finish && all_end 0 server replica && applied 80 0.3
}
try "updates of all workers are applied" all_applied
try "updates are applied with policy fifo, too" all_applied --policy fifo

# A worker pauses for longer than its delay bound
late()
{
	members 100 --delay-bound 5 && endless 1 && wait_until 30 has_lines log1 1 &&
		endless 0 --pause 200ms --pause-every 1 &&
		wait_until 30 grep -q '^update .* 1 1$' "$tmp/log0" && finish && all_end 1 worker0 worker1 &&
		says worker0 "the scheduler was ended" || return
	[ "$(counter scheduler dropped)" -gt 0 ] && [ "$(counter scheduler failed)" -eq 0 ] &&
		awk '$6 > 5 { exit 1 }' "$tmp/steps"
}
try "updates beyond their delay bound are dropped before they are sent" late

no_replica()
{
	members 1 && endless 0 || return
	wait_until 30 grep -q '^update' "$tmp/log0" || return
	kill -9 "$pid_replica" && wait_until 30 has_lines log0 100 &&
		kill -9 "$pid_server" && all_end 1 worker0 scheduler &&
		says worker0 "the server has failed, and there is no replica" &&
		says scheduler "the server has failed, and there is no replica"
}
try "without a replica all processes end with the reason" no_replica

no_scheduler()
{
	members 1 && endless 0 || return
	wait_until 30 grep -q '^update' "$tmp/log0" || return
	kill -9 "$pid_scheduler"
	all_end 1 worker0 server replica && says worker0 "the scheduler has failed" &&
		says server "the scheduler has failed"
}
try "a scheduler that is killed is named by all others" no_scheduler

# refused STATUS REASON COMMAND...: the command ends with this status and reason
refused()
{
	local status=$1 reason=$2
	shift 2

	ends_with "$status" "$reason" timeout 20 "$@"
}

bad_input()
{
	local worker

	members 1 && endless 1 || return
	worker=(dblp-train async --scheduler "$at" --transport tcp)
	wait_until 30 grep -q '^update' "$tmp/log1" || return
	refused 1 "fewer workers than 5" "${worker[@]}" --worker 4 "${small[@]}" "$text" &&
		refused 1 "worker 1 has joined already" "${worker[@]}" --worker 1 "${small[@]}" "$text" &&
		refused 1 "another --count" "${worker[@]}" --worker 0 --hidden 9 "$text" &&
		refused 1 "does not have 5 elements" dblp-fabric join --scheduler "$at" --count 5 --transport tcp &&
		refused 1 "has joined already" dblp-fabric serve --scheduler "$at" --count "$count" --eta 1 --transport tcp &&
		refused 1 "has joined already" dblp-fabric replica --scheduler "$at" --count "$count" --eta 1 --transport tcp &&
		refused 2 "is not an address and a port" dblp-fabric join --scheduler host --count 5 &&
		refused 2 "one of ordered, fifo" dblp-fabric schedule --listen "$at" --workers 1 --count 5 --policy lifo &&
		refused 2 "--eta: 'nan' is not a number" dblp-fabric serve --scheduler "$at" --count 5 --eta nan &&
		refused 2 "needs --listen" dblp-fabric schedule --workers 1 --count 5 || return
	head -c 96 /dev/zero | timeout 20 socat - "TCP:$at" > "$tmp/stranger"
	[ "$(stat -c %s "$tmp/stranger")" -eq 96 ] || return
	kill "$pid_worker1"
	wait "$pid_worker1"
	finish && [ "$(counter scheduler refused)" -eq 7 ] && [ "$(counter scheduler strangers)" -ge 7 ]
}
try "invalid input is refused with its reason, and counted" bad_input

done_testing
