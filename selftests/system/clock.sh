#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The clock is set, and the machine is suspended, during a handshake, an idle connection and
# a transfer. Time that did not pass for timers causes no timeout.

# shellcheck disable=SC2154,SC2317 # new_ns sets them; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"

[ -n "${DBLP_VM:-}" ] || skip_all "sets the clock and suspends the machine, so only in a VM of selftests/vm/run"
grep -q -w mem /sys/power/state 2>/dev/null || skip_all "needs suspend"
new_ns client server
ip link add eth0 netns "$client" type veth peer name eth0 netns "$server" || exit 1
ip -n "$client" addr add 10.9.0.1/24 dev eth0 && ip -n "$client" link set eth0 up &&
	ip -n "$server" addr add 10.9.0.2/24 dev eth0 && ip -n "$server" link set eth0 up || exit 1

# Commands that change the clock or suspend
cat > "$tmp/forward" <<-'END'
	date -s "@$(($(date +%s) + 100000))"
END
cat > "$tmp/backward" <<-'END'
	date -s "@$(($(date +%s) - 100000))"
END
# An alarm that comes before the machine sleeps is a wakeup event, which ends the attempt. Otherwise a
# busy machine, which takes longer, would sleep for ever
cat > "$tmp/suspend" <<-'END'
	before=$(cat /sys/power/suspend_stats/success)
	for after in 3 10 30; do
		events=$(cat /sys/power/wakeup_count)
		rtcwake -m no -s "$after" && echo "$events" > /sys/power/wakeup_count && echo mem > /sys/power/state
		rtcwake -m disable
		[ "$(cat /sys/power/suspend_stats/success)" -gt "$before" ] && exit
	done
	exit 1
END

# Commands that undo the change of the clock, because this script has time limits
declare -A undo=([forward]=backward [backward]=forward [suspend]=:)
undo()
{
	[ "${undo[$1]}" = : ] || bash "$tmp/${undo[$1]}"
}

transfer()
{
	netem "$client" rate 50mbit && netem "$server" delay 2ms &&
		dblp-xfer --from "$client" --to "$server" --address 10.9.0.2 --size 200000 --count 20 \
			--timeout 100 --halfway "bash $tmp/$1"
	local status=$?
	undo "$1"
	return "$status"
}

connecting()
{
	ip netns exec "$client" dblpctl -j socket list | jq -e '.[0].state | test("sent")'
}

# Delay the answer until after the change, so that the client waits for it
handshake()
{
	local status=1

	netem "$client" && netem "$server" loss 100% || return
	spawn ip netns exec "$server" dblp-peer listen 10.9.0.2 "$2" say listening accept drain
	wait_until 60 output_has "$spawned" listening || return
	ip netns exec "$client" dblp-peer connect 10.9.0.2 "$2" send 3 1000 close &
	wait_until 60 connecting && bash "$tmp/$1" && netem "$server" && wait $! && status=0
	undo "$1"
	[ "$status" = 0 ] && ended "$spawned" 0
}

# Leave time for keepalives before and after the change
idle()
{
	local status=1

	netem "$client" && netem "$server" || return
	spawn ip netns exec "$server" dblp-peer listen 10.9.0.2 "$2" say listening accept drain
	wait_until 60 output_has "$spawned" listening || return
	ip netns exec "$client" dblp-peer set keepalive 500 connect 10.9.0.2 "$2" \
		send 1 1000 say idle await "$tmp/go" send 3 1000 close > "$tmp/client" &
	wait_until 60 grep -q idle "$tmp/client" && bash "$tmp/$1" && sleep 1 && touch "$tmp/go" &&
		wait $! && status=0
	undo "$1"
	rm -f "$tmp/go"
	[ "$status" = 0 ] && ended "$spawned" 0
}

port=7000
for what in forward backward suspend; do
	port=$((port + 2))
	# 6.12 in virtual time and 7.3 sleep for ever: no alarm of the RTC wakes them in a VM
	if [ "$what" = suspend ] && [[ $(uname -r) != 6.1.* ]]; then
		skip_point suspend "kernels after 6.1 do not wake up in a VM"
		continue
	fi
	try "$what: a connection is made" handshake $what $port
	try "$what: a connection is idle" idle $what $((port + 1))
	try "$what: messages are under way" transfer $what
done

for ns in client server; do
	try "no sockets are left at the $ns" wait_until 40 no_sockets "${!ns}"
done
done_testing
