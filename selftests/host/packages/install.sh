#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The packages of build/deb in a fresh root of Debian: they replace an older version, the lines of
# README.md install them, and a purge leaves nothing. The module is built and not loaded, for which
# see selftests/vm/run --packages.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../../lib/lib.sh"
top=$(readlink -f "$here/../../..")

if [ "${1:-}" != --in-root ]; then
	needs mmdebstrap
	[ -n "$(find "$top/build/deb" -name '*.deb')" ] || skip_all "needs packages: make deb"
	rm -rf "$tmp"
	trap - EXIT
	"$top/selftests/vm/debian" --with-kernel --bind "$top" -- "$here/install.sh" --in-root | tail -n +2
	exit "${PIPESTATUS[0]}"
fi
release=$(ls /lib/modules)

# On a machine without sudo, and whose kernel is not the one of this root
mkdir -p /usr/local/bin
# shellcheck disable=SC2016 # expanded by these scripts
printf '#!/bin/sh\nexec "$@"\n' > /usr/local/bin/sudo
# shellcheck disable=SC2016
printf '#!/bin/sh\n[ "$1" != -r ] || exec echo %s\nexec /bin/uname "$@"\n' "$release" > /usr/local/bin/uname
chmod +x /usr/local/bin/*
PATH=/usr/local/bin:$PATH

# older: write the packages to $tmp/older, in a version before that of each commit
older()
{
	local deb version=0.0.9 source

	mkdir "$tmp/older" || return
	for deb in "$top"/build/deb/*.deb; do
		rm -rf "$tmp/deb" && dpkg-deb -R "$deb" "$tmp/deb" || return
		sed -i -E "s/^Version: .*/Version: $version/; s/(dblp[a-z0-9]* \(>?= )[^)]*/\1$version/g" "$tmp/deb/DEBIAN/control"
		for source in "$tmp/deb"/usr/src/dblp-*; do
			[ -d "$source" ] || continue
			sed -i "s/${source##*/dblp-}/$version/" "$tmp/deb"/DEBIAN/{postinst,prerm} "$source/dkms.conf" &&
				mv "$source" "${source%/*}/dblp-$version" || return
		done
		dpkg-deb --root-owner-group -b "$tmp/deb" "$tmp/older" > /dev/null || return
	done
}

# installed: list the installed packages of dblp with their versions
installed()
{
	dpkg-query -W -f '${Status} ${Package} ${Version}\n' | sed -n 's/^install ok installed \(.*dblp.*\)/\1/p'
}

# files: list the files of the root, except those of apt and logs
files()
{
	find / -xdev \( -path /var/log -o -path /var/cache -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /tmp -o \
		-path "$top" -o -path /etc/ld.so.cache \) -prune -o -print | LC_ALL=C sort
}

# built_once VERSION: DKMS knows only this version, and has installed its module
built_once()
{
	local found

	found=$(find /lib/modules -name 'dblp.ko*')
	dkms status && [ "$(dkms status dblp)" = "dblp/$1, $release, x86_64: installed" ] &&
		[ "$(ls -d /usr/src/dblp-*)" = "/usr/src/dblp-$1" ] && echo "$found" && [ "$(modinfo -F version "$found")" = "$1" ]
}

# readme HEADING: print the commands of this section
readme()
{
	sed -n "/^### $1\$/,/^##* /s/^    //p" "$top/README.md" | grep ''
}

first_version()
{
	older && apt-get -q -q update && files > "$tmp/before" && apt-get -q -q -y install "$tmp"/older/*.deb && built_once 0.0.9
}
try "an older version is installed, and DKMS builds its module" first_version

update()
{
	# shellcheck disable=SC1091
	cd "$top" && readme "From packages" > "$tmp/lines" && . "$tmp/lines" && installed &&
		[ "$(installed | wc -l)" = "$(find build/deb -name '*.deb' | wc -l)" ] && fails grep -q -w 0.0.9 <(installed) &&
		built_once "$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' /usr/src/dblp-*/dkms.conf)"
}
try "the commands of README.md replace it, and DKMS has the new module only" update

enabled()
{
	local unit

	unit=$(readlink -e /etc/systemd/system/multi-user.target.wants/dblp.service) && echo "$unit" &&
		grep "deb-systemd-helper enable 'dblp.service'" /var/lib/dpkg/info/dblp-tools.postinst &&
		grep -x 'ExecStart=/usr/bin/dblpctl -b /etc/dblp.batch' "$unit"
}
try "dblp.service is enabled, and names the installed dblpctl" enabled

programs()
{
	cd /tmp && awk '/^```/ { if (on) exit; on = /^```c$/; next } on' "$top/README.md" > first.c &&
		cc -Wall -Werror -o first first.c && fails ./first 2> "$tmp/said" && grep 'is dblp.ko loaded' "$tmp/said" &&
		dblpctl version && dblp-perf --help > /dev/null &&
		dblp-run -n 2 --transport tcp -- python3 -c 'import dblp; dblp.Comm().close()' &&
		python3 -c 'import ctypes; ctypes.CDLL("libnccl-net-dblp.so").ncclNetPlugin_v8'
}
try "the first program is built, and the installed ones run" programs

purges()
{
	local command

	command=$(grep -o 'sudo apt purge [^`]*' "$top/README.md")
	rm -f /tmp/first* && eval "$command" && [ -z "$(installed)" ] &&
		apt-get -q -q -y --purge autoremove && files > "$tmp/after" && diff "$tmp/before" "$tmp/after"
}
try "purge leaves nothing" purges

done_testing
