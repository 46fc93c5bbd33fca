// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family: sockets and counters.
 */
#include <linux/sock_diag.h>
#include <net/genetlink.h>

#include "../dblp.h"
#include "../syscall.h"
#include "netlink.h"
#include "gen.h"

/* Fields of &struct dblp_info and their attributes */
struct dblp_nl_field {
	u16	attr;
	u16	offset;
};

#define DBLP_NL_FIELD(attr, field) \
	{ DBLP_A_SOCKET_##attr, offsetof(struct dblp_info, field) }

static const struct dblp_nl_field dblp_nl_u8[] = {
	DBLP_NL_FIELD(STATE, state),
	DBLP_NL_FIELD(POLICY, policy),
	DBLP_NL_FIELD(ORDER, order),
	DBLP_NL_FIELD(FILL, fill),
};

static const struct dblp_nl_field dblp_nl_u32[] = {
	DBLP_NL_FIELD(BUDGET, budget),
	DBLP_NL_FIELD(BUDGET_CAP, budget_cap),
	DBLP_NL_FIELD(PEER_BUDGET_CAP, peer_budget_cap),
	DBLP_NL_FIELD(PEER_MSG_MAX, peer_msg_max),
	DBLP_NL_FIELD(SEG_SIZE, seg_size),
	DBLP_NL_FIELD(SRTT_US, srtt_us),
	DBLP_NL_FIELD(RTTVAR_US, rttvar_us),
	DBLP_NL_FIELD(MIN_RTT_US, min_rtt_us),
	DBLP_NL_FIELD(CWND, cwnd),
	DBLP_NL_FIELD(INFLIGHT, inflight),
	DBLP_NL_FIELD(PTO_COUNT, pto_count),
	DBLP_NL_FIELD(REORDERING, reordering),
	DBLP_NL_FIELD(PHASE, phase),
	DBLP_NL_FIELD(JOB, job),
	DBLP_NL_FIELD(AUTH, auth),
	DBLP_NL_FIELD(OWN, own),
	DBLP_NL_FIELD(WHOLE_MAX, whole_max),
	DBLP_NL_FIELD(REPORTS, reports),
};

static const struct dblp_nl_field dblp_nl_u64[] = {
	DBLP_NL_FIELD(PACING_RATE, pacing_rate),
	DBLP_NL_FIELD(DELIVERY_RATE, delivery_rate),
	DBLP_NL_FIELD(BYTES_FIRST, bytes_first),
	DBLP_NL_FIELD(BYTES_AGAIN, bytes_again),
	DBLP_NL_FIELD(BYTES_DELIVERED, bytes_delivered),
	DBLP_NL_FIELD(BYTES_FORGIVEN_UNSENT, bytes_forgiven_unsent),
	DBLP_NL_FIELD(BYTES_FORGIVEN_SENT, bytes_forgiven_sent),
	DBLP_NL_FIELD(BYTES_RECEIVED, bytes_received),
	DBLP_NL_FIELD(BYTES_MISSING, bytes_missing),
	DBLP_NL_FIELD(MSGS_SENT, msgs_sent),
	DBLP_NL_FIELD(MSGS_SENT_EARLY, msgs_sent_early),
	DBLP_NL_FIELD(MSGS_RECEIVED, msgs_received),
	DBLP_NL_FIELD(MSGS_RECEIVED_EARLY, msgs_received_early),
	DBLP_NL_FIELD(PKTS_SENT, pkts_sent),
	DBLP_NL_FIELD(PKTS_LOST, pkts_lost),
	DBLP_NL_FIELD(PKTS_RECEIVED, pkts_received),
	DBLP_NL_FIELD(SPURIOUS, spurious),
	DBLP_NL_FIELD(MSGS_SENT_COMPLETE, msgs_sent_complete),
	DBLP_NL_FIELD(MSGS_SENT_BUDGET, msgs_sent_budget),
	DBLP_NL_FIELD(MSGS_SENT_DEADLINE, msgs_sent_deadline),
	DBLP_NL_FIELD(MSGS_RECEIVED_COMPLETE, msgs_received_complete),
	DBLP_NL_FIELD(MSGS_RECEIVED_BUDGET, msgs_received_budget),
	DBLP_NL_FIELD(MSGS_RECEIVED_DEADLINE, msgs_received_deadline),
	DBLP_NL_FIELD(BYTES_ELIDED, bytes_elided),
	DBLP_NL_FIELD(MSGS_SENT_CANCELLED, msgs_sent_cancelled),
	DBLP_NL_FIELD(MSGS_RECEIVED_CANCELLED, msgs_received_cancelled),
};

static int dblp_nl_put_info(struct sk_buff *skb, struct dblp_sock *dsk)
{
	const struct dblp_nl_field *f;
	struct dblp_info info;
	const u8 *base = (const u8 *)&info;
	int i, err = 0;

	dblp_sock_info(dsk, &info);

	for (i = 0; !err && i < ARRAY_SIZE(dblp_nl_u8); i++) {
		f = &dblp_nl_u8[i];
		err = nla_put_u32(skb, f->attr, base[f->offset]);
	}
	for (i = 0; !err && i < ARRAY_SIZE(dblp_nl_u32); i++) {
		f = &dblp_nl_u32[i];
		err = nla_put_u32(skb, f->attr, *(u32 *)(base + f->offset));
	}
	for (i = 0; !err && i < ARRAY_SIZE(dblp_nl_u64); i++) {
		f = &dblp_nl_u64[i];
		err = nla_put_u64_64bit(skb, f->attr,
					*(u64 *)(base + f->offset),
					DBLP_A_SOCKET_PAD);
	}
	return err;
}

static int dblp_nl_put_addrs(struct sk_buff *skb, struct dblp_sock *dsk)
{
	struct sockaddr_dblp local, peer;

	dblp_sock_addrs(dsk, &local, &peer);

	if (nla_put_in6_addr(skb, DBLP_A_SOCKET_LOCAL_ADDR,
			     &local.sdblp_addr) ||
	    nla_put_be16(skb, DBLP_A_SOCKET_LOCAL_PORT, local.sdblp_port) ||
	    nla_put_u32(skb, DBLP_A_SOCKET_LOCAL_SCOPE,
			local.sdblp_scope_id) ||
	    nla_put_in6_addr(skb, DBLP_A_SOCKET_PEER_ADDR, &peer.sdblp_addr) ||
	    nla_put_be16(skb, DBLP_A_SOCKET_PEER_PORT, peer.sdblp_port) ||
	    nla_put_u32(skb, DBLP_A_SOCKET_PEER_SCOPE, peer.sdblp_scope_id))
		return -EMSGSIZE;
	return 0;
}

/* What waits in the queues, with the meaning that ss gives these columns */
static int dblp_nl_put_queues(struct sk_buff *skb, struct dblp_sock *dsk)
{
	u64 received, sent;

	lock_sock(&dsk->sk);
	if (dsk->state == DBLP_STATE_LISTEN) {
		received = READ_ONCE(dsk->sk.sk_ack_backlog);
		sent = READ_ONCE(dsk->sk.sk_max_ack_backlog);
	} else {
		received = dblp_unread_bytes(dsk);
		sent = dsk->tx.bytes;
	}
	release_sock(&dsk->sk);

	return nla_put_u64_64bit(skb, DBLP_A_SOCKET_RECV_QUEUE, received,
				 DBLP_A_SOCKET_PAD) ?:
	       nla_put_u64_64bit(skb, DBLP_A_SOCKET_SEND_QUEUE, sent,
				 DBLP_A_SOCKET_PAD);
}

/**
 * dblp_nl_put_socket() - append the attributes of a socket
 * @skb: message
 * @dsk: socket, held, not locked
 * @id: number of the socket
 * @reader: netlink socket of the reader; user IDs are in its user namespace
 *
 * Return: 0, or -EMSGSIZE if @skb is full.
 */
static int dblp_nl_put_socket(struct sk_buff *skb, struct dblp_sock *dsk,
			      u32 id, const struct sock *reader)
{
	kuid_t uid = READ_ONCE(dsk->sk.sk_uid);

	if (nla_put_u32(skb, DBLP_A_SOCKET_ID, id) ||
	    nla_put_u32(skb, DBLP_A_SOCKET_UID,
			from_kuid_munged(sk_user_ns(reader), uid)) ||
	    nla_put_u64_64bit(skb, DBLP_A_SOCKET_INODE, sock_i_ino(&dsk->sk),
			      DBLP_A_SOCKET_PAD) ||
	    nla_put_string(skb, DBLP_A_SOCKET_CONGESTION,
			   dblp_sock_cc_name(dsk)) ||
	    dblp_nl_put_addrs(skb, dsk) ||
	    dblp_nl_put_info(skb, dsk) ||
	    dblp_nl_put_queues(skb, dsk) ||
	    sock_diag_put_meminfo(&dsk->sk, skb, DBLP_A_SOCKET_MEMINFO))
		return -EMSGSIZE;
	return 0;
}

/* Find the socket of a request; takes a reference. Errors have extack */
static struct dblp_sock *dblp_nl_socket(struct genl_info *info)
{
	struct nlattr *attr = info->attrs[DBLP_A_SOCKET_ID];
	struct dblp_sock *dsk;

	if (GENL_REQ_ATTR_CHECK(info, DBLP_A_SOCKET_ID)) {
		NL_SET_ERR_MSG(info->extack, "the number of a socket is needed");
		return ERR_PTR(-EINVAL);
	}
	dsk = dblp_sock_by_id(genl_info_net(info), nla_get_u32(attr));
	if (!dsk) {
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "no socket has this number in this network namespace");
		return ERR_PTR(-ENOENT);
	}
	return dsk;
}

int dblp_nl_socket_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct dblp_sock *dsk;
	struct sk_buff *msg;
	void *hdr;
	int err;

	dsk = dblp_nl_socket(info);
	if (IS_ERR(dsk))
		return PTR_ERR(dsk);
	err = dblp_nl_check_access(info, skb, READ_ONCE(dsk->sk.sk_uid),
				   DBLP_A_SOCKET_ID);
	if (err)
		goto put_sock;
	msg = dblp_nl_reply_new(info, &hdr);
	if (IS_ERR(msg)) {
		err = PTR_ERR(msg);
		goto put_sock;
	}
	err = dblp_nl_put_socket(msg, dsk,
				 nla_get_u32(info->attrs[DBLP_A_SOCKET_ID]),
				 NETLINK_CB(skb).sk);
	err = dblp_nl_reply_end(info, msg, hdr, err);
put_sock:
	sock_put(&dsk->sk);
	return err;
}

/* Number at which a dump continues; positions in a list would change */
struct dblp_nl_dump {
	u32	next;
	bool	done;
};

static int dblp_nl_dump_socket(struct sk_buff *skb,
			       struct netlink_callback *cb,
			       struct dblp_sock *dsk, u32 id)
{
	void *hdr;
	int err;

	hdr = dblp_nl_dump_begin(skb, cb, DBLP_CMD_SOCKET_GET);
	if (!hdr)
		return -EMSGSIZE;
	err = dblp_nl_put_socket(skb, dsk, id, NETLINK_CB(cb->skb).sk);
	return dblp_nl_dump_end(skb, hdr, err);
}

int dblp_nl_socket_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dblp_nl_dump *dump = (struct dblp_nl_dump *)cb->ctx;
	struct net *net = sock_net(skb->sk);
	bool all = dblp_nl_sees_all(cb->skb);
	struct dblp_sock *dsk;
	u32 id = dump->next;
	int err = 0;

	BUILD_BUG_ON(sizeof(*dump) > sizeof(cb->ctx));

	if (nlmsg_attrlen(cb->nlh, GENL_HDRLEN)) {
		NL_SET_ERR_MSG(cb->extack,
			       "the dump of sockets takes no attributes");
		return -EINVAL;
	}
	dblp_nl_dump_generation(cb, dblp_sock_generation(net));
	while (!dump->done && (dsk = dblp_sock_next(net, &id))) {
		if (all || dblp_nl_owns(cb->skb, READ_ONCE(dsk->sk.sk_uid)))
			err = dblp_nl_dump_socket(skb, cb, dsk, id);
		sock_put(&dsk->sk);
		if (err)
			break;
		/* Stop after the largest number */
		dump->done = !++id;
		dump->next = id;
		cond_resched();
	}
	/* The next message begins with the socket that did not fit */
	return skb->len ?: err;
}

/* Set phase and job: both or neither */
static int dblp_nl_set_sock_place(struct genl_info *info,
				  struct dblp_sock *dsk)
{
	struct nlattr *phase = info->attrs[DBLP_A_SOCKET_PHASE];
	struct nlattr *job = info->attrs[DBLP_A_SOCKET_JOB];
	u32 phase_id = phase ? nla_get_u32(phase) : 0;
	u32 job_id = job ? nla_get_u32(job) : 0;
	int err;

	err = dblp_sock_set_place(dsk, phase ? &phase_id : NULL,
				  job ? &job_id : NULL);
	switch (err) {
	case -ENOENT:
		NL_SET_ERR_MSG_ATTR(info->extack, phase,
				    "there is no such phase");
		break;
	case -ESRCH:
		NL_SET_ERR_MSG_ATTR(info->extack, job, "there is no such job");
		err = -ENOENT;
		break;
	case -ESTALE:
		NL_SET_ERR_MSG_ATTR(info->extack,
				    info->attrs[DBLP_A_SOCKET_ID],
				    "the socket is being closed");
		break;
	}
	return err;
}

int dblp_nl_socket_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *budget = info->attrs[DBLP_A_SOCKET_BUDGET];
	struct nlattr *cap = info->attrs[DBLP_A_SOCKET_BUDGET_CAP];
	struct nlattr *phase = info->attrs[DBLP_A_SOCKET_PHASE];
	struct nlattr *job = info->attrs[DBLP_A_SOCKET_JOB];
	struct dblp_sock *dsk;
	u32 budget_ppm = 0, cap_ppm = 0;
	int err;

	if (!budget && !cap && !phase && !job) {
		NL_SET_ERR_MSG(info->extack,
			       "nothing to set: a budget, a budget cap, a phase or a job is needed");
		return -EINVAL;
	}
	err = dblp_nl_own_share(info, DBLP_A_SOCKET_BUDGET, &budget_ppm) ?:
	      dblp_nl_own_share(info, DBLP_A_SOCKET_BUDGET_CAP, &cap_ppm);
	if (err)
		return err;

	dsk = dblp_nl_socket(info);
	if (IS_ERR(dsk))
		return PTR_ERR(dsk);
	/* First apply the settings that can be refused */
	if (phase || job)
		err = dblp_nl_set_sock_place(info, dsk);
	if (!err && budget)
		dblp_sock_set_share(dsk, DBLP_BUDGET, budget_ppm);
	if (!err && cap)
		dblp_sock_set_share(dsk, DBLP_BUDGET_CAP, cap_ppm);
	sock_put(&dsk->sk);
	return err;
}

static int dblp_nl_put_stats(struct sk_buff *msg, struct net *net,
			     bool nonzero)
{
	struct dblp_mib __percpu *mib = dblp_pernet(net)->mib;
	int item, attr;
	u64 sum;

	BUILD_BUG_ON(DBLP_A_STATS_MAX - DBLP_A_STATS_NONZERO !=
		     __DBLP_MIB_MAX);

	for (item = 0; item < __DBLP_MIB_MAX; item++) {
		/* Items and attributes are generated in the same order */
		attr = DBLP_A_STATS_NONZERO + 1 + item;
		sum = dblp_mib_sum(mib, item);
		if (nonzero && !sum)
			continue;
		if (nla_put_u64_64bit(msg, attr, sum, DBLP_A_STATS_PAD))
			return -EMSGSIZE;
	}
	return 0;
}

int dblp_nl_stats_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct sk_buff *msg;
	void *hdr;
	int err;

	msg = dblp_nl_reply_new(info, &hdr);
	if (IS_ERR(msg))
		return PTR_ERR(msg);
	err = dblp_nl_put_stats(msg, genl_info_net(info),
				info->attrs[DBLP_A_STATS_NONZERO]);
	return dblp_nl_reply_end(info, msg, hdr, err);
}
