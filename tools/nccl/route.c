// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Devices by which packets leave, as the kernel's routes say.
 */

#include "plugin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MAX	4096

/**
 * struct route - the route to a peer
 * @type: RTN_LOCAL if the peer is this host
 * @device: index of the device
 * @text: the route for the log, such as 10.2.0.0/16 via 10.1.0.1
 */
struct route {
	unsigned char	type;
	unsigned int	device;
	char		text[2 * INET6_ADDRSTRLEN + 16];
};

struct request {
	struct nlmsghdr	head;
	struct rtmsg	rt;
	char		attrs[64];
};

static void put(struct request *q, unsigned short type, const void *data, size_t len)
{
	struct rtattr *a = (struct rtattr *)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	q->head.nlmsg_len = NLMSG_ALIGN(q->head.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

static void make_request(struct request *q, const struct sockaddr_dblp *peer,
			 unsigned int device)
{
	const unsigned char *addr = peer->sdblp_addr.s6_addr;
	bool v4 = IN6_IS_ADDR_V4MAPPED(&peer->sdblp_addr);

	*q = (struct request) {
		.head.nlmsg_len = NLMSG_LENGTH(sizeof(q->rt)),
		.head.nlmsg_type = RTM_GETROUTE,
		.head.nlmsg_flags = NLM_F_REQUEST,
		.rt.rtm_family = v4 ? AF_INET : AF_INET6,
		.rt.rtm_dst_len = v4 ? 32 : 128,
		/* Return the entry of the table, not a route made for the address */
		.rt.rtm_flags = RTM_F_FIB_MATCH,
	};
	put(q, RTA_DST, v4 ? addr + 12 : addr, v4 ? 4 : 16);
	if (device)
		put(q, RTA_OIF, &device, sizeof(device));
}

static void parse_route(const struct nlmsghdr *head, struct route *r)
{
	const struct rtmsg *rt = NLMSG_DATA(head);
	char dst[INET6_ADDRSTRLEN] = "", via[INET6_ADDRSTRLEN] = "";
	int left = (int)RTM_PAYLOAD(head);
	const struct rtattr *a;

	r->type = rt->rtm_type;
	for (a = RTM_RTA(rt); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == RTA_OIF)
			memcpy(&r->device, RTA_DATA(a), sizeof(r->device));
		else if (a->rta_type == RTA_DST)
			inet_ntop(rt->rtm_family, RTA_DATA(a), dst, sizeof(dst));
		else if (a->rta_type == RTA_GATEWAY)
			inet_ntop(rt->rtm_family, RTA_DATA(a), via, sizeof(via));
	}
	if (dst[0])
		snprintf(r->text, sizeof(r->text), "%s/%u%s%s", dst, rt->rtm_dst_len,
			 via[0] ? " via " : "", via);
	else
		snprintf(r->text, sizeof(r->text), "default%s%s",
			 via[0] ? " via " : "", via);
}

/* Find the route to @peer, by @device if it is not 0. False: there is none */
static bool find_route(const struct sockaddr_dblp *peer, unsigned int device,
		       struct route *r)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	_Alignas(struct nlmsghdr) char answer[ANSWER_MAX];
	const struct nlmsghdr *head = (struct nlmsghdr *)answer;
	struct request q;
	ssize_t n = -1;

	if (fd < 0)
		return false;
	memset(r, 0, sizeof(*r));
	make_request(&q, peer, device);
	if (send(fd, &q, q.head.nlmsg_len, 0) >= 0)
		n = recv(fd, answer, sizeof(answer), 0);
	close(fd);
	if (n < 0 || !NLMSG_OK(head, (size_t)n) || head->nlmsg_type != RTM_NEWROUTE)
		return false;
	parse_route(head, r);
	return !device || r->device == device;
}

static int bind_device(const struct net_device *d, int fd)
{
	return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, d->name,
			  (socklen_t)strlen(d->name)) ? -errno : 0;
}

int net_route_by(struct net_device *d, int fd, const struct sockaddr_dblp *peer)
{
	unsigned int index = if_nametoindex(d->name);
	char addr[DBLP_ADDR_TEXT], name[IF_NAMESIZE];
	struct route r, own;

	/* Without a route, connect() returns the error */
	if (!d->is_named || !find_route(peer, 0, &r) || r.type == RTN_LOCAL ||
	    r.device == index)
		return 0;
	if (find_route(peer, index, &own))
		return bind_device(d, fd);
	if (__atomic_exchange_n(&d->is_warned, true, __ATOMIC_RELAXED))
		return 0;
	dblp_addr_format(peer, addr);
	net_warn("NCCL_SOCKET_IFNAME names %s, which has no route to %s: packets leave by %s, by the route %s",
		 d->name, addr, if_indextoname(r.device, name) ?: "another device", r.text);
	return 0;
}
