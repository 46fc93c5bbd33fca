# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Functions of run, with its variables: the initramfs of the guest.

# shellcheck disable=SC2154
: "${vm_dir:?comes from lib.sh}" "${top_dir:?}"

# copy_module: copy the module to the tree, without debug information
copy_module()
{
	case $module in
	auto)
		"$vm_dir/build" --kernel "$version" "${kernel_args[@]}" "${clang[@]}" \
			-o "$tree/dblp.ko" || exit 2
		;;
	?*)
		cp "$module" "$tree/dblp.ko" || exit 2
		;;
	esac
	[ "$arm64" -eq 1 ] || [ ! -e "$tree/dblp.ko" ] || strip --strip-debug "$tree/dblp.ko"
}

# copy_tests: copy the tests of this checkout as make installs them, or the tools only. A program
# that does not build fails only the tests that need it.
copy_tests()
{
	local cross=() dir=$tree/kselftest/dblp status

	[ "$arm64" -eq 0 ] || cross=(CC=aarch64-linux-gnu-gcc)
	mkdir -p "$dir/selftests"
	if [ -n "$only_tools" ]; then
		make -s -j "$(nproc)" -C "$checkout" tools lab &&
			(cd "$checkout" && cp -r -L --parents tools "$dir")
	else
		make -s -k -i -j "$(nproc)" -C "$checkout/selftests" install INSTALL_PATH="$tree/kselftest" "${cross[@]}"
	fi > "$tmp/make" 2>&1
	status=$?
	if [ $status -ne 0 ] || grep -q '^make.*Error' "$tmp/make"; then
		cat "$tmp/make" >&2
		say "continuing without the programs that do not build"
	fi
	cp -r -L "$checkout/selftests/lib" "$dir/selftests/"
	cp -r -L "$checkout/lab" "$dir/"
	find "$dir" -name '*.[oad]' -delete
}

# link_programs: link tests and their programs in PATH, and copy the libraries that they need
link_programs()
{
	local path

	find "$tree/kselftest/dblp" \( -path '*/lib/*' -o -name '*.so*' \) -prune -o \
		\( -type f -o -type l \) -perm -u+x -print0 | LC_ALL=C sort -z |
	while IFS= read -r -d '' path; do
		ln -sf "${path#"$tree"}" "$tree/usr/local/bin/${path##*/}"
		[ -L "$path" ] || printf '%s\0' "$path"
	done | xargs -0 ldd 2>/dev/null | grep -o '[[:space:]]/[^ ]*' | sort -u |
	while read -r path; do
		path=/usr/${path#/usr/}
		mkdir -p "$tree${path%/*}"
		cp -L "${path#/usr}" "$tree$path" 2>/dev/null || cp -L "$path" "$tree$path"
	done
}

# pack: print the tree as a part of an initramfs. Dates of files are fixed: the guest reads them, so
# they would change a run in virtual time.
pack()
{
	find "$tree" -exec touch -h -d @0 {} +
	(cd "$tree" && find . -mindepth 1 | LC_ALL=C sort |
		cpio -o -H newc --reproducible -R 0:0 --quiet)
	rm -rf "$tree"
}

# make_image: print the initramfs without the command
make_image()
{
	local checkout=$top_dir root='' base last=() tree=$tmp/tree

	if [ "$arm64" -eq 1 ]; then
		root=$("$vm_dir/arm64" root) && checkout=$("$vm_dir/arm64" programs) || exit 2
	fi
	base=("$("$vm_dir/initramfs" "$kernel" "$root")") || exit 2
	[ -z "$ynl" ] || base+=("$("$vm_dir/ynl")") || exit 2
	case ${torch:-0}$um$version in
	11*|10*-trixie) last=("$("$vm_dir/torch" --trixie)") || exit 2 ;;
	1*) base+=("$("$vm_dir/torch")") || exit 2 ;;
	esac
	[ -z "$bpftrace" ] || base+=("$("$vm_dir/bpftrace")") || exit 2

	mkdir -p "$tree/usr/local/bin"
	copy_module
	with_lock "programs-$(printf '%s' "$top_dir" | sha256sum | cut -c 1-8)" copy_tests || exit 2
	link_programs
	cp "$vm_dir/run-tests" "$tree/usr/local/bin/"
	ln -s kselftest/dblp/selftests kselftest/dblp/tools kselftest/dblp/python kselftest/dblp/lab "$tree/"
	[ -z "$torch" ] || cp -r --remove-destination "$top_dir/python/." "$tree/kselftest/dblp/python" ||
		die "cannot copy the Python package"
	[ -z "$add" ] || cp -a "$add/." "$tree/add" || die "cannot copy $add"
	cp "$vm_dir/init" "$tree/init"
	# Debian 13's C library replaces this machine's, for all programs
	cat "${base[@]}" && pack && { [ -z "${last[*]}" ] || cat "${last[@]}"; }
}

# make_sources: print the part of the initramfs for installed packages, with init and what their
# test reads
make_sources()
{
	local tree=$tmp/tree

	mkdir -p "$tree/root" && cp "$vm_dir/init" "$tree/" && cp -r "$top_dir/README.md" "$top_dir/debian" "$tree/root/" &&
		pack
}

# make_command WORD...: print the part of the initramfs with the command
make_command()
{
	local tree=$tmp/tree

	mkdir -p "$tree"
	{
		printf 'exec'
		printf ' %q' "$@"
		echo
	} > "$tree/command"
	pack
}
