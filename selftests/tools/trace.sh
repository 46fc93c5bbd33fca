#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tracepoints: records of real traffic agree with the counters, with dblpctl and with each other.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

needs trace-cmd
tracing=/sys/kernel/tracing
dir=$tracing/instances/dblp-$$
mkdir "$dir" || exit 1

end()
{
	echo 0 > "$dir/events/enable"
	rmdir "$dir"
	all_pids+=("${standing[@]}")
	cleanup
}
standing=()
trap end EXIT

new_ns a b
# shellcheck disable=SC2154 # new_ns sets them
join "$a" "$b"
echo 16384 > "$dir/buffer_size_kb"
echo 1 > "$dir/events/dblp/enable"
echo 1 > "$dir/events/skb/kfree_skb/enable"

# snap: write the records until now to a file for each event and namespace
snap()
{
	rm -f "$tmp"/netns=*
	sed -n 's/.*: dblp_/dblp_/p' "$dir/trace" | awk -v tmp="$tmp" '{
		event = substr($1, 1, length($1) - 1)
		print substr($0, length($1) + 2) > (tmp "/" $2 "." event)
	}'
}

# records NS EVENT [FIELD=VALUE...]: print the records with these values
records()
{
	local file

	file=$tmp/netns=$(stat -L -c %i "/run/netns/$1").$2
	[ -e "$file" ] || return 0
	awk -v want="${*:3}" '
		BEGIN { n = split(want, w, " ") }
		{
			for (k = 1; k <= n; k++)
				if (!index(" " $0 " ", " " w[k] " "))
					next
			print
		}' "$file"
}

# field NAME: print a field of each record on stdin
field()
{
	sed -n "s/^\(.* \)\?$1=\([^ ]*\).*/\2/p"
}

# total NAME: print the sum of a field
total()
{
	field "$1" | awk '{ sum += $1 } END { print sum + 0 }'
}

# same NAME GOT WANTED: compare a number of the records with another source
same()
{
	echo "$1: $2"
	[ "$2" = "$3" ] || { echo "... but elsewhere it is $3"; return 1; }
}

counter()
{
	json "$1" ".$2" stats
}

# moved NAME NS AT-LEAST: has a counter risen by AT-LEAST?
moved()
{
	[ "$(counter "$2" "$1")" -ge "$3" ]
}

# settled N: wait until N messages are settled, with all their packets
settled()
{
	moved MsgSent "$a" "$1" && [ "$(json "$a" .inflight socket show "$id")" = 0 ]
}

# A connection for all following tests
spawn in_ns "$b" dblp-peer set cap 1000000 listen 10.9.0.2 7000 say listening accept drain
server=$spawned
wait_until 10 output_has "$server" listening || exit 1
spawn in_ns "$a" dblp-peer connect 10.9.0.2 7000 say connected send 10 20000 say sent \
	await "$tmp/lossy" send 20 100000 say sent2 await "$tmp/silent" send 1 100000 say sent3 \
	await "$tmp/switch" congestion lossy send 2 20000 await "$tmp/end" close
client=$spawned
standing=("${all_pids[@]}")
all_pids=()
wait_until 10 output_has "$client" sent || exit 1
id=$(json "$a" '.[0].id' socket list) || exit 1
wait_until 10 settled 10 || exit 1
sock=$(printf 'sock=%#x' "$id")

# All packets were read, so tools that show dropped packets must show none
read_is_no_drop()
{
	echo 0 > "$dir/events/skb/kfree_skb/enable"
	[ "$(counter "$b" PktReceived)" -gt 10 ] && fails grep 'kfree_skb: .*protocol=2048' "$dir/trace"
}
try "read packets do not count as dropped" read_is_no_drop

states()
{
	snap
	records "$a" dblp_conn_state "$sock" | tee "$tmp/states"
	is field to "$(printf 'init-sent\ncookie-sent\nestablished')" < "$tmp/states" &&
		is field from "$(printf 'closed\ninit-sent\ncookie-sent')" < "$tmp/states" &&
		[ "$(grep -c 'peer=\[::ffff:10.9.0.2\]:7000$' "$tmp/states")" -eq 3 ] &&
		same "listener" "$(records "$b" dblp_conn_state to=listen | wc -l)" 1 &&
		same "child" "$(records "$b" dblp_conn_state to=established | field sock)" \
			"$(printf '%#x' "$(json "$b" '.[] | select(.state == "established").id' socket list)")"
}
try "the states of a connection, by the number that dblpctl shows" states

# The last record of the congestion control agrees with the idle socket
congestion()
{
	local last name

	last=$(records "$a" dblp_cc "$sock" name=sqrt | tail -n 1)
	echo "$last"
	for name in cwnd pacing_rate min_rtt_us srtt_us; do
		same "$name" "$(field "$name" <<< "$last")" "$(json "$a" ".$name" socket show "$id")" ||
			return
	done
	fails grep -v -E '^(startup|steady|rivals|hold)$' \
		<(records "$a" dblp_cc "$sock" name=sqrt | field mode)
}
try "congestion control, its state by name" congestion

phases()
{
	ctl "$a" job add 7 phase critical && ctl "$a" job set 7 phase tolerant &&
		ctl "$a" socket set "$id" job 7 && ctl "$a" socket set "$id" phase critical &&
		ctl "$a" socket set "$id" phase tolerant || return
	snap
	is records "$a" dblp_phase_changed "$(printf 'netns=%u sock=%s job=7 from=%u to=%u\n' \
		"$(stat -L -c %i "/run/netns/$a")" 0x0 1 2 \
		"$(stat -L -c %i "/run/netns/$a")" "${sock#*=}" 0 2 \
		"$(stat -L -c %i "/run/netns/$a")" "${sock#*=}" 2 1 \
		"$(stat -L -c %i "/run/netns/$a")" "${sock#*=}" 1 2)"
}
try "phases of a job and of a socket" phases

# The phase is tolerant now: messages are closed with bytes missing
lossy()
{
	# Without GSO, because whole trains would be lost
	ip -n "$a" link set eth0 gso_max_segs 1 && netem "$a" loss 10% && touch "$tmp/lossy" &&
		wait_until 30 output_has "$client" sent2 && wait_until 30 settled 30 || return
	snap
	same "lost" "$(records "$a" dblp_packet_lost "$sock" | wc -l)" "$(counter "$a" PktLost)" &&
		same "lost here" "$(records "$a" dblp_packet_lost "$sock" | wc -l)" \
			"$(json "$a" .pkts_lost socket show "$id")" &&
		[ "$(records "$a" dblp_packet_lost why=reordering | wc -l)" -gt 0 ] &&
		fails grep -v -E '^(reordering|time)$' \
			<(records "$a" dblp_packet_lost | field why)
}
try "packets lost, and why" lossy

# missing NS SIDE: print the missing bytes of each message
missing()
{
	records "$1" dblp_msg_close "side=$2" |
		sed 's/.*msg=\([0-9]*\) .*missing=\([0-9]*\) .*reason=\([a-z]*\) .*/\1 \2 \3/' | sort -n
}

closes()
{
	local reason

	missing "$a" send > "$tmp/sent"
	missing "$b" recv > "$tmp/received"
	diff "$tmp/sent" "$tmp/received" || return
	for reason in complete budget deadline; do
		same "sent, $reason" "$(records "$a" dblp_msg_close side=send "reason=$reason" | wc -l)" \
			"$(counter "$a" "MsgSent${reason^}")" &&
			same "received, $reason" \
			"$(records "$b" dblp_msg_close side=recv "reason=$reason" | wc -l)" \
			"$(counter "$b" "MsgReceived${reason^}")" || return
	done
	[ "$(counter "$a" MsgSentBudget)" -gt 0 ] &&
		same "missing" "$(records "$b" dblp_msg_close side=recv | total missing)" \
			"$(counter "$b" BytesMissing)" &&
		same "forgiven" "$(records "$a" dblp_msg_close side=send | total missing)" \
			"$(json "$a" '.BytesForgivenSent + .BytesForgivenUnsent' stats)"
}
try "messages closed, and why, at both ends" closes

opens()
{
	local end side

	for end in "$a send" "$b recv"; do
		side=${end#* }
		same "$side" "$(records "${end% *}" dblp_msg_open "side=$side" | wc -l)" 30 &&
			is xargs -a <(records "${end% *}" dblp_msg_open "side=$side" | field length | uniq -c) \
				'10 20000 20 100000' &&
			is xargs -a <(records "${end% *}" dblp_msg_open "side=$side" | field policy | uniq -c) \
				'30 eager' || return
	done
	is xargs -a <(records "$a" dblp_msg_open side=send | field phase | uniq -c) '10 0 20 2' &&
		is xargs -a <(records "$b" dblp_msg_open side=recv | field budget | uniq -c) \
			'10 0 20 408000'
}
try "messages opened, with their settings" opens

# No packet arrives for a while
timeouts()
{
	local before

	before=$(counter "$a" PtoExpired)
	netem "$a" loss 100% && touch "$tmp/silent" &&
		wait_until 20 moved PtoExpired "$a" $((before + 4)) &&
		netem "$a" loss 0% && wait_until 30 settled 31 || return
	snap
	records "$a" dblp_pto "$sock" | tee "$tmp/pto"
	same "timeouts" "$(wc -l < "$tmp/pto")" "$(counter "$a" PtoExpired)" &&
		is xargs -a <(field count < "$tmp/pto" | tail -n +1 | sort -n -u | head -n 3) '1 2 3'
}
try "probe timeouts" timeouts

switched()
{
	touch "$tmp/switch" && wait_until 10 settled 33 || return
	snap
	is records "$a" dblp_cc_switched "$(records "$a" dblp_cc_switched "$sock" from=sqrt to=lossy)" &&
		same "switched" "$(records "$a" dblp_cc_switched | wc -l)" 1 &&
		[ "$(records "$a" dblp_cc name=lossy | wc -l)" -gt 0 ] &&
		is field name lossy <<< "$(records "$a" dblp_cc "$sock" | tail -n 1)" &&
		is json "$a" .congestion socket show "$id" lossy
}
try "another congestion control" switched

strays()
{
	local ns

	in_ns "$a" bash -c 'printf x > /dev/udp/10.9.0.2/7000' &&
		wait_until 10 moved DropShort "$b" 1 || return
	snap
	records "$b" dblp_packet_dropped why=DropShort
	is field sock 0x0 <<< "$(records "$b" dblp_packet_dropped why=DropShort)" || return
	for ns in "$a" "$b"; do
		records "$ns" dblp_packet_dropped | sed 's/.*why=\([^ ]*\) n=\(.*\)/\1 \2/' |
			awk '{ n[$1] += $2 } END { for (why in n) print why, n[why] }' | sort > "$tmp/dropped"
		json "$ns" 'to_entries[] | select(.key | startswith("Drop")) | "\(.key) \(.value)"' \
			stats nonzero | sort > "$tmp/counted"
		diff "$tmp/dropped" "$tmp/counted" || return
	done
}
try "packets dropped, by the name of their counter" strays

# Names of all counters of dropped packets, each of which may be the reason
counters_named()
{
	json "$a" 'to_entries[] | select(.value | type == "number") | .key' stats | while IFS= read -r name; do
		grep -q "\"$name\"" "$tracing/events/dblp/dblp_packet_dropped/format" || echo "$name"
	done > "$tmp/nameless"
	is cat "$tmp/nameless" ''
}
try "each counter of dropped packets has its name in the event" counters_named

ends()
{
	touch "$tmp/end" && wait_until 10 no_sockets "$a" && wait_until 10 no_sockets "$b" || return
	snap
	records "$a" dblp_conn_state "$sock" from=established
	is xargs -a <(records "$a" dblp_conn_state "$sock" | field to | tail -n 2) 'closing closed' &&
		is field err 0 <<< "$(records "$a" dblp_conn_state "$sock" to=closed)"
}
try "the end of a connection" ends

# numbered NS EVENT: print the sum of packets with packet numbers
numbered()
{
	echo $(($(records "$1" "$2" type=DATA | total n) + $(records "$1" "$2" type=CTRL | total n) +
		$(records "$1" "$2" type=PROBE | total n)))
}

packets()
{
	local ns

	for ns in "$a" "$b"; do
		same "sent" "$(numbered "$ns" dblp_packet_sent)" "$(counter "$ns" PktSent)" &&
			same "received" "$(numbered "$ns" dblp_packet_received)" \
				"$(counter "$ns" PktReceived)" &&
			same "ACKs" "$(records "$ns" dblp_packet_sent type=ACK | wc -l)" \
				"$(counter "$ns" AckSent)" || return
	done
	# The records include headers in addition to message bytes
	[ "$(records "$a" dblp_packet_sent type=DATA | total bytes)" -gt \
		"$(json "$a" '.BytesFirst + .BytesAgain' stats)" ] &&
		[ "$(records "$a" dblp_packet_sent type=INIT | wc -l)" -ge 1 ]
}
try "packets sent and received" packets

nothing_lost()
{
	cat "$dir"/per_cpu/cpu*/stats | grep -E '^(overrun|dropped events):' | sort -u |
		tee "$tmp/stats"
	fails grep -v ': 0$' "$tmp/stats"
}
try "the buffer held all of it" nothing_lost

# Commands of the document, see the Makefile
documented()
{
	local event field line

	cat "$built/trace-commands" || return
	grep -o 'dblp:[a-z_]*' "$built/trace-commands" | sort -u | while IFS= read -r event; do
		[ -d "$tracing/events/dblp/${event#*:}" ] || echo "no event $event"
	done > "$tmp/stale"
	grep -o 'tracepoint:dblp:.*' "$built/trace-commands" | while IFS= read -r line; do
		event=${line#tracepoint:dblp:}
		event=${event%%[!a-z_]*}
		grep -o 'args->[a-z_]*' <<< "$line" | while IFS= read -r field; do
			grep -q " ${field#args->}\(\[[0-9]*\]\)\?;" "$tracing/events/dblp/$event/format" ||
				echo "no field $field in $event"
		done
	done >> "$tmp/stale"
	is cat "$tmp/stale" ''
}
try "the document names events and fields that exist" documented

# closed LENGTH: print the number of closed messages in the report
closed()
{
	grep -c "dblp_msg_close: .* side=recv .* length=$1 .* reason=complete" "$tmp/report"
}

with_trace_cmd()
{
	local record report cpu

	record=$(grep '^trace-cmd record' "$built/trace-commands") || return
	# End recording when there is output, not after a fixed time
	record=${record%sleep *}'sh -c "until [ -e seen ]; do sleep 0.1; done"'
	report=$(grep '^trace-cmd report' "$built/trace-commands") || return
	(cd "$tmp" && eval "exec $record") > "$tmp/record" 2>&1 &
	all_pids+=($!)
	wait_until 60 grep -q 1 "$tracing/events/dblp/dblp_msg_close/enable" &&
		dblp-xfer --from "$a" --to "$b" --address 10.9.0.2 --count 3 --size 30000 || return
	# At its end trace-cmd 3.1 may lose the last, partial page of a CPU
	for ((cpu = 0; cpu < $(nproc); cpu++)); do
		taskset "$(printf '%x' $((1 << cpu)))" dblp-xfer --from "$a" --to "$b" --address 10.9.0.2 \
			--count 300 --size 100 || return
	done
	touch "$tmp/seen"
	wait $!
	diag < "$tmp/record"
	(cd "$tmp" && eval "$report") | tee "$tmp/report"
	is closed 30000 3 && return
	# On a busy machine it loses events, and reports this
	grep 'EVENTS DROPPED' "$tmp/report" && [ "$(closed 100)" -ge 3 ]
}
try "the commands of the document, with trace-cmd" with_trace_cmd

done_testing
