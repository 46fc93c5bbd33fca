#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Downloads of make demo and make check: exactly the missing packages, and kernels. Errors name
# the reason.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../lib/lib.sh"

as_root=(unshare)
[ "$(id -u)" -eq 0 ] || as_root=(unshare --map-root-user)

# machine NAME ARCHITECTURE: a machine with the programs of the script only, with the architectures
# of uname and dpkg, whose apt-get logs its arguments
mkdir "$tmp/bin"
for prog in bash env cat mktemp rm tail id true; do
	ln -s "$(type -P $prog)" "$tmp/bin"
done
machine()
{
	printf '#!/bin/sh\necho %s\n' "$1" > "$tmp/bin/uname"
	printf '#!/bin/sh\necho %s\n' "$2" > "$tmp/bin/dpkg"
	cat > "$tmp/bin/apt-get" <<-END
		#!$tmp/bin/bash
		echo "\$*" >> "$tmp/called"
		case " \$* " in *" update "*) exit ${3:-0} ;; esac
		exit ${4:-0}
	END
	chmod +x "$tmp/bin/uname" "$tmp/bin/dpkg" "$tmp/bin/apt-get"
	: > "$tmp/called"
}

# deps [ARGUMENT]: run selftests/deps as root, without the programs in sbin
deps()
{
	sed '/^PATH=/d' "$here/../deps" > "$tmp/deps" &&
		"${as_root[@]}" "$tmp/bin/env" -i PATH="$tmp/bin" "$tmp/bin/bash" "$tmp/deps" "$@" > "$tmp/said" 2>&1
	local status=$?
	tail -n 1 "$tmp/said"
	cat "$tmp/called"
	return "$status"
}

for_check()
{
	machine x86_64 amd64 && deps && grep -q 'install .* tshark' "$tmp/called" && grep -q 'qemu-system-x86' "$tmp/called"
}
try "check: missing packages are installed" for_check

for_demo()
{
	machine x86_64 amd64 && deps demo && grep -q 'install .* qemu-system-x86' "$tmp/called" &&
		fails grep -E 'tshark|bpftrace|trace-cmd|multilib|i386|python|sparse|shellcheck|flex|asan' "$tmp/called"
}
try "demo: only the packages it needs are installed" for_demo

elsewhere()
{
	local arch

	for arch in 'aarch64 arm64' 'x86_64 i386' 'x86_64 arm64' 'riscv64 riscv64'; do
		# shellcheck disable=SC2086 # $arch has two words
		machine $arch && fails deps && fails deps demo && grep -q "^deps: this machine is .*needs x86-64" "$tmp/said" &&
			[ ! -s "$tmp/called" ] || return
	done
}
try "another architecture is named before anything is installed" elsewhere

offline()
{
	machine x86_64 amd64 1 0 && deps && machine x86_64 amd64 1 100 && fails deps &&
		grep -q -x 'deps: the packages could not be installed (offline? the mirror does not answer)' "$tmp/said" &&
		machine x86_64 amd64 0 100 && fails deps && fails grep offline "$tmp/said"
}
try "offline: said for packages, which may be here already" offline

# kernel [ARGUMENT...]: run vm/kernel with its own cache and without a network
kernel()
{
	DBLP_CACHE="$tmp/cache" "${as_root[@]}" --net "$here/../vm/kernel" "$@" > "$tmp/said" 2>&1
	local status=$?
	cat "$tmp/said"
	return "$status"
}

no_kernel()
{
	fails kernel 6.1 && tail -n 1 "$tmp/said" | grep -q '^kernel: offline? The mirror does not answer' &&
		fails grep "kernel on this mirror" "$tmp/said"
}
try "offline: said for a kernel, and not that there is none" no_kernel

from_cache()
{
	mkdir -p "$tmp/cache/kernel-6.1" && : > "$tmp/cache/kernel-6.1/bzImage" && kernel 6.1 &&
		grep -q -x "$tmp/cache/kernel-6.1" "$tmp/said"
}
try "offline: a kernel that is in the cache is used" from_cache

# The cache has package lists, but no packages
from_lists()
{
	local DBLP_MIRROR=http://mirror.invalid/debian lists=$tmp/cache/apt-bookworm/lists
	local release=6.1.0-0-cloud-amd64 pkg

	rm -rf "$tmp/cache" && mkdir -p "$lists/partial" && export DBLP_MIRROR || return
	for pkg in "linux-image-cloud-amd64 linux-image-$release" "linux-image-$release none" \
		"linux-headers-$release linux-kbuild-6.1"; do
		printf 'Package: %s\nVersion: 6.1.0-1\nArchitecture: amd64\nDepends: %s\nFilename: %s.deb\n\n' \
			"${pkg% *}" "${pkg#* }" "${pkg% *}"
	done > "$lists/mirror.invalid_debian_dists_bookworm_main_binary-amd64_Packages"
	fails kernel 6.1 && grep -q -x 'kernel: the mirror does not answer: using the package lists in the cache' "$tmp/said" &&
		tail -n 1 "$tmp/said" | grep -q -x "kernel: cannot download linux-image-$release 6.1.0-1 (offline? the mirror does not answer)"
}
try "offline: package lists that are in the cache are used" from_lists

done_testing
