/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events for the multicast group of the family, shown by dblpctl monitor.
 *
 * Without listeners an event costs the test of a bit. That bit is common to all
 * namespaces, so a listener in one enables events in all, and the rate of
 * events is limited. Listeners get ENOBUFS for an event that is lost, because
 * it is above the limit, or for lack of memory or of room in the listener's
 * queue.
 */
#ifndef _NET_DBLP_EVENT_H
#define _NET_DBLP_EVENT_H

#include <linux/types.h>
#include <linux/dblp_netlink.h>

struct dblp_job;
struct dblp_phase;
struct dblp_rx_msg;
struct dblp_sock;
struct net;

/* Number of events; their operations are consecutive */
#define DBLP_EVENT_KINDS \
	(DBLP_CMD_MSG_CLOSED_NTF - DBLP_CMD_JOB_ADD_NTF + 1)

void dblp_event_job(struct net *net, u8 cmd, const struct dblp_job *job);
void dblp_event_job_phase(struct net *net, struct dblp_job *job, u8 old_phase,
			  enum dblp_actor by);
void dblp_event_phase(struct net *net, u8 cmd, u32 id,
		      const struct dblp_phase *p);
void dblp_event_conn_begin(const struct dblp_sock *dsk);
void dblp_event_conn_end(const struct dblp_sock *dsk, u8 state, int error);
void dblp_event_msg_closed(const struct dblp_sock *dsk);

#endif /* _NET_DBLP_EVENT_H */
