/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets sent, loss detection, the round-trip time and the probe timeout: RFC
 * 9002 without packet number spaces. Loss detection tolerates reordering, and
 * works port by port. Delivery-rate samples follow
 * draft-cheng-iccrg-delivery-rate-estimation.
 *
 * Pure: see wire.h. Times are nanoseconds of one monotonic clock.
 */
#ifndef _NET_DBLP_RECOVERY_H
#define _NET_DBLP_RECOVERY_H

#include <linux/types.h>

#include "spray.h"

struct dblp_carried;

#define DBLP_REORDER_MIN	3	/* packets, RFC 9002 kPacketThreshold */
#define DBLP_REORDER_MAX	65536	/* most packets outstanding */
#define DBLP_GRANULARITY_NS	100000ULL	/* kGranularity; hrtimers */
#define DBLP_INITIAL_RTT_NS	10000000ULL	/* before the first sample */
#define DBLP_PTO_MAX_NS		(60ULL * 1000000000)	/* RFC 6298 (2.5) */
#define DBLP_PTO_SILENCE	6U	/* PTO: at least 1/6 of the silence */
#define DBLP_CLOCK_DRIFT	1024U	/* clocks drift by less than 1/1024 */
#define DBLP_SENT_BLOCK		64U	/* packets: less than a page */
#define DBLP_LOSE_MAX		128U	/* packets judged in a step, see below */
/*
 * Distance to the next skipped packet number: 1 to 2 times DBLP_SKIP_MIN at
 * first, 1 to 2 times DBLP_SKIP_MAX in the end. By then the peer has dropped
 * the previous skipped number (DBLP_RANGES_SPAN)
 */
#define DBLP_SKIP_MIN		256U
#define DBLP_SKIP_MAX		65536U
#define DBLP_SKIP_GROWS		16U	/* factor for each skipped number */

/**
 * struct dblp_rtt - round-trip time, RFC 9002 section 5
 * @latest: last sample, 0 before the first
 * @srtt: smoothed round-trip time
 * @usual: smoothed round-trip time in which a sample counts for at most twice
 *	@usual, so that a few packets delayed by a late CPU hardly change it
 * @var: mean deviation of the round-trip time
 * @allowance: least by which the PTO exceeds @srtt while too few samples exist
 *	for @var; nanoseconds, 0 before the first sample
 * @min: smallest recent sample; replaced 10 s after @min_at
 * @min_at: when @min was measured
 * @base: shortest round trip on the present path, see dblp_rtt_split()
 * @way: offset of the peer's clock from ours plus the shortest one-way delay to
 *	the peer; nanoseconds, modulo 2^32
 * @way_at: time up to which drift was added to @way, 0 before the first sample
 * @back: part of @usual that is delay on the way back beyond @base
 * @back_low: smallest such delay of a sample since @back_from
 * @back_from: when @back_low was last added to @base
 */
struct dblp_rtt {
	u64	latest;
	u64	srtt;
	u64	usual;
	u64	var;
	u64	allowance;
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
 * dblp_rtt_sample() - add a sample
 * @r: the estimator
 * @rtt: time from sending a packet to its ACK, > 0
 * @ack_delay: part of @rtt that is the delay reported by the peer
 * @now: the time
 *
 * As in RFC 9002 section 5.3, except for @allowance. The first sample is a
 * small packet of the handshake on an idle path, and does not show how much
 * round trips vary once data flows. So the variation assumed before the first
 * sample (4 times half of DBLP_INITIAL_RTT_NS) is kept as @allowance and halved
 * by each further sample.
 */
void dblp_rtt_sample(struct dblp_rtt *r, u64 rtt, u64 ack_delay, u64 now);

/**
 * dblp_backoff() - interval until the next probe of a silent peer
 * @wait: interval for a peer that is not silent
 * @silence: time since the last packet from the peer
 *
 * The interval is at least a sixth of the silence. A peer that was silent for a
 * moment only is probed quickly, even if many probes were lost. Probes of an
 * unreachable peer become rarer: each interval is 7/6 of the previous one, up
 * to a minute. When the peer returns, it is probed within a sixth of its
 * absence.
 *
 * Return: nanoseconds, at most DBLP_PTO_MAX_NS.
 */
u64 dblp_backoff(u64 wait, u64 silence);

/**
 * dblp_pto() - probe timeout, RFC 9002 section 6.2.1
 * @r: the estimator
 * @max_ack_delay: the peer's delayed-ACK time
 * @silence: time since the last packet from the peer, or since one is awaited
 *
 * When a hundred connections start at once, queues and CPUs make round trips a
 * hundred times as long within milliseconds. Spurious retransmissions would
 * make the queues longer still. So until the variation of round trips is known,
 * the timeout is not shorter than before the first sample.
 *
 * Unlike in RFC 9002 it does not double. A path that loses 90 % of its packets
 * looks dead now and then, and the sender should not sleep for seconds when the
 * next packet would arrive. The timeout grows with the silence, by
 * dblp_backoff(), so that a dead path gets few probes.
 *
 * Return: nanoseconds, at most DBLP_PTO_MAX_NS. After about ten samples the
 * only floor is the granularity of the timer.
 */
u64 dblp_pto(const struct dblp_rtt *r, u64 max_ack_delay, u64 silence);

/** enum dblp_pkt_state - life of a packet that was sent */
enum dblp_pkt_state {
	DBLP_SENT_NONE,		/* ring entry is unused */
	DBLP_SENT_INFLIGHT,
	DBLP_SENT_LOST,		/* declared lost, may still be acknowledged */
	DBLP_SENT_ACKED,
};

/**
 * struct dblp_sent_pkt - a packet that was sent
 * @sent: when it was sent
 * @delivered: while it is not acknowledged: bytes acknowledged when it was sent
 * @skip: once it is acknowledged: all packets from this one to below this
 *	packet number are acknowledged
 * @delivered_at: when the latest of @delivered bytes were acknowledged
 * @first_sent: send time of the packet last acknowledged at that time
 * @msg: set by the caller: ID of the message of a DATA packet
 * @seg: set by the caller: segment of a DATA packet; or size of a size probe
 * @carried: set by the caller: frames of a CTRL packet, instead of @msg and
 *	@seg
 * @order: number of this packet among those of its port, from 1
 * @bytes: bytes of UDP payload
 * @port: index of the port that it was sent from
 * @state: &enum dblp_pkt_state
 * @data: set by the caller: it is a DATA packet
 * @app_limited: it was sent while @app_limited of &struct dblp_sent was set
 * @probe: set by the caller: it probes a size, which is @seg, or its port if
 *	@seg is 0
 * @ect: set by the caller: it was sent with ECT(0)
 * @fragmented: set by the caller: it was sent in IP fragments, so it does not
 *	test the path MTU
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

/** dblp_tries_port() - does a packet probe its port, not a size? */
static inline bool dblp_tries_port(const struct dblp_sent_pkt *pkt)
{
	return pkt->probe && !pkt->seg;
}

/**
 * struct dblp_sent - the sent ring: packets sent, by packet number
 * @blocks: blocks of DBLP_SENT_BLOCK entries; the entry of a packet is its
 *	number modulo the size of the ring, a power of two. A smaller ring is
 *	one block
 * @first: memory of @blocks while the ring has one block
 * @mask: size of the ring less 1
 * @base: packets with a lower number have left the ring
 * @next: packet number of the next packet; @next - @base <= size
 * @skipped: the latest skipped packet number, U64_MAX before the first. An ACK
 *	for it proves that the peer acknowledges packets that it has not
 *	received
 * @skip_at: the next number is skipped when @next reaches this
 * @skip_gap: 1/2 to 1 of the distance to @skip_at; 0 before the first is chosen
 * @ports: ports that packets are sent from
 * @own_port: memory of @ports of a connection with one port
 * @n_ports: number of ports
 * @port: index of the port that sends now
 * @port_left: bytes that it sends before the next port is picked
 * @scan: packets with a lower number are not in flight
 * @largest_acked: largest packet number acknowledged, if @any_acked
 * @any_acked: false before the first ACK
 * @inflight: bytes of packets in flight
 * @inflight_pkts: number of packets in flight
 * @delivered: bytes acknowledged
 * @delivered_at: when the latest bytes were acknowledged
 * @first_sent: send time of the packet last acknowledged
 * @app_limited: samples are application limited until @delivered passes this; 0
 *	if they are not
 * @reorder: reordering tolerated within a port, packets
 * @reorder_ns: reordering tolerated within a port, nanoseconds beyond the usual
 *	delay
 * @reorder_at: when @reorder or @reorder_ns last changed or were last needed
 * @loss_time: when the next packet will be declared lost by time, 0 if none; in
 *	the past while a step has left packets to judge
 * @lose_larger: packets with more bytes and a number from @lose_from to below
 *	@lose_end are lost
 * @lose_from: first packet number for @lose_larger
 * @lose_end: end of the packet numbers for @lose_larger
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
 * struct dblp_rate_sample - outcome of one ACK, for the congestion control
 * @now: the time
 * @rate: bytes a second, 0 if there is no sample
 * @interval: nanoseconds over which @rate was measured
 * @acked: bytes newly acknowledged
 * @lost: bytes newly declared lost
 * @spurious: bytes of @acked that had been declared lost
 * @inflight: bytes in flight after the ACK
 * @delivered: total bytes acknowledged
 * @prior_delivered: @delivered when the newest acknowledged packet was sent. A
 *	round trip is over when this passes the @delivered at its start
 * @rtt: round-trip time less the peer's ACK delay, nanoseconds; 0 if there is
 *	no sample
 * @sent: send time of the packet of this sample
 * @base: part of @rtt that the path takes without any queue
 * @queue: part of @rtt that is queueing delay to the peer; the remainder is
 *	delay on the way back
 * @ce: packets newly reported with CE
 * @share: connections on which the peer is receiving messages, including this
 *	one; 0 if unknown
 * @all: count of bytes that the peer has received on all of them, in units of
 *	DBLP_SHARE_UNIT bytes, modulo 2^32; 0 if unknown
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
	DBLP_LOST_REORDERED,	/* packet threshold, RFC 9002 section 6.1.1 */
	DBLP_LOST_OVERDUE,	/* time threshold, RFC 9002 section 6.1.2 */
	DBLP_LOST_TOO_LARGE,	/* for the path: dblp_sent_lose_larger() */
	DBLP_LOST_PROBE,	/* size probe: dblp_sent_lose() */
	DBLP_LOST_NO_ROOM,	/* ring was full: dblp_sent_lose_oldest() */
};

/**
 * struct dblp_sent_ops - callbacks for packets acknowledged or lost
 * @acked: @n consecutive packets with consecutive segments of one message were
 *	acknowledged for the first time; @was_lost if they had been declared
 *	lost
 * @lost: a packet was declared lost; returns the additional work done for it,
 *	in packets, which count towards DBLP_LOSE_MAX
 *
 * The callbacks must not send packets.
 */
struct dblp_sent_ops {
	void (*acked)(void *ctx, u64 pn, struct dblp_sent_pkt *pkt, u32 n,
		      bool was_lost);
	u32 (*lost)(void *ctx, u64 pn, struct dblp_sent_pkt *pkt,
		    enum dblp_lost_why why);
};

/**
 * dblp_sent_init() - initialize the ring before the first packet
 * @s: initialized here; it must not move in memory
 * @block: zeroed
 * @size: packets in @block, a power of two up to DBLP_SENT_BLOCK
 */
void dblp_sent_init(struct dblp_sent *s, struct dblp_sent_pkt *block, u32 size);
/**
 * dblp_sent_spray() - set the ports that packets are sent from
 * @s: ring without packets
 * @ports: zeroed
 * @n: number of ports, at most DBLP_SPRAY_MAX
 */
void dblp_sent_spray(struct dblp_sent *s, struct dblp_port *ports, u32 n);
/**
 * dblp_sent_grow_block() - replace the only block by a larger one
 * @s: packets sent
 * @block: zeroed
 * @size: packets in @block, a power of two up to DBLP_SENT_BLOCK
 *
 * Return: the old block, for the caller to free.
 */
struct dblp_sent_pkt *dblp_sent_grow_block(struct dblp_sent *s,
					   struct dblp_sent_pkt *block,
					   u32 size);
/**
 * dblp_sent_grow() - double the number of blocks
 * @s: packets sent, in blocks of full size
 * @blocks: array for twice as many blocks; its second half has new, zeroed
 *	blocks
 *
 * Packets move only if the ring begins and ends in the same block.
 *
 * Return: the old array of blocks, for the caller to free unless it is @first.
 */
struct dblp_sent_pkt **dblp_sent_grow(struct dblp_sent *s,
				      struct dblp_sent_pkt **blocks);
/**
 * dblp_sent_shrink() - drop all packets, and continue in a single block
 * @s: packets sent, none of them in flight; the caller has freed its memory
 * @block: zeroed
 * @size: packets in @block, a power of two up to DBLP_SENT_BLOCK
 */
void dblp_sent_shrink(struct dblp_sent *s, struct dblp_sent_pkt *block,
		      u32 size);
/** dblp_sent_blocks() - number of blocks */
static inline u32 dblp_sent_blocks(const struct dblp_sent *s)
{
	return (s->mask + DBLP_SENT_BLOCK) / DBLP_SENT_BLOCK;
}

/** dblp_sent_slot() - ring entry of packet @pn */
static inline struct dblp_sent_pkt *dblp_sent_slot(const struct dblp_sent *s,
						   u64 pn)
{
	u32 at = pn & s->mask;

	return &s->blocks[at / DBLP_SENT_BLOCK][at % DBLP_SENT_BLOCK];
}

/** dblp_sent_free() - number of free ring entries */
static inline u32 dblp_sent_free(const struct dblp_sent *s)
{
	return s->mask + 1 - (u32)(s->next - s->base);
}

/** dblp_sent_pkt() - ring entry of a packet, or NULL if it left the ring */
static inline struct dblp_sent_pkt *dblp_sent_pkt(const struct dblp_sent *s,
						  u64 pn)
{
	return pn >= s->base && pn < s->next ? dblp_sent_slot(s, pn) : NULL;
}

/**
 * dblp_sent_push() - record a packet that is being sent
 * @s: packets sent
 * @bytes: bytes of UDP payload
 * @now: the time
 *
 * The ring must not be full. The packet's number is @next before the call.
 *
 * Return: the ring entry, in which the caller sets its own fields.
 */
struct dblp_sent_pkt *dblp_sent_push(struct dblp_sent *s, u16 bytes, u64 now);
/**
 * dblp_sent_push_row() - record a row of packets that are being sent
 * @s: packets sent
 * @pkt: first packet, with @bytes and the fields of the caller; all other
 *	fields are set here. The other packets differ in @seg, which rises by
 *	one
 * @n: number of packets; the ring must have as many free entries
 * @now: the time
 */
void dblp_sent_push_row(struct dblp_sent *s, struct dblp_sent_pkt *pkt, u32 n,
			u64 now);

/** dblp_sent_skips() - must the caller call dblp_sent_skip()? */
static inline bool dblp_sent_skips(const struct dblp_sent *s)
{
	return s->next >= s->skip_at;
}

/**
 * dblp_sent_skip() - skip a packet number, RFC 9000 section 21.4
 * @s: packets sent
 * @random: an unpredictable number
 *
 * An optimistic ACK, for packets that the peer has not received, is detected
 * because it acknowledges the skipped number too. The first call only chooses
 * that number. The ring holds at most one skipped number. Its entry looks
 * acknowledged, but does not count as a packet.
 */
void dblp_sent_skip(struct dblp_sent *s, u32 random);

/**
 * struct dblp_acked_range - range of packet numbers of an ACK frame
 * @first: lowest number
 * @last: highest number
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
 * @ack_delay: the peer's ACK delay, nanoseconds
 * @rtt: estimator to update
 * @now: the time
 * @ops: called for packets acknowledged or lost
 * @ctx: for @ops
 * @rs: result for the congestion control
 *
 * A packet below the largest acknowledged one is lost by either threshold of
 * RFC 9002 section 6.1. The packet threshold is @reorder packets below the
 * latest packet of its port that was acknowledged. The time threshold is 9/8 of
 * a round trip plus @reorder_ns. Both widen when a packet declared lost is
 * acknowledged after all (RFC 8985), and narrow again when no packet has needed
 * them for a while.
 *
 * One ACK may show that thousands of packets are lost. So at most DBLP_LOSE_MAX
 * are judged here. The next ACK or dblp_sent_timeout(), which is due at once,
 * judges the others.
 *
 * Return: bytes newly acknowledged; or -1, with nothing changed, if the ACK has
 * a packet number that was never sent, because it is in the future or was
 * skipped.
 */
s64 dblp_sent_ack(struct dblp_sent *s, const struct dblp_acked_range *r, u32 n,
		  u64 ack_delay, struct dblp_rtt *rtt, u64 now,
		  const struct dblp_sent_ops *ops, void *ctx,
		  struct dblp_rate_sample *rs);

/**
 * dblp_sent_loss() - the recent loss rate
 * @s: packets sent
 *
 * Measured over about a megabyte. A packet declared lost that is acknowledged
 * later does not count as lost.
 *
 * Return: share of the bytes that were lost, ppm.
 */
u32 dblp_sent_loss(const struct dblp_sent *s);

/**
 * dblp_rtt_split() - split the delay of a round trip into one-way delays
 * @r: the estimator, which has the sample already
 * @rs: sample; @base and @queue are set here
 * @arrived: arrival time of the packet by the peer's clock, nanoseconds modulo
 *	2^32; NULL if unknown. All delay then counts as delay to the peer
 *
 * A round trip longer than the shortest one has a queue on the way to the peer,
 * a queue on the way back, or a late CPU. The sending rate changes only the
 * first.
 *
 * The difference of the hosts' clocks is unknown but nearly constant. So the
 * delay to the peer is the growth of the apparent one-way time since the sample
 * that had the least. Clocks drift, so one part in DBLP_CLOCK_DRIFT of the
 * elapsed time is added; that is twice the most that adjtimex(2) allows, and
 * errs towards too much delay.
 *
 * If all ACKs of BACK_ROUNDS round trips were late by an amount, the path is
 * longer by that amount: @base grows.
 *
 * A peer that reports wrong times can hide a queue, as it can by a wrong ACK
 * delay.
 */
void dblp_rtt_split(struct dblp_rtt *r, struct dblp_rate_sample *rs, const u32 *arrived);

/**
 * dblp_sent_timeout() - declare overdue packets lost, at @loss_time
 * @s: packets sent
 * @rtt: estimator
 * @now: the time
 * @ops: called for each packet lost
 * @ctx: for @ops
 *
 * Return: bytes declared lost, without packets that were too large for the
 * path.
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
 * dblp_sent_lose() - declare a size probe lost
 * @s: packets sent
 * @pn: packet number of the probe
 * @ops: called for the probe
 * @ctx: for @ops
 */
void dblp_sent_lose(struct dblp_sent *s, u64 pn,
		    const struct dblp_sent_ops *ops, void *ctx);

/**
 * dblp_sent_lose_larger() - declare packets lost that are too large for the
 *	path
 * @s: packets sent
 * @bytes: UDP payload of the largest packet that passes; packets sent in IP
 *	fragments are not judged
 * @now: the time
 * @ops: called for each packet lost
 * @ctx: for @ops
 *
 * At most DBLP_LOSE_MAX packets are judged here, the others by
 * dblp_sent_timeout().
 */
void dblp_sent_lose_larger(struct dblp_sent *s, u32 bytes, u64 now,
			   const struct dblp_sent_ops *ops, void *ctx);

/**
 * dblp_sent_trim() - free ring entries by dropping lost packets early
 * @s: packets sent
 * @want: entries wanted
 *
 * Later ACKs of the dropped packets are ignored.
 *
 * Return: number of free entries, at most @want.
 */
u32 dblp_sent_trim(struct dblp_sent *s, u32 want);

/**
 * dblp_sent_lose_oldest() - free ring entries, also those of packets in flight
 * @s: packets sent
 * @want: entries wanted, at most the size of the ring
 * @ops: called for each packet lost
 * @ctx: for @ops
 *
 * The oldest packets are declared lost and leave the ring, because a full ring
 * must not prevent the probe that tests whether the path works again.
 */
void dblp_sent_lose_oldest(struct dblp_sent *s, u32 want,
			   const struct dblp_sent_ops *ops, void *ctx);

#endif /* _NET_DBLP_RECOVERY_H */
