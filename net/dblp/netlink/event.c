// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family: events of the namespace, for its multicast group.
 */
#include <net/genetlink.h>

#include "../dblp.h"
#include "netlink.h"
#include "gen.h"

/* Upper bound for the attributes of an event */
#define DBLP_EVENT_SIZE		256

/* Report ENOBUFS to listeners for a lost event, as if their queues were full */
static void dblp_event_lost(struct net *net)
{
	genl_set_err(&dblp_nl_family, net, 0, DBLP_NLGRP_EVENTS, -ENOBUFS);
}

/* Is an event below the limit? The first above it is reported as lost */
static bool dblp_event_allowed(struct net *net, u8 cmd)
{
	struct dblp_net *dn = dblp_pernet(net);
	u32 count = dblp_rate_count(&dn->events[cmd - DBLP_CMD_JOB_ADD_NTF],
				    DBLP_EVENTS_PER_SECOND);

	if (count == DBLP_EVENTS_PER_SECOND)
		dblp_event_lost(net);
	return count < DBLP_EVENTS_PER_SECOND;
}

/* Returns NULL without listeners, or if the event is lost */
static struct sk_buff *dblp_event_begin(struct net *net, u8 cmd, void **hdr,
					gfp_t gfp)
{
	struct sk_buff *msg;

	if (!genl_has_listeners(&dblp_nl_family, net, DBLP_NLGRP_EVENTS) ||
	    !dblp_event_allowed(net, cmd))
		return NULL;
	msg = genlmsg_new(DBLP_EVENT_SIZE, gfp);
	if (msg) {
		*hdr = genlmsg_put(msg, 0, 0, &dblp_nl_family, 0, cmd);
		if (*hdr)
			return msg;
		nlmsg_free(msg);
	}
	dblp_event_lost(net);
	return NULL;
}

static void dblp_event_send(struct net *net, struct sk_buff *msg, void *hdr,
			    int err, gfp_t gfp)
{
	if (WARN_ON_ONCE(err)) {
		nlmsg_free(msg);
		dblp_event_lost(net);
		return;
	}
	genlmsg_end(msg, hdr);
	/* Listeners with a full queue get ENOBUFS; ignore their absence */
	genlmsg_multicast_netns(&dblp_nl_family, net, msg, 0,
				DBLP_NLGRP_EVENTS, gfp);
}

static int dblp_event_put_job(struct sk_buff *msg, const struct dblp_job *job)
{
	if (nla_put_u32(msg, DBLP_A_EVENT_JOB, job->id) ||
	    nla_put_string(msg, DBLP_A_EVENT_NAME, job->conf.name) ||
	    nla_put_u32(msg, DBLP_A_EVENT_PHASE, job->conf.phase))
		return -EMSGSIZE;
	return 0;
}

/**
 * dblp_event_job() - a job was added or deleted
 * @net: namespace, with @lock of its configuration held
 * @cmd: DBLP_CMD_JOB_ADD_NTF or DBLP_CMD_JOB_DEL_NTF
 * @job: job
 */
void dblp_event_job(struct net *net, u8 cmd, const struct dblp_job *job)
{
	struct sk_buff *msg;
	void *hdr;

	msg = dblp_event_begin(net, cmd, &hdr, GFP_KERNEL);
	if (!msg)
		return;
	dblp_event_send(net, msg, hdr, dblp_event_put_job(msg, job),
			GFP_KERNEL);
}

static int dblp_event_put_clr(struct sk_buff *msg, const struct dblp_clr *clr)
{
	if (nla_put_u64_64bit(msg, DBLP_A_EVENT_NORM, clr->norm,
			      DBLP_A_EVENT_PAD) ||
	    nla_put_u64_64bit(msg, DBLP_A_EVENT_PREVIOUS, clr->previous,
			      DBLP_A_EVENT_PAD) ||
	    nla_put_u32(msg, DBLP_A_EVENT_CHANGE, clr->change) ||
	    nla_put_u32(msg, DBLP_A_EVENT_ETA, clr->eta))
		return -EMSGSIZE;
	return 0;
}

/* Is an event below the limit of its job? Other jobs need room */
static bool dblp_event_job_allowed(struct net *net, struct dblp_job *job,
				   enum dblp_actor by)
{
	u32 count;

	lockdep_assert_held(&job->turn);
	if (by != DBLP_ACTOR_DETECTOR)
		return true;
	count = dblp_rate_count(&job->events, DBLP_JOB_EVENTS_PER_SECOND);
	if (count == DBLP_JOB_EVENTS_PER_SECOND)
		dblp_event_lost(net);
	return count < DBLP_JOB_EVENTS_PER_SECOND;
}

/**
 * dblp_event_job_phase() - a job has moved to another phase
 * @net: namespace
 * @job: job, with @turn held
 * @old_phase: number of its previous phase
 * @by: cause of the move
 */
void dblp_event_job_phase(struct net *net, struct dblp_job *job, u8 old_phase,
			  enum dblp_actor by)
{
	struct sk_buff *msg;
	void *hdr;
	int err;

	if (!dblp_event_job_allowed(net, job, by))
		return;
	msg = dblp_event_begin(net, DBLP_CMD_JOB_PHASE_NTF, &hdr, GFP_KERNEL);
	if (!msg)
		return;
	err = dblp_event_put_job(msg, job) ?:
	      nla_put_u32(msg, DBLP_A_EVENT_OLD_PHASE, old_phase) ?:
	      nla_put_u32(msg, DBLP_A_EVENT_BY, by);
	if (!err && by == DBLP_ACTOR_DETECTOR)
		err = dblp_event_put_clr(msg, &job->detector);
	dblp_event_send(net, msg, hdr, err, GFP_KERNEL);
}

static int dblp_event_put_phase(struct sk_buff *msg, u32 id,
				const struct dblp_phase *p)
{
	if (nla_put_u32(msg, DBLP_A_EVENT_PHASE, id) ||
	    nla_put_string(msg, DBLP_A_EVENT_NAME, p->name) ||
	    nla_put_u32(msg, DBLP_A_EVENT_BUDGET, p->budget) ||
	    nla_put_u32(msg, DBLP_A_EVENT_POLICY, p->policy) ||
	    nla_put_u32(msg, DBLP_A_EVENT_ORDER, p->order) ||
	    nla_put_u32(msg, DBLP_A_EVENT_FILL, p->fill) ||
	    dblp_nl_put_own_share(msg, DBLP_A_EVENT_BUDGET_CAP, p->cap))
		return -EMSGSIZE;
	return 0;
}

/**
 * dblp_event_phase() - a phase was added, changed or deleted
 * @net: namespace, with @lock of its configuration held
 * @cmd: DBLP_CMD_PHASE_SET_NTF or DBLP_CMD_PHASE_DEL_NTF
 * @id: number of the phase
 * @p: the phase, as it is now or was before it was deleted
 */
void dblp_event_phase(struct net *net, u8 cmd, u32 id,
		      const struct dblp_phase *p)
{
	struct sk_buff *msg;
	void *hdr;

	msg = dblp_event_begin(net, cmd, &hdr, GFP_KERNEL);
	if (!msg)
		return;
	dblp_event_send(net, msg, hdr, dblp_event_put_phase(msg, id, p),
			GFP_KERNEL);
}

static int dblp_event_put_conn(struct sk_buff *msg, const struct dblp_sock *dsk)
{
	const struct sockaddr_dblp *l = &dsk->local, *p = &dsk->peer;

	if (nla_put_u32(msg, DBLP_A_EVENT_SOCKET, dsk->id) ||
	    nla_put_in6_addr(msg, DBLP_A_EVENT_LOCAL_ADDR, &l->sdblp_addr) ||
	    nla_put_be16(msg, DBLP_A_EVENT_LOCAL_PORT, l->sdblp_port) ||
	    nla_put_u32(msg, DBLP_A_EVENT_LOCAL_SCOPE, l->sdblp_scope_id) ||
	    nla_put_in6_addr(msg, DBLP_A_EVENT_PEER_ADDR, &p->sdblp_addr) ||
	    nla_put_be16(msg, DBLP_A_EVENT_PEER_PORT, p->sdblp_port) ||
	    nla_put_u32(msg, DBLP_A_EVENT_PEER_SCOPE, p->sdblp_scope_id))
		return -EMSGSIZE;
	return 0;
}

/** dblp_event_conn_begin() - a connection was established; @dsk is locked */
void dblp_event_conn_begin(const struct dblp_sock *dsk)
{
	struct net *net = sock_net(&dsk->sk);
	struct sk_buff *msg;
	void *hdr;

	sock_owned_by_me(&dsk->sk);
	msg = dblp_event_begin(net, DBLP_CMD_CONN_BEGIN_NTF, &hdr, GFP_ATOMIC);
	if (!msg)
		return;
	dblp_event_send(net, msg, hdr, dblp_event_put_conn(msg, dsk),
			GFP_ATOMIC);
}

/**
 * dblp_event_conn_end() - a connection, or an attempt to connect, has ended
 * @dsk: socket, locked
 * @state: its last state, &enum dblp_state
 * @error: positive errno, 0 for none
 */
void dblp_event_conn_end(const struct dblp_sock *dsk, u8 state, int error)
{
	struct net *net = sock_net(&dsk->sk);
	struct sk_buff *msg;
	void *hdr;
	int err;

	sock_owned_by_me(&dsk->sk);
	msg = dblp_event_begin(net, DBLP_CMD_CONN_END_NTF, &hdr, GFP_ATOMIC);
	if (!msg)
		return;
	err = dblp_event_put_conn(msg, dsk) ?:
	      nla_put_u32(msg, DBLP_A_EVENT_STATE, state) ?:
	      nla_put_u32(msg, DBLP_A_EVENT_ERROR, error);
	dblp_event_send(net, msg, hdr, err, GFP_ATOMIC);
}

static int dblp_event_put_msg(struct sk_buff *msg, const struct dblp_sock *dsk)
{
	if (nla_put_u32(msg, DBLP_A_EVENT_SOCKET, dsk->id) ||
	    nla_put_u32(msg, DBLP_A_EVENT_MSG_ID, dsk->rx.number) ||
	    nla_put_u64_64bit(msg, DBLP_A_EVENT_TAG, dsk->rx.chain.tag,
			      DBLP_A_EVENT_PAD) ||
	    nla_put_u32(msg, DBLP_A_EVENT_LENGTH, dsk->rx.chain.total) ||
	    nla_put_u32(msg, DBLP_A_EVENT_MISSING, dsk->rx.chain.missing) ||
	    nla_put_u32(msg, DBLP_A_EVENT_BUDGET, dsk->rx.chain.budget) ||
	    nla_put_u32(msg, DBLP_A_EVENT_REASON, dsk->rx.chain.reason))
		return -EMSGSIZE;
	return 0;
}

/**
 * dblp_event_msg_closed() - a message was closed with bytes missing
 * @dsk: socket, locked; @rx.chain describes the whole message
 */
void dblp_event_msg_closed(const struct dblp_sock *dsk)
{
	struct net *net = sock_net(&dsk->sk);
	struct sk_buff *msg;
	void *hdr;

	sock_owned_by_me(&dsk->sk);
	msg = dblp_event_begin(net, DBLP_CMD_MSG_CLOSED_NTF, &hdr, GFP_ATOMIC);
	if (!msg)
		return;
	dblp_event_send(net, msg, hdr, dblp_event_put_msg(msg, dsk),
			GFP_ATOMIC);
}
