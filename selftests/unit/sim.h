/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A deterministic simulator of flows over one bottleneck: each packet may be
 * lost at random, then waits in a finite queue, leaves it at the link's rate,
 * may be lost behind it, and arrives after the propagation delay; ACKs come back
 * after the same delay. The senders are loss detection and congestion control as
 * they are in the module, or TCP in outline; messages are segments that are
 * sent, lost, repaired and closed as tx.c and rx.c do it.
 *
 * Where all takes exactly as long as the link needs for a packet, one flow may
 * find the queue full each time and another never: @phase ends that.
 */
#ifndef _UNIT_SIM_H
#define _UNIT_SIM_H

#include <linux/types.h>

#include "cc.h"
#include "prng.h"
#include "ranges.h"
#include "recovery.h"

#define SIM_FLOWS	128
#define SIM_US		1000ULL
#define SIM_MS		1000000ULL
#define SIM_S		1000000000ULL

struct sim_flow {
	/* To be set */
	u64			start;
	u64			goal;		/* bytes, 0: no end */
	u64			handshake_rtt;	/* 0: none was measured */
	u32			spare;		/* segments a message may miss */
	const struct dblp_cc_ops *ops;		/* NULL: sqrt */
	/* Results */
	u64			received;	/* bytes */
	u64			finished;	/* when goal was reached, or 0 */
	u64			sent_pkts;
	u64			lost_pkts;
	u64			unneeded_pkts;	/* that brought nothing new */
	u64			dropped_pkts;	/* by the queue */
	/* Private */
	struct dblp_sent	sent;
	struct dblp_rtt		rtt;
	struct dblp_cc		cc;
	struct dblp_ranges	seen;
	struct dblp_pn_range	seen_mem[DBLP_RANGES_MAX];
	u64			entered;	/* when the last packet reached the queue */
	u64			pace_next;
	u64			last_sent;
	u64			largest_at;
	u64			ack_at;
	u32			ack_pending;
	u32			pto_count;
	u64			pto_jitter;
	u64			wake_at;
	u16			*seg;		/* state of each segment */
	u32			max_segs;
	u32			first_seg;	/* of the message */
	u32			end_seg;	/* behind its last */
	u32			next_seg;	/* never sent */
	u32			n_need;		/* to be repaired */
	u32			n_got;		/* of the message, by the receiver */
	u32			closed_seg;	/* as the sender was told */
	u32			ce;		/* marks received */
	u32			ce_told;
};

struct sim {
	/* To be set */
	u64			rate;		/* bytes a second */
	u64			rtt;		/* without a queue */
	u32			queue_max;	/* packets */
	u32			loss;		/* ppm, before the queue */
	u32			loss_behind;	/* ppm, behind the link */
	u32			ack_loss;	/* ppm */
	bool			phase;		/* packets reach the queue up to one */
						/* packet's time on the link later */
	u64			ack_every;	/* hold ACKs till such a multiple */
	u64			jitter;		/* each way takes so much longer */
						/* at most; data keeps its order */
	s32			drift;		/* of the receivers' clocks, millionths */
	u64			stall_every;	/* from such a multiple on, hosts */
	u64			stall_max;	/* do nothing, so long at most */
	u32			mss;		/* bytes of a packet for the window */
	u32			overhead;	/* and on the link besides */
	u32			payload;	/* and of a message in it; 0: mss */
	u32			mark_above;	/* packets in the queue; 0: no ECN */
	bool			tell_share;	/* in ACKs: how many send */
	bool			skips;		/* leave numbers out */
	u32			strangers;	/* who send elsewhere, told too */
	u32			n;
	struct sim_flow		*flow;
	/* Results, of the queue; reset at will */
	u32			queue_peak;
	u64			queue_area;	/* packets x ns */
	u64			dropped;
	u64			marked;
	/* Private */
	u64			now;
	u64			rng;
	u32			queue;
	u64			queue_at;
	u64			link_free;
	u64			arrived;	/* when the last packet does */
	struct sim_event	*heap;
	u32			n_events;
	u32			max_events;
	u64			seq;
	u32			messages;	/* to come */
	u32			receiving;	/* flows amid a message */
	u64			all;		/* bytes that they received */
};

void sim_init(struct sim *s, u32 flows);
/* How long the link needs for a packet, nanoseconds */
u64 sim_packet_time(const struct sim *s);
/* At @at, flow @i has @bytes more to send and has not finished */
void sim_message(struct sim *s, u32 i, u64 bytes, u64 at);
/* Run until @until, or until all flows with a goal have reached it */
void sim_run(struct sim *s, u64 until);
void sim_free(struct sim *s);

#define SIM_MBIT	125000ULL

/* A path of @mbit Mbit/s, and @n flows that start a moment after each other */
void sim_path(struct sim *s, u32 n, u64 mbit, u64 rtt, u32 loss);
/* The same with Ethernet packets of 1440 bytes of messages, as the module makes them */
void sim_wire(struct sim *s, u32 n, u64 mbit, u64 rtt, u32 loss);
/* Share of the link, in thousandths, that arrives of flow @i within @time */
u32 sim_share(struct sim *s, u32 i, u64 time);
/* Packets that wait on average within @time */
u32 sim_mean_queue(struct sim *s, u64 time);

/* Anything that an ACK might say, some time after @now, which goes on to then */
struct dblp_rate_sample sim_any_sample(struct prng *r, struct dblp_rtt *rtt,
				       u64 *now);

/* TCP as Linux has it, with its timers, to compete with: RFC 9438; BBRv1; DCTCP
 * without marks, which is Reno
 */
extern const struct dblp_cc_ops sim_cubic;
extern const struct dblp_cc_ops sim_bbr;
extern const struct dblp_cc_ops sim_dctcp;

static inline bool sim_is_tcp(const struct dblp_cc_ops *ops)
{
	return ops == &sim_cubic || ops == &sim_bbr || ops == &sim_dctcp;
}

#endif /* _UNIT_SIM_H */
