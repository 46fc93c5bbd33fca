# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For run, whose variables these functions take: what the guest has, in one initramfs.

# shellcheck disable=SC2154
: "${vm_dir:?comes from lib.sh}" "${top_dir:?}"

make_programs()
{
	# A program that does not build fails only the tests that need it.
	make -s -k -j "$(nproc)" -C "$top_dir" "${programs[@]}" > "$tmp/make" 2>&1 || {
		cat "$tmp/make" >&2
		say "continuing without the programs that do not build"
	}
}

# copy_module: into the tree, without its debug information, which is most of it
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

# copy_programs DIR: copy it without objects, and link the programs of its folders
copy_programs()
{
	local dir=$1 path

	[ -d "$checkout/$dir" ] || return 0
	(cd "$checkout/$dir" && find . -name '*.[oad]' -prune -o -path ./unit -prune -o \
		-type f -print0 | LC_ALL=C sort -z | cpio -p -0 -d -m -L --quiet "$tree/$dir") 2> "$tmp/cpio"
	while IFS= read -r -d '' path; do
		path=${path#"$tree"}
		case $path in
		*/vm/run-tests) ;;
		*/vm/*|*.so*) continue ;;
		esac
		ln -sf "$path" "$tree/usr/local/bin/${path##*/}"
		printf '%s\0' "$tree$path"
	done < <(find "$tree/$dir" -mindepth 2 -type f -perm -u+x -print0 | LC_ALL=C sort -z) |
	xargs -0 ldd 2>/dev/null | grep -o '[[:space:]]/[^ ]*' |
	sort -u | while read -r path; do
		[ -e "$path" ] || continue
		path=/usr/${path#/usr/}
		mkdir -p "$tree${path%/*}"
		cp -L "${path#/usr}" "$tree$path" 2>/dev/null || cp -L "$path" "$tree$path"
	done
}

# pack: the tree as a part of an initramfs. In virtual time even the dates of files must
# not differ: the guest reads them.
pack()
{
	find "$tree" -exec touch -h -d @0 {} +
	(cd "$tree" && find . -mindepth 1 | LC_ALL=C sort |
		cpio -o -H newc --reproducible -R 0:0 --quiet)
	rm -rf "$tree"
}

# make_image: all but the command, to stdout
make_image()
{
	local checkout=$top_dir root='' base tree=$tmp/tree

	if [ "$arm64" -eq 1 ]; then
		root=$("$vm_dir/arm64" root) && checkout=$("$vm_dir/arm64" programs) || exit 2
	fi
	base=("$("$vm_dir/initramfs" "$kernel" "$root")") || exit 2
	[ -z "$ynl" ] || base+=("$("$vm_dir/ynl")") || exit 2
	[ -z "$torch" ] || base+=("$("$vm_dir/torch")") || exit 2
	[ -z "$bpftrace" ] || base+=("$("$vm_dir/bpftrace")") || exit 2

	mkdir -p "$tree/usr/local/bin" "$tree/tools" "$tree/selftests"
	copy_module
	[ "$arm64" -eq 1 ] ||
		with_lock "programs-$(printf '%s' "$top_dir" | sha256sum | cut -c 1-8)" make_programs || exit 2
	copy_programs tools
	copy_programs selftests
	[ -z "$ynl" ] || cp -r "$top_dir/Documentation/netlink" "$tree/netlink" || die "cannot copy the specification"
	[ -z "$ynl$torch" ] || cp -r "$top_dir/python" "$tree/python" || die "cannot copy the Python package"
	[ -z "$add" ] || cp -rL "$add" "$tree/add" || die "cannot copy $add"
	cp "$vm_dir/init" "$tree/init"
	cat "${base[@]}" && pack
}

# make_command WORD...: what the guest runs, to stdout
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
