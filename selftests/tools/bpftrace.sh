#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The one-liners for bpftrace of Documentation/admin.rst: their output for real traffic agrees with
# the counters.

# shellcheck disable=SC2154,SC2317 # new_ns sets them; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

needs bpftrace
new_ns a b
join "$a" "$b"
# Without GSO, because whole trains would be lost
ip -n "$a" link set eth0 gso_max_segs 1 && netem "$a" delay 1ms loss 5% || exit 1

# Eight messages with bytes missing; three sockets that end without an error, including the
# listener; and a refused connection
cat > "$tmp/scene" <<END
dblp-xfer --from $a --to $b --address 10.9.0.2 --count 8 --size 60000 --budget 200000 &&
	nsenter --net=/run/netns/$a dblp-peer fails ECONNREFUSED connect 10.9.0.2 7009
END

# sum NAME: print the sum of a counter at both ends
sum()
{
	echo $(($(json "$a" ".$1" stats) + $(json "$b" ".$1" stats)))
}

# watched WORD: run the document's one-liner that contains WORD during the scene; its maps are in
# $tmp/maps. bpftrace runs the scene and ends with it.
watched()
{
	local line

	line=$(grep "^bpftrace .*$1" "$built/trace-commands")
	is wc -l 1 <<< "$line" && echo "$line" || return
	eval "timeout -s INT 60 bpftrace -f json -c '/usr/bin/bash $tmp/scene' ${line#bpftrace }" \
		> "$tmp/json" || return
	cat "$tmp/json"
	grep '^{"type": "\(map\|hist\)"' "$tmp/json" | jq -c .data > "$tmp/maps"
	[ -s "$tmp/maps" ]
}

# histogram NAME: print the number of values in a histogram
histogram()
{
	jq -s "map(.\"@$1\" // empty | .[].count) | add" "$tmp/maps"
}

lost()
{
	local before

	before=$(sum PktLost)
	watched '@lost' || return
	[ "$(sum PktLost)" -gt "$before" ] &&
		is jq -s 'map(."@lost" // empty | to_entries[].value) | add' "$tmp/maps" \
			"$(($(sum PktLost) - before))"
}
try "packets lost by socket" lost

missing()
{
	watched '@missing' && is histogram missing 8 &&
		fails jq -s -e '[.[]."@missing"[] | select(.min > 12000 or .max > 20000)] | length > 0' \
			"$tmp/maps"
}
try "bytes missing, as a histogram" missing

errors()
{
	watched '@err' && is jq -s -c 'map(."@err" // empty) | add | to_entries | map([.key, .value]) | sort' \
		"$tmp/maps" '[["0",3],["111",1]]'
}
try "ends of connections, by their error" errors

times()
{
	watched '@us' && is histogram us 8 &&
		jq -s -e '[.[]."@us" // empty | .[] | select(.min > 0 and .max < 60000000)] | length > 0' \
			"$tmp/maps"
}
try "how long messages are open" times

done_testing
