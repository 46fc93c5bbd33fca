# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Layers of the VM's initramfs, for scripts that source lib.sh: archives of programs of this
# machine, made once for each content.

: "${cache_dir:?comes from lib.sh}" "${vm_dir:?}" "${me:?}"

# Debian's Python, whose modules are where selftests/deps installs them
python=/usr/bin/python3
# shellcheck disable=SC2034 # used by scripts that source this
packages=/usr/lib/python3/dist-packages
# Modules of Python that the package dblp and tests use
python_imports="array, argparse, asyncio, atexit, contextlib, ctypes, fcntl, io, ipaddress, json, mmap, queue, random, runpy,
	secrets, shlex, shutil, signal, site, socket, subprocess, tempfile, termios, threading, time, unittest, weakref, zlib"

# python_modules IMPORTS [PATH...]: print the files of Python's modules that these imports need,
# and of modules in PATH. -S excludes modules that this machine adds to Python.
python_modules()
{
	local imports=$1

	shift
	PYTHONDONTWRITEBYTECODE=1 "$python" -I -S - "$imports" "$@" <<-END
		import sys
		imports, *paths = sys.argv[1:]
		sys.path += paths
		import ${python_imports//$'\n'/}
		exec("import " + imports)
		for module in list(sys.modules.values()):
		    path = getattr(module, '__file__', None) or ''
		    if path.startswith('/usr/lib/python3'):
		        print(path)
	END
}

# add_python: copy the interpreter, and the files whose names are read, to $tree
add_python()
{
	local file

	mkdir -p "$tree/usr/bin" &&
	install "$(readlink -f "$python")" "$tree/usr/bin/python3" || return
	while IFS= read -r file; do
		mkdir -p "$tree${file%/*}" && cp "$file" "$tree$file" || return
	done
	# Compile modules here: the guest is slow, and all files there have the same date
	"$python" -m compileall -q -j "${python_jobs:-0}" --invalidation-mode unchecked-hash -s "$tree" "$tree/usr/lib"
}

# add_libraries: copy the libraries that programs and libraries in $tree need
add_libraries()
{
	local lib

	find "$tree" -type f \( -name '*.so*' -o -path '*/bin/*' \) -exec ldd {} + |
	grep -o '/[^ :]*\.so[^ :]*' | grep -v "^$tree" | sort -u | while IFS= read -r lib; do
		install -D "$(readlink -f "$lib")" "$tree/usr/${lib#/usr/}" || return
	done
}

make_layer()
{
	[ ! -e "$layer" ] || return 0
	say "making a layer with $1"
	mkdir -p "${layer%/*}"
	tree=$(mktemp -d "${layer%/*}/tree.XXXXXX") || exit
	fill_tree || { rm -rf "$tree"; die "cannot make the layer"; }
	find "$tree" -exec touch -h -d @0 {} +
	(cd "$tree" && find . -mindepth 1 | LC_ALL=C sort |
		cpio -o -H newc --reproducible -R 0:0 --quiet) > "$layer.new" ||
		die "cannot make the layer"
	rm -rf "$tree"
	# Delete layers of older versions, unless they may be in use.
	find "${layer%/*}" -name "$me-*.cpio" -mtime +1 -delete
	mv "$layer.new" "$layer"
}

# layer WHAT FILE...: print the path of the layer that fill_tree makes in $tree. It is made again
# after a change of the script or of one of these files
layer()
{
	layer=$cache_dir/initramfs/$me-$({
		cat "$0" "$vm_dir/layer.sh"
		printf '%s\n' "${@:2}" | xargs -d '\n' stat -L -c '%n %s %Y'
	} | sha256sum | cut -c 1-12).cpio
	with_lock "initramfs-$me" make_layer "$1" || exit
	echo "$layer"
}
