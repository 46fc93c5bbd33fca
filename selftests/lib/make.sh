# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# shellcheck disable=SC2034 # for those who source this
#
# For scripts that run make install, in a copy of the sources, for a kernel of the cache,
# into a directory. Source it after lib.sh.

top=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")
PATH=$PATH:/usr/sbin:/sbin
# Do not inherit settings of the make that runs this script
unset MAKEFLAGS MAKELEVEL DBLP_BUILD

kernel=$("$top/selftests/vm/kernel" 6.1) || exit
release=$(cat "$kernel/release")
# The copy of the sources, which the script makes, and DESTDIR
tree=${tmp:?comes from lib.sh}/tree
root=$tmp/root
mkdir "$tree" "$root"
