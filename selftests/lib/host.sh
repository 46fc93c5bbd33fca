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
make -s --no-print-directory -C "$top" tools lab > /dev/null || exit 1
PATH=$top/tools/dblp-perf:$top/lab/train:$top/lab/fabric:$PATH
# texts_as_listed KIND COMMAND...: COMMAND TEXT, which fails in any case, says for each text of
# KIND in unit/units.cases why it is refused, and names no text that it accepts, except a value
# outside its own limits
texts_as_listed()
{
	local line text value said status n=0

	while IFS= read -r line; do
		[[ $line == "$1"$'\t'* ]] || continue
		text=${line#*$'\t'}
		value=${text#*$'\t'}
		text=${text%%$'\t'*}
		n=$((n + 1))
		said=$("${@:2}" "$text" 2>&1 < /dev/null)
		status=$?
		case $value in
		'! '*) [[ $status,$said != 2,*"'$text' ${value#! }"* ]] || continue ;;
		*) [[ $status -ne 2 || $said == *"'$text'"* && $said != *"'$text' is not a "*" from "* ]] || continue ;;
		esac
		echo "'$text' should be $value: $said"
		return 1
	done < "$top/selftests/unit/units.cases"
	[ "$n" -ge 9 ]
}

# The loopback address depends on the process, so that tests can run in parallel
# shellcheck disable=SC2034 # for those who source this
here=127.$((64 + ($$ >> 16))).$(($$ >> 8 & 255)).$(($$ & 255))
