# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Shared by the tests of tools on this machine, over TCP on the loopback interface, as
# any user. It sources lib.sh and ranks.sh.

# shellcheck source=selftests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=selftests/lib/ranks.sh
. "$(dirname "${BASH_SOURCE[0]}")/ranks.sh"
top=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")
make -s --no-print-directory -C "$top" tools > /dev/null || exit 1
PATH=$top/tools/dblp-perf:$top/tools/train:$top/tools/fabric:$PATH
# The loopback address depends on the process, so that tests can run in parallel
# shellcheck disable=SC2034 # for those who source this
here=127.$((64 + ($$ >> 16))).$(($$ >> 8 & 255)).$(($$ & 255))
