# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Roots of Debian 13, for scripts that source apt.sh: unpacked packages whose scripts were not
# run.

: "${vm_dir:?comes from lib.sh}"
apt_opts=()

# get_packages DIR PACKAGE...: download packages with all their dependencies, as if nothing were
# installed.
get_packages()
{
	: > "$1/status"
	mkdir -p "$1/archives/partial"
	apt-get "${apt_opts[@]}" -o Dir::State::status="$1/status" \
		-o Dir::Cache::archives="$1/archives" -o Debug::NoLocking=1 -y \
		--no-install-recommends --download-only install "${@:2}" >&2
}

# make_root DIR PACKAGE...: make DIR/root, unless it exists with exactly these packages
make_root()
{
	local root=$1 new=$1.new pkg dir

	shift
	[ "$(cat "$root/packages" 2>/dev/null)" != "$*" ] || return 0
	with_lock apt apt_update || exit
	rm -rf "$new"
	mkdir -p "$new/root/usr"
	say "downloading the programs of Debian 13 (${root##*/})"
	get_packages "$new" "$@" || die "cannot download the programs of Debian 13"
	for dir in bin lib lib64 sbin; do
		mkdir "$new/root/usr/$dir" && ln -s "usr/$dir" "$new/root/$dir" || exit
	done
	for pkg in "$new"/archives/*.deb; do
		# Some packages have directories in place of the links here.
		dpkg-deb --fsys-tarfile "$pkg" |
			tar -C "$new/root" -x --keep-directory-symlink --no-same-owner ||
			die "cannot unpack $pkg"
	done
	rm -r "$new/archives"
	mkdir -p "$new/root/tmp" "$new/root/proc" "$new/root/dev" "$new/root/etc"
	echo "127.0.0.1 localhost" > "$new/root/etc/hosts"
	echo "root:x:0:0::/tmp:/bin/sh" > "$new/root/etc/passwd"
	touch "$new/root/dev/null"
	ln -s -f gawk "$new/root/usr/bin/awk"
	ln -s -f dash "$new/root/usr/bin/sh"
	# Libraries that packages' scripts would choose among
	for pkg in "$new"/root/usr/lib/*/blas/libblas.so.3 "$new"/root/usr/lib/*/lapack/liblapack.so.3; do
		[ ! -e "$pkg" ] || ln -s "${pkg#"${pkg%/*/*}/"}" "${pkg%/*/*}/" || exit
	done
	for pkg in "$new"/root/usr/lib/llvm-*/bin/*; do
		[ ! -e "$pkg" ] || ln -s -f "../${pkg#"$new/root/usr/"}" "$new/root/usr/bin/"
	done
	printf '%s\n' "$*" > "$new/packages"
	rm -rf "$root"
	mv "$new" "$root"
}
