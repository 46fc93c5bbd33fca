// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl doctor: network devices.
 */

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "doctor.h"
#include "finding.h"

/* Packets; a shorter queue drops part of a train of packets */
#define QUEUE_MIN	100
/* A quoted name: each byte may become four, see shell_quote() */
#define WORD_LEN	(4 * IFNAMSIZ + 4)

static bool ethtool(int fd, const char *dev, void *data)
{
	struct ifreq ifr = { .ifr_data = data };

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", dev);
	return !ioctl(fd, SIOCETHTOOL, &ifr);
}

/* Number of a feature of a device, -1 if the device does not have it */
static int feature_number(int fd, const char *dev, const char *name,
			  uint32_t *n)
{
	struct {
		struct ethtool_sset_info	info;
		uint32_t			n;
	} set = {
		.info = {
			.cmd = ETHTOOL_GSSET_INFO,
			.sset_mask = 1ULL << ETH_SS_FEATURES,
		},
	};
	struct ethtool_gstrings *strings;
	uint32_t i;

	if (!ethtool(fd, dev, &set) || !set.n)
		return -1;
	*n = set.n;
	strings = calloc(1, sizeof(*strings) + *n * ETH_GSTRING_LEN);
	if (!strings)
		return -1;
	strings->cmd = ETHTOOL_GSTRINGS;
	strings->string_set = ETH_SS_FEATURES;
	strings->len = *n;
	if (!ethtool(fd, dev, strings))
		*n = 0;
	for (i = 0; i < *n; i++)
		if (!strncmp((char *)strings->data + i * ETH_GSTRING_LEN, name,
			     ETH_GSTRING_LEN))
			break;
	free(strings);
	return i < *n ? (int)i : -1;
}

/* Is a feature off that the device supports? */
static bool feature_is_missing(int fd, const char *dev, const char *name)
{
	struct ethtool_get_features_block *block;
	struct ethtool_gfeatures *features;
	uint32_t n, blocks, bit;
	bool missing = false;
	int number;

	number = feature_number(fd, dev, name, &n);
	if (number < 0)
		return false;
	blocks = (n + 31) / 32;
	features = calloc(1, sizeof(*features) + blocks * sizeof(*block));
	if (!features)
		return false;
	features->cmd = ETHTOOL_GFEATURES;
	features->size = blocks;
	if (ethtool(fd, dev, features)) {
		block = &features->features[number / 32];
		bit = 1U << (number % 32);
		missing = (block->available & bit) && !(block->active & bit);
	}
	free(features);
	return missing;
}

/* A veth passes large packets to its peer unsegmented, so it needs no GRO */
static bool is_cable_in_memory(int fd, const char *dev)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };

	return ethtool(fd, dev, &info) && !strcmp(info.driver, "veth");
}

static void check_feature(int fd, const char *dev, const char *name,
			  const char *option, const char *why)
{
	bool matters = strcmp(option, "gro") || !is_cable_in_memory(fd, dev);
	char command[128], word[WORD_LEN];

	shell_quote(word, sizeof(word), dev);
	snprintf(command, sizeof(command), "sudo ethtool -K %s %s on", word,
		 option);
	if (feature_is_missing(fd, dev, name))
		doctor_says(matters ? VERDICT_BAD : VERDICT_NOTE, option,
			    command, "%s: off: %s", dev, why);
	else
		doctor_says(VERDICT_OK, option, "", "%s", dev);
}

static void check_queue(int fd, const char *dev)
{
	struct ifreq ifr = { .ifr_qlen = 0 };
	char command[128], word[WORD_LEN];

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", dev);
	if (ioctl(fd, SIOCGIFTXQLEN, &ifr))
		return;
	shell_quote(word, sizeof(word), dev);
	snprintf(command, sizeof(command),
		 "sudo ip link set dev %s txqueuelen 1000", word);
	if (ifr.ifr_qlen < QUEUE_MIN)
		doctor_says(VERDICT_BAD, "queue", command,
			    "%s: %d packets: bursts are dropped before they are sent",
			    dev, ifr.ifr_qlen);
	else
		doctor_says(VERDICT_OK, "queue", "", "%s: %d packets", dev,
			    ifr.ifr_qlen);
}

static bool is_of_interest(int fd, const char *dev)
{
	struct ifreq ifr = { .ifr_flags = 0 };

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", dev);
	return !ioctl(fd, SIOCGIFFLAGS, &ifr) && (ifr.ifr_flags & IFF_UP) &&
	       !(ifr.ifr_flags & IFF_LOOPBACK);
}

void check_devices(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct if_nameindex *all = if_nameindex(), *i;

	for (i = all; i && i->if_index; i++) {
		if (!is_of_interest(fd, i->if_name))
			continue;
		check_feature(fd, i->if_name, "tx-udp-segmentation",
			      "tx-udp-segmentation",
			      "the kernel sends each packet separately");
		check_feature(fd, i->if_name, "rx-gro", "gro",
			      "the kernel receives each packet separately");
		check_queue(fd, i->if_name);
	}
	if (all)
		if_freenameindex(all);
	close(fd);
}
