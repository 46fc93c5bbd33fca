# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# shellcheck disable=SC2154 # guest.sh sets it
#
# Asynchronous training by dblp-train(1) and dblp-fabric(1), with the text in /add. There are 8
# workers h0 to h7, two of which pause repeatedly, server h8, replica h9 and scheduler h10.

fabric_at=10.77.0.11:7300
fabric_model=(--hidden 64 --context 2 --batch 128)
fabric_div=8

# link HOST RATE: set the rate of a link
link()
{
	tc -n "$1" qdisc change dev eth0 root tbf rate "$2" burst 5k limit 2m &&
		tc -n switch qdisc change dev "${1}eth0" root netem rate "$2" limit 100
}

# Change the rates of the server's and two workers' links, as varying cross traffic would
change_links()
{
	while :; do
		link h8 2mbit; link h2 2mbit; sleep 2
		link h8 4mbit; link h2 16mbit; sleep 2
		link h8 2mbit; link h5 4mbit; sleep 2
		link h8 8mbit; link h5 16mbit; sleep 1
	done
}

# Print microseconds, and the bytes so far on the server's link in both directions
count_bytes()
{
	while :; do
		# shellcheck disable=SC2016 # awk's fields
		ip netns exec h8 awk '/eth0:/ { bytes = $2 + $10 } / / && NR == FNR { up = $1 }
			END { printf "%.0f %.0f\n", up * 1e6, bytes }' /proc/uptime /proc/net/dev
		sleep 0.2
	done
}

# start HOST NAME COMMAND...: run in the background, with output to /run/fabric/NAME
start()
{
	local host=$1 name=$2
	shift 2

	ip netns exec "$host" "$@" > "/run/fabric/$name" 2>> /run/fabric/errors &
}

# fabric_members TRANSPORT POLICY COUNT: start all processes except the workers
fabric_members()
{
	local common=(--scheduler "$fabric_at" --count "$3" --transport "$1") i

	start h10 scheduler dblp-fabric schedule --listen "$fabric_at" --workers 8 --count "$3" --policy "$2"
	scheduler=$!
	sleep 0.2
	start h8 server dblp-fabric serve "${common[@]}" --eta 1 --div-max $fabric_div --log /run/fabric/steps
	server_pid=$!
	start h9 replica dblp-fabric replica "${common[@]}" --eta 1 --log /run/fabric/replica-steps
	replica_pid=$!
	for i in 0 1 2 3 4 5 6 7; do
		start "h$i" "join$i" dblp-fabric join "${common[@]}"
	done
	sleep 0.3
}

# fabric_run TRANSPORT POLICY SEED SECONDS [KILL]: do a run, and kill the server after KILL seconds
fabric_run()
{
	local i pids=() options=(--scheduler "$fabric_at" --transport "$1" "${fabric_model[@]}" --seed "$3"
		--rounds 100000 --time "$4s") pause count others=()

	rm -rf /run/fabric && mkdir /run/fabric || return
	count=$(dblp-train async --count "${fabric_model[@]}" /add/*) || return
	fabric_members "$1" "$2" "$count"
	count_bytes > /run/fabric/bytes &
	others+=($!)
	if [ "$changing" = yes ]; then
		change_links &
		others+=($!)
	fi
	for i in 0 1 2 3 4 5 6 7; do
		pause=()
		[ $i -lt 6 ] || pause=(--pause 400ms --pause-every 3)
		start "h$i" "worker$i" dblp-train async "${options[@]}" --worker $i "${pause[@]}" \
			--log "/run/fabric/log$i" /add/*
		pids+=($!)
	done
	if [ -n "${5:-}" ]; then
		sleep "$5"
		kill -9 $server_pid
	fi
	for i in "${pids[@]}"; do
		wait "$i" || { cat /run/fabric/errors >&2; return 1; }
	done
	kill "${others[@]}" $scheduler
	wait $scheduler $replica_pid
	cat /run/fabric/errors >&2
	fabric_json "$count"
}

# Print the logs of a run as JSON
fabric_json()
{
	jq -n -c -R --argjson parameters "$1" --argjson div_max $fabric_div --rawfile bytes /run/fabric/bytes \
		--rawfile steps /run/fabric/steps --rawfile later /run/fabric/replica-steps \
		--rawfile scheduler /run/fabric/scheduler --rawfile replica /run/fabric/replica '
		def lines: split("\n") | map(select(. != "") | split(" "));
		def counters: [scan("([a-z ]+) ([0-9]+)") | {key: .[0] | ltrimstr(" "), value: .[1] | tonumber}] | from_entries;
		[inputs | split(" ")] as $log |
		{parameters: $parameters, div_max: $div_max,
		 updates: [$log[] | select(.[0] == "update") | [(.[1] | tonumber), (.[4] | tonumber), (.[5] | tonumber)]] | sort,
		 held: ([$log[] | select(.[0] == "end") | .[1] | tonumber] | add / length),
		 bytes: [$bytes | lines[] | map(tonumber)],
		 steps: [$steps + $later | lines[] | .[1:] | map(tonumber)],
		 scheduler: ($scheduler | counters), replica: $replica}' /run/fabric/log?
}

# fabric CASE SEED: runs with "changing" links, with "even" links, or with a server that is "killed"
fabric()
{
	local policy kill=() changing=yes policies=(fifo ordered)

	[ "$1" != even ] || changing=no
	if [ "$1" = killed ]; then
		kill=(8)
		policies=(ordered)
	fi
	for policy in "${policies[@]}"; do
		star 11 16mbit || fail "no network"
		record "$1 $2" "$policy" fabric_run dblp "$policy" "$2" 30 "${kill[@]}"
		no_network
	done
}
