// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests to the generic netlink family of the module.
 */

#include <errno.h>
#include <libdblp.h>
#include <linux/dblp_netlink.h>
#include <linux/genetlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "err.h"
#include "nl.h"

/* Bytes; the kernel sends dumps in parts of at most this size */
#define RECV_SIZE	32768
#define SEND_SIZE	4096
#define DUMP_TRIES	10

static struct mnl_socket *sock;
static uint16_t family;
/* Number of the multicast group of events, 0 if the family has none */
static uint32_t events_group;
static uint32_t seq;

/* The invalid or missing attribute of a refusal, 0 if it names none */
static uint32_t refused_attr(const struct nlmsghdr *nlh,
			     const struct dblp_nl_end *r)
{
	if (r->missing)
		return r->missing;
	if (!r->offset ||
	    r->offset + sizeof(struct nlattr) > nlh->nlmsg_len)
		return 0;
	return mnl_attr_get_type((const void *)((const char *)nlh + r->offset));
}

#define NEEDS_CAPABILITY \
	"this needs CAP_NET_ADMIN in the network namespace (sudo)"

static void print_refusal(const struct nlmsghdr *nlh,
			  const struct dblp_nl_end *r,
			  const char *const *attr_names, uint16_t attr_max)
{
	uint32_t attr = refused_attr(nlh, r);

	error_begin();
	/* A newer kernel may name an attribute that this dblpctl does not know */
	if (attr <= attr_max && attr_names[attr])
		fprintf(stderr, "%s: ", attr_names[attr]);
	if (r->msg)
		fprintf(stderr, "%s\n", r->msg);
	else if (r->err == EPERM)
		fprintf(stderr, "no permission: " NEEDS_CAPABILITY "\n");
	else
		fprintf(stderr, "%s\n", strerror(r->err));
}

static int failed(const char *what)
{
	complain("%s: %s", what, strerror(errno));
	return 1;
}

static int append(struct nl_reply *reply, const struct nlmsghdr *nlh)
{
	size_t size = MNL_ALIGN(nlh->nlmsg_len);
	char *msgs = realloc(reply->msgs, reply->len + size);

	if (!msgs)
		return failed("reply");
	memcpy(msgs + reply->len, nlh, nlh->nlmsg_len);
	reply->msgs = (struct nlmsghdr *)msgs;
	reply->len += size;
	return 0;
}

/*
 * take_message() - process one message of the reply
 *
 * Return: 0 to continue, 1 after the last message, -1 after a refusal or an error.
 */
static int take_message(const struct nlmsghdr *nlh, struct nl_reply *reply,
			struct dblp_nl_end *r)
{
	if (nlh->nlmsg_type == NLMSG_NOOP)
		return 0;
	if (dblp_nl_ended(nlh, r))
		return r->err > 0 ? -1 : 1;
	return append(reply, nlh) ? -1 : 0;
}

/*
 * transact() - send a request and receive the reply
 *
 * Return: 0; 1 after an error message; -1 for a refusal, which is in @r and valid
 * until the next call.
 */
static int transact(struct nlmsghdr *nlh, struct nl_reply *reply,
		    struct dblp_nl_end *r, bool *torn)
{
	static _Alignas(struct nlmsghdr) char buf[RECV_SIZE];
	const struct nlmsghdr *in;
	ssize_t n;
	int left, end;

	memset(r, 0, sizeof(*r));
	memset(reply, 0, sizeof(*reply));
	*torn = false;
	nlh->nlmsg_seq = ++seq;
	if (mnl_socket_sendto(sock, nlh, nlh->nlmsg_len) < 0)
		return failed("cannot send to the kernel");
	for (;;) {
		n = mnl_socket_recvfrom(sock, buf, sizeof(buf));
		if (n < 0)
			return failed("cannot receive from the kernel");
		left = (int)n;
		for (in = (void *)buf; mnl_nlmsg_ok(in, left);
		     in = mnl_nlmsg_next(in, &left)) {
			if (in->nlmsg_seq != seq)
				continue;
			if (in->nlmsg_flags & NLM_F_DUMP_INTR)
				*torn = true;
			end = take_message(in, reply, r);
			if (end > 0)
				return 0;
			if (end < 0)
				return r->err ? -1 : 1;
		}
	}
}

static struct nlmsghdr *begin(char *buf, uint8_t cmd, uint8_t version,
			      uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl;

	nlh->nlmsg_flags = NLM_F_REQUEST | (flags ?: NLM_F_ACK);
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = version;
	return nlh;
}

/* Store the number of a multicast group if it is that of events */
static void note_group(const struct nlattr *nest)
{
	const struct nlattr *attr, *id = NULL, *name = NULL;

	mnl_attr_for_each_nested(attr, nest) {
		if (mnl_attr_get_type(attr) == CTRL_ATTR_MCAST_GRP_ID)
			id = attr;
		if (mnl_attr_get_type(attr) == CTRL_ATTR_MCAST_GRP_NAME)
			name = attr;
	}
	if (id && name && !mnl_attr_validate(id, MNL_TYPE_U32) &&
	    !mnl_attr_validate(name, MNL_TYPE_NUL_STRING) &&
	    !strcmp(mnl_attr_get_str(name), DBLP_MCGRP_EVENTS))
		events_group = mnl_attr_get_u32(id);
}

static void note_groups(const struct nlattr *groups)
{
	const struct nlattr *nest;

	mnl_attr_for_each_nested(nest, groups)
		note_group(nest);
}

static int find_family(void)
{
	_Alignas(struct nlmsghdr) char buf[SEND_SIZE];
	const struct nlattr *tb[CTRL_ATTR_MAX + 1];
	struct nlmsghdr *nlh;
	struct nl_reply reply;
	struct dblp_nl_end r;
	bool torn;
	int err;

	nlh = begin(buf, CTRL_CMD_GETFAMILY, 1, 0);
	nlh->nlmsg_type = GENL_ID_CTRL;
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, DBLP_FAMILY_NAME);
	err = transact(nlh, &reply, &r, &torn);
	if (err < 0 && r.err == ENOENT)
		complain("the module dblp is not loaded; load it with: sudo modprobe dblp (or sudo insmod dblp.ko)");
	else if (err < 0)
		complain("cannot find the netlink family: %s",
			 strerror(r.err));
	if (!err) {
		nl_attrs(reply.msgs, tb, CTRL_ATTR_MAX);
		family = mnl_attr_get_u16(tb[CTRL_ATTR_FAMILY_ID]);
		if (tb[CTRL_ATTR_MCAST_GROUPS])
			note_groups(tb[CTRL_ATTR_MCAST_GROUPS]);
	}
	nl_reply_free(&reply);
	return !!err;
}

static int open_netlink(void)
{
	int on = 1;

	sock = mnl_socket_open(NETLINK_GENERIC);
	if (!sock || mnl_socket_bind(sock, 0, MNL_SOCKET_AUTOPID) < 0)
		return failed("cannot open netlink");
	if (mnl_socket_setsockopt(sock, NETLINK_EXT_ACK, &on, sizeof(on)) ||
	    mnl_socket_setsockopt(sock, NETLINK_CAP_ACK, &on, sizeof(on)))
		return failed("cannot enable netlink error messages");
	seq = (uint32_t)time(NULL);
	return find_family();
}

struct nlmsghdr *nl_request(uint8_t cmd, uint16_t flags)
{
	static _Alignas(struct nlmsghdr) char buf[SEND_SIZE];

	return begin(buf, cmd, DBLP_FAMILY_VERSION, flags);
}

/* transact(), repeated until a dump is consistent */
static int attempt(struct nlmsghdr *nlh, struct nl_reply *reply,
		   struct dblp_nl_end *r)
{
	int tries = 0, err;
	bool torn;

	memset(reply, 0, sizeof(*reply));
	if (!sock && open_netlink())
		return 1;
	nlh->nlmsg_type = family;
	do {
		if (tries)
			nl_reply_free(reply);
		err = transact(nlh, reply, r, &torn);
	} while (!err && torn && ++tries < DUMP_TRIES);

	if (err)
		nl_reply_free(reply);
	reply->torn = !err && torn;
	if (reply->torn)
		complain("the list changed during every attempt to read it and may be inconsistent: try again");
	return err;
}

int nl_talk(struct nlmsghdr *nlh, const char *const *attr_names,
	    uint16_t attr_max, struct nl_reply *reply)
{
	struct dblp_nl_end r;
	int err = attempt(nlh, reply, &r);

	if (err < 0)
		print_refusal(nlh, &r, attr_names, attr_max);
	return !!err;
}

int nl_try(struct nlmsghdr *nlh, int *refused)
{
	struct nl_reply reply;
	struct dblp_nl_end r;
	int err = attempt(nlh, &reply, &r);

	*refused = err < 0 ? r.err : 0;
	nl_reply_free(&reply);
	return err > 0;
}

/* A request that sets no parameter needs the right, too */
int nl_see_right(bool *has)
{
	int refused;

	if (nl_try(nl_request(DBLP_CMD_PARAM_SET, 0), &refused))
		return 1;
	*has = refused != EPERM;
	return 0;
}

int nl_need_right(void)
{
	bool has;

	if (nl_see_right(&has))
		return 1;
	if (!has)
		complain("no permission: " NEEDS_CAPABILITY);
	return !has;
}

int nl_listen(void)
{
	/* The group to which the kernel announces added and removed families */
	static const uint32_t families_group = GENL_ID_CTRL;

	if (!sock && open_netlink())
		return 1;
	if (!events_group) {
		complain("the loaded module is older than dblpctl and has no events: install both from one source");
		return 1;
	}
	if (mnl_socket_setsockopt(sock, NETLINK_ADD_MEMBERSHIP, &events_group,
				  sizeof(events_group)) ||
	    mnl_socket_setsockopt(sock, NETLINK_ADD_MEMBERSHIP,
				  (void *)&families_group,
				  sizeof(families_group))) {
		if (errno != EPERM)
			return failed("cannot subscribe to events");
		complain("no permission: " NEEDS_CAPABILITY);
		return 1;
	}
	return 0;
}

/* Detect the removal of the module by the removal of its family */
static int hear_of_family(const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[CTRL_ATTR_MAX + 1];

	nl_attrs(nlh, tb, CTRL_ATTR_MAX);
	if (genl->cmd != CTRL_CMD_DELFAMILY || !tb[CTRL_ATTR_FAMILY_ID] ||
	    mnl_attr_get_u16(tb[CTRL_ATTR_FAMILY_ID]) != family)
		return 0;
	complain("the module was removed: load it (sudo modprobe dblp) and start again");
	return 1;
}

int nl_hear(int (*each)(const struct nlmsghdr *nlh))
{
	static _Alignas(struct nlmsghdr) char buf[RECV_SIZE];
	const struct nlmsghdr *in = (void *)buf;
	ssize_t n = mnl_socket_recvfrom(sock, buf, sizeof(buf));
	int left = (int)n, err = 0;

	if (n < 0 && errno == ENOBUFS)
		return -1;
	if (n < 0)
		return failed("cannot receive from the kernel");
	for (; !err && mnl_nlmsg_ok(in, left); in = mnl_nlmsg_next(in, &left)) {
		if (in->nlmsg_type == family)
			err = each(in);
		else if (in->nlmsg_type == GENL_ID_CTRL)
			err = hear_of_family(in);
	}
	return err;
}

void nl_reply_free(struct nl_reply *reply)
{
	free(reply->msgs);
	memset(reply, 0, sizeof(*reply));
}

void nl_attrs(const struct nlmsghdr *nlh, const struct nlattr **tb,
	      uint16_t max)
{
	const struct nlattr *attr;

	memset(tb, 0, (max + 1U) * sizeof(*tb));
	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) <= max)
			tb[mnl_attr_get_type(attr)] = attr;
}

void nl_close(void)
{
	if (sock)
		mnl_socket_close(sock);
	sock = NULL;
}
