// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Network interfaces. NCCL_SOCKET_IFNAME chooses among them, as for NCCL's own sockets.
 */

#include "plugin.h"

#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX	16
/* Of a device that does not say how fast it is, as NCCL's sockets have it */
#define SPEED_UNKNOWN	10000

static struct net_device device[DEVICES_MAX];
static int n_devices;

/* Is @name one of @list, or does it begin with one? */
static bool is_listed(const char *list, const char *name, bool whole)
{
	size_t len;

	for (; *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		if (len && !strncmp(list, name, len) && (!whole || !name[len]))
			return true;
	}
	return false;
}

/* NCCL's rule: a list of prefixes, =: of whole names, ^: of those that are not meant */
static bool is_wanted(const char *list, const struct ifaddrs *ifa,
		      bool loopback)
{
	bool not, whole;

	if (!list || !list[0])
		return loopback == !!(ifa->ifa_flags & IFF_LOOPBACK) &&
		       !dblp_device_is_inner(ifa->ifa_name);
	not = list[0] == '^';
	list += not;
	whole = list[0] == '=';
	return is_listed(list + whole, ifa->ifa_name, whole) != not;
}

static void find_hardware(struct net_device *d)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device", d->name);
	d->pci_path = realpath(path, NULL);
	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", d->name);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%d", &d->mbit_s) != 1 || d->mbit_s <= 0)
		d->mbit_s = SPEED_UNKNOWN;
	if (file)
		fclose(file);
}

/* One with several addresses is one device, with the first of them */
static void add(const struct ifaddrs *ifa, bool is_named)
{
	struct net_device *d = &device[n_devices];
	char text[DBLP_ADDR_TEXT];
	int i;

	for (i = 0; i < n_devices; i++)
		if (!strcmp(device[i].name, ifa->ifa_name))
			return;
	/* Addresses of one link only are no use to others: they do not know which it is */
	if (!dblp_addr_from(&d->addr, ifa->ifa_addr) ||
	    IN6_IS_ADDR_LINKLOCAL(&d->addr.sdblp_addr))
		return;
	snprintf(d->name, sizeof(d->name), "%s", ifa->ifa_name);
	d->is_named = is_named;
	find_hardware(d);
	dblp_addr_format(&d->addr, text);
	net_info("device %d is %s, %s", n_devices, d->name, text);
	n_devices++;
}

static void find(const struct ifaddrs *ifa, const char *list, bool loopback)
{
	for (; ifa && n_devices < DEVICES_MAX; ifa = ifa->ifa_next)
		if (ifa->ifa_addr && (ifa->ifa_flags & IFF_UP) &&
		    is_wanted(list, ifa, loopback))
			add(ifa, list && list[0] && list[0] != '^');
}

enum nccl_result net_devices_init(void)
{
	const char *list = getenv("NCCL_SOCKET_IFNAME");
	struct ifaddrs *all;

	if (n_devices)
		return ncclSuccess;
	if (getifaddrs(&all)) {
		net_warn("no list of interfaces: %s", strerror(errno));
		return ncclSystemError;
	}
	find(all, list, false);
	if (!n_devices)
		find(all, list, true);
	freeifaddrs(all);
	if (n_devices)
		return ncclSuccess;
	net_warn("no interface is up and has an address%s%s",
		 list ? ", of NCCL_SOCKET_IFNAME=" : "", list ?: "");
	return ncclSystemError;
}

struct net_device *net_device_of(int number)
{
	if (number >= 0 && number < n_devices)
		return &device[number];
	net_warn("there is no device %d", number);
	return NULL;
}

static void __attribute__((destructor)) free_devices(void)
{
	while (n_devices)
		free(device[--n_devices].pci_path);
}

int net_devices(void)
{
	return n_devices;
}
