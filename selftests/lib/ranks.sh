# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154 # for those who source this; from others
#
# Ranks of dblp-train(1) and members of dblp-fabric(1), for the tests over TCP and those over
# AF_DBLP. Source it after lib.sh. $here is an address, $as a command to run all others by,
# such as one that enters a namespace.

as=()
port=7000
text=$tmp/text
seq -f 'Rank %.0f sends what it has, and then waits until the others have got it.' 200 > "$text"
small=(--batch 8 --context 4 --hidden 8)

# next_port: set $port to another port, on which no process listens at any address
next_port()
{
	local hex

	printf -v hex %04X $((++port))
	while grep -q ":$hex [0-9A-F]*:0000 0A " /proc/net/tcp /proc/net/tcp6 2> /dev/null; do
		printf -v hex %04X $((++port))
	done
}

# train STATUS N OPTION...: run N ranks, which must end with this status; rank I writes $tmp/I
# and $tmp/log.I. The plan is a ring, which adds in a fixed order
train()
{
	local status=$1 n=$2 i
	shift 2

	next_port
	for ((i = 0; i < n; i++)); do
		begin $i timeout 50 dblp-train run "${small[@]}" --rounds 8 --plan ring --nranks "$n" \
			--rank $i --rendezvous "tcp://$here:$port" --log "$tmp/log.$i" "$@" "$text"
	done
	for ((i = 0; i < n; i++)); do
		all_end "$status" $i || return
	done
}

# Print the digest of the replicas that rank 0 reports at the end
replica()
{
	sed -n 's/.* the same on all ranks: \([0-9a-f]\{16\}\)$/\1/p' "$tmp/0"
}

# begin NAME COMMAND...: run in the background; output in $tmp/NAME, pid in pid_NAME
begin()
{
	local name=$1
	shift

	"${as[@]}" "$@" > "$tmp/$name" 2>&1 &
	printf -v "pid_$name" %s $!
	all_pids+=($!)
}

# all_end STATUS NAME...: wait until each process ends with this status
all_end()
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

# says NAME TEXT: the output of process NAME has TEXT
says()
{
	grep -q -F -e "$2" "$tmp/$1" && return
	echo "$1 does not say: $2"
	cat "$tmp/$1"
	return 1
}

has_lines()
{
	[ "$(wc -l < "$tmp/$1")" -gt "$2" ]
}

# Members of a fabric, at $at

count()
{
	dblp-train async --count "${small[@]}" "$text"
}

fabric()
{
	local name=$1
	shift

	begin "$name" dblp-fabric "$@" --count "$count"
}

# scheduler OPTION...: run a scheduler of four workers at $at
scheduler()
{
	rm -f "$tmp"/{steps,later}
	fabric scheduler schedule --listen "$at" --workers 4 --timeout 2s "$@"
	wait_until 30 listens "$at"
}

listens()
{
	"${as[@]}" ss -Hltn "src $1" | grep -q LISTEN
}

# worker N OPTION...: run worker N
worker()
{
	local n=$1
	shift

	rm -f "$tmp/log$n"
	begin "worker$n" dblp-train async --scheduler "$at" --worker "$n" "${small[@]}" \
		--log "$tmp/log$n" "$@" "$text"
}

# End the scheduler, and with it all members
finish()
{
	kill "$pid_scheduler" && all_end 0 scheduler || return
	cat "$tmp/scheduler"
}

# counter NAME COUNTER: print a counter from the last line of process NAME
counter()
{
	tail -n 1 "$tmp/$1" | tr ',' '\n' | sed -n "s/^ *$2 //p"
}

# All N updates of the workers were applied, and the replica lacked at most MAX. An update whose
# acknowledgement was lost, so that its worker has retried, may be applied twice.
applied()
{
	local n retries

	cat "$tmp/server" "$tmp/replica"
	n=$(counter scheduler applied)
	retries=$(awk '$1 == "update" { n += $NF - 1 } END { print n }' "$tmp"/log[0-3])
	echo "$n updates applied, $retries retries"
	[ "$n" -ge "$1" ] && [ "$n" -le $(($1 + retries)) ] && [ "$(counter server version)" -eq "$n" ] &&
		[ "$(tail -n 1 "$tmp/steps" | cut -d' ' -f2)" -eq "$n" ] && within "$2"
}

# The steps that the replica lacked stayed within the bound $1
within()
{
	awk -v max="$1" '$5 > max * 1.000001 { print "the replica lacks " $5; bad = 1 }
		END { exit bad || !NR }' "$tmp/steps"
}
