// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests to the generic netlink family, built attribute by attribute.
 */
#define _GNU_SOURCE
#include "nltest.h"

#include <libdblp.h>
#include <stdio.h>
#include <string.h>

#include "testlib.h"

struct mnl_socket *nl;
uint16_t family;
_Alignas(8) char request[8192];
static _Alignas(8) char answer[65536];

struct nl_got got;

struct nlmsghdr *begin(uint16_t type, uint8_t cmd, uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(request);
	struct genlmsghdr *genl;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = 1;
	return nlh;
}

struct nlmsghdr *request_u32(uint8_t cmd, const uint32_t *attrs, size_t n)
{
	struct nlmsghdr *nlh = begin(family, cmd, 0);
	size_t i;

	for (i = 0; i < n; i += 2)
		mnl_attr_put_u32(nlh, attrs[i], attrs[i + 1]);
	return nlh;
}

struct nlmsghdr *job_request(uint8_t cmd, uint32_t id)
{
	struct nlmsghdr *nlh = begin(family, cmd, 0);

	mnl_attr_put_u32(nlh, DBLP_A_JOB_ID, id);
	return nlh;
}

static void note_end(const struct dblp_nl_end *end)
{
	got.err = end->err;
	got.offset = end->offset;
	got.missing = end->missing;
	if (end->msg)
		snprintf(got.msg, sizeof(got.msg), "%s", end->msg);
}

bool receive(void (*each)(const struct nlmsghdr *nlh, void *arg),
		    void *arg)
{
	ssize_t n = mnl_socket_recvfrom(nl, answer, sizeof(answer));
	const struct nlmsghdr *nlh = (void *)answer;
	struct dblp_nl_end end;
	int left = n;

	if (n < 0)
		die("recvmsg(netlink)");
	for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
			got.torn = true;
		if (dblp_nl_ended(nlh, &end)) {
			note_end(&end);
			return true;
		}
		if (each)
			each(nlh, arg);
	}
	return false;
}

void ask(struct nlmsghdr *nlh)
{
	memset(&got, 0, sizeof(got));
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		die("sendmsg(netlink)");
}

int result_each(struct nlmsghdr *nlh,
		void (*each)(const struct nlmsghdr *nlh, void *arg), void *arg)
{
	/* A dump ends with NLMSG_DONE instead of an acknowledgment */
	nlh->nlmsg_flags |= NLM_F_ACK;
	ask(nlh);
	while (!receive(each, arg))
		;
	return got.err;
}

int result(struct nlmsghdr *nlh)
{
	return result_each(nlh, NULL, NULL);
}

static void note_state(const struct nlmsghdr *nlh, void *arg)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;
	struct nl_state *s = arg;

	mnl_attr_for_each(attr, nlh, sizeof(*genl)) {
		if (genl->cmd == DBLP_CMD_JOB_GET &&
		    mnl_attr_get_type(attr) == DBLP_A_JOB_STATS)
			continue;
		if (s->len + attr->nla_len > sizeof(s->bytes))
			die("too much to be compared");
		memcpy(s->bytes + s->len, attr, attr->nla_len);
		s->len += attr->nla_len;
	}
}

void nl_state_take(struct nl_state *s)
{
	static const uint8_t dumps[] = {
		DBLP_CMD_SOCKET_GET, DBLP_CMD_PHASE_GET, DBLP_CMD_JOB_GET,
		DBLP_CMD_CC_GET,
	};
	size_t i;

	s->len = 0;
	for (i = 0; i < sizeof(dumps); i++)
		result_each(begin(family, dumps[i], NLM_F_DUMP), note_state, s);
	result_each(begin(family, DBLP_CMD_PARAM_GET, 0), note_state, s);
}

static void note_family(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID)
			*(uint16_t *)arg = mnl_attr_get_u16(attr);
}

void open_netlink(void)
{
	struct nlmsghdr *nlh;
	int on = 1;

	nl = mnl_socket_open(NETLINK_GENERIC);
	if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_setsockopt(nl, NETLINK_EXT_ACK, &on, sizeof(on)) ||
	    mnl_socket_setsockopt(nl, NETLINK_CAP_ACK, &on, sizeof(on)))
		die("netlink");
	nlh = begin(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, DBLP_FAMILY_NAME);
	result_each(nlh, note_family, &family);
	if (!family)
		die("there is no family " DBLP_FAMILY_NAME);
}
