#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A minimal kernel, see --bare of vm/run: without IPv6, memory cgroups, a mounted cgroup v2, and
# zeroing of allocated memory. Everything works over IPv4; IPv6 addresses are refused, and the
# tools name the reason.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"

[ ! -e /proc/net/if_inet6 ] || skip_all "this kernel has IPv6, see --bare of selftests/vm/run"
umount /sys/fs/cgroup
new_ns client server
# shellcheck disable=SC2154 # new_ns sets them
ip link add eth0 netns "$client" type veth peer name eth0 netns "$server" || exit 1
ip -n "$client" addr add 10.9.0.1/24 dev eth0 && ip -n "$client" link set eth0 up &&
	ip -n "$server" addr add 10.9.0.2/24 dev eth0 && ip -n "$server" link set eth0 up || exit 1

bare()
{
	cat /proc/cmdline
	[ ! -e /proc/net/if_inet6 ] && [ ! -e /sys/fs/cgroup/cgroup.controllers ] &&
		! grep -q "^memory.*1$" /proc/cgroups && grep -q init_on_alloc=0 /proc/cmdline
}
try "the kernel has no IPv6 and no memory cgroups" bare

xfer()
{
	dblp-xfer --from "$client" --to "$server" --address 10.9.0.2 "$@"
}
try "IPv4: all bytes are delivered in both directions" xfer --size 300000,1 --count 6 --duplex
lossy()
{
	netem "$client" loss 5% && xfer --budget 100000 --size 200000 --count 5 --expect-missing 1000
	local status=$?
	tc -n "$client" qdisc del dev eth0 root
	return "$status"
}
try "IPv4: within the budget, messages miss bytes" lossy
try "IPv4: from several ports" xfer --spray 4 --size 300000 --count 6

# accepts WORD...: a client reaches the listener at port 7000 that these words of dblp-peer create
accepts()
{
	spawn ip netns exec "$server" dblp-peer "$@" say listening accept drain
	wait_until 10 output_has "$spawned" listening &&
		ip netns exec "$client" dblp-peer connect 10.9.0.2 7000 send 2 1000 close &&
		ended "$spawned" 0
}
try "a listener at the wildcard address accepts IPv4" accepts listen :: 7000
try "a spraying listener at the wildcard address accepts IPv4" accepts set spray 2 listen :: 7000
from_wildcard()
{
	spawn ip netns exec "$server" dblp-peer listen 10.9.0.2 7002 say listening accept drain
	wait_until 10 output_has "$spawned" listening &&
		ip netns exec "$client" dblp-peer bind :: 0 fails EAFNOSUPPORT connect fd09::2 7002 \
			connect 10.9.0.2 7002 send 2 1000 close &&
		ended "$spawned" 0
}
try "a client at the wildcard address connects by IPv4, after IPv6 was refused" from_wildcard

# As an ordinary user
refused()
{
	local address

	for address in ::1 fd09::2 2001:db8::1; do
		setpriv --reuid 65534 dblp-peer fails EAFNOSUPPORT connect "$address" 7000 \
			fails EAFNOSUPPORT bind "$address" 7000 fails EAFNOSUPPORT listen "$address" 7000 \
			listen 127.0.0.1 7000 || return
	done
}
try "an IPv6 address is refused, and the socket is as before" refused

perf()
{
	dblp-perf bulk --from "$client" --to "$server" --address "$1" -n 5 --proto "$2" --timeout 60s
}
for proto in dblp tcp; do
	try "dblp-perf, $proto: IPv4" perf 10.9.0.2 "$proto"
	try "dblp-perf, $proto: no IPv6" ends_with 4 "this kernel has no IPv6, which fd09::2 needs" \
		perf fd09::2 "$proto"
done

doctor()
{
	ip netns exec "$client" dblpctl doctor "$@"
}
try "dblpctl doctor: a peer by IPv4" ends_with 0 "packets of 1500 bytes reach 10.9.0.2" doctor 10.9.0.2
try "dblpctl doctor: no IPv6" ends_with 1 "this kernel has no IPv6 (.*), which fd09::2 needs" doctor fd09::2

ranks()
{
	dblp-perf collective --spawn 2 --rendezvous "$1" -s 10000 -n 3 -w 0 --timeout 60s
}
try "ranks meet by IPv4" ranks tcp://127.0.0.1:7100
try "ranks: no IPv6" ends_with 4 "this kernel has no IPv6, which an address needs" ranks "tcp://[::1]:7100"
try "dblp-train: no IPv6" ends_with 1 "this kernel has no IPv6, which an address needs" \
	dblp-train run --rank 0 --nranks 2 --rendezvous "tcp://[::1]:7100" "$0"

try "no sockets are left at the client" wait_until 40 no_sockets "$client"
try "no sockets are left at the server" wait_until 40 no_sockets "$server"
done_testing
