# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Debian's packages for scripts that source lib.sh, without installing them. They are from the
# mirror that this machine's apt uses, or from DBLP_MIRROR. This apt has its lists and settings
# in the cache, so it needs neither root nor a change in /etc.

: "${cache_dir:?comes from lib.sh}"

# apt_use SUITE [ARCHITECTURE]: use only this suite and its security updates. A mirror then needs
# no other suites: backports are archived before the release that they are for.
apt_use()
{
	apt_suite=$1
	apt_dir=$cache_dir/apt-$apt_suite${2:+-$2}
	# The host's apt with the changes that are needed. Other settings of the host, such as
	# proxies and timeouts, still apply.
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
	[ -z "${2:-}" ] || apt_opts+=(-o "APT::Architecture=$2" -o "APT::Architectures=$2")
}

# Write the source, this machine's Debian mirror; returns 1 if it has not changed
apt_sources()
{
	local mirror=${DBLP_MIRROR:-} security='' uri suite
	local keys=/usr/share/keyrings/debian-archive-keyring.gpg

	# shellcheck disable=SC2016 # apt's names
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
		case $apt_suite in
		*-backports) ;;
		*)
			[ -z "$security" ] ||
				printf 'deb [signed-by=%s] %s %s-security main\n' "$keys" "$security" "$apt_suite"
			;;
		esac
	} > "$apt_dir/dblp.list"
	if cmp -s "$apt_dir/dblp.list" "$apt_dir/sources/dblp.list"; then
		return 1
	fi
	mv "$apt_dir/dblp.list" "$apt_dir/sources/dblp.list"
}

# An unreachable mirror is an error only if the cache has no lists. Lists are not read again for
# some minutes, because another process may be using them.
apt_update()
{
	apt_sources || [ -z "$(find "$apt_dir/lists-read" -mmin -15 2>/dev/null)" ] || return 0
	say "reading package lists"
	apt-get "${apt_opts[@]}" -o APT::Update::Error-Mode=any update >&2 && {
		touch "$apt_dir/lists-read"
		return
	}
	[ -n "$(find "$apt_dir/lists" -maxdepth 1 -name '*_Packages*' -print -quit)" ] ||
		die "offline? The mirror does not answer, and the cache ($cache_dir) has no lists of its packages"
	offline=" (offline? the mirror does not answer)"
	say "the mirror does not answer: using the package lists in the cache"
}

# pkg_field PACKAGE FIELD PREFIX: print FIELD of the newest PACKAGE whose version starts with
# PREFIX.
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

# unpack DIR VERSION PACKAGE...: download packages and unpack them to DIR/root
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
			die "cannot download $pkg $ver${offline:-}"
	done
	for pkg in "$tmp"/*.deb; do
		dpkg-deb -x "$pkg" "$dir/root" || die "cannot unpack $pkg"
	done
	rm -rf "$tmp"
}

# get_package DIR PACKAGE: unpack the newest version to DIR/root, unless DIR/root exists
get_package()
{
	[ ! -e "$1/root" ] || return 0
	with_lock apt apt_update || exit
	rm -rf "$1.new"
	mkdir -p "$1.new"
	unpack "$1.new" "$(pkg_field "$2" Version '')" "$2"
	rm -rf "$1"
	mv "$1.new" "$1"
}
