#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Close policy early over a network that loses, delays and reorders: the bound
# holds, the budget is used for what was lost and for no more, and nobody waits
# for a repair. dblp-xfer checks the bound and both maps with each message.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/link.sh
. "$(dirname "$(readlink -f "$0")")/../lib/link.sh"

new_ns client server
# shellcheck disable=SC2154 # new_ns sets them
join "$client" "$server"
for ns in "$client" "$server"; do
	one_by_one "$ns" eth0 || exit 1
done

# The default takes losses of a third for congestion, and two packets a round trip take long
early()
{
	dblp-xfer --from "$client" --to "$server" --address 10.9.0.2 --cc lossy --policy early \
		--seed $((tap_count + 1)) --timeout 90 "$@"
}

# A long way leaves busy machines time; kernels that look for bugs need still more, and
# less to do: else they are late with segments that nobody has lost.
way=40ms
[ "${DBLP_VIRTUAL_TIME:-0}" = 1 ] || way=250ms
kB=1000
if [ -n "${KSFT_MACHINE_SLOW:-}" ]; then
	way=500ms
	kB=200
fi

# network ARGUMENT...: on the way there
network()
{
	netem "$client" delay $way "$@"
	netem "$server" delay $way
}

network
try "without loss nothing is missing" early --budget 500000 --size $((300 * kB)),1000 --count 8 \
	--allow-missing 0
network loss 2%
try "2% loss, budget 50 %: what was lost is missing" early --budget 500000 \
	--size $((300 * kB)) --count 10 --expect-missing $((14 * kB)) --allow-missing $((200 * kB))
network loss 30%
try "30% loss, budget 5 %: the rest is repaired" early --budget 50000 \
	--size $((200 * kB)),1000 --count 6
try "30% loss, critical prefix" early --budget 500000 --critical $((100 * kB)) \
	--size $((200 * kB)),1000 --count 6 --expect-missing 1000
network loss 50%
try "50% loss, budget 95 %" early --budget 950000 --size $((100 * kB)),1000 --count 6
network reorder 20%
try "reordering by whole round trips" early --budget 300000 --size $((100 * kB)) --count 6

# took POLICY: milliseconds of a message, the median and the average. With a
# congestion control to which 15 % of loss are none, or its window decides.
took()
{
	dblp-perf fanin --from "$client" --to "$server" --address 10.9.0.2 --size 10000 \
		--cc lossy -w 1 -n 121 --policy "$1" --budget 50% --samples --json |
		jq -er '.samples | [sort[length / 2 | floor], add / length] |
			map(. / 1e6 | floor) | join(" ")'
}

# 15 % of 7 segments: two messages of three lose some, and full has repaired them
# a round trip (80 ms) later at the earliest. With early that costs a quarter of a
# round trip. Only when the last segment was lost, too, does it cost 1.5 of them.
no_wait()
{
	local none full early

	network
	read -r -a none < <(took early) || return
	network loss 15%
	read -r -a full < <(took full) && read -r -a early < <(took early) || return
	echo "nothing lost ${none[*]} ms, full ${full[*]} ms, early ${early[*]} ms"
	[ "${early[0]}" -le $((none[0] * 5 / 4)) ] && [ "${early[1]}" -le $((none[1] * 3 / 2)) ] &&
		[ "${early[1]}" -lt "${full[1]}" ]
}
try_virtual "nobody waits for the repair of what may be missing" no_wait

try "no sockets are left at the client" wait_until 40 no_sockets "$client"
try "no sockets are left at the server" wait_until 40 no_sockets "$server"
done_testing
