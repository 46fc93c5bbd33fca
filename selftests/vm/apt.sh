# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Debian's packages for those who source lib.sh, without installing any: they come
# from the mirror that this machine's own apt is set up for (or DBLP_MIRROR), by
# way of an apt with its lists and settings in the cache, so that neither root nor
# a change to /etc is needed.

: "${cache_dir:?comes from lib.sh}"

# apt_use SUITE: a release of Debian, with its backports
apt_use()
{
	apt_suite=$1
	apt_dir=$cache_dir/apt-$apt_suite
	# As it was called when there was one
	[ "$apt_suite" != bookworm ] || apt_dir=$cache_dir/apt
	# The host's apt, with only what must differ. The settings of the host
	# (proxies, timeouts) still hold.
	apt_opts=(
		-q -q
		-o Dir::Etc::SourceList=/dev/null
		-o "Dir::Etc::SourceParts=$apt_dir/sources"
		-o "Dir::State::Lists=$apt_dir/lists"
		-o "Dir::Cache=$apt_dir/cache"
		-o APT::Sandbox::User=root
		-o Acquire::Retries=3
		-o Acquire::Languages=none
	)
}

# Writes the sources: where this machine gets Debian from, and the backports that
# live on the same mirror.
apt_sources()
{
	local mirror=${DBLP_MIRROR:-} security='' uri suite
	local keys=/usr/share/keyrings/debian-archive-keyring.gpg

	# shellcheck disable=SC2016 # names that apt knows
	while IFS='|' read -r uri suite; do
		case $suite in
		*-security) security=$uri ;;
		*-*) ;;
		*) mirror=${mirror:-$uri} ;;
		esac
	done < <(apt-get indextargets 'Created-By: Packages' 'Component: main' \
			--format '$(REPO_URI)|$(RELEASE)' | grep -F debian)

	[ -n "$mirror" ] ||
		die "apt here knows no Debian mirror; name one in DBLP_MIRROR=URI"
	[ -e "$keys" ] || die "needs $keys (package debian-archive-keyring)"

	mkdir -p "$apt_dir/sources" "$apt_dir/lists/partial" "$apt_dir/cache"
	{
		printf 'deb [signed-by=%s] %s %s main\n' "$keys" "$mirror" "$apt_suite"
		printf 'deb [signed-by=%s] %s %s-backports main\n' "$keys" "$mirror" "$apt_suite"
		[ -z "$security" ] ||
			printf 'deb [signed-by=%s] %s %s-security main\n' "$keys" "$security" "$apt_suite"
	} > "$apt_dir/sources/dblp.list"
}

apt_update()
{
	say "reading package lists"
	apt_sources
	apt-get "${apt_opts[@]}" update >&2 || die "cannot read the package lists (is the mirror reachable?)"
}

# pkg_field PACKAGE FIELD PREFIX: FIELD of the newest PACKAGE whose version
# starts with PREFIX.
pkg_field()
{
	apt-cache "${apt_opts[@]}" show "$1" 2>/dev/null |
	awk -v field="$2:" -v prefix="$3" '
		$1 == "Version:" { ok = index($2, prefix) == 1 }
		{ rec = rec $0 "\n" }
		$0 == "" { take() }
		function take(	n, i, line) {
			n = ok ? split(rec, line, "\n") : 0
			for (i = 1; i <= n; i++)
				if (index(line[i], field) == 1) {
					sub(/^[^:]*: */, "", line[i])
					print line[i]
					exit
				}
			rec = ""; ok = 0
		}
		END { take() }' | head -n 1
}

# unpack DIR VERSION PACKAGE...: download and unpack, install nothing
unpack()
{
	local dir=$1 ver=$2 pkg tmp
	shift 2

	tmp=$dir/download
	rm -rf "$tmp"
	mkdir -p "$tmp"
	for pkg; do
		say "downloading $pkg $ver"
		(cd "$tmp" && apt-get "${apt_opts[@]}" download "$pkg=$ver") >&2 ||
			die "cannot download $pkg $ver"
	done
	for pkg in "$tmp"/*.deb; do
		dpkg-deb -x "$pkg" "$dir/root" || die "cannot unpack $pkg"
	done
	rm -rf "$tmp"
}
