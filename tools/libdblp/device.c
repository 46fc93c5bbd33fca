// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Addresses of this host.
 */

#include "join.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Prefixes that container and VM software gives to bridges and veth pairs */
bool dblp_device_is_inner(const char *name)
{
	static const char *const inner[] = {
		"docker", "virbr", "br-", "cni", "veth", "lxc", "podman", "flannel", "cali",
	};
	size_t i;

	for (i = 0; i < sizeof(inner) / sizeof(*inner); i++)
		if (!strncmp(name, inner[i], strlen(inner[i])))
			return true;
	return false;
}

static bool is_for_others(const struct ifaddrs *ifa)
{
	return ifa->ifa_flags & IFF_UP &&
	       !(ifa->ifa_flags & (IFF_LOOPBACK | IFF_POINTOPOINT)) &&
	       !dblp_device_is_inner(ifa->ifa_name);
}

static bool is_link_local(const struct sockaddr_dblp *addr)
{
	return IN6_IS_ADDR_LINKLOCAL(&addr->sdblp_addr);
}

/*
 * First address of @list on device @name, or on any device that other hosts
 * reach; global addresses take precedence over link-local ones
 */
static bool first_address(const struct ifaddrs *list, const char *name,
			  struct sockaddr_dblp *addr)
{
	struct sockaddr_dblp a;
	bool found = false;

	for (; list; list = list->ifa_next) {
		if (name ? strcmp(list->ifa_name, name) : !is_for_others(list))
			continue;
		if (!list->ifa_addr || !dblp_addr_from(&a, list->ifa_addr))
			continue;
		if (!found || (is_link_local(addr) && !is_link_local(&a)))
			*addr = a;
		found = true;
	}
	return found;
}

int dblp_device_address(const char *name, struct sockaddr_dblp *addr)
{
	struct ifaddrs *list;
	bool found;

	if (getifaddrs(&list))
		return -errno;
	found = first_address(list, name, addr);
	freeifaddrs(list);
	if (found)
		return 0;
	return if_nametoindex(name) ?
	       dblp_why(-ENODEV, "device %s has no address", name) :
	       dblp_why(-ENODEV, "there is no device %s", name);
}

int dblp_name_of(int fd, bool peer, struct sockaddr_dblp *addr)
{
	union {
		struct sockaddr		any;
		struct sockaddr_in6	v6;
	} name;
	socklen_t len = sizeof(name);

	if ((peer ? getpeername : getsockname)(fd, &name.any, &len))
		return -errno;
	return dblp_addr_from(addr, &name.any) ? 0 : -EAFNOSUPPORT;
}

/*
 * Source address for packets to @to, found without sending any. false: none, or
 * loopback
 */
static bool source_for(const struct sockaddr_dblp *to, struct sockaddr_dblp *addr)
{
	int family = IN6_IS_ADDR_V4MAPPED(&to->sdblp_addr) ? AF_INET : AF_INET6;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_dblp at = *to;
	bool found;

	if (fd < 0)
		return false;
	at.sdblp_port = at.sdblp_port ?: htons(9);
	found = !dblp_connect(fd, &at, -1) && !dblp_name_of(fd, false, addr) &&
		!dblp_is_loopback(addr);
	close(fd);
	addr->sdblp_port = 0;
	return found;
}

/* Does the address belong to a device that other hosts reach? */
static bool is_usable(const struct ifaddrs *list, const struct sockaddr_dblp *addr)
{
	struct sockaddr_dblp a;

	for (; list; list = list->ifa_next)
		if (list->ifa_addr && dblp_addr_from(&a, list->ifa_addr) &&
		    IN6_ARE_ADDR_EQUAL(&a.sdblp_addr, &addr->sdblp_addr))
			return is_for_others(list);
	return false;
}

/* Source address of the default route, found by documentation addresses */
static bool by_default_route(const struct ifaddrs *list, struct sockaddr_dblp *addr)
{
	static const char *const far[] = { "192.0.2.1", "2001:db8::1" };
	struct sockaddr_dblp to;
	int i;

	for (i = 0; i < 2; i++)
		if (!dblp_addr_parse(far[i], &to) && source_for(&to, addr) &&
		    is_usable(list, addr))
			return true;
	return false;
}

/*
 * Source address for packets to MASTER_ADDR, which is that address if it is
 * local
 */
static bool by_master(struct sockaddr_dblp *addr)
{
	const char *host = getenv("MASTER_ADDR");
	struct dblp_where master = { 0 };
	uint32_t i;

	if (!host || dblp_resolve(host, "9", &master))
		return false;
	for (i = 0; i < master.n; i++)
		if (source_for(&master.addr[i], addr))
			return true;
	return false;
}

int dblp_device_pick(struct sockaddr_dblp *addr)
{
	struct ifaddrs *list;
	int err = 0;

	if (by_master(addr))
		return 0;
	if (getifaddrs(&list))
		return -errno;
	if (!by_default_route(list, addr) && !first_address(list, NULL, addr))
		err = dblp_addr_parse("127.0.0.1", addr);
	freeifaddrs(list);
	if (!err && is_link_local(addr))
		err = dblp_why(-EADDRNOTAVAIL,
			       "this host has only link-local addresses: name a device that all ranks have");
	return err;
}

int dblp_bind_device(const struct dblp_nic *nic, int fd)
{
	if (!nic->name[0])
		return 0;
	return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, nic->name,
			  (socklen_t)strlen(nic->name)) ? -errno : 0;
}
