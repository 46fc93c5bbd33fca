#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# selftests/lint and selftests/words: a check without files fails, and faults are found.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../lib/lib.sh"

# Like a tarball, or the checkout of another user
without_git()
{
	GIT_DIR=$tmp/none "$here/../lint" > "$tmp/said" 2>&1 && return 1
	cat "$tmp/said"
	grep -q "git does not list the files" "$tmp/said" && ! grep -q '^ok' "$tmp/said"
}
try "it fails where git lists no files" without_git

# words_of NAME: print the findings of selftests/words for a README.md with NAME()
words_of()
{
	rm -rf "$tmp/tree"
	mkdir -p "$tmp/tree/net" "$tmp/tree/selftests"
	cp "$here/../words" "$tmp/tree/selftests"
	echo 'int in_code(void);' > "$tmp/tree/net/a.h"
	echo "\`\`$1()\`\` does it." > "$tmp/tree/README.md"
	git -C "$tmp/tree" init -q && "$tmp/tree/selftests/words" --check functions
}

finds_unknown_functions()
{
	words_of in_code && ! words_of not_in_code > "$tmp/said" && cat "$tmp/said" &&
		grep -q '^README.md:1: the code has no not_in_code()$' "$tmp/said"
}
try "words finds functions in documents that the code does not have" finds_unknown_functions

done_testing
