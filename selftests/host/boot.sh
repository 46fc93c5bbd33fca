#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# selftests/vm/run: a machine that hangs before its init is booted again, at most twice, and the
# command runs once. The kernel gets the rate of the TSC.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../lib/lib.sh"

# A fake QEMU that hangs in its first $STILL boots; its next boot ends at once
mkdir "$tmp/bin"
cat > "$tmp/bin/qemu-system-x86_64" <<'END'
#!/bin/bash
for word; do
	case $word in
	*path=*/verdict) verdict=${word#*path=} ;;
	esac
done
printf '%s\n' "$*" | tr '\n' ' ' >> "$BOOTS"
echo >> "$BOOTS"
: > "$verdict"
[ "$(wc -l < "$BOOTS")" -gt "$STILL" ] || exec sleep 60
printf '%s\n' init 'exit 3' end > "$verdict"
END
chmod +x "$tmp/bin/qemu-system-x86_64"

# stands_still TIMES STATUS BOOTS: a machine that hangs TIMES ends with STATUS after BOOTS
stands_still()
{
	local status

	: > "$tmp/boots"
	PATH=$tmp/bin:$PATH STILL=$1 BOOTS=$tmp/boots DBLP_ACCEL=tcg \
		"$here/../vm/run" --no-module --only-tools --boot-timeout 3 command 2>&1
	status=$?
	echo "status $status, $(wc -l < "$tmp/boots") boots"
	[ "$status" -eq "$2" ] && [ "$(wc -l < "$tmp/boots")" -eq "$3" ]
}
try "a machine that boots is booted once" stands_still 0 3 1
try "a machine that hangs is booted again" stands_still 2 3 3
try "a machine that always hangs is an error" stands_still 9 124 3

# The rate is that of this machine's kernel, if the kernel reports it
clock_is_told()
{
	local khz

	khz=$(sed 's/.* tsc_early_khz=\([0-9]*\) .*/\1/; q' "$tmp/boots")
	echo "$khz kHz"
	[ "$khz" -gt 100000 ] && [ "$khz" = "$("$here/../vm/tsc")" ]
}
try "the kernel gets the rate of the TSC" clock_is_told

done_testing
