#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The demo with PyTorch in a VM: digits.py on four ranks, on four hosts at a switch, over one of
# the transports, or sharded.py over two.
#
#	torch.sh RUN
#
# The log in /out is the output of dblp-run and the script.

set -u -o pipefail

ranks=4
rounds=${DEMO_ROUNDS:-40}
budget=10%
tuned=25%

rate=100mbit
port=(rate "$rate" delay 500us limit 100)
lost=5%

self=$(readlink -f "$0")
demo=${self%/*}
# shellcheck source=lab/experiments/network.sh
. "$demo/../experiments/network.sh"
log_dir=/out

# The command by which dblp-run starts a rank: at HOST COMMAND
if [ "${1:-}" = at ]; then
	exec ip netns exec "$2" sh -c "$3"
fi

export PYTHONPATH=/python DBLP_LIBRARY=/tools/libdblp/libdblp.so.0.1.0
# Gloo resolves the name of the host by default, which is the same for all of these hosts
export GLOO_SOCKET_IFNAME=eth0
# Debian 13's PyTorch has no libuv
export USE_LIBUV=0
# On emulated CPUs, vectors of 128 bits are the fastest
export ATEN_CPU_CAPABILITY=default DNNL_MAX_CPU_ISA=SSE41

fail()
{
	printf 'demo: %s\n' "$*" >&2
	exit 1
}

make_network()
{
	local i

	new_switch switch || fail "cannot set up the switch"
	for ((i = 0; i < ranks; i++)); do
		{
			new_host h$i && attach h$i eth0 switch 10.77.1.$((1 + i))/16 $rate
		} > /dev/null || fail "cannot set up h$i"
		echo h$i >> /run/hosts
	done
	# Resolve all addresses before packets are lost
	for ((i = 1; i < ranks * ranks; i++)); do
		ip netns exec h$((i / ranks)) ping -q -c 1 -w 5 10.77.1.$((1 + i % ranks)) > /dev/null ||
			fail "hosts do not reach each other"
	done
}

# lose SHARE: lose packets to each host before the link, so they use no time on it
lose()
{
	local i

	for ((i = 0; i < ranks; i++)); do
		tc -n switch qdisc change dev h${i}eth0 root netem "${port[@]}" loss "$1" ||
			fail "cannot lose packets"
	done
}

show()
{
	printf '# %s\n' "$*"
	"$@" || fail "this failed: $*"
}

# Change the budgets of a running training
tune()
{
	local i id

	show dblpctl -N h0 socket list
	for ((i = 0; i < ranks; i++)); do
		for id in $(dblpctl -N h$i -j socket list state established | jq -r '.[].id'); do
			dblpctl -N h$i socket set "$id" loss $tuned || fail "cannot tune socket $id of h$i"
		done
	done
	printf '# at each host: dblpctl socket set ID loss %s\n' $tuned
	show dblpctl -N h0 socket list
}

# sent PID: set $bytes to the bytes sent by the host of PID, without starting a process
sent()
{
	local device

	while read -r device _ _ _ _ _ _ _ _ bytes _; do
		[ "$device" != eth0: ] || return 0
	done < "/proc/$1/net/dev"
}

# find_ranks: set $processes to the process IDs of the ranks
find_ranks()
{
	local i pid

	for ((i = 0; i < ranks; i++)); do
		for pid in $(ip netns pids "h$i"); do
			tr '\0' ' ' < "/proc/$pid/cmdline" | grep -q 'dblp\.run' || processes[i]=$pid
		done
	done
}

# kill_rank: kill rank 2 after each rank has sent a tenth of its next gradients. A rank in
# PyTorch's barrier would not name the killed one.
kill_rank()
{
	local i bytes before=() pause

	for ((i = 0; i < ranks; i++)); do
		sent "${processes[i]}"
		before[i]=$bytes
	done
	exec {pause}<> <(:)
	for ((i = 0; i < ranks; i++)); do
		sent "${processes[i]}"
		while [ "$bytes" -lt $((before[i] + 50000)) ]; do
			read -r -t 0.001 -u "$pause"
			sent "${processes[i]}"
		done
	done
	kill -9 "${processes[2]}" && printf '# kill -9 %s, which is rank 2\n' "${processes[2]}"
}

# watch RUN: log the output, show every fifth round, and start the events of the run
watch()
{
	local line ended=0 processes=()

	while IFS= read -r line; do
		printf '%s\n' "$line" >&3
		case $line in
		*'] seed '*' round '*) ;;
		'[0] '*' end: '*|'[0] '*' round '*[05]' of '*|dblp-run:*|*'has failed: '*)
			printf '%s: %s\n' "$1" "$line"
			;;
		esac
		case $1:$line in
		"dblp:[0] seed 2 round $((rounds / 2)) of "*)
			{ tune && printf '# tuned\n' >&3; } &
			;;
		"dblp:[0] seed 2 end: "*)
			lose 0%
			find_ranks
			# Run before the ranks, which share the CPU
			renice -n -20 -p $BASHPID > /dev/null
			;;
		"dblp:["?"] seed 3 round $((rounds / 4)) of "*)
			ended=$((ended + 1))
			[ $ended -lt $ranks ] || kill_rank &
			;;
		esac
	done 3> $log_dir/"$1".log
}

# start RUN OPTION... -- SCRIPT...: start the ranks of a script by dblp-run
start()
{
	local name=$1 options=()

	while shift && [ "$1" != -- ]; do
		options+=("$1")
	done
	shift
	printf '%s: dblp-run --hosts hosts %s %s\n' "$name" "${options[*]}" "${script##*/}"
	python3 -m dblp.run --hosts /run/hosts --ssh "$self at" --master-addr 10.77.1.1 "${options[@]}" \
		"$@" --rounds "$rounds" 2>&1 | watch "$name"
}

# train RUN SEEDS [OPTION...]: train digits.py
train()
{
	local script=$demo/digits.py

	# shellcheck disable=SC2086 # seeds are words
	start "$1" "${@:3}" -- "$script" --seeds $2
}

# use_cc CC: let TCP of all hosts use congestion control CC
use_cc()
{
	local i

	modprobe -q "tcp_$1"
	for ((i = 0; i < ranks; i++)); do
		ip netns exec h$i sh -c "echo $1 > /proc/sys/net/ipv4/tcp_congestion_control" ||
			fail "there is no tcp_$1"
	done
}

# fsdp RUN: train sharded.py, whose Gloo uses bbr. PyTorch 2.6 has FSDP2 for GPUs: fsdp_cpu.py adds
# what it lacks here.
fsdp()
{
	local script=$demo/sharded.py

	use_cc bbr
	start "$1" --no-hook -- "$demo/../../selftests/lib/fsdp_cpu.py" "$script"
}

# gloo RUN SEEDS CC: train by PyTorch alone, with congestion control CC
gloo()
{
	use_cc "$3"
	train "$1" "$2" --no-hook --transport tcp || fail "$1: the training has failed"
	use_cc cubic
}

run()
{
	case $1 in
	clean-*) lose 0% ;;
	*) lose $lost ;;
	esac
	case $1 in
	gloo-cubic) gloo "$1" 1 cubic ;;
	gloo-bbr) gloo "$1" 1 bbr ;;
	tcp-bbr) train "$1" 1 --require --transport tcp:bbr ;;
	dblp)
		train "$1" "1 2 3" --require --budget $budget
		[ $? -eq 137 ] || fail "a rank was killed, and the status is another"
		;;
	dblp-seeds) train "$1" "1 2 3 4 5" --require --budget $budget ;;
	clean-gloo) gloo "$1" "1 2 3 4 5" cubic ;;
	clean-tcp) train "$1" 1 --require --transport tcp:cubic ;;
	clean-dblp) train "$1" 1 --require --budget $budget ;;
	fsdp) fsdp "$1" ;;
	*) fail "there is no run '$1'" ;;
	esac || fail "$1: the training has failed"
}

uname -r > $log_dir/release
modprobe -q tcp_bbr
make_network
run "$1"
