#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Close policy early over a network that loses, delays and reorders: the bound holds, only lost
# segments use the budget, and messages do not wait for repairs. dblp-xfer checks the bound
# and both loss maps of each message.

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

# The default treats a loss of a third as congestion, and two packets per round trip are slow
early()
{
	dblp-xfer --from "$client" --to "$server" --address 10.9.0.2 --cc lossy --policy early \
		--seed $((tap_count + 1)) --timeout 90 "$@"
}

# A long delay gives busy machines time. Debug kernels need more, and less work, otherwise
# their segments are late without being lost.
way=40ms
[ "${DBLP_VIRTUAL_TIME:-0}" = 1 ] || way=250ms
kB=1000
if [ -n "${KSFT_MACHINE_SLOW:-}" ]; then
	way=500ms
	kB=200
fi

# network ARGUMENT...: apply netem to the client's packets
network()
{
	netem "$client" delay $way "$@"
	netem "$server" delay $way
}

network
try "without loss nothing is missing" early --budget 500000 --size $((300 * kB)),1000 --count 8 \
	--allow-missing 0
network loss 2%
try "2% loss, budget 50 %: lost segments are missing" early --budget 500000 \
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

# took POLICY: print the median and mean time of a message, ms. The congestion control tolerates
# a loss of 15 %, otherwise its window would determine the time.
took()
{
	dblp-perf fanin --from "$client" --to "$server" --address 10.9.0.2 --size 10000 \
		--cc lossy -w 1 -n 121 --policy "$1" --budget 50% --samples --json |
		jq -er '.samples | [sort[length / 2 | floor], add / length] |
			map(. / 1e6 | floor) | join(" ")'
}

# With 15 % loss of 7 segments, two of three messages lose some. Policy full repairs them a round
# trip (80 ms) later at the earliest. Policy early costs a quarter of a round trip, or 1.5
# round trips if the last segment was lost.
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
try_virtual "messages do not wait for repairs within the budget" no_wait

try "no sockets are left at the client" wait_until 40 no_sockets "$client"
try "no sockets are left at the server" wait_until 40 no_sockets "$server"
done_testing
