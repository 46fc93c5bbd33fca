#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblpctl doctor: each fault is made, found, and mended by the command that is
# printed for it.

# shellcheck disable=SC2154,SC2317 # new_ns sets it; functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

module=$(module_file)
version=$(dblpctl -j version | jq -r .version)
new_ns a b
join "$a" "$b"
# The kernel's default for this kind of device, and not that of others, is off
in_ns "$a" ethtool -K eth0 gro on > /dev/null || exit 1

sudo()
{
	"$@"
}
export -f sudo

# finds STATUS CHECK RESULT [WORD...]: in $a, with these words; $command mends it
finds()
{
	local status

	ctl "$a" -j doctor "${@:4}" > "$tmp/found"
	status=$?
	jq -c '.[]' "$tmp/found"
	[ "$status" -eq "$1" ] || { echo "status $status instead of $1"; return 1; }
	is jq -r ".[] | select(.check == \"$2\").result" "$tmp/found" "$3" || return
	command=$(jq -r ".[] | select(.check == \"$2\").command" "$tmp/found")
}

# mended CHECK [WORD...]: $command does so
mended()
{
	[ -n "$command" ] && in_ns "$a" bash -c "$command" && finds 0 "$1" ok "${@:2}" && [ -z "$command" ]
}

healthy()
{
	finds 0 module ok && finds 0 gro ok && finds 0 tx-udp-segmentation ok && finds 0 queue ok &&
		jq -e 'all(.result != "bad")' "$tmp/found"
}
try "nothing is wrong: and module and tool are of one version" healthy

as_text()
{
	ctl "$a" doctor > "$tmp/table" || return
	diag < "$tmp/table"
	head -n 1 "$tmp/table" | grep -q -x 'RESULT *CHECK *FOUND *MEND BY' &&
		grep -q -x "ok *module *dblp and dblpctl are of version $version *" "$tmp/table"
}
try "as text" as_text

# fault CHECK COMMAND...: it makes one, in $a
fault()
{
	in_ns "$a" "${@:2}" > /dev/null && finds 1 "$1" bad && mended "$1"
}
# It does not matter much here, where packets come as they left the other end
gro()
{
	in_ns "$a" ethtool -K eth0 gro off > /dev/null && finds 0 gro note && mended gro
}
try "GRO is off" gro
try "UDP segmentation is off" fault tx-udp-segmentation ethtool -K eth0 tx-udp-segmentation off
try "a short queue" fault queue ip link set dev eth0 txqueuelen 10
down()
{
	ip -n "$a" link set dev eth0 down txqueuelen 10 && finds 0 queue '' &&
		ip -n "$a" link set dev eth0 up txqueuelen 1000 &&
		ip -n "$a" addr add fd09::1/64 dev eth0 nodad
}
try "a device that is down does not matter" down

# What it is called is text of whoever named it
strange_name()
{
	local a name=$'q\e[7m\xff;"$x\''

	new_ns a
	ip -n "$a" link add name "$name" txqueuelen 10 up type dummy && finds 1 queue bad &&
		ctl "$a" doctor > "$tmp/table" && return 1
	LC_ALL=C grep '[^ -~]' "$tmp/table" && return 1
	grep -F 'q\x1b[7m\xff;' "$tmp/table" && finds 1 queue bad && mended queue &&
		is ip netns exec "$a" cat "/sys/class/net/$name/tx_queue_len" 1000 &&
		fails dblpctl $'x\e[7m' 2> "$tmp/err" && grep -F 'x\x1b[7m' "$tmp/err" &&
		fails env LC_ALL=C grep '[^ -~]' "$tmp/err"
}
try "names of devices are quoted in commands, and no terminal gets what is not printable" strange_name

# These are of the whole machine, and reported in its first namespace. Their defaults
# differ from kernel to kernel.
limits()
{
	local was

	was=$(sysctl net.core.netdev_max_backlog net.core.rmem_max net.core.wmem_max) || return
	sysctl -w net.core.netdev_max_backlog=10 net.core.rmem_max=10000000 \
		net.core.wmem_max=212992 || return
	a_of_all() { dblpctl -j doctor > "$tmp/found"; }
	fails a_of_all || return
	jq -c '.[]' "$tmp/found"
	jq -e 'map({(.check): .result}) | add | .netdev_max_backlog == "bad" and
		.rmem_max == "ok" and .wmem_max == "note"' "$tmp/found" || return
	command=$(jq -r '.[] | select(.command != "").command' "$tmp/found")
	bash -c "$command" && a_of_all && jq -e 'all(.result != "bad") and
		(map(select(.check | test("_max$|_backlog"))) | length == 3 and all(.result == "ok"))' "$tmp/found" || return
	# They are those of all tests that follow
	sysctl -p - <<< "$was"
}
try "limits" limits

try "a peer: what fits goes there, by IPv4" finds 0 mtu ok 10.9.0.2
try "a peer: what fits goes there, by IPv6" finds 0 mtu ok fd09::2
# narrow ADDRESS MTU PEER: the peer has a smaller one, which need not be usual
narrow()
{
	ip -n "$a" link set dev eth0 mtu "$2" && ip -n "$b" link set dev eth0 mtu "$3" && finds 1 mtu bad "$1" &&
		echo "$command" && mended mtu "$1" && ip -n "$a" link set dev eth0 mtu 1500 &&
		ip -n "$b" link set dev eth0 mtu 1500
}
try "a peer with a smaller MTU, by IPv4" narrow 10.9.0.2 1500 1337
try "a peer with a smaller MTU, by IPv6" narrow fd09::2 3000 1400
silent()
{
	netem "$a" loss 100% && finds 1 mtu note 10.9.0.2 7000 && finds 1 port bad 10.9.0.2 7000 &&
		[[ $command == *'udp dport 7000 accept'* ]] && tc -n "$a" qdisc del dev eth0 root
}
try "a blocked port" silent
try "a port where nobody listens" finds 1 port bad 10.9.0.2 7000
listens()
{
	spawn ip netns exec "$b" dblp-peer listen :: 7000 say listening pause
	wait_until 10 output_has "$spawned" listening && finds 0 port ok 10.9.0.2 7000 &&
		finds 0 port ok fd09::2 7000
}
try "a port where somebody listens" listens
try "no way there" finds 1 route bad 192.0.2.1

refusals()
{
	refused 2 "'x' is not a port" ctl "$a" doctor 10.9.0.2 x &&
		refused 2 "'65536' is not a port" ctl "$a" doctor 10.9.0.2 65536 &&
		refused 2 "'y' is one word too many" ctl "$a" doctor 10.9.0.2 1 y &&
		refused 2 "'peer' is not an IPv4 or IPv6 address" ctl "$a" doctor peer &&
		refused 2 "'10.9.0.0/24' is not an IPv4 or IPv6 address" ctl "$a" doctor 10.9.0.0/24
}
try "what is no peer" refusals

another_version()
{
	sed 's/0\.1\.0/9.1.0/g' "$(type -P dblpctl)" > "$tmp/dblpctl" && chmod +x "$tmp/dblpctl" || return
	fails "$tmp/dblpctl" doctor > "$tmp/table" || return
	diag < "$tmp/table"
	grep -q "BAD *module *dblp is $version, dblpctl is 9${version#0}" "$tmp/table"
}
try "another version" another_version

another_build()
{
	local other=${version%?}%

	[[ $version == 0.1.0-g* ]] && sed "s/$version/$other/g" "$(type -P dblpctl)" > "$tmp/dblpctl" &&
		fails "$tmp/dblpctl" doctor > "$tmp/table" &&
		grep -q "BAD *module *dblp is $version, dblpctl is $other" "$tmp/table"
}
try "another build of one version" another_build

installed()
{
	local dir

	dir=/lib/modules/$(uname -r) && mkdir -p "$dir/updates/dkms" && finds 0 installed note || return
	cp "$module" "$dir/updates/dblp.ko" && finds 0 installed ok &&
		cp "$module" "$dir/updates/dkms/dblp.ko" && finds 1 installed bad && rm "$dir/updates/dkms/dblp.ko" &&
		sed "s/version=$version/version=9${version#?}/" "$module" > "$dir/updates/dblp.ko" &&
		finds 1 installed bad && jq -e ".[] | select(.check == \"installed\").found | contains(\"9${version#?}\")" "$tmp/found"
	local status=$?
	rm -r "$dir/updates"
	return "$status"
}
try "what is installed, and in two ways" installed

# As if a machine had it
with_secure_boot()
{
	unshare -m bash -c 'mount -t tmpfs none /sys/firmware && mkdir -p /sys/firmware/efi/efivars &&
		printf "\6\0\0\0\1" > /sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c &&
		dblpctl -j doctor' > "$tmp/found"
	is jq -r '.[] | select(.check == "secure-boot") | .result, .command' "$tmp/found" "$1"
}
try "Secure Boot does not matter once the module is loaded" with_secure_boot ok

# What it needs is part of the debug kernel
unloaded()
{
	echo precious > "$tmp/kept"
	wait_until 10 rmmod dblp && fails dblpctl save "$tmp/kept" && is cat "$tmp/kept" precious &&
		is echo "$(dblpctl save)" '' && finds 1 module bad && is echo "$command" 'sudo modprobe dblp' &&
		with_secure_boot $'note\nsudo mokutil --import /var/lib/dkms/mok.pub && sudo reboot' &&
		{ [ "${DBLP_DEBUG:-0}" = 1 ] || without_tunnels; }
	local status=$?
	insmod "$module" && finds 0 module ok && return "$status"
}

without_tunnels()
{
	rmmod udp_tunnel ip6_udp_tunnel && finds 1 module bad &&
		is echo "$command" 'sudo modprobe -a udp_tunnel ip6_udp_tunnel && sudo modprobe dblp'
	local status=$?
	modprobe -a udp_tunnel ip6_udp_tunnel && return "$status"
}
try "without the module, and what it needs" unloaded

done_testing
