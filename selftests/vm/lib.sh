# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Shared by the host-side scripts of the VM: the cache, messages, and locks between
# concurrent runs.

vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034 # for those who source this
top_dir=$(cd "$vm_dir/../.." && pwd)
cache_dir=${DBLP_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/dblp}
me=${0##*/}

say()
{
	printf '%s: %s\n' "$me" "$*" >&2
}

die()
{
	say "$*"
	exit "${die_status:-2}"
}

# of_this_boot NAME: the file in the cache for what holds until this machine boots again
of_this_boot()
{
	local file
	file=$cache_dir/$1-$(cat /proc/sys/kernel/random/boot_id)

	mkdir -p "$cache_dir"
	find "$cache_dir" -maxdepth 1 -name "$1-*" ! -path "$file" -delete
	echo "$file"
}

# with_lock NAME COMMAND...: run COMMAND with the lock NAME held. Processes that
# COMMAND leaves running do not inherit the lock.
with_lock()
{
	local name=$1 fd
	shift

	mkdir -p "$cache_dir/lock"
	exec {fd}> "$cache_dir/lock/$name"
	if ! flock -n "$fd"; then
		say "waiting for another run that prepares $name"
		flock "$fd"
	fi
	"$@" {fd}>&-
	local ret=$?
	exec {fd}>&-
	return $ret
}
