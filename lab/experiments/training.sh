# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# shellcheck disable=SC2154 # guest.sh sets self and limit, network.sh server
#
# Trainings by dblp-train(1) with the text in /add.

rendezvous=7200

# ranks LIST [OPTION...]: start a rank on each host of LIST; the first host has address $first. The
# second rank writes the log: a server's rounds end when it has passed its data to the socket.
ranks()
{
	local at pids=() i log options
	IFS=, read -r -a at <<< "$1"
	shift

	rendezvous=$((rendezvous + 1))
	rm -f /run/log /run/said
	for ((i = 0; i < ${#at[@]}; i++)); do
		log=()
		[ $i -ne 1 ] || log=(--log /run/log "${hooks[@]}")
		options=(--rank "$i" --nranks ${#at[@]} --rendezvous "tcp://$first:$rendezvous")
		ip netns exec "${at[i]}" timeout "$limit" dblp-train run "${options[@]}" "${log[@]}" "$@" \
			/add/* > /run/said 2>> /run/broken &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || { cat /run/broken >&2; kill "${pids[@]}" 2> /dev/null; wait; return 1; }
	done
}

# train LIST [OPTION...]: do a training and print its log as JSON
train()
{
	: > /run/broken
	ranks "$@" || return
	jq -c -n -R '
		[inputs | split(" ")] as $lines |
		[$lines[] | select(.[0] == "round")] as $rounds |
		def column(i): [$rounds[] | .[i] | tonumber];
		{budget: column(3), parameters: ($lines[] | select(.[0] == "setup") | .[3] | tonumber),
		 held: ($lines[] | select(.[0] == "end") | .[1] | tonumber),
		 phase: [$rounds[] | .[2]], us: column(6), asked: column(7), missing: column(8),
		 loss: column(10), drift: column(11),
		 param_asked: column(12), param_missing: column(13), event: [$rounds[] | .[14]]}' < /run/log
}

# trained KEY NAME LIST [OPTION...]: record a training
trained()
{
	local key=$1 name=$2
	shift 2

	record "$key" "$name" train "$@"
}

# Bursts of the trainings: rounds in which 90 % of the packets to the server are lost, and rounds
# that end the bursts
burst_rounds=15,35,55
calm_rounds=16,36,56

# train_dblp SEED: 3 workers, a server, and a model of 300 kB. A training that has failed leaves its burst
train_dblp()
{
	local hooks=() options=(--plan ps --hidden 67 --seed "$1")
	local first=$server ends=server,h0,h1,h2

	lossy_port 3 100mbit 1ms || fail "no network"
	trained "$1" tcp $ends --transport tcp "${options[@]}"
	hooks=(--hook "burst:$burst_rounds:$self lose 90" --hook "calm:$calm_rounds:$self lose 0")
	trained "$1" fixed $ends --budget 0.8% --policy early "${options[@]}"
	trained "$1" phases $ends --phases 0.8%,40.8% "${options[@]}"
	lose_at_port 0
	trained "$1" there $ends --budget 20% --policy eager "${options[@]}"
	lose_at_port 0
	trained "$1" back $ends --budget 20% --param-budget 80% --policy eager "${options[@]}"
	no_network
}

# train_auto models: trainings without a network, by found.py
# train_auto LOSS SEED: budgets that are found, and fixed ones, on the same network, with its bursts
# or with a loss of 20 % in all rounds
train_auto()
{
	local budget options=(--plan ps --hidden 67 --seed "$2")
	local first=$server ends=server,h0,h1,h2 hooks=(--hook "steady:1:$self lose 20")

	if [ "$1" = models ]; then
		record models found cat /add/found.json
		return
	fi
	lossy_port 3 100mbit 1ms || fail "no network"
	[ "$1" = steady ] ||
		hooks=(--hook "burst:$burst_rounds:$self lose 90" --hook "calm:$calm_rounds:$self lose 0")
	trained "$1 $2" auto $ends --budget auto "${options[@]}"
	for budget in 0.8 10 20 40.8 80; do
		# A training that has failed leaves its burst
		lose_at_port 0
		trained "$1 $2" "early-$budget" $ends --budget $budget% --policy early "${options[@]}"
	done
	no_network
}

# train_rules RULE: a smaller model and all budgets, with policy eager, which always uses the budget
train_rules()
{
	local budget hooks=() first=$server ends=server,h0,h1,h2

	lossy_port 3 100mbit 1ms || fail "no network"
	for budget in 10 20 40.8 60 80; do
		trained "$1" $budget $ends --budget $budget% --policy eager --rule "$1" --plan ps --hidden 16 --rounds 40
	done
	[ "$1" != feedback ] || trained feedback 0 $ends --plan ps --hidden 16 --rounds 40
	no_network
}

# train_racks SLOW SEED: network of dssync. Each plan has the learning rate out of 0.02, 0.05, 0.08 and
# 0.12 at which its loss was lowest
train_racks()
{
	local hooks=() all=h0,h1,h2,h3,h4,h5,h6,h7,h8 options=(--hidden 16 --batch 32 --seed "$2")
	local first=10.77.0.1

	racks 32mbit 24mbit "$1mbit" || fail "no network"
	trained "$1 $2" transpose $all --plan transpose --rate 0.05 "${options[@]}"
	trained "$1 $2" average $all --plan average --rate 0.12 "${options[@]}"
	no_network
}
