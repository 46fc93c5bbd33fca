#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Containers: a root directory with two programs and their libraries, in namespaces that an
# ordinary user has made. Only the module is on the host.

# shellcheck disable=SC2317 # functions are called by try
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../lib/lib.sh"
# shellcheck source=selftests/lib/ctl.sh
. "$(dirname "$(readlink -f "$0")")/../lib/ctl.sh"

needs setpriv unshare ip

image=$tmp/image
for program in dblp-peer dblpctl; do
	file=$(type -P "$program") || exit
	mkdir -p "$image/bin" && cp "$file" "$image/bin/" || exit
	# As ldd does
	for library in $(LD_TRACE_LOADED_OBJECTS=1 "$file" | grep -o '/[^ ]*'); do
		mkdir -p "$image${library%/*}" && cp -L "$library" "$image$library" || exit
	done
done
chmod 711 "$tmp"

# contained SCRIPT: run it in a container without capabilities on the host; 'inside COMMAND...'
# runs a program of the image
contained()
{
	# shellcheck disable=SC2016 # expanded by the inner shell
	setpriv --reuid 4711 --regid 4711 --clear-groups unshare --user --map-root-user --net --mount \
		bash -c 'image=$1; inside() { unshare --root "$image" "$@"; }; ip link set lo up && eval "$2"' - "$image" "$1"
}

messages()
{
	# shellcheck disable=SC2016 # expanded in the container
	contained '
		inside /bin/dblp-peer listen ::1 7000 say listening accept recv 1 > "$image/../said" &
		for ((i = 0; i < 100; i++)); do
			inside /bin/dblp-peer connect ::1 7000 send 1 3000 && break
			sleep 0.1
		done
		wait $!'
}
: > "$tmp/said" && chmod 666 "$tmp/said"
try "programs of an image exchange messages: it has neither module nor /proc" messages

settings()
{
	contained 'inside /bin/dblpctl param set timeout 7s && inside /bin/dblpctl job add 7 name mine &&
		inside /bin/dblpctl param && inside /bin/dblpctl job list && inside /bin/dblpctl -j stats nonzero' > "$tmp/out" &&
		cat "$tmp/out" && grep -q -x 'user timeout  *7s' "$tmp/out" && grep -q mine "$tmp/out" &&
		is dblpctl -j param show timeout '{"user_timeout_ms":30000}' && is dblpctl -j job list '[]'
}
try "its root sets parameters and jobs of its own network namespace" settings

# In the namespace of the host, the same user may use sockets, and change nothing
on_the_host()
{
	fails setpriv --reuid 4711 --clear-groups unshare --user --map-root-user --root "$image" \
		/bin/dblpctl param set timeout 7s 2> "$tmp/err"
	cat "$tmp/err" && grep -q -i 'permi\|CAP_NET_ADMIN' "$tmp/err" && is dblpctl -j param show timeout '{"user_timeout_ms":30000}'
}
try "with the network of the host it cannot change the host's parameters" on_the_host

done_testing
