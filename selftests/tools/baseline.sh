#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblp-baseline, the comparison of the experiments, delivers what the papers' software promises. It
# checks each message itself: received chunks are exact, missing ones are zero.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"

new_ns one server
# shellcheck disable=SC2154 # new_ns sets them
join "$one" "$server"

# delivers FILTER OPTION...: run 2 rounds of 3 messages; FILTER is true for the JSON
delivers()
{
	local filter=$1
	shift

	dblp-baseline --to "$server" --address 10.9.0.2 --from "$one,$one,$one" --size 300001 \
		--rounds 2 --timeout 50s "$@" > "$tmp/json" || return
	cat "$tmp/json"
	jq -e ".delivered_bytes + .missing_bytes == 1800006 and (.samples | length) == 2 and
		(.samples | add) == .elapsed_ns and ($filter)" "$tmp/json" > /dev/null
}

for loss in 0 600000; do
	try "loss $loss ppm, P_low 0: all of it" delivers ".missing_bytes == 0" --loss ${loss}ppm
	# Of 206 chunks, 1 and 84 may be missing
	try "loss $loss ppm, P_low 0.8 %" delivers ".missing_bytes <= 6 * 1460" --loss ${loss}ppm --p-low 0.8%
	try "loss $loss ppm, P_low 40.8 %" delivers \
		".missing_bytes > 0 and .missing_bytes <= 6 * 84 * 1460" --loss ${loss}ppm --p-low 40.8%
done
# After n passes, 0.6^n of the 1236 chunks are missing
try "the number of passes depends on the loss" delivers ".probes >= 6 * 5 and .probes <= 6 * 40" \
	--loss 60%
try "almost no received chunk is retransmitted" delivers ".again <= 60" --loss 60%
try "each round has its number" delivers "true" --hook "echo \$DBLP_ROUND >> $tmp/rounds"
try "rounds are numbered from 0" [ "$(paste -s -d ' ' "$tmp/rounds")" = "0 1" ]

try "an invalid share is refused" ends_with 2 "--p-low: '1000001ppm' is more than 100%" dblp-baseline --p-low 1000001ppm
try "a failing hook fails the run" ends_with 1 "the hook failed before round 0" dblp-baseline --hook false
try "a missing namespace fails the run" ends_with 1 "a sender has failed" dblp-baseline --from nowhere
done_testing
