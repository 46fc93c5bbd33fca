#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# selftests/vm/run: a machine that stands still before its init has begun is booted once
# more, at most twice, and the command runs once; and how fast its clock is said to be.

# shellcheck disable=SC2154,SC2317 # lib.sh sets it; functions are called by try
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=selftests/lib/lib.sh
. "$here/../lib/lib.sh"

# A machine that stands still in its first $STILL boots, and in the next
# is over at once
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

# stands_still TIMES STATUS BOOTS
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
try "one that stands still is booted once more" stands_still 2 3 3
try "one that always stands still is given up" stands_still 9 124 3

# As this machine's kernel has it, where it says so
clock_is_told()
{
	local khz

	khz=$(sed 's/.* tsc_early_khz=\([0-9]*\) .*/\1/; q' "$tmp/boots")
	echo "$khz kHz"
	[ "$khz" -gt 100000 ] && [ "$khz" = "$("$here/../vm/tsc")" ]
}
try "the kernel is told how fast the TSC is" clock_is_told

done_testing
