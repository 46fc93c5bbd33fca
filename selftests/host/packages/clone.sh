#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The commands of README.md, "From Git", and its first program, in a fresh root of Debian. Its
# kernel is not the one that runs, so the module is loaded in a VM, and the program runs there.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../../lib/lib.sh"
top=$(readlink -f "$here/../../..")
needs mmdebstrap
release=$(cat "$("$top/selftests/vm/kernel" 6.1)/release") || exit
clone=$tmp/clone

# What is typed: the block below the heading, and the line that builds the first program
commands()
{
	sed -n '/^### From Git$/,/^[^ ]/{/^#/d;/^    /!{/./q};s/^    //p}' "$top/README.md" | grep ''
	sed -n 's,^    \$ \(cc .*\) && \./first$,\1,p' "$top/README.md" | grep ''
}

# The commands that load a module are only noted in $PWD/loaded
in_root()
{
	# shellcheck disable=SC2016 # expanded by the inner shells
	"$top/selftests/vm/debian" --bind "$clone" -- sh -c '
		cd "$1" && mkdir bin && PATH=$1/bin:$PATH &&
		printf "#!/bin/sh\nexec \"\$@\"\n" > bin/sudo &&
		printf "#!/bin/sh\n[ \"\$1\" != -r ] || exec echo %s\nexec /bin/uname \"\$@\"\n" "$2" > bin/uname &&
		printf "#!/bin/sh\necho \"\${0##*/} \$*\" >> loaded\n" > bin/insmod && cp bin/insmod bin/modprobe &&
		chmod +x bin/* && apt-get -q -q update && . ./commands' sh "$clone" "$release"
}

builds()
{
	mkdir "$clone" && git -C "$top" ls-files -co --exclude-standard | (cd "$top" && while IFS= read -r file; do
		[ ! -e "$file" ] || printf '%s\n' "$file"
	done | tar -c --no-recursion -T -) | tar -x --no-same-owner -C "$clone" &&
		(echo set -e && commands) > "$clone/commands" &&
		cat "$clone/commands" &&
		awk '/^```/ { if (on) exit; on = /^```c$/; next } on' "$top/README.md" > "$clone/first.c" && in_root &&
		diff "$clone/loaded" <(printf 'modprobe -a udp_tunnel ip6_udp_tunnel\ninsmod dblp.ko\n')
}
try "the commands of README.md build the module, the tools and the first program" builds

runs()
{
	mkdir "$tmp/add" && cp "$clone/first" "$tmp/add/" &&
		"$top/selftests/vm/run" --module "$clone/dblp.ko" --only-tools --add "$tmp/add" -- /add/first | tee "$tmp/said" &&
		grep -q -E -x '[0-9]+ of 4000000 bytes are missing, in [0-9]+ places' "$tmp/said"
}
try "with this module, the first program prints what is missing" runs

done_testing
