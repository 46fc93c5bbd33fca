#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make release, in a small copy of this checkout: what it refuses, and the tag that it makes.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../lib/lib.sh"
top=$(readlink -f "$here/../..")
export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@x

# commit: commit all changes, and let make deb have built packages of this commit
commit()
{
	git add -A && git commit -q --allow-empty -m x &&
		rm -rf build && mkdir -p build/deb &&
		touch "build/deb/dblp_0.9.0~git1.$(git log -1 --abbrev=10 --format=%h)_amd64.changes"
}

# A checkout that can be released
make_checkout()
{
	local page part today

	today=$(date -u +%F)
	mkdir "$tmp/git" && cd "$tmp/git" && git init -q &&
		tar -C "$top" -c dkms.conf NEWS MAINTAINERS SECURITY.md debian rpm python/pyproject.toml python/dblp/site Documentation/man \
			Documentation/abi.list selftests/release selftests/check | tar -x || return
	printf '#!/bin/sh\n' > selftests/abi && chmod +x selftests/abi && echo /build/ > .gitignore
	[ -d python/dblp/site/dblp-0.9.0.dist-info ] || mv python/dblp/site/dblp-* python/dblp/site/dblp-0.9.0.dist-info || return
	sed -i -E 's/^(PACKAGE_VERSION=|version = )".*"/\1"0.9.0"/; s/^Version: .*/Version: 0.9.0/' \
		dkms.conf python/pyproject.toml python/dblp/site/*/METADATA rpm/dblp.spec
	sed -i -E '1s/.*/dblp (0.9.0) unstable; urgency=medium/' debian/changelog
	sed -i -E "0,/^[0-9.]+ \(.*/s//0.9.0 ($today)/" NEWS
	sed -i 's/\.invalid/.example/' MAINTAINERS SECURITY.md debian/control rpm/dblp.spec
	for page in Documentation/man/*; do
		sed -i -E "s/^\.Dd .*/.Dd $today/; s/^(\.TH DBLP 7) .*/\1 $today \"dblp 0.9.0\" \"AF_DBLP\"/" "$page"
	done
	mkdir Documentation/results net && echo a > net/main.c && commit || return
	for part in $(sed -n '/^RARE = (/,/)/p' selftests/check | grep -o "'[^']*'" | tr -d "'"); do
		echo "| $part | $(git rev-parse --short HEAD) | $today | 7 | 0 | 0 | 1 |"
	done > Documentation/results/check-all.md
	commit
}
make_checkout || exit
good=$(git rev-parse HEAD)

try "a commit that has all it needs can be released" selftests/release --check

# refused FAULT FILE COMMAND: with FILE changed by this command of sed, this fault is printed
refused()
{
	sed -i "$3" "$2" && ! git diff --quiet && commit && ends_with 1 "$1" selftests/release
	local status=$?
	git reset -q --hard "$good" && commit
	return "$status"
}
try "versions differ" refused "pyproject.toml has version '0.8.0', not 0.9.0" python/pyproject.toml s/0.9.0/0.8.0/
try "NEWS names another version" refused "NEWS has version '0.8.0'" NEWS 's/^0.9.0 /0.8.0 /'
try "the Python package names another version" refused "METADATA has version '0.8.0', not 0.9.0" \
	python/dblp/site/dblp-0.9.0.dist-info/METADATA s/0.9.0/0.8.0/
try "NEWS has no date" refused "NEWS has no date of 0.9.0" NEWS 's/^0.9.0 .*/0.9.0 (not released)/'
try "debian/changelog is of a snapshot" refused "debian/changelog is of a version that is not released" debian/changelog '1s/unstable/UNRELEASED/'
try "a manual page is older than its last change" refused "libdblp.3 is dated 2026-01-02, and was changed" \
	Documentation/man/libdblp.3 's/^.Dd .*/.Dd 2026-01-02/'
try "a part of check-all has failed" refused "part clang of make check-all has failed" \
	Documentation/results/check-all.md '/clang/s/ 0 | 0 | 1/ 1 | 0 | 1/'
try "a part of check-all has no result" refused "no result of part torch" Documentation/results/check-all.md /torch/d
try "the results are of other sources" refused "part 7.x-all of make check-all ran for other sources" net/main.c s/a/b/
# shellcheck disable=SC2016 # for sed
try "selftests/abi fails" refused "selftests/abi fails" selftests/abi '$aexit 1'
try "there is no address" refused "have no address" MAINTAINERS s/example/invalid/
unreleased()
{
	sed -i 's/^0.9.0 .*/0.9.0 (not released)/' NEWS && selftests/release --versions && sed -i 's/0.9.0/0.8.0/' NEWS &&
		ends_with 1 "NEWS has version '0.8.0', not 0.9.0" selftests/release --versions
	local status=$?
	git reset -q --hard "$good" && commit
	return "$status"
}
try "lint's part checks versions of what is not released" unreleased
not_clean()
{
	echo x > new && ends_with 1 "changes that are not committed" selftests/release && rm new &&
		rm -r build && ends_with 1 "no packages of this commit" selftests/release && commit
}
try "changes that are not committed, or no packages" not_clean
lost()
{
	git tag v0.8.0 && sed -i 's/0\.9\.0/1.0.0/' dkms.conf && sed -i '/^DBLP_PPM /d' Documentation/abi.list && commit &&
		fails selftests/release --check 2> "$tmp/said" && fails grep "the ABI has lost" "$tmp/said" &&
		git tag v1.0.0 "$good" && git tag -d v0.8.0 && fails selftests/release --check 2> "$tmp/said" &&
		grep "the ABI has lost what v1.0.0 had" "$tmp/said" && git tag -d v1.0.0 && git reset -q --hard "$good" && commit
}
try "the ABI may lose what it had only before 1.0.0" lost
tags()
{
	selftests/release && [ "$(git describe)" = v0.9.0 ] && ends_with 1 "the tag v0.9.0 exists" selftests/release
}
try "the tag is made once" tags

# What builds packages in a root prints their version, and makes files of this version
make_builder()
{
	mkdir -p selftests/vm && cp "$top/selftests/vm/lib.sh" selftests/vm/ && cp "$top/version" . &&
		printf '#!/bin/sh\n' > selftests/deps && cat > selftests/vm/debian <<-'END' && chmod +x selftests/deps selftests/vm/debian
			#!/bin/bash
			while [ "$1" != --bind ]; do shift; done
			cd "$2" && version=$(sed -n '1s/.*(\(.*\)).*/\1/p' dblp/debian/changelog) || exit
			touch "dblp-tools_${version}_amd64.deb" "dblp_$version.dsc"
			printf 'Files:\n 0 1 net optional dblp_%s.dsc\n' "$version" > "dblp_${version}_amd64.changes"
		END
}

# built: the version of the only package in build/deb
built()
{
	debian/build > /dev/null && ls build/deb >&2 && [ "$(find build/deb -name '*.deb' | wc -l)" = 1 ] &&
		echo build/deb/*.deb | sed -n 's/.*_\(.*\)_amd64.deb/\1/p'
}
versions()
{
	make_builder && commit && git tag -f v0.9.0 && rm -rf build && [ "$(built)" = 0.9.0 ] && echo >> python/pyproject.toml &&
		[[ $(built) == 0.9.0+git*.$(git log -1 --abbrev=10 --format=%h).changed ]] && commit &&
		[[ $(built) == 0.9.0+git*.$(git log -1 --abbrev=10 --format=%h) ]] && git tag -d v0.9.0 &&
		[[ $(built) == 0.9.0~git*.$(git log -1 --abbrev=10 --format=%h) ]]
}
try "only packages of the tagged commit have the version of the release" versions
others()
{
	mkdir -p build/deb/folder && touch build/deb/{other.deb,folder/dblp_file} && debian/build && ls build/deb &&
		[ -e build/deb/other.deb ] && [ -e build/deb/folder/dblp_file ] && rm -r build/deb/{other.deb,folder} && built
}
try "a build of packages leaves other files in their folder" others

done_testing
