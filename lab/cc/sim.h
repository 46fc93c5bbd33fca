/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A deterministic simulator of flows over one bottleneck link. A packet may be lost at
 * random before the link. It waits in a finite queue, leaves at the link's rate, may be
 * lost after the link, and arrives after the propagation delay. ACKs take the same
 * delay. The senders use the module's loss detection and congestion control, or an
 * outline of TCP. Messages are segments that are sent, lost, repaired and closed as in
 * tx_close.c and rx_close.c.
 *
 * If all times are multiples of a packet's time on the link, one flow may find the queue
 * full each time and another one never. @phase prevents this.
 */
#ifndef DBLP_LAB_SIM_H
#define DBLP_LAB_SIM_H

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
	/* Set by the test */
	u64			start;
	u64			goal;		/* bytes, 0: no end */
	u64			handshake_rtt;	/* ns; 0: not measured */
	u32			spare;		/* segments that a message may miss */
	const struct dblp_cc_ops *ops;		/* NULL: sqrt */
	/* Results */
	u64			received;	/* bytes */
	u64			finished;	/* time when goal was reached, or 0 */
	u64			sent_pkts;
	u64			lost_pkts;
	u64			unneeded_pkts;	/* without a new segment */
	u64			dropped_pkts;	/* by the queue */
	/* Private */
	struct dblp_sent	sent;
	struct dblp_rtt		rtt;
	struct dblp_cc		cc;
	struct dblp_ranges	seen;
	struct dblp_pn_range	seen_mem[DBLP_RANGES_MAX];
	u64			entered;	/* time when the last packet reached the queue */
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
	u32			first_seg;	/* first segment of the message */
	u32			end_seg;	/* end of the message */
	u32			next_seg;	/* first segment never sent */
	u32			n_need;		/* segments to be repaired */
	u32			n_got;		/* segments of the message received */
	u32			closed_seg;	/* end of the messages closed at the sender */
	u32			ce;		/* marks received */
	u32			ce_told;	/* marks that ACKs have reported */
};

struct sim {
	/* Set by the test */
	u64			rate;		/* bytes/s */
	u64			rtt;		/* ns without a queue */
	u32			queue_max;	/* packets */
	u32			loss;		/* ppm, before the queue */
	u32			loss_behind;	/* ppm, after the link */
	u32			ack_loss;	/* ppm */
	bool			phase;		/* delay packets before the queue by up to */
						/* one packet's time on the link */
	u64			ack_every;	/* delay ACKs to a multiple of this, ns */
	u64			jitter;		/* maximum extra delay of each direction, ns; */
						/* data keeps its order */
	s32			drift;		/* of the receivers' clocks, ppm */
	u64			stall_every;	/* at each multiple, ns, hosts stall for */
	u64			stall_max;	/* up to this time */
	u32			mss;		/* bytes of a packet in the window */
	u32			overhead;	/* further bytes of a packet on the link */
	u32			payload;	/* bytes of a message in a packet; 0: mss */
	u32			mark_above;	/* packets in the queue that cause CE; 0: no ECN */
	bool			tell_share;	/* ACKs have the number of receiving flows */
	bool			skips;		/* skip packet numbers */
	u32			strangers;	/* added to that number */
	u32			n;
	struct sim_flow		*flow;
	/* Results of the queue; the test may reset them */
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
	u64			arrived;	/* arrival time of the last packet */
	struct sim_event	*heap;
	u32			n_events;
	u32			max_events;
	u64			seq;
	u32			messages;	/* that have not started */
	u32			receiving;	/* flows with an incomplete message */
	u64			all;		/* bytes received by all flows */
};

void sim_init(struct sim *s, u32 flows);
/* Time of a packet on the link, ns */
u64 sim_packet_time(const struct sim *s);
/* Give flow @i @bytes more to send at time @at; it is not finished then */
void sim_message(struct sim *s, u32 i, u64 bytes, u64 at);
/* Run until time @until, or until all flows with a goal have reached it */
void sim_run(struct sim *s, u64 until);
void sim_free(struct sim *s);

#define SIM_MBIT	125000ULL

/* A path of @mbit Mbit/s with @n flows, which start shortly after each other */
void sim_path(struct sim *s, u32 n, u64 mbit, u64 rtt, u32 loss);
/* The same with the module's Ethernet packets, of 1440 bytes of payload */
void sim_wire(struct sim *s, u32 n, u64 mbit, u64 rtt, u32 loss);
/* Share of the link, per mille, that flow @i receives within @time */
u32 sim_share(struct sim *s, u32 i, u64 time);
/* Mean queue within @time, packets */
u32 sim_mean_queue(struct sim *s, u64 time);

/* A random sample of an ACK; advances @now */
struct dblp_rate_sample sim_any_sample(struct prng *r, struct dblp_rtt *rtt,
				       u64 *now);

/* TCP as in Linux, with its timers: CUBIC (RFC 9438), BBRv1, and DCTCP without marks,
 * which is Reno
 */
extern const struct dblp_cc_ops sim_cubic;
extern const struct dblp_cc_ops sim_bbr;
extern const struct dblp_cc_ops sim_dctcp;

static inline bool sim_is_tcp(const struct dblp_cc_ops *ops)
{
	return ops == &sim_cubic || ops == &sim_bbr || ops == &sim_dctcp;
}

#endif /* DBLP_LAB_SIM_H */
