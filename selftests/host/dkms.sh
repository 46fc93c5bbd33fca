#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make dkms-install and uninstall by DKMS, to a directory: an update replaces the installed version.
# The module is a small one that builds fast.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=selftests/lib/make.sh
. "$here/../lib/make.sh"

mkdir "$tree/net" && "$here/../vm/dkms" --prepare 6.1 "$root" || exit
mv "$root/dkms" "$tmp/dkms"
cp -r "$top"/{Makefile,Kbuild,version,dkms.conf,uapi} "$tree"
sed -i -e 's/^include.*/obj-m := dblp.o/' -e '/^dblp-y/d' -e '/^ccflags/d' -e '/^CFLAGS_net/d' "$tree/Kbuild"
# shellcheck disable=SC2016 # expanded by make
printf 'dblp-y := net/main.o\nCFLAGS_net/main.o := -DDBLP_BUILD=\\"$(DBLP_BUILD)\\"\n' >> "$tree/Kbuild"

# DKMS runs as for a new kernel, when no make passes a version to it
to_root()
{
	make -s -C "$tree" DESTDIR="$root" DKMS="env -u DBLP_BUILD $tmp/dkms" KERNELRELEASE="$release" "$@"
}

# sources COMMIT DESCRIPTION: make sources like those of 'git archive'
sources()
{
	sed -i "s/^commit=.*/commit='$1'/" "$tree/version" && cat > "$tree/net/main.c" <<-END
		#include <linux/module.h>
		MODULE_LICENSE("GPL");
		MODULE_VERSION(DBLP_BUILD);
		MODULE_DESCRIPTION("$2");
	END
}

# by_dkms COMMIT DESCRIPTION: install this version; no other one remains
by_dkms()
{
	local ko version

	version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$tree/dkms.conf")-g$1

	sources "$@" || return
	to_root dkms-install || return
	ko=$(find "$root/lib/modules" -name 'dblp.ko*')
	echo "$ko" && [ "$(modinfo -F version "$ko"): $(modinfo -F description "$ko")" = "$version: $2" ] &&
		[ "$(ls "$root/usr/src")" = "dblp-$version" ] &&
		[ "$("$tmp/dkms" status dblp)" = "dblp/$version, $release, $(uname -m): installed" ]
}
try "dkms-install: the version is that of the sources" by_dkms 1 first
try "dkms-install: an update replaces it" by_dkms 0 second
try "dkms-install: sources of the same version as before are built again" by_dkms 0 third
both()
{
	local dir=$root/lib/modules/$release

	mkdir -p "$dir/updates" && touch "$dir/updates/dblp.ko" && to_root dkms-install DKMS=true 2> "$tmp/err" &&
		cat "$tmp/err" && grep -q "^Warning: the module is installed in two ways" "$tmp/err" &&
		grep -q -F -x "$dir/updates/dblp.ko" "$tmp/err" && grep -q -F "$dir/updates/dkms/dblp.ko" "$tmp/err"
}
try "both ways at once: a warning" both
neither()
{
	to_root uninstall && find "$root" -path '*dblp*' && [ -z "$(find "$root" -type f)" ]
}
try "uninstall: both ways" neither

# The kernel's make is replaced by one that prints what it is given
compilers()
{
	local kernel_source_dir=$tmp/clang dkms_tree=$tmp kind MAKE=()

	# shellcheck disable=SC2016 # expanded by make
	mkdir -p "$tmp/clang/include/config" && printf 'modules:\n\t@echo "LLVM=$(LLVM)"\n' > "$tmp/clang/Makefile" || return
	for kind in GCC CLANG; do
		echo "CONFIG_CC_IS_$kind=y" > "$tmp/clang/$1"
		# shellcheck source=dkms.conf
		. "$top/dkms.conf" && eval "${MAKE[0]}" &&
			make -s -C "$top" module KERNELDIR="$tmp/clang" || return
	done > "$tmp/said"
	grep LLVM= "$tmp/said"
	rm "$tmp/clang/$1"
	diff <(grep LLVM= "$tmp/said") <(printf 'LLVM=%s\n' '' '' 1 1)
}
try "DKMS and make pass LLVM=1 for a kernel built by clang" compilers .config
try "... also if its headers have no .config" compilers include/config/auto.conf

done_testing
