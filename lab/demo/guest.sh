#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The demo in the VM: a server (rank 0) and three workers at one switch train the same model
# several times, each time over another transport.
#
#	guest.sh [tcp] [fixed] [phases]		these runs, by default all of them
#	guest.sh burst				cause a microburst; started by a hook
#
# The training text is in /add, logs are written to /out.

set -u -o pipefail

workers=3
rounds=${DEMO_ROUNDS:-60}
server=10.77.0.1
port=7000
low=0.8%
high=40.8%
tuned=2%

# Rate of each link in each direction. Each port of the switch has a queue of 100 packets,
# and the queues of the hosts hold all data that they send. Packets are lost before the link,
# so they use no time on it.
rate=100mbit
link=(rate "$rate" delay 250us limit 100)
# A microburst takes about as long as a round. It begins with a round, in which workers send
# first.
burst_loss=90%
burst_time=0.150
# Microbursts at a fifth, a half and nine tenths of the run; before the last one an operator
# changes a budget.
bursts=$((rounds / 5)),$((rounds / 2)),$((rounds * 9 / 10))
tune=$((rounds * 3 / 4))

self=$(readlink -f "$0")
# shellcheck source=selftests/lib/link.sh
. "$(dirname "$self")/../../selftests/lib/link.sh"
log_dir=/out
fifo=/run/demo-tune

fail()
{
	printf 'demo: %s\n' "$*" >&2
	exit 1
}

plug_in()
{
	ip netns add "$1" &&
	ip -n "$1" link set lo up &&
	ip -n switch link add "$1" type veth peer name eth0 netns "$1" &&
	ip -n switch link set "$1" master bridge up &&
	ip -n "$1" addr add "$2/24" dev eth0 &&
	ip -n "$1" link set eth0 up &&
	one_by_one "$1" eth0 &&
	one_by_one switch "$1" &&
	tc -n "$1" qdisc add dev eth0 root tbf rate $rate burst 5k limit 2m &&
	tc -n switch qdisc add dev "$1" root netem "${link[@]}"
}

# host NAME ADDRESS: create a namespace and connect it to the switch
host()
{
	plug_in "$@" > /dev/null || fail "cannot set up $1"
}

make_switch()
{
	ip netns add switch &&
	ip -n switch link add bridge type bridge &&
	ip -n switch link set bridge up
}

make_network()
{
	local i

	make_switch || fail "cannot set up the switch"
	host server $server
	for ((i = 0; i < workers; i++)); do
		host worker$i 10.77.0.$((10 + i))
	done
}

# Lose most packets at the port to the server for a while.
burst()
{
	tc -n switch qdisc change dev server root netem "${link[@]}" loss $burst_loss &&
	sleep $burst_time &&
	tc -n switch qdisc change dev server root netem "${link[@]}"
}

show()
{
	printf '# %s\n' "$*"
	"$@" || fail "this failed: $*"
}

# An operator changes the budget of the sockets of a running training.
tune_sockets()
{
	local i id

	read -r _ < $fifo || return
	show dblpctl -N worker0 socket list peer $server
	for ((i = 0; i < workers; i++)); do
		id=$(dblpctl -N worker$i -j socket list peer $server | jq -r '.[0].id')
		show dblpctl -N worker$i socket set "$id" loss $tuned
	done
	show dblpctl -N worker0 socket list peer $server
}

# add_job NUMBER [OPTION...]: add a job on each host
add_job()
{
	local host

	for host in server $(seq -f 'worker%.0f' 0 $((workers - 1))); do
		dblpctl -N "$host" job add "$@" || fail "cannot add a job at $host"
	done
}

# train LOG NAME TRANSPORT [OPTION...]: train with a server and three workers. The first worker
# writes the log: a server's rounds end when it has passed its last byte to the socket.
train()
{
	local log=$log_dir/$1 name=$2 kind=$1 pids=() i
	local options=(--nranks $((workers + 1)) --rendezvous "tcp://$server:$((port++))"
		--transport "$3" --plan ps --rounds "$rounds" --batch 64 --name "$name")
	shift 3

	ip netns exec server dblp-train run --rank 0 "${options[@]}" "$@" /add/* > /dev/null &
	pids+=($!)
	local own=(--progress 10 --log "$log" --hook "burst:$bursts:$self burst")
	[ "$kind" != fixed ] || own+=(--hook "tune:$tune:echo > $fifo")
	for ((i = 0; i < workers; i++)); do
		ip netns exec worker$i dblp-train run --rank $((i + 1)) "${options[@]}" "$@" \
			"${own[@]}" /add/* &
		pids+=($!)
		own=()
	done
	if [ "$kind" = fixed ]; then
		tune_sockets &
		pids+=($!)
	fi
	for i in "${pids[@]}"; do
		wait "$i" || fail "$name: the training has failed ($?)"
	done
}

run()
{
	case $1 in
	tcp)
		train tcp "TCP" tcp
		;;
	fixed)
		mkfifo $fifo
		add_job 1 phase critical
		train fixed "DBLP fixed" dblp --job 1
		;;
	phases)
		add_job 2 phase critical clr on low $low high $high
		train phases "DBLP phases" dblp --job 2
		;;
	*)
		fail "there is no run '$1'"
		;;
	esac
	echo
}

if [ "${1:-}" = burst ]; then
	burst
	exit
fi
[ $# -gt 0 ] || set -- tcp fixed phases
uname -r > $log_dir/release
make_network
logs=()
for kind in "$@"; do
	run "$kind"
	logs+=("$log_dir/$kind")
done
dblp-train report "${logs[@]}" || exit
dblp-train report --markdown "${logs[@]}" > $log_dir/table.md
