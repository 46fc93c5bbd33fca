#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make install and uninstall to a directory: the installed files, and that root builds nothing. Also
# ./version.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../lib/lib.sh"
# shellcheck source=selftests/lib/make.sh
. "$here/../lib/make.sh"
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$top/dkms.conf")

# Sources in which make was run
make_tree()
{
	make -s -C "$top" tools &&
		tar -C "$top" -c Makefile Kbuild version dkms.conf COPYING net uapi tools python Documentation/man |
			tar -C "$tree" -x &&
		sed -i "s/^PACKAGE_VERSION=.*/PACKAGE_VERSION=\"$("$top/version")\"/" "$tree/dkms.conf" &&
		"$here/../vm/build" --kernel 6.1 -o "$tree/dblp.ko"
}
make_tree || exit

# to_root TARGET...: run make without a compiler
to_root()
{
	make -s -C "$tree" DESTDIR="$root" PREFIX=/usr KERNELRELEASE="$release" KERNELDIR=/none CC=false AR=false "$@"
}

# files: list the files below $root
files()
{
	(cd "$root" && find . ! -type d | LC_ALL=C sort)
}

packages=$root/usr/lib/python3/dist-packages
# older_python DIR...: make files of an older version
older_python()
{
	local dir

	for dir; do
		mkdir -p "$dir"/dblp "$dir/dblp-0.0.1.dist-info" && touch "$dir/dblp-0.0.1.dist-info/METADATA" "$dir/dblp/gone.py" ||
			return
	done
}

installs()
{
	older_python "$packages" && touch "$tmp/stamp" && to_root install && files | diag && files | diff - <(LC_ALL=C sort <<-END
		./lib/modules/$release/updates/dblp.ko
		./usr/bin/dblp-perf
		./usr/bin/dblp-run
		./usr/bin/dblpctl
		./usr/include/libdblp.h
		./usr/include/libdblp/comm.h
		./usr/include/libdblp/plan.h
		./usr/include/libdblp/tune.h
		./usr/include/linux/dblp.h
		./usr/include/linux/dblp_netlink.h
		./usr/lib/libdblp.a
		./usr/lib/libdblp.so
		./usr/lib/libdblp.so.0
		./usr/lib/libdblp.so.0.1.0
		./usr/lib/libnccl-net-dblp.so
		./usr/lib/pkgconfig/libdblp.pc
		./usr/lib/python3/dist-packages/dblp-$version.dist-info/METADATA
		./usr/lib/python3/dist-packages/dblp-$version.dist-info/entry_points.txt
		./usr/lib/python3/dist-packages/dblp/__init__.py
		./usr/lib/python3/dist-packages/dblp/_c.py
		./usr/lib/python3/dist-packages/dblp/accelerator.py
		./usr/lib/python3/dist-packages/dblp/averager.py
		./usr/lib/python3/dist-packages/dblp/backend.py
		./usr/lib/python3/dist-packages/dblp/collectives.py
		./usr/lib/python3/dist-packages/dblp/comm.py
		./usr/lib/python3/dist-packages/dblp/ending.py
		./usr/lib/python3/dist-packages/dblp/enums.py
		./usr/lib/python3/dist-packages/dblp/fsdp.py
		./usr/lib/python3/dist-packages/dblp/groups.py
		./usr/lib/python3/dist-packages/dblp/guard.py
		./usr/lib/python3/dist-packages/dblp/job.py
		./usr/lib/python3/dist-packages/dblp/lanes.py
		./usr/lib/python3/dist-packages/dblp/meeting.py
		./usr/lib/python3/dist-packages/dblp/op.py
		./usr/lib/python3/dist-packages/dblp/options.py
		./usr/lib/python3/dist-packages/dblp/outer.py
		./usr/lib/python3/dist-packages/dblp/output.py
		./usr/lib/python3/dist-packages/dblp/progress.py
		./usr/lib/python3/dist-packages/dblp/py.typed
		./usr/lib/python3/dist-packages/dblp/ranks.py
		./usr/lib/python3/dist-packages/dblp/residuals.py
		./usr/lib/python3/dist-packages/dblp/run.py
		./usr/lib/python3/dist-packages/dblp/site/dblp-$version.dist-info/METADATA
		./usr/lib/python3/dist-packages/dblp/site/dblp-$version.dist-info/entry_points.txt
		./usr/lib/python3/dist-packages/dblp/site/sitecustomize.py
		./usr/lib/python3/dist-packages/dblp/staging.py
		./usr/lib/python3/dist-packages/dblp/starting.py
		./usr/lib/python3/dist-packages/dblp/tensors.py
		./usr/lib/python3/dist-packages/dblp/torch.py
		./usr/lib/python3/dist-packages/dblp/tune.py
		./usr/lib/python3/dist-packages/dblp/units.py
		./usr/lib/python3/dist-packages/dblp/work.py
		./usr/lib/python3/dist-packages/dblp_autoload.py
		./usr/share/bash-completion/completions/dblpctl
		./usr/share/man/man1/dblp-perf.1
		./usr/share/man/man1/dblp-run.1
		./usr/share/man/man3/dblp_comm.3
		./usr/share/man/man3/dblp_plan.3
		./usr/share/man/man3/dblp_tune.3
		./usr/share/man/man3/libdblp.3
		./usr/share/man/man7/dblp.7
		./usr/share/man/man8/dblpctl.8
	END
	) && [ -z "$(find "$tree" -newer "$tmp/stamp")" ]
}
try "install: all files are installed instead of older ones, and nothing is built or left in the sources" installs

# A program that uses installed files only
program()
{
	cat <<-'END'
		#include <errno.h>
		#include <libdblp.h>
		#include <libdblp/comm.h>
		#include <stdio.h>
		int main(void)
		{
			struct dblp_comm_attr alone = {
				.size = sizeof(alone), .nranks = 1,
				.rendezvous = "tcp://127.0.0.1:0", .transport = "tcp",
			};
			struct sockaddr_dblp addr;
			struct dblp_comm *comm;
			char text[DBLP_ADDR_TEXT];

			if (dblp_addr_parse("[2001:DB8:0::1]:7018", &addr))
				return 1;
			/* Other ranks could not connect to port 0 */
			if (dblp_comm_open(&comm, &alone) != -EINVAL)
				return 1;
			dblp_addr_format(&addr, text);
			return printf("%s %s\n", text, dblp_policy_names[DBLP_POLICY_EARLY]) < 0;
		}
	END
}

# pkgconf omits the compiler's default directories, which $root does not have
config()
{
	PKG_CONFIG_PATH=$root/usr/lib/pkgconfig pkg-config --define-variable=prefix="$root/usr" "$@" libdblp
}

# runs NAME [SETTING...]: the program prints the expected text
runs()
{
	local name=$1 said

	shift
	said=$(cd / && env "$@" "$tmp/$name") && echo "$said" | diag && [ "$said" = "[2001:db8::1]:7018 early" ]
}
other_program()
{
	program > "$tmp/program.c" || return
	# shellcheck disable=SC2046 # words
	(cd / && gcc -Wall -Werror -o "$tmp/shared" "$tmp/program.c" $(config --cflags --libs)) &&
		fails runs shared && runs shared LD_LIBRARY_PATH="$root/usr/lib" || return
	# shellcheck disable=SC2046 # words
	(cd / && gcc -Wall -Werror -o "$tmp/static" "$tmp/program.c" $(config --cflags) \
		-Wl,-Bstatic $(config --libs) -Wl,-Bdynamic) && runs static &&
		[ "$(config --modversion)" = 0.1.0 ] && objdump -p "$tmp/shared" | grep 'NEEDED *libdblp.so.0$'
}
try "a program outside the tree finds libdblp by pkg-config, shared and static" other_program

python_program()
{
	local program='import dblp; print(dblp.parse_budget("2%"))'

	# Without ldconfig, as in a container image
	(cd / && export PYTHONPATH="$root/usr/lib/python3/dist-packages" PYTHONDONTWRITEBYTECODE=1 &&
		[ "$(/usr/bin/python3 -c "$program")" = 20000 ] &&
		[ "$("$root/usr/bin/dblp-run" -n 1 --transport tcp -- echo it runs)" = "[0] it runs" ] &&
		fails env DBLP_LIBRARY=/none /usr/bin/python3 -c "$program" 2> "$tmp/err" &&
		grep 'install it, or set DBLP_LIBRARY' "$tmp/err")
}
try "a Python program finds the package and libdblp" python_program

pip_installs()
{
	local said

	(cd / && /usr/bin/python3 -m pip install -q --no-build-isolation --no-index --no-deps --no-cache-dir \
		--target "$tmp/site" "$tree/python") 2>&1 | diag
	said=$(cd / && PYTHONPATH=$tmp/site LD_LIBRARY_PATH=$root/usr/lib "$tmp/site/bin/dblp-run" -n 1 --transport tcp -- \
		/usr/bin/python3 -c 'import dblp, os; print(dblp.__file__, os.environ["PYTHONPATH"].split(":")[0])') || return
	[ "$said" = "[0] $tmp/site/dblp/__init__.py $tmp/site/dblp/site" ] && [ -e "$tmp/site/dblp/site/sitecustomize.py" ]
}
try "pip installs the package and a dblp-run of its own" pip_installs

# Both ranks use the libraries of the wheel
in_venv()
{
	cat <<-'END'
		import array, dblp, importlib.metadata, os, sys
		backend, = importlib.metadata.entry_points(group="torch.backends")
		vector = array.array("f", [1.0] * 1000)
		with dblp.Comm() as comm:
		    comm.allreduce(vector).wait()
		maps = open("/proc/self/maps").read().split()
		used = {file for file in maps if "libdblp" in file or "libmnl" in file}
		folder = os.path.join(sys.prefix, "lib", "python%d.%d" % sys.version_info[:2], "site-packages/dblp")
		print(sum(vector), used == {folder + "/libdblp.so.0", folder + "/libmnl.so.0"}, backend.load().__module__)
	END
}
wheel()
{
	local file name own

	make -s -C "$tree" wheel 2>&1 | diag
	# That of a commit sorts before its release
	own=$("$tree/version" --all) && own=${own/-g/.dev0+g}
	file=$(echo "$tree"/build/wheel/*) &&
		[[ ${file##*/} == "dblp-$own-py3-none-manylinux_2_"+([0-9])"_$(uname -m).whl" ]] || return
	(cd / && /usr/bin/python3 -m venv --without-pip "$tmp/venv" &&
		/usr/bin/python3 -m pip --python "$tmp/venv/bin/python" install -q --no-index --no-deps \
			--no-cache-dir "$file") 2>&1 | diag
	in_venv > "$tmp/in_venv.py" && cd / && env -i PATH="$tmp/venv/bin" dblp-run -n 2 --transport tcp --require \
		"$tmp/in_venv.py" > "$tmp/ranks" && cd "$OLDPWD" && diag < "$tmp/ranks" &&
		LC_ALL=C sort "$tmp/ranks" | diff - <(printf '[%d] 2000.0 True dblp_autoload\n' 0 1)
}
try "a wheel is all that a fresh environment needs" wheel

# without FILE: make install fails if FILE is not built, and installs no other file instead
without()
{
	mv "$tree/$1" "$tmp/away" && fails to_root install 2> "$tmp/err" && mv "$tmp/away" "$tree/$1" &&
		cat "$tmp/err" && grep -q 'run make first' "$tmp/err"
}
not_built()
{
	without dblp.ko && without tools/dblpctl/dblpctl && without tools/libdblp/libdblp.a && without tools/libdblp/libdblp.so.0.1.0 &&
		without tools/dblp-perf/dblp-perf && without tools/nccl/libnccl-net-dblp.so
}
try "install: missing files are not built as root" not_built

older()
{
	cp "$tree/dkms.conf" "$tmp/dkms.conf" && sed -i 's/^PACKAGE_VERSION=.*/PACKAGE_VERSION="9.9"/' "$tree/dkms.conf" || return
	fails to_root install-module 2> "$tmp/err" && grep 'dblp.ko of this version is not built: run make first' "$tmp/err" &&
		fails to_root install-tools 2> "$tmp/err" && grep 'dblpctl of this version is not built: run make first' "$tmp/err"
	local status=$?
	cp "$tmp/dkms.conf" "$tree/dkms.conf" && return "$status"
}
try "install: files built before an update are refused" older
try "install: a module for another kernel is refused" fails to_root install-module KERNELRELEASE=1.2.3

# in_extra WORDS: install-module, while this is the status that DKMS prints
in_extra()
{
	mkdir -p "$root/lib/modules/$release/extra" && touch "$root/lib/modules/$release/extra/dblp.ko.xz" &&
		to_root install-module DKMS="echo $1" 2> "$tmp/err" && cat "$tmp/err"
}
dkms_in_extra()
{
	in_extra "dblp/9.9, $release, x86_64: installed" && grep "installed in two ways" "$tmp/err" &&
		rm "$root/lib/modules/$release/extra/dblp.ko.xz" &&
		in_extra "dblp/9.9, 1$release, x86_64: installed" && [ ! -s "$tmp/err" ] &&
		[ ! -e "$root/lib/modules/$release/extra/dblp.ko.xz" ]
}
try "install: a module in extra is removed if DKMS has none for this kernel" dkms_in_extra

uninstalls()
{
	mkdir -p "$root/usr/local" && echo x > "$root/usr/bin/other" && mkdir -p "$root/usr/src/dblp-other" &&
		echo 'PACKAGE_NAME="other"' > "$root/usr/src/dblp-other/dkms.conf" &&
		older_python "$packages" "$root/usr/lib/python3.2/dist-packages" && to_root uninstall && files | diff - <(printf './usr/bin/other\n./usr/src/dblp-other/dkms.conf\n') &&
		rm -r "${root:?}/usr"
}
try "uninstall: all installed files are removed, and no others" uninstalls

# describe [--all]: print the output of ./version in the checkout $tmp/git
describe()
{
	(cd / && "$tmp/git/version" "$@")
}
versions()
{
	local commit first changed

	mkdir "$tmp/git" && cp -r "$top"/{version,dkms.conf,Kbuild,uapi} "$tmp/git" && mkdir "$tmp/git/net" &&
		echo a > "$tmp/git/net/main.c" && [ "$(describe)" = "$version" ] && cd "$tmp/git" && git init -q && git add . &&
		git -c user.name=x -c user.email=x@x commit -q -m x && commit=$(git rev-parse --short=10 HEAD) || return
	[ "$(describe)" = "$version-g$commit" ] && echo change >> net/main.c && first=$(describe) &&
		[[ $first == $version-g$commit.* ]] && echo more >> net/main.c && changed=$(describe) && [ "$changed" != "$first" ] &&
		echo new > net/new.c && [ "$(describe)" != "$changed" ] && git add . && git stash -q &&
		echo x > README && [ "$(describe)" = "$version-g$commit" ] && git tag "v$version" && [ "$(describe)" = "$version" ] &&
		echo change >> net/main.c && [[ $(describe) == $version-g$commit.* ]] && git checkout -q net && git tag -d "v$version" || return
	[[ $(describe --all) == $version-g$commit.* ]] && rm README && [ "$(describe --all)" = "$version-g$commit" ] &&
		git tag "v$version" && [ "$(describe --all)" = "$version" ] && echo x > README &&
		[[ $(describe --all) == $version-g$commit.* ]] && git add . && git -c user.name=x -c user.email=x@x commit -q -m x &&
		[ "$(describe)" = "$version" ] && [ "$(describe --all)" = "$version-g$(git rev-parse --short=10 HEAD)" ] &&
		git reset -q --hard HEAD~ && git tag -d "v$version" || return
	# root reads the checkout of another user
	[ "$(id -u)" -ne 0 ] || { chown -R 65534 "$tmp/git" && [ "$(describe)" = "$version-g$commit" ]; }
}
try "the version differs for each commit and change, for any user" versions

done_testing
