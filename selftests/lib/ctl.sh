# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Shared by the tests of dblpctl. Source it after lib.sh.

# shellcheck disable=SC2034,SC2154 # for those who source this; from lib.sh
# Runs a command as a user without rights
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
chmod 755 "$tmp"

# in_ns NS COMMAND...: as ip netns exec, but faster, because without mounts
in_ns()
{
	nsenter --net="/run/netns/$1" "${@:2}"
}

# ctl NS ARG...: dblpctl in the namespace
ctl()
{
	in_ns "$1" dblpctl "${@:2}"
}

# json NS FILTER ARG...: filter the output of dblpctl -j ARG... by jq
json()
{
	ctl "$1" -j "${@:3}" | jq -r -c "$2"
}

# keep_running: keep spawned processes until the end of the script, not of the point
keep_running()
{
	standing=("${all_pids[@]}")
	all_pids=()
	trap 'all_pids+=("${standing[@]}"); cleanup' EXIT
}

# is COMMAND WANTED: the command prints exactly WANTED
is()
{
	local got

	got=$("${@:1:$# - 1}") || return
	[ "$got" = "${!#}" ] && return
	printf 'it gave: %s\nwanted:  %s\n' "$got" "${!#}"
	return 1
}

# refused STATUS MESSAGE COMMAND...: the command fails with this status, this one line on
# stderr, and an empty stdout
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
