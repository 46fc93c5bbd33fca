#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The first program of README.md, which selftests/Makefile extracts and compiles: it is as
# short as promised, and does what the README says.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"

source=$built/readme-example.c

is_short()
{
	local lines

	lines=$(grep -c '' "$source")
	echo "$lines lines"
	[ "$lines" -gt 10 ] && [ "$lines" -lt 45 ]
}
try "the first program has less than 45 lines" is_short

# Send a million floats with a budget of 5 %
runs()
{
	local missing all places

	readme-example > "$tmp/said" || return
	cat "$tmp/said"
	read -r missing all places < <(sed -n \
		's/^\([0-9]*\) of \([0-9]*\) bytes are missing, in \([0-9]*\) places$/\1 \2 \3/p' \
		"$tmp/said")
	[ "$all" -eq 4000000 ] && [ "$missing" -gt 0 ] && [ "$missing" -le 200000 ] &&
		[ "$places" -gt 0 ]
}
try "the first program runs" runs
try "the first program runs again" runs
# Without the module its error names the module, not an invalid descriptor
without_module()
{
	wait_until 20 rmmod dblp || return
	readme-example > "$tmp/said" 2>&1
	insmod "$(module_file)" || return
	cat "$tmp/said"
	grep -q 'Address family not supported' "$tmp/said"
}
try "the error of the first program names the missing module" without_module
done_testing
