# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# What the tests of dblpctl share. Source it behind lib.sh.

# shellcheck disable=SC2034,SC2154 # for those who source this; from lib.sh
# Runs a command as a user without rights
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
chmod 755 "$tmp"

# in_ns NS COMMAND...: as ip netns exec, without the mounts, which take time
in_ns()
{
	nsenter --net="/run/netns/$1" "${@:2}"
}

# ctl NS ARG...: dblpctl there
ctl()
{
	in_ns "$1" dblpctl "${@:2}"
}

# json NS FILTER ARG...: what jq makes of dblpctl -j ARG...
json()
{
	ctl "$1" -j "${@:3}" | jq -r -c "$2"
}

# typed OBJECT: of the JSON objects that it reads, all keys have the types that the manual
# page says for those of the object
typed()
{
	local types

	types=$(awk -v object="$1" '$1 == object { print $2, $3 }' "$built/json-types" |
		jq -R -s -c 'rtrimstr("\n") / "\n" | map(. / " " | {(.[0]): (.[1] / ",")}) | add') || return
	# shellcheck disable=SC2016 # for jq
	is jq -s -r --argjson types "$types" '[.[] | if type == "array" then .[] else . end] |
		if length == 0 then "nothing" else .[] | to_entries[] | . as {$key, $value} |
			select($types[$key] // [] | any(. == ($value | type) or
				(. == "digits" and ($value | type == "string" and test("^[0-9]+$")))) | not) |
			"\($key): \($value | tojson)" end' ''
}

# standing_listener NAME: a namespace as new_ns, with a listener that stays for
# all tests, and its number in $id
standing_listener()
{
	new_ns "$1"
	spawn ip netns exec "${!1}" dblp-peer listen ::1 7000 say listening pause
	wait_until 10 output_has "$spawned" listening || exit 1
	standing=("${all_pids[@]}")
	all_pids=()
	trap 'all_pids+=("${standing[@]}"); cleanup' EXIT
	id=$(json "${!1}" '.[0].id' socket list) || exit 1
}

# is COMMAND WANTED: it prints exactly this
is()
{
	local got

	got=$("${@:1:$# - 1}") || return
	[ "$got" = "${!#}" ] && return
	printf 'it gave: %s\nwanted:  %s\n' "$got" "${!#}"
	return 1
}

# refused STATUS MESSAGE COMMAND...: it fails so, with this one line and nothing
# on its standard output
refused()
{
	local status out

	out=$("${@:3}" 2> "$tmp/refused")
	status=$?
	diag < "$tmp/refused"
	[ -z "$out" ] || { echo "it printed: $out"; return 1; }
	[ "$status" -eq "$1" ] || { echo "status $status instead of $1"; return 1; }
	is cat "$tmp/refused" "dblpctl: $2"
}

# load_completion NS: of dblpctl there, for completes()
load_completion()
{
	completed=$1
	# shellcheck disable=SC1091
	. "$(dirname "$(readlink -f "$(type -P dblpctl)")")/dblpctl.bash-completion" || return
	# shellcheck disable=SC2317 # called by what was just read
	dblpctl() { ctl "$completed" "$@"; }
}

# What bash offers after the words $1; the last is the one being typed
completes()
{
	local COMP_WORDS COMP_CWORD COMPREPLY=()

	read -ra COMP_WORDS <<< "$1"
	[ "${1: -1}" != ' ' ] || COMP_WORDS+=('')
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	_dblpctl
	echo "${COMPREPLY[*]}"
}
