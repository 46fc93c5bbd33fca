# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# shellcheck disable=SC2154 # network.sh sets hosts and server
#
# Shared by the scenarios of lab/bench and lab/experiments, in the VM. Source it after
# network.sh, in guest.sh SCENARIO [ARGUMENT...]; it removes the first argument. Each
# measurement becomes a line of /out/results:
#
#	{"scenario", "key", "transport", "status", "error", "result"}
#
# Lines with the same scenario and key are compared. status is the exit status of the
# measuring program, and result the JSON object that it printed.

scenario=${1:?}
shift
uname -r > /out/release
results=/out/results
# Seconds, virtual unless the scenario runs in real time. Peers with long timeouts need
# this much.
limit=1500
# A command that prints further members of a result, as JSON
aside="echo {}"

fail()
{
	printf '%s: %s\n' "$scenario" "$*" >&2
	exit 1
}

# The options of dblp-perf for a transport
flavours()
{
	case $1 in
	dblp) echo ;;
	dblp-*lossy) echo "$(flavours "${1%-lossy}") --cc lossy" ;;
	dblp-*-ports) echo --spray "${1//[^0-9]/}" ;;
	dblp-*%) echo --budget "${1#dblp-}" ;;
	dblp-*%-*) echo "--budget ${1:5}" | sed 's/-\([a-z]*\)$/ --policy \1/' ;;
	sctp) echo --proto sctp ;;
	*) echo --proto tcp --cc "$1" ;;
	esac
}

# record KEY TRANSPORT COMMAND...: run COMMAND and record its output as the result
record()
{
	local key=$1 transport=$2 status json
	shift 2

	json=$("$@" 2> /run/error)
	status=$?
	if [ $status -eq 0 ]; then
		json=$($aside | jq -c --argjson result "$json" '$result + .') || fail "no figures beside"
	else
		json=null
	fi
	printf '[%4d s] %s %s %s: status %s %s\n' $SECONDS "$scenario" "$key" "$transport" $status \
		"$(cat /run/error)"
	jq -c -n --arg scenario "$scenario" --arg key "$key" --arg transport "$transport" \
		--argjson status $status --rawfile error /run/error --argjson result "$json" \
		'$ARGS.named' >> $results || fail "no room for the results"
}

# measure KEY TRANSPORT MODE [OPTION...]: measure by dblp-perf, from the hosts to the server
measure()
{
	local key=$1 transport=$2 mode=$3
	shift 3

	# shellcheck disable=SC2046 # words
	record "$key" "$transport" dblp-perf "$mode" -j --samples --timeout ${limit}s --to server \
		--from "$hosts" --address "$server" $(flavours "$transport") "$@"
}
