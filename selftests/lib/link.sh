# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Settings of network devices for tests, benchmarks and the demo.

# one_by_one NAMESPACE DEVICE: turn off offloads, so that each packet is lost separately, and
# a link carries only packets that fit its MTU
one_by_one()
{
	ip netns exec "$1" ethtool -K "$2" tso off gso off gro off tx-udp-segmentation off > /dev/null
}
