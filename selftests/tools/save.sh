#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblpctl save: running its output restores the state, in any namespace. Writing of files and
# refusal of truncated ones are tested in host/dblpctl.py.

# shellcheck disable=SC2154,SC2317 # new_ns sets it; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

new_ns a b

# all NS: print all settings
all()
{
	printf 'phase list\njob list\nparam list\n' | ctl "$1" -j -b -
}

# Names are permuted, so that each is in use by another object
changes()
{
	ctl "$a" -b - <<-END
		phase del critical
		phase set 0 name x loss 33.3333% close early order shuffled fill keep cap 10%
		phase set 2 name reliable
		phase set 0 name tolerant
		phase set 7 name last loss 1ppm order sequential
		job add 7 phase last name resnet
		job add 9 owner nobody name nine cap 5ppm
		job set nine name -
		job add 2147483647 phase tolerant name z-_9
		job add 11 clr on low 1% eta 0.25 hold 2 low-phase last high-phase tolerant
		job add 12 clr on high 100% low-phase last high-phase reliable
		job set 12 phase tolerant
		param set congestion lossy cap 0.0001% timeout 90s keepalive 24h gso off
	END
}

round_trip()
{
	changes && ctl "$a" save > "$tmp/saved" && all "$a" > "$tmp/wanted" || return
	diag < "$tmp/saved"
	fails diff "$tmp/wanted" <(all "$b") > /dev/null && ctl "$b" -b "$tmp/saved" &&
		diff "$tmp/wanted" <(all "$b") && ctl "$b" save "$tmp/again" && diff "$tmp/saved" "$tmp/again"
}
try "the output restores the state in another namespace" round_trip

twice()
{
	ctl "$b" -b - <<-END && ctl "$b" -b "$tmp/saved" && diff "$tmp/wanted" <(all "$b")
		job add 8 name more
		phase set 3 name more
		param set cap 5%
		job set 2147483647 name resnet_2
		job set 7 name z-_9
		job add 13 name resnet
		job set 11 name eleven
		job replace 12
	END
}
try "running it again undoes later changes" twice

# A live socket prevents deletion of its job and phase, not changes of them
with_sockets()
{
	local id

	spawn ip netns exec "$b" dblp-peer listen ::1 7000 say listening pause
	wait_until 10 output_has "$spawned" listening || return
	id=$(json "$b" '.[0].id' socket list) && ctl "$b" socket set "$id" job 7 &&
		ctl "$b" job set 7 phase tolerant name other && ctl "$b" -b "$tmp/saved" &&
		diff "$tmp/saved" <(ctl "$b" save) &&
		is json "$b" '[.job, .phase, .budget]' socket show "$id" '[7,7,1]'
}
try "it also restores a job with a socket" with_sockets

done_testing
