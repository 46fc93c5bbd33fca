# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Shared by the host-side scripts of the VM: the cache, messages, and locks between concurrent
# runs.

vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034 # used by scripts that source this
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

# of_this_boot NAME: print the name of a file in the cache that is valid until this machine reboots
of_this_boot()
{
	local file
	file=$cache_dir/$1-$(cat /proc/sys/kernel/random/boot_id)

	mkdir -p "$cache_dir"
	find "$cache_dir" -maxdepth 1 -name "$1-*" ! -path "$file" -delete
	echo "$file"
}

# with_lock NAME COMMAND...: run COMMAND with lock NAME held. Processes that COMMAND leaves
# running do not inherit the lock.
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

# key_of WORD... -- FILE...: print a digest of the words and of the contents of files and
# folders
key_of()
{
	local key_words=()

	while [ "$1" != -- ]; do
		key_words+=("$1")
		shift
	done
	shift
	{
		printf '%s\n' "${key_words[@]}"
		[ $# -eq 0 ] || find "$@" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
	} | sha256sum | cut -c 1-32
}

# cached KEY COMMAND...: run COMMAND unless it has passed with this KEY; it passes if it succeeds
# and prints nothing. KEY is a digest of all inputs of COMMAND, see key_of.
cached()
{
	local passed=$cache_dir/passed/$1 said status
	shift

	[ ! -e "$passed" ] || return 0
	said=$("$@" 2>&1)
	status=$?
	if [ $status -eq 0 ] && [ -z "$said" ]; then
		mkdir -p "${passed%/*}"
		find "${passed%/*}" -mtime +30 -delete
		: > "$passed"
		return 0
	fi
	printf '%s\n' "$said"
	return 1
}
