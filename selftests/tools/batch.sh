#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblpctl -b and -N: commands from a file, and in another namespace.

# shellcheck disable=SC2154,SC2317 # new_ns sets it; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

new_ns a b
here=$(dblpctl -j job list)

elsewhere()
{
	dblpctl -N "$a" job add 7 name resnet && is json "$a" 'map(.name)[]' job list resnet &&
		is dblpctl -j -netns "$b" job list '[]' && is dblpctl -j --netns "$b" job list '[]' &&
		is dblpctl -N "/run/netns/$a" -j job show resnet "$(ctl "$a" -j job show 7)" &&
		is dblpctl -j job list "$here"
}
try "-N: another namespace, by name and by file" elsewhere
try "-N: no such namespace" refused 1 "there is no network namespace 'x' (see ip netns list)" \
	dblpctl -N x job list
try "-N: a file that is none" refused 1 "'/etc/passwd' is not a network namespace" \
	dblpctl -N /etc/passwd job list
try "-N: nobody goes there" refused 1 \
	"no permission: to enter network namespace '$a' needs CAP_SYS_ADMIN (sudo)" \
	"${nobody[@]}" dblpctl -N "$a" job list

# batch TEXT OPTION...: of a file, in $b
batch()
{
	printf '%b' "$1" > "$tmp/batch"
	ctl "$b" "${@:2}" -b "$tmp/batch"
}

names()
{
	is json "$b" 'map(.name) | join(" ")' job list "$1"
}

all_of_it()
{
	batch '# jobs\n\n  job add 1 name one # the first\n\tjob add 2 name two\r\njob add 3 name three' &&
		names 'one two three' && batch '' && batch 'job del 1\njob del 2\njob del 3\n' && names ''
}
try "-b: each line is a command" all_of_it

first_error()
{
	refused 1 "$tmp/batch:3: id: there is no such job" batch 'job add 1 name one\n\njob del 9\njob add 2 name two\n' &&
		names one &&
		refused 2 "$tmp/batch:1: there is no object 'jog' (see dblpctl help)" batch 'jog\njob del 1\n' &&
		names one
}
try "-b: the first error is the end, and says where it is" first_error

# Each line but the last is fine, and would change or print something
nothing_is_done()
{
	local line

	for line in jog 'job x' 'job add' 'job add 5 name' 'job set one clr maybe' 'phase set 0 loss 2' 'cc show' \
			'param set cap' 'param show x' 'socket set x loss 1%' 'stats -c 1' 'monitor x' 'save 1 2' \
			'doctor x' 'doctor ::1 0' 'version x' 'help x' 'job help x' begin complete; do
		echo "$line"
		ctl "$b" -b - > "$tmp/out" 2> "$tmp/err" <<-END
			help
			job help
			stats help
			version
			doctor
			save
			stats
			monitor
			param list
			param set timeout 1s
			job del one
			job add 2 name two
			job set two phase critical
			job replace 3
			job flush
			phase flush
			$line
		END
		[ $? -eq 2 ] && [ ! -s "$tmp/out" ] && grep -q '^dblpctl: -:17: ' "$tmp/err" && names one || return
	done
}
try "-b: nothing is done if one of the lines is no command" nothing_is_done

forced()
{
	batch 'job del 9\njob add 2 name two\njob x\njob add 4 name four\n' -force 2> "$tmp/err"
	[ $? -eq 2 ] && names 'one two four' && diff "$tmp/err" - <<-END
		dblpctl: $tmp/batch:3: there is no verb 'x' (see dblpctl help)
		dblpctl: $tmp/batch:1: id: there is no such job
	END
}
try "-force: go on, and fail in the end" forced

from_stdin()
{
	printf 'job del 2\njob del 4\njob del 1' | ctl "$b" -b - && names '' || return
	refused 1 "-:2: id: there is no such job" ctl "$b" -b - <<< $'job list\njob del 1' || return
	printf 'job del 1' | refused 1 "-:1: id: there is no such job" ctl "$b" -b -
}
try "-b -: the standard input" from_stdin

each_its_json()
{
	batch 'phase show 0\njob list\nversion\n' -j > "$tmp/json" || return
	jq -s -e 'length == 3 and .[0].id == 0 and .[1] == [] and (.[2] | has("version"))' "$tmp/json"
}
try "-b -j: each command prints its own JSON" each_its_json

try "-b: no such file" refused 1 "cannot read /nosuch: No such file or directory" dblpctl -b /nosuch
try "-b: a directory" refused 1 "cannot read /: Is a directory" dblpctl -b /
try "-b: words besides" refused 2 "'job' is one word too many: the commands are in x" \
	dblpctl -b x job list
try "-force alone" refused 2 "-force needs -b FILE" dblpctl -force job list
try "-b: bytes that are no text" refused 2 "$tmp/batch:1: this line is not text" batch 'job\0list\n'
try "-b: a line that is too long" refused 2 "$tmp/batch:1: this line has more than 64 words" \
	batch "$(yes job | head -n 65 | xargs)"
try "-b: a name that is too long for any request" refused 2 \
	"$tmp/batch:1: 'nnnnnnnnnnnnnnnn...' is too long for a name: 15 characters at most" \
	batch "job add 1 name $(head -c 5000 /dev/zero | tr '\0' n)"

done_testing
