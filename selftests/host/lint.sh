#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# selftests/lint: what checks nothing has not passed.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../lib/lib.sh"

# As in a tarball, or in the checkout of somebody else
without_git()
{
	GIT_DIR=$tmp/none "$here/../lint" > "$tmp/said" 2>&1 && return 1
	cat "$tmp/said"
	grep -q "git does not list the files" "$tmp/said" && ! grep -q '^ok' "$tmp/said"
}
try "it fails where git lists no files" without_git

done_testing
