/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets sent, loss detection, the round-trip time and the probe timeout: RFC
 * 9002 without packet-number spaces, made tolerant of reordering, port by port, and the
 * delivery-rate samples of draft-cheng-iccrg-delivery-rate-estimation.
 *
 * Pure: see wire.h. Times are nanoseconds of one monotonic clock.
 */
#ifndef _NET_DBLP_RECOVERY_H
#define _NET_DBLP_RECOVERY_H

#include <linux/types.h>

#include "spray.h"

struct dblp_carried;

#define DBLP_REORDER_MIN	3	/* packets, RFC 9002 kPacketThreshold */
#define DBLP_REORDER_MAX	65536	/* all that may be outstanding */
#define DBLP_GRANULARITY_NS	100000ULL	/* kGranularity; hrtimers */
#define DBLP_INITIAL_RTT_NS	10000000ULL	/* before the first sample */
#define DBLP_PTO_MAX_NS		(60ULL * 1000000000)	/* RFC 6298 (2.5) */
#define DBLP_PTO_SILENCE	6U	/* at least 1/6 of the silence */
#define DBLP_CLOCK_DRIFT	1024U	/* clocks differ by less than one part in so many */
#define DBLP_SENT_BLOCK		64U	/* packets: less than a page */
#define DBLP_LOSE_MAX		128U	/* packets judged in a step, see below */
/* One packet number is skipped among 1 to 2 times as many: at first, and at most, when
 * the peer has forgotten the skipped number before (DBLP_RANGES_SPAN)
 */
#define DBLP_SKIP_MIN		256U
#define DBLP_SKIP_MAX		65536U
#define DBLP_SKIP_GROWS		16U	/* factor for each skipped number */

/**
 * struct dblp_rtt - round-trip time, RFC 9002 section 5
 * @latest: last sample, 0 before the first
 * @srtt: smoothed
 * @usual: the same, but no sample counts for more than twice what it was: one packet of
 *	ten that waits for a late processor a hundred times as long as others makes it
 *	longer by an eighth
 * @var: mean deviation
 * @doubt: how much longer than @srtt a round trip may be while there are too few
 *	samples for @var; nanoseconds, 0 before the first
 * @min: smallest sample of the last @min_at + 10 s
 * @min_at: when @min was taken
 * @base: shortest round trip of the path as it is now, see dblp_rtt_split()
 * @way: by how much the peer's clock differs from ours, plus the shortest way there;
 *	nanoseconds, modulo 2^32
 * @way_at: until when drift was added to it, 0 before the first sample
 * @back: of @usual, what was spent on the way back beyond @base
 * @back_low: least of that since @back_from
 * @back_from: when @base last took the least
 */
struct dblp_rtt {
	u64	latest;
	u64	srtt;
	u64	usual;
	u64	var;
	u64	doubt;
	u64	min;
	u64	min_at;
	u64	base;
	u32	way;
	u64	way_at;
	u64	back;
	u64	back_low;
	u64	back_from;
};

/**
 * dblp_rtt_sample() - take one sample
 * @r: the estimator
 * @rtt: time from sending a packet to its ACK, > 0
 * @ack_delay: of that, the delay that the peer reports
 * @now: the time
 *
 * As in RFC 9002 section 5.3, except for @doubt. The first sample is a small packet
 * of the handshake on an idle path and does not tell how much round trips vary once
 * data flows. So the variation assumed before the first sample (4 times half of
 * DBLP_INITIAL_RTT_NS) is kept as @doubt and halved by each further sample.
 */
void dblp_rtt_sample(struct dblp_rtt *r, u64 rtt, u64 ack_delay, u64 now);

/**
 * dblp_backoff() - interval until the next probe of a silent peer
 * @wait: interval for a peer that is not silent
 * @silence: time since the peer was heard
 *
 * At least a sixth of the silence. A peer heard a moment ago is probed quickly,
 * however many probes were lost since. Probes of a peer that is gone become rarer:
 * each interval is 7/6 of the one before, up to a minute. A peer that comes back
 * is probed within a sixth of the time that it was away.
 *
 * Return: nanoseconds, at most DBLP_PTO_MAX_NS.
 */
u64 dblp_backoff(u64 wait, u64 silence);

/**
 * dblp_pto() - probe timeout, RFC 9002 section 6.2.1
 * @r: the estimator
 * @max_ack_delay: the peer's delayed-ACK time
 * @silence: time since the peer was heard, or since we began to wait for it
 *
 * When a hundred connections begin at once, queues and processors make round
 * trips a hundred times as long within milliseconds. Spurious retransmissions would
 * make the queues longer still. So until the variation of round trips is known, the
 * timeout is no shorter than before the first sample.
 *
 * Unlike in RFC 9002 it does not double: a path that loses 90 % of its packets looks
 * dead now and then, and the sender should not sleep for seconds when the next
 * packet would arrive. It grows with the silence, by dblp_backoff(), so that a dead
 * path gets few probes.
 *
 * Return: nanoseconds, at most DBLP_PTO_MAX_NS. After about ten samples the only
 * floor is the granularity of the timer.
 */
u64 dblp_pto(const struct dblp_rtt *r, u64 max_ack_delay, u64 silence);

/** enum dblp_pkt_state - life of a packet that was sent */
enum dblp_pkt_state {
	DBLP_SENT_NONE,		/* slot unused, or forgotten */
	DBLP_SENT_INFLIGHT,
	DBLP_SENT_LOST,		/* kept for a while: it may still be acknowledged */
	DBLP_SENT_ACKED,
};

/**
 * struct dblp_sent_pkt - a packet that was sent
 * @sent: when
 * @delivered: bytes acknowledged when it was sent
 * @skip: of an acknowledged packet instead: it and all below this packet number
 *	are acknowledged
 * @delivered_at: when the latest of @delivered was acknowledged
 * @first_sent: when the packet acknowledged last at that time was sent
 * @msg: for the caller: of a DATA packet, the ID of its message
 * @seg: for the caller: its segment
 * @carried: for the caller: of a CTRL packet instead, the frames in it
 * @order: counts the packets of its port
 * @bytes: bytes of UDP payload
 * @port: that it was sent from
 * @state: &enum dblp_pkt_state
 * @data: for the caller: it is a DATA packet
 * @app_limited: there was nothing more to send
 * @probe: for the caller: it tries a size, which is @seg, or else its port
 * @ect: for the caller: it was sent with ECT(0)
 * @fragmented: for the caller: it was sent in IP fragments, so it does not test
 *	the path MTU
 */
struct dblp_sent_pkt {
	u64	sent;
	union {
		u64	delivered;
		u64	skip;
	};
	u64	delivered_at;
	u64	first_sent;
	union {
		struct {
			u32	msg;
			u32	seg;
		};
		struct dblp_carried *carried;
	};
	u32	order;
	u16	bytes;
	u8	port;
	u8	state:2;
	u8	data:1;
	u8	app_limited:1;
	u8	probe:1;
	u8	ect:1;
	u8	fragmented:1;
};

/** dblp_tries_port() - is a packet a probe of its port, not of a size? */
static inline bool dblp_tries_port(const struct dblp_sent_pkt *pkt)
{
	return pkt->probe && !pkt->seg;
}

/**
 * struct dblp_sent - packets sent that are not forgotten yet
 * @blocks: the ring: packet number modulo its size, a power of two, in blocks of
 *	DBLP_SENT_BLOCK; a smaller ring is one block
 * @first: for @blocks, while there is only one
 * @mask: size of the ring less 1
 * @base: packet numbers below are forgotten
 * @next: packet number of the next packet; @next - @base <= size
 * @skipped: the latest skipped packet number, U64_MAX before the first; a peer that
 *	acknowledges it acknowledges what it has not received
 * @skip_at: the next number is skipped when @next reaches this
 * @skip_gap: 1/2 to 1 of the distance to @skip_at; 0 before the first is chosen
 * @ports: that packets are sent from
 * @own_port: for @ports, if there is only one
 * @n_ports: how many
 * @port: the one that sends now
 * @port_left: bytes before another one is picked
 * @scan: packet numbers below are not in flight
 * @largest_acked: largest packet number acknowledged, if @any_acked
 * @any_acked: false before the first ACK
 * @inflight: bytes of packets in flight
 * @inflight_pkts: number of packets in flight
 * @delivered: bytes acknowledged
 * @delivered_at: when the latest bytes were acknowledged
 * @first_sent: when the packet acknowledged last was sent
 * @app_limited: until @delivered passes this, samples are application limited;
 *	0 if not
 * @reorder: packets of reordering tolerated, of one port
 * @reorder_ns: time a packet may come later than one sent after it
 * @reorder_at: when @reorder or @reorder_ns last changed or were last needed
 * @loss_time: when the next packet will be declared lost by time, 0 if none; in the
 *	past while one step has left packets to judge
 * @lose_larger: packets longer than this are lost, too, if their numbers are
 * @lose_from: at least this
 * @lose_end: and below this
 * @spurious: packets declared lost that were acknowledged afterwards
 * @recent: bytes recently acknowledged or declared lost
 * @recent_lost: bytes of @recent that were lost
 */
struct dblp_sent {
	struct dblp_sent_pkt	**blocks;
	struct dblp_sent_pkt	*first;
	u32			mask;
	u64			base;
	u64			next;
	u64			skipped;
	u64			skip_at;
	u32			skip_gap;
	struct dblp_port	*ports;
	struct dblp_port	own_port;
	u32			n_ports;
	u32			port;
	u32			port_left;
	u64			scan;
	u64			largest_acked;
	bool			any_acked;
	u32			inflight;
	u32			inflight_pkts;
	u64			delivered;
	u64			delivered_at;
	u64			first_sent;
	u64			app_limited;
	u32			reorder;
	u64			reorder_ns;
	u64			reorder_at;
	u64			loss_time;
	u32			lose_larger;
	u64			lose_from;
	u64			lose_end;
	u64			spurious;
	u32			recent;
	u32			recent_lost;
};

/**
 * struct dblp_rate_sample - one ACK, as congestion control sees it
 * @now: the time
 * @rate: bytes a second, 0 if there is no sample
 * @interval: nanoseconds over which @rate was measured
 * @acked: bytes newly acknowledged
 * @lost: bytes newly declared lost
 * @spurious: of @acked, bytes that had been declared lost
 * @inflight: bytes in flight after @acked and @lost
 * @delivered: bytes acknowledged in all
 * @prior_delivered: @delivered when the newest acknowledged packet was sent:
 *	a round trip is over when this passes the @delivered at its start
 * @rtt: nanoseconds, less the peer's delay; 0 if there is no sample
 * @sent: when the packet of this sample was sent
 * @base: of @rtt, what the path takes without any queue
 * @queue: of @rtt, the queue on the way there; what is left was spent on the way back
 * @ce: packets newly reported with congestion experienced
 * @share: connections on which the peer is receiving messages, ours included; 0 if
 *	unknown
 * @all: what it has received on all of them since any time, in units of
 *	DBLP_SHARE_UNIT bytes, modulo 2^32; 0 if it did not say
 * @app_limited: @rate was limited by the application
 */
struct dblp_rate_sample {
	u64	now;
	u64	rate;
	u64	interval;
	u32	acked;
	u32	lost;
	u32	spurious;
	u32	inflight;
	u64	delivered;
	u64	prior_delivered;
	u64	rtt;
	u64	sent;
	u64	base;
	u64	queue;
	u32	ce;
	u32	share;
	u32	all;
	bool	app_limited;
};

/** enum dblp_lost_why - why a packet was declared lost */
enum dblp_lost_why {
	DBLP_LOST_REORDERED,	/* @reorder later ones of its port were acknowledged */
	DBLP_LOST_OVERDUE,	/* a later one was, and its time has passed */
	DBLP_LOST_TOO_LARGE,	/* for the path: dblp_sent_lose_larger() */
	DBLP_LOST_PROBE,	/* of the path's size: dblp_sent_lose() */
	DBLP_LOST_NO_ROOM,	/* for what is sent now: dblp_sent_lose_oldest() */
};

/**
 * struct dblp_sent_ops - callbacks for packets acknowledged or lost
 * @acked: @n packets in a row, of one message and with segments in a row,
 *	were acknowledged for the first time; @was_lost if they had been
 *	declared lost before
 * @lost: a packet was declared lost; returns the additional work done for it, in
 *	packets, which count towards DBLP_LOSE_MAX
 *
 * Neither may send a packet.
 */
struct dblp_sent_ops {
	void (*acked)(void *ctx, u64 pn, struct dblp_sent_pkt *pkt, u32 n,
		      bool was_lost);
	u32 (*lost)(void *ctx, u64 pn, struct dblp_sent_pkt *pkt,
		    enum dblp_lost_why why);
};

/**
 * dblp_sent_init() - nothing sent yet
 * @s: filled; it must not move
 * @block: zeroed
 * @size: packets in @block, a power of two up to DBLP_SENT_BLOCK
 */
void dblp_sent_init(struct dblp_sent *s, struct dblp_sent_pkt *block, u32 size);
/**
 * dblp_sent_spray() - packets are sent from several ports
 * @s: nothing was sent yet
 * @ports: zeroed
 * @n: ports in there, at most DBLP_SPRAY_MAX
 */
void dblp_sent_spray(struct dblp_sent *s, struct dblp_port *ports, u32 n);
/**
 * dblp_sent_grow_block() - move from one block to a larger one
 * @s: packets sent
 * @block: zeroed
 * @size: packets in there, a power of two up to DBLP_SENT_BLOCK
 *
 * Return: the old block, for the caller to free.
 */
struct dblp_sent_pkt *dblp_sent_grow_block(struct dblp_sent *s,
					   struct dblp_sent_pkt *block,
					   u32 size);
/**
 * dblp_sent_grow() - double the number of blocks
 * @s: packets sent, in blocks of full size
 * @blocks: array for twice as many blocks; the second half are new ones, zeroed
 *
 * Only packets of the block in which the ring begins and ends may move.
 *
 * Return: the old array of blocks, for the caller to free unless it is @first.
 */
struct dblp_sent_pkt **dblp_sent_grow(struct dblp_sent *s,
				      struct dblp_sent_pkt **blocks);
/**
 * dblp_sent_shrink() - forget all packets, and keep one block
 * @s: packets sent, none of them in flight, in more than one block
 *
 * Return: the old array of blocks, for the caller to free, and what it refers to but
 * for the first.
 */
struct dblp_sent_pkt **dblp_sent_shrink(struct dblp_sent *s);
/** dblp_sent_blocks() - number of blocks */
static inline u32 dblp_sent_blocks(const struct dblp_sent *s)
{
	return (s->mask + DBLP_SENT_BLOCK) / DBLP_SENT_BLOCK;
}

/** dblp_sent_slot() - slot of packet @pn */
static inline struct dblp_sent_pkt *dblp_sent_slot(const struct dblp_sent *s,
						   u64 pn)
{
	u32 at = pn & s->mask;

	return &s->blocks[at / DBLP_SENT_BLOCK][at % DBLP_SENT_BLOCK];
}

/** dblp_sent_free() - number of free slots */
static inline u32 dblp_sent_free(const struct dblp_sent *s)
{
	return s->mask + 1 - (u32)(s->next - s->base);
}

/** dblp_sent_pkt() - the packet with a number, or NULL if it was forgotten */
static inline struct dblp_sent_pkt *dblp_sent_pkt(const struct dblp_sent *s,
						  u64 pn)
{
	return pn >= s->base && pn < s->next ? dblp_sent_slot(s, pn) : NULL;
}

/**
 * dblp_sent_push() - record a packet that is being sent
 * @s: packets sent
 * @bytes: bytes in the network
 * @now: the time
 *
 * The ring must not be full. The packet's number is @next as it was before.
 *
 * Return: its slot, in which the caller sets its own fields.
 */
struct dblp_sent_pkt *dblp_sent_push(struct dblp_sent *s, u16 bytes, u64 now);
/**
 * dblp_sent_push_row() - record packets of one size that are being sent
 * @s: packets sent
 * @pkt: the first of them: @bytes and the fields of the caller; the rest is filled in;
 *	the others differ in @seg, which rises by one
 * @n: number of packets; there must be as many free slots
 * @now: the time
 */
void dblp_sent_push_row(struct dblp_sent *s, struct dblp_sent_pkt *pkt, u32 n,
			u64 now);

/** dblp_sent_skips() - is it time for dblp_sent_skip()? */
static inline bool dblp_sent_skips(const struct dblp_sent *s)
{
	return s->next >= s->skip_at;
}

/**
 * dblp_sent_skip() - skip a packet number, RFC 9000 section 21.4
 * @s: packets sent
 * @random: an unpredictable number
 *
 * An optimistic ACK, of packets that the peer has not received, is detected because
 * it acknowledges the skipped number as well. The first call only chooses the
 * number. The ring holds at most one skipped number, whose slot looks acknowledged;
 * it counts as no packet.
 */
void dblp_sent_skip(struct dblp_sent *s, u32 random);

/**
 * struct dblp_acked_range - packet numbers of an ACK frame
 * @first: lowest of them
 * @last: highest of them
 */
struct dblp_acked_range {
	u64	first;
	u64	last;
};

/**
 * dblp_sent_ack() - process an ACK frame
 * @s: packets sent
 * @r: ranges by falling packet number
 * @n: number of ranges, at least 1
 * @ack_delay: nanoseconds, as the peer reports it
 * @rtt: estimator to update
 * @now: the time
 * @ops: called for packets acknowledged or lost
 * @ctx: for @ops
 * @rs: filled for the congestion control
 *
 * Packets below one acknowledged are lost when they are @reorder packets of their
 * port below the latest of that or 9/8 of a round trip plus @reorder_ns old (RFC 9002
 * section 6.1); both widen when a packet declared lost is acknowledged after
 * all (RFC 8985) and narrow again when no packet has needed as much for a while.
 *
 * One packet may show that thousands are lost. So at most DBLP_LOSE_MAX are judged;
 * the next ACK or dblp_sent_timeout(), which is due at once, judges the others.
 *
 * Return: bytes newly acknowledged, or -1, with nothing changed, when the ACK names
 * a packet that was never sent, because its number is in the future or was skipped.
 */
s64 dblp_sent_ack(struct dblp_sent *s, const struct dblp_acked_range *r, u32 n,
		  u64 ack_delay, struct dblp_rtt *rtt, u64 now,
		  const struct dblp_sent_ops *ops, void *ctx,
		  struct dblp_rate_sample *rs);

/**
 * dblp_sent_loss() - the recent loss rate
 * @s: packets sent
 *
 * Over about a megabyte; packets acknowledged after all do not count as lost.
 *
 * Return: parts per million of the bytes.
 */
u32 dblp_sent_loss(const struct dblp_sent *s);

/**
 * dblp_rtt_split() - tell the delay on the way there from that on the way back
 * @r: the estimator, which has taken the sample
 * @rs: sample; @base and @queue are set
 * @arrived: when its packet came, by the peer's clock, nanoseconds modulo 2^32; NULL
 *	if it has not said: then all delay is one there
 *
 * What a round trip takes beyond the shortest one is a queue there, a queue back, or
 * a processor that was late. Only the first answers to what is sent. The clocks of two
 * hosts are not the same, but their difference hardly changes: the delay there is what
 * it has grown by, and a sample without delay shows it exactly. Meanwhile clocks drift, so
 * DBLP_CLOCK_DRIFT is added to the delay there, which is twice the most that adjtimex(2)
 * lets a clock be wrong: too much is found rather than too little. By how much all ACKs of
 * BACK_ROUNDS round trips were late, the path is longer, whatever the reason is.
 *
 * A peer that lies can hide a queue, as it can with the ACK Delay.
 */
void dblp_rtt_split(struct dblp_rtt *r, struct dblp_rate_sample *rs, const u32 *arrived);

/**
 * dblp_sent_timeout() - declare packets lost that are overdue
 * @s: packets sent
 * @rtt: estimator
 * @now: the time
 * @ops: called for each packet lost
 * @ctx: for @ops
 *
 * To be called at @loss_time.
 *
 * Return: bytes declared lost, except those of packets that were too large.
 */
u32 dblp_sent_timeout(struct dblp_sent *s, const struct dblp_rtt *rtt, u64 now,
		      const struct dblp_sent_ops *ops, void *ctx);

/**
 * dblp_sent_inflight() - walk the packets in flight
 * @s: packets sent
 * @pn: number to start at; set to the number of the packet found
 *
 * Return: the first packet in flight with a number of at least @pn, or NULL.
 */
struct dblp_sent_pkt *dblp_sent_inflight(struct dblp_sent *s, u64 *pn);

/**
 * dblp_sent_lose() - declare a probe of the path's size lost
 * @s: packets sent
 * @pn: its number
 * @ops: called for it
 * @ctx: for @ops
 */
void dblp_sent_lose(struct dblp_sent *s, u64 pn,
		    const struct dblp_sent_ops *ops, void *ctx);

/**
 * dblp_sent_lose_larger() - declare packets lost that are too large for the path
 * @s: packets sent
 * @bytes: size of the largest packet that passes; packets sent in IP fragments are
 *	not judged
 * @now: the time
 * @ops: called for each packet lost
 * @ctx: for @ops
 *
 * At most DBLP_LOSE_MAX are judged here, the others by dblp_sent_timeout().
 */
void dblp_sent_lose_larger(struct dblp_sent *s, u32 bytes, u64 now,
			   const struct dblp_sent_ops *ops, void *ctx);

/**
 * dblp_sent_trim() - free slots by forgetting lost packets early
 * @s: packets sent
 * @want: slots wanted
 *
 * Later ACKs of the forgotten packets are ignored.
 *
 * Return: free slots, at most @want, perhaps fewer.
 */
u32 dblp_sent_trim(struct dblp_sent *s, u32 want);

/**
 * dblp_sent_lose_oldest() - free slots, also those of packets in flight
 * @s: packets sent
 * @want: slots wanted, at most as many as the ring has
 * @ops: called for each packet lost
 * @ctx: for @ops
 *
 * A full ring must not prevent the probe that finds out whether the path works
 * again: the oldest packets are declared lost and forgotten.
 */
void dblp_sent_lose_oldest(struct dblp_sent *s, u32 want,
			   const struct dblp_sent_ops *ops, void *ctx);

#endif /* _NET_DBLP_RECOVERY_H */
