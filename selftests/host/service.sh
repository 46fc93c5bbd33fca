#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Documentation/examples/dblp.service: when systemd starts it, and its command. Also that of
# dblp-prometheus.service.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../lib/lib.sh"
top=$here/../..
unit=$top/Documentation/examples/dblp.service

# conditions STATUS WORD...: check the conditions of the unit, for $tmp/batch
conditions()
{
	local lines

	mapfile -t lines < <(grep -E '^(Condition|Assert)' "$unit" | sed "s,/etc/dblp.batch,$tmp/batch,")
	systemd-analyze condition "${lines[@]}" > "$tmp/said" 2>&1
	[ $? -eq "$1" ] && grep -q -x "$2" "$tmp/said" && grep -q -x "$3" "$tmp/said"
	local status=$?
	cat "$tmp/said"
	return "$status"
}

try "without a file the unit is skipped" conditions 1 'Conditions failed.' 'Asserts failed.'
empty()
{
	: > "$tmp/batch" && conditions 1 'Asserts failed.' 'Conditions succeeded.'
}
try "an empty file is an error" empty
some()
{
	echo begin > "$tmp/batch" && conditions 0 'Asserts succeeded.' 'Conditions succeeded.'
}
try "the unit runs with a file that is not empty" some

# The command of the unit is among the installed programs
refuses()
{
	local words

	make -s -C "$top/tools/dblpctl" install DESTDIR="$tmp/root" > /dev/null &&
		read -ra words < <(sed -n 's/^ExecStart=//p' "$unit" | sed "s,/etc/dblp.batch,$tmp/batch,") &&
		fails "$tmp/root${words[0]}" "${words[@]:1}" 2> "$tmp/said" && cat "$tmp/said" &&
		grep -q "does not end with 'complete'.* no command is run" "$tmp/said"
}
try "the command is installed, and refuses a truncated file" refuses

# The exposure that systemd computes, in tenths; a unit without restrictions has 96
try "the unit keeps few rights" systemd-analyze security --offline=yes --no-pager --threshold=45 "$unit"
# Documentation/admin.rst says so
families()
{
	printf '[Service]\nExecStart=/bin/true\nRestrictAddressFamilies=%s\n' "$1" > "$tmp/families.service" &&
		systemd-analyze verify --man=no "$tmp/families.service" 2> "$tmp/said"
	cat "$tmp/said"
	! grep -q 'Failed to parse address family' "$tmp/said"
}
try "AF_ASH is the name of family 18 in RestrictAddressFamilies=" families AF_ASH
try "... which has no number there" fails families 18

# The command of dblp-prometheus.service, with a dblpctl that is found by PATH
prometheus()
{
	local words=()

	mkdir "$tmp/bin" && printf '#!/bin/sh\necho "$@"\n' > "$tmp/bin/dblpctl" && chmod +x "$tmp/bin/dblpctl" &&
		eval "words=($(sed -n 's/^ExecStart=//p' "$top/Documentation/examples/dblp-prometheus.service"))" &&
		PATH=$tmp/bin:$PATH "${words[@]:0:4}" "$tmp/dblp.prom" && [ "$(cat "$tmp/dblp.prom")" = "stats --prometheus" ] &&
		[ ! -e "$tmp/dblp.prom.new" ]
}
try "dblp-prometheus.service finds dblpctl wherever it is installed" prometheus

done_testing
