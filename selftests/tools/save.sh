#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblpctl save: what it prints has the same effect once more, wherever that is
# run.

# shellcheck disable=SC2154,SC2317 # new_ns sets it; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

new_ns a b

# all NS: what is set there
all()
{
	ctl "$1" -j phase list && ctl "$1" -j job list && ctl "$1" -j param list
}

of_a_new_one()
{
	diff <(ctl "$a" save) - <<-END
		begin	# What was set, for dblpctl -b; without its last line it is refused
		phase set 0 loss 0% close full order auto fill zero cap inherit name reliable
		phase set 1 loss 0.8% close early order auto fill zero cap inherit name critical
		phase set 2 loss 40.8% close eager order auto fill zero cap inherit name tolerant
		param set congestion sqrt cap inherit timeout 30s keepalive 15s
		complete
	END
}
try "of a new namespace" of_a_new_one

# Names go round, so that none may be in the way of another
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
		param set congestion lossy cap 0.0001% timeout 90s keepalive 24h
	END
}

round_trip()
{
	changes && ctl "$a" save > "$tmp/saved" || return
	diag < "$tmp/saved"
	fails diff <(all "$a") <(all "$b") > /dev/null && ctl "$b" -b "$tmp/saved" &&
		diff <(all "$a") <(all "$b") && diff "$tmp/saved" <(ctl "$b" save)
}
try "a round trip" round_trip

twice()
{
	ctl "$b" job add 8 name more && ctl "$b" phase set 3 name more && ctl "$b" param set cap 5% &&
		ctl "$b" job set 2147483647 name resnet_2 && ctl "$b" job set 7 name z-_9 &&
		ctl "$b" job add 13 name resnet && ctl "$b" job set 11 name eleven &&
		ctl "$b" -b "$tmp/saved" && diff <(all "$a") <(all "$b")
}
try "again, over what was changed meanwhile" twice

# unchanged COMMAND...: it fails, and what is set in b stays
unchanged()
{
	all "$b" > "$tmp/before" && fails "$@" && all "$b" | diff "$tmp/before" -
}

# Each beginning of the file, but the whole of it
cut_off()
{
	local size n

	size=$(stat -c %s "$tmp/saved") && ctl "$b" job add 8 name more || return
	for n in {1..9} $(seq 17 29 "$size") $(grep -o -b '.$' "$tmp/saved" | cut -d : -f 1) $((size - 2)); do
		head -c "$n" "$tmp/saved" > "$tmp/part"
		unchanged ctl "$b" -b "$tmp/part" || { echo "cut off behind $n bytes"; return 1; }
	done 2> "$tmp/err"
	tail -n 1 "$tmp/err"
	grep -q "part begins with 'begin' and does not end with 'complete': .* nothing is done" "$tmp/err" &&
		unchanged ctl "$b" -force -b "$tmp/part" && ctl "$b" -b - < "$tmp/saved" && diff <(all "$a") <(all "$b")
}
try "a file that was cut off changes nothing" cut_off

# refused_by LINE: where LINE is before the last one
refused_by()
{
	sed "\$i $1" "$tmp/saved" > "$tmp/edited" && fails ctl "$b" "${@:2}" -b "$tmp/edited"
}

deletes_nothing()
{
	ctl "$b" job add 8 name more && ctl "$b" phase set 3 name more || return
	refused_by 'phase set 3 loss x' && is json "$b" 'map(.id)' phase list '[0,2,3,7]' || return
	refused_by 'job replace 7 phase 5' && is json "$b" 'map(.id)' phase list '[0,2,3,7]' || return
	refused_by 'job replace 7 phase 5' -force 2> "$tmp/err" && is json "$b" 'map(.id)' phase list '[0,2,3,7]' &&
		is json "$b" 'map(.id) | contains([8])' job list true && grep "nothing is deleted" "$tmp/err" &&
		ctl "$b" -b "$tmp/saved" && diff <(all "$a") <(all "$b")
}
try "if a command fails, nothing is deleted" deletes_nothing

in_a_file()
{
	ctl "$a" save "$tmp/file" && diff "$tmp/saved" "$tmp/file" && ln -s file "$tmp/link" && chmod 640 "$tmp/file" &&
		ctl "$b" job add 8 name more && ctl "$b" save "$tmp/link" && fails diff "$tmp/saved" "$tmp/file" &&
		is stat -c '%a %F' "$tmp/file" '640 regular file' && [ -L "$tmp/link" ] && ctl "$b" job del 8 || return
	cp "$tmp/saved" "$tmp/file" && chmod 777 "$tmp" &&
		refused 1 "no permission: this needs CAP_NET_ADMIN in the network namespace (sudo)" \
			in_ns "$b" "${nobody[@]}" dblpctl save "$tmp/file" && diff "$tmp/saved" "$tmp/file" &&
		refused 1 "/dev/null is not a file that could be replaced" ctl "$b" save /dev/null && [ -c /dev/null ] &&
		refused 1 "cannot write $tmp/none/x: No such file or directory" ctl "$b" save "$tmp/none/x" &&
		fails ctl "$b" save > /dev/full && is find "$tmp" -name 'file.*' ''
}
try "in a file, which keeps what it has if that fails" in_a_file

# There is room for another file, but for nothing in it
in_a_full_one()
{
	local full=$tmp/full

	mkdir "$full" && mount -t tmpfs -o size=4k none "$full" && head -c 4096 /dev/zero > "$full/all" || return
	refused 1 "cannot write $full/x: No space left on device" ctl "$b" save "$full/x" && is ls "$full" all &&
		umount "$full"
}
try "where there is no room, and nothing is left behind" in_a_full_one

# A live socket keeps its job and its phase from going, not from being set
with_sockets()
{
	local id

	spawn ip netns exec "$b" dblp-peer listen ::1 7000 say listening pause
	wait_until 10 output_has "$spawned" listening || return
	id=$(json "$b" '.[0].id' socket list) && ctl "$b" socket set "$id" job 7 &&
		ctl "$b" job set 7 phase tolerant name other && ctl "$b" -b "$tmp/saved" &&
		diff <(ctl "$a" save) <(ctl "$b" save) &&
		is json "$b" '[.job, .phase, .budget]' socket show "$id" '[7,7,1]'
}
try "with a socket in a job" with_sockets

flushed()
{
	# What was closed leaves its job a little later
	wait_until 10 is json "$b" 'map(.sockets) | add' job list 0 || return
	ctl "$b" job flush && is ctl "$b" -j job list '[]' && ctl "$b" phase flush &&
		is json "$b" 'map(.id)' phase list '[0]'
}
try "flush: all that is not in use" flushed

replaced()
{
	ctl "$b" job replace 5 name five && ctl "$b" job replace 5 phase 0 owner nobody && ctl "$b" job replace 5 &&
		ctl "$b" job replace 6 && is json "$b" 'map([.id, .name])' job list '[[5,"five"],[6,""]]'
}
try "replace: a job that is there, or is not" replaced
try "replace: a name that is taken" refused 1 "name: another job has this name" \
	ctl "$b" job replace 6 name five
try "replace: which number" refused 2 "a new job needs a number" ctl "$b" job replace
try "nobody flushes" refused 1 "no permission: this needs CAP_NET_ADMIN in the network namespace (sudo)" \
	in_ns "$b" "${nobody[@]}" dblpctl job flush
try "no JSON" refused 2 "save prints commands, not JSON: leave out -j" ctl "$a" -j save

done_testing
