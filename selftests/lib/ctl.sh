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

# keep_running: what was spawned stays for all tests, not for the next one only
keep_running()
{
	standing=("${all_pids[@]}")
	all_pids=()
	trap 'all_pids+=("${standing[@]}"); cleanup' EXIT
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
