# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# What tests, benchmarks and the demo do to network devices.

# one_by_one NAMESPACE DEVICE: packets are to be lost one by one, and a link is
# to carry those that fit: nobody merges packets or leaves them merged
one_by_one()
{
	ip netns exec "$1" ethtool -K "$2" tso off gso off gro off tx-udp-segmentation off > /dev/null
}
