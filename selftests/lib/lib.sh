# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Shared by the test scripts: TAP, namespaces, waiting. Source it first, end with
# done_testing. All namespaces and processes are removed when the script ends.

set -u -o pipefail

tap_count=0
tap_failed=0
tap_finished=0
# shellcheck disable=SC2034 # for those who source this: what selftests/Makefile makes
built=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../build")
PATH=$built:$PATH
echo "TAP version 13"

# skip_all WHY: end this test, because it cannot run here
skip_all()
{
	trap - EXIT
	echo "1..0 # SKIP $*"
	rm -rf "${tmp:-}"
	exit 4
}

# needs PROGRAM...: skip this test unless these programs are installed
needs()
{
	local program

	for program; do
		type -P "$program" > /dev/null || skip_all "needs $program"
	done
}

# All tests except those of host/ need root and the module
case $(readlink -f "$0") in
*/host/*) ;;
*)
	[ "$EUID" -eq 0 ] || skip_all "needs root"
	needs ip tc ss jq
	[ -d /sys/module/dblp ] || modprobe -q dblp || skip_all "the module dblp is not loaded"
	;;
esac

tmp=$(mktemp -d "${TMPDIR:-/tmp}/dblp-test.XXXXXX") || exit 1
all_ns=()
all_pids=()

cleanup()
{
	local ns

	# timeout(1) sends several signals
	trap - EXIT
	trap '' INT TERM HUP
	slay "${all_pids[@]}"
	for ns in "${all_ns[@]}"; do
		ip netns del "$ns" 2>/dev/null
	done
	rm -rf "$tmp"
	if [ "$tap_finished" = 0 ]; then
		echo "Bail out! ${0##*/} ended before its last test"
		exit 1
	fi
	exit $((tap_failed > 0))
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# slay PID...: kill processes by SIGKILL, and wait until they have ended
slay()
{
	local pid

	for pid; do
		kill -9 "$pid"
		wait "$pid"
	done 2>/dev/null
}

# diag [TEXT]: print TEXT, or stdin, as diagnostic lines
diag()
{
	if [ $# -gt 0 ]; then
		printf '# %s\n' "$*"
	else
		sed -e 's/^# //' -e 's/^/# /'
	fi
}

# try NAME COMMAND...: one point, which passes if COMMAND succeeds. Processes that COMMAND
# spawned are killed at its end.
try()
{
	if [ "${DBLP_POINTS:-}" = virtual ] && grep -q '^[[:space:]]*try_virtual' "$0"; then
		skip_point "$1" "runs in real time"
	else
		point "$@"
	fi
}

# try_virtual NAME COMMAND...: a point that compares times. It runs in virtual time only,
# because a busy host distorts real time. With DBLP_POINTS=virtual all other points of the
# script are skipped; they run in real time.
try_virtual()
{
	if [ "${DBLP_VIRTUAL_TIME:-0}" = 1 ]; then
		point "$@"
	else
		skip_point "$1" "runs in virtual time"
	fi
}

# skip_point NAME WHY: print a skipped point
skip_point()
{
	tap_count=$((tap_count + 1))
	echo "ok $tap_count $1 # SKIP $2"
}

# point NAME COMMAND...: run one point, for try
point()
{
	local name=$1 start=${EPOCHREALTIME/./} verdict="not ok"
	shift

	tap_count=$((tap_count + 1))
	if "$@" > "$tmp/try" 2>&1; then
		verdict=ok
	else
		tap_failed=$((tap_failed + 1))
	fi
	slay "${all_pids[@]}"
	all_pids=()
	diag < "$tmp/try"
	diag "$(((${EPOCHREALTIME/./} - start) / 1000)) ms"
	echo "$verdict $tap_count $name"
}

done_testing()
{
	echo "1..$tap_count"
	tap_finished=1
	exit
}

# fails COMMAND...: succeeds if COMMAND fails
fails()
{
	if "$@"; then
		echo "succeeded, but should fail: $*"
		return 1
	fi
}

# ends_with STATUS TEXT COMMAND...: COMMAND exits with STATUS, and prints TEXT
ends_with()
{
	local status=$1 text=$2 found
	shift 2

	"$@" > "$tmp/said" 2>&1
	found=$?
	cat "$tmp/said"
	[ "$found" -eq "$status" ] && grep -q -e "$text" "$tmp/said"
}

# wait_until SECONDS COMMAND...: wait until COMMAND succeeds; on a slow kernel with the
# factor of kselftest/kselftest_harness.h
wait_until()
{
	local factor=1 end

	[ -z "${KSFT_MACHINE_SLOW:-}" ] || factor=4
	end=$((SECONDS + $1 * factor + 1))
	shift

	until "$@" > /dev/null 2>&1; do
		if [ $SECONDS -ge $end ]; then
			echo "still fails after the time limit: $*"
			return 1
		fi
		sleep 0.05
	done
}

# once_counted NS NAME MORE COMMAND: print a shell command that waits until counter NAME in
# NS has risen by MORE, and then runs COMMAND
once_counted()
{
	cat <<-END
		count() { ip netns exec $1 dblpctl -j stats | jq '.$2 | tonumber'; }
		goal=\$((\$(count) + $3))
		until [ "\$(count)" -ge "\$goal" ]; do sleep 0.01; done
		$4
	END
}

# new_ns VARIABLE...: create a namespace for each variable, which gets its unique name
new_ns()
{
	local var

	for var in "$@"; do
		printf -v "$var" '%s' "dblp-$$-$var-${#all_ns[@]}"
		all_ns+=("${!var}")
		ip netns add "${!var}" && ip -n "${!var}" link set lo up || exit 1
	done
}

# join NS1 NS2: connect eth0 of both namespaces; addresses 10.9.0.1 and fd09::1 in NS1,
# 10.9.0.2 and fd09::2 in NS2
join()
{
	local n

	ip link add eth0 netns "$1" type veth peer name eth0 netns "$2" || exit 1
	for n in 1 2; do
		ip -n "${!n}" -batch - <<-END || exit 1
			link set eth0 up
			addr add 10.9.0.$n/24 dev eth0
			addr add fd09::$n/64 dev eth0 nodad
		END
	done
}

# netem NS [ARGUMENT...]: apply netem to packets that leave NS
netem()
{
	local ns=$1
	shift
	tc -n "$ns" qdisc replace dev eth0 root netem limit 100000 "$@"
}

# spawn COMMAND...: run COMMAND in the background as $spawned, with output in
# $tmp/out.$spawned
spawn()
{
	local log

	log=$(mktemp "$tmp/log.XXXXXX") || exit 1
	"$@" > "$log" 2>&1 < /dev/null &
	spawned=$!
	all_pids+=("$spawned")
	ln -s -f "$log" "$tmp/out.$spawned"
}

# output_has PID TEXT: has the spawned process printed this line?
output_has()
{
	grep -q -x -e "$2" "$tmp/out.$1"
}

# ended PID STATUS: does the process end within 30 s, with this status?
ended()
{
	local status

	wait_until 30 process_gone "$1" || return
	wait "$1"
	status=$?
	diag < "$tmp/out.$1"
	[ $status -eq "$2" ] || echo "status $status instead of $2"
	[ $status -eq "$2" ]
}

process_gone()
{
	! kill -0 "$1" 2>/dev/null || [ "$(sed 's/.*) //;s/ .*//' "/proc/$1/stat")" = Z ]
}

# module_file: print the file from which insmod can load the module again
module_file()
{
	if [ -n "${DBLP_KO:-}" ]; then
		echo "$DBLP_KO"
	elif ! ls /dblp.ko 2> /dev/null; then
		modinfo -F filename dblp
	fi
}

# sockets NS: print the number of AF_DBLP sockets in the namespace
sockets()
{
	ip netns exec "$1" dblpctl -j socket list | jq length
}

no_sockets()
{
	[ "$(sockets "$1")" = 0 ]
}
