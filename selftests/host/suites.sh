#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# selftests/vm/kernel: the suites that it needs from a mirror. Backports are archived before the
# release that they are for, and apt accepts nothing if one suite is missing.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../lib/lib.sh"

mkdir "$tmp/bin"
cat > "$tmp/bin/apt-get" <<'END'
#!/bin/bash
for word; do
	case $word in
	Dir::Etc::SourceParts=*) cat "${word#*=}"/* > "$ASKED_FOR" ;;
	indextargets) echo 'http://mirror.example/debian|bookworm'
		      echo 'http://mirror.example/debian-security|bookworm-security' ;;
	update) exit 100 ;;
	esac
done
END
chmod +x "$tmp/bin/apt-get"

# asks KERNEL SUITE...: it needs exactly these suites, with an empty cache
asks()
{
	local kernel=$1
	shift

	rm -rf "$tmp/asked" "$tmp/cache"
	PATH=$tmp/bin:$PATH DBLP_MIRROR='' DBLP_CACHE=$tmp/cache ASKED_FOR=$tmp/asked \
		"$here/../vm/kernel" "$kernel" && return 1
	cat "$tmp/asked"
	[ "$(awk '{ print $(NF - 1) }' "$tmp/asked" | xargs)" = "$*" ]
}
try "6.1 needs no backports" asks 6.1 bookworm bookworm-security
try "6.12 needs backports alone" asks 6.12 bookworm-backports
try "6.12 of Debian 13 needs no backports" asks 6.12-trixie trixie trixie-security

done_testing
