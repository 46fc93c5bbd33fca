/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What was sent and when, which of it is lost, the round-trip time and the
 * probe timeout: RFC 9002 without packet-number spaces, made tolerant of
 * reordering, and the delivery-rate samples of draft-cheng-iccrg-delivery-
 * rate-estimation.
 *
 * Pure: see wire.h. Times are nanoseconds of one monotonic clock.
 */
#ifndef _NET_DBLP_RECOVERY_H
#define _NET_DBLP_RECOVERY_H

#include <linux/types.h>

struct dblp_carried;

#define DBLP_REORDER_MIN	3	/* packets, RFC 9002 kPacketThreshold */
#define DBLP_REORDER_MAX	300	/* as TCP's net.ipv4.tcp_max_reordering */
#define DBLP_GRANULARITY_NS	100000ULL	/* kGranularity; hrtimers */
#define DBLP_INITIAL_RTT_NS	10000000ULL	/* before the first sample */
#define DBLP_PTO_MAX_NS		(60ULL * 1000000000)	/* RFC 6298 (2.5) */
#define DBLP_PTO_BACKOFF_MAX	3U	/* doublings at once; then by silence */
#define DBLP_PTO_SILENCE	12U	/* at least this part of it */
#define DBLP_SENT_BLOCK		64U	/* packets: less than a page */
#define DBLP_LOSE_MAX		128U	/* packets looked at in a step, see below */
/* Of so many numbers one is left out, or of up to twice as many: at first, and at
 * last, when the peer has forgotten the one before (DBLP_RANGES_SPAN)
 */
#define DBLP_SKIP_MIN		256U
#define DBLP_SKIP_MAX		65536U
#define DBLP_SKIP_GROWS		16U	/* times with each that was left out */

/**
 * struct dblp_rtt - round-trip time, RFC 9002 section 5
 * @latest: last sample, 0 before the first
 * @srtt: smoothed
 * @var: mean deviation
 * @doubt: how much longer than @srtt a round trip may be, after too few samples
 *	for @var to tell; nanoseconds, 0 before the first
 * @min: smallest sample of the last @min_at + 10 s
 * @min_at: when @min was taken
 */
struct dblp_rtt {
	u64	latest;
	u64	srtt;
	u64	var;
	u64	doubt;
	u64	min;
	u64	min_at;
};

/**
 * dblp_rtt_sample() - take one sample
 * @r: the estimator
 * @rtt: time from sending a packet to its ACK, > 0
 * @ack_delay: of that, what the peer says it waited
 * @now: the time
 *
 * As in RFC 9002 section 5.3, besides @doubt. The first sample is a small packet
 * of the handshake on an idle path, and does not tell how much round trips will
 * differ once data flows: what is assumed of that before there is one (4 times
 * half of DBLP_INITIAL_RTT_NS) is halved by each sample from then on.
 */
void dblp_rtt_sample(struct dblp_rtt *r, u64 rtt, u64 ack_delay, u64 now);

/**
 * dblp_backoff() - how long to wait before asking a peer who is silent again
 * @wait: for one who is not
 * @silence: how long he has been
 *
 * A twelfth of the silence at least. Who was heard a moment ago is asked quickly,
 * however many questions were lost since. Who is gone is asked less and less: each
 * wait is 13/12 of the one before, without end short of a minute. And who is back is
 * asked within a twelfth of the time that he was away.
 *
 * Return: nanoseconds, at most DBLP_PTO_MAX_NS.
 */
u64 dblp_backoff(u64 wait, u64 silence);

/**
 * dblp_pto() - probe timeout, RFC 9002 section 6.2.1
 * @r: the estimator
 * @max_ack_delay: the peer's delayed-ACK time
 * @count: probe timeouts since the last ACK: each doubles it, as far as
 *	DBLP_PTO_BACKOFF_MAX
 * @silence: time that has passed since the peer was heard, or since we began to
 *	wait for that
 *
 * When a hundred connections begin at once, queues and processors make round
 * trips a hundred times as long within milliseconds. Who took the packets for
 * lost would add to what holds them up, and so would all others: so before it is
 * known how much round trips differ, it waits for as long as before the first
 * sample. That does not double, as it is no guess at what the path takes.
 *
 * Unlike in RFC 9002 the doubling ends: on a path that loses nine packets of ten,
 * as many as on a dead one are lost in a row now and then, and the sender should
 * not be asleep for seconds when the tenth would arrive. It goes on slowly, by
 * dblp_backoff(), as the silence does: a dead path is left alone.
 *
 * Return: nanoseconds, at most DBLP_PTO_MAX_NS. After some ten samples there is
 * no other floor than the granularity of the timer.
 */
u64 dblp_pto(const struct dblp_rtt *r, u64 max_ack_delay, u32 count,
	     u64 silence);

/** enum dblp_pkt_state - life of a packet that was sent */
enum dblp_pkt_state {
	DBLP_SENT_NONE,		/* slot unused, or forgotten */
	DBLP_SENT_INFLIGHT,
	DBLP_SENT_LOST,		/* kept for a while: its ACK may still come */
	DBLP_SENT_ACKED,
};

/**
 * struct dblp_sent_pkt - a packet that was sent
 * @sent: when
 * @delivered: bytes acknowledged when it was sent
 * @skip: of an acknowledged packet instead: all from it up to this packet
 *	number, which is excluded, are acknowledged
 * @delivered_at: when the latest of those was acknowledged
 * @first_sent: when the packet was sent that was acknowledged last then
 * @msg: for the caller: of a DATA packet, the ID of its message
 * @seg: for the caller: its segment
 * @carried: for the caller: of a CTRL packet instead, the frames in it
 * @bytes: bytes in the network, UDP payload
 * @state: &enum dblp_pkt_state
 * @data: for the caller: it is a DATA packet
 * @app_limited: there was nothing more to send
 * @probe: for the caller
 * @ect: for the caller: it was sent with ECT(0)
 * @fragmented: for the caller: it went in pieces, so its size tells nothing
 *	of the path
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
	u16	bytes;
	u8	state;
	u8	data:1;
	u8	app_limited:1;
	u8	probe:1;
	u8	ect:1;
	u8	fragmented:1;
};

/**
 * struct dblp_sent - all packets sent that are still of interest
 * @blocks: the ring: packet number modulo its size, a power of two, in blocks of
 *	DBLP_SENT_BLOCK; one that is smaller is one block
 * @first: for @blocks, while there is only one
 * @mask: size of the ring less 1
 * @base: packet numbers below are forgotten
 * @next: packet number of the next packet; @next - @base <= size
 * @skipped: the latest packet number that was left out, U64_MAX before the first:
 *	who acknowledges it has not seen what he acknowledges
 * @skip_at: the next is left out when @next has come here
 * @skip_gap: how far that is, or half as far; 0 before the first is chosen
 * @scan: packet numbers below are not in flight
 * @largest_acked: largest packet number acknowledged, if @any_acked
 * @any_acked: false before the first ACK
 * @inflight: bytes of packets in flight
 * @inflight_pkts: number of packets in flight
 * @delivered: bytes acknowledged
 * @delivered_at: when
 * @first_sent: when the packet acknowledged last was sent
 * @app_limited: until @delivered passes this, samples are application limited;
 *	0 if not
 * @reorder: packets of reordering tolerated
 * @reorder_ns: time a packet may come later than one sent after it
 * @reorder_at: when these two last changed
 * @loss_time: when the next packet will be declared lost by time, 0 if none; in the
 *	past while there are more than one step looks at
 * @lose_larger: packets longer than this are lost, too,
 * @lose_from: if their numbers are at least this
 * @lose_end: and below this
 * @spurious: packets declared lost that were acknowledged afterwards
 * @recent: bytes of late that were acknowledged or declared lost
 * @recent_lost: those of them that were lost
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
 * struct dblp_rate_sample - what one ACK tells the congestion control
 * @now: the time
 * @rate: bytes a second, 0 if there is no sample
 * @interval: nanoseconds over which @rate was measured
 * @acked: bytes newly acknowledged
 * @lost: bytes newly declared lost
 * @inflight: bytes in flight after both
 * @delivered: bytes acknowledged in all
 * @prior_delivered: the same when the newest acknowledged packet was sent:
 *	a round trip is over when this passes the @delivered at its start
 * @rtt: nanoseconds, less the peer's delay; 0 if there is no sample
 * @ce: packets newly reported with congestion experienced
 * @share: connections that the peer receives messages on at the moment, ours
 *	included; 0 if it did not say
 * @app_limited: @rate was limited by the application
 */
struct dblp_rate_sample {
	u64	now;
	u64	rate;
	u64	interval;
	u32	acked;
	u32	lost;
	u32	inflight;
	u64	delivered;
	u64	prior_delivered;
	u64	rtt;
	u32	ce;
	u32	share;
	bool	app_limited;
};

/** enum dblp_lost_why - why a packet was declared lost */
enum dblp_lost_why {
	DBLP_LOST_REORDERED,	/* so many later ones were acknowledged */
	DBLP_LOST_OVERDUE,	/* a later one was, and it had time to be */
	DBLP_LOST_TOO_LARGE,	/* for the path: dblp_sent_lose_larger() */
	DBLP_LOST_PROBE,	/* of the path's size: dblp_sent_lose() */
	DBLP_LOST_NO_ROOM,	/* for what is sent now: dblp_sent_lose_oldest() */
};

/**
 * struct dblp_sent_ops - what the caller is told of its packets
 * @acked: @n packets in a row, of one message and with segments in a row,
 *	were acknowledged for the first time; @late if they had been declared
 *	lost before
 * @lost: a packet was declared lost; returns how many things that made to be done
 *	besides, which count as so many packets of DBLP_LOSE_MAX
 *
 * Neither may send a packet.
 */
struct dblp_sent_ops {
	void (*acked)(void *ctx, u64 pn, struct dblp_sent_pkt *pkt, u32 n,
		      bool late);
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
 * dblp_sent_grow() - have twice as many blocks
 * @s: packets sent, in blocks of full size
 * @blocks: place for twice as many; the second half are new ones, zeroed
 *
 * Packets stay in their blocks, but for those of one.
 *
 * Return: the old place of the blocks, for the caller to free unless it is @first.
 */
struct dblp_sent_pkt **dblp_sent_grow(struct dblp_sent *s,
				      struct dblp_sent_pkt **blocks);
/** dblp_sent_blocks() - how many blocks are there? */
static inline u32 dblp_sent_blocks(const struct dblp_sent *s)
{
	return (s->mask + DBLP_SENT_BLOCK) / DBLP_SENT_BLOCK;
}

/** dblp_sent_slot() - where packet @pn is, or will be */
static inline struct dblp_sent_pkt *dblp_sent_slot(const struct dblp_sent *s,
						   u64 pn)
{
	u32 at = pn & s->mask;

	return &s->blocks[at / DBLP_SENT_BLOCK][at % DBLP_SENT_BLOCK];
}

/** dblp_sent_free() - for how many packets more are there slots? */
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
 * dblp_sent_push() - note a packet that is being sent now
 * @s: packets sent
 * @bytes: bytes in the network
 * @now: the time
 *
 * The ring must not be full. The packet's number is the @next from before.
 *
 * Return: its slot, for what is the caller's.
 */
struct dblp_sent_pkt *dblp_sent_push(struct dblp_sent *s, u16 bytes, u64 now);
/**
 * dblp_sent_push_row() - note packets that are being sent now, of one size each
 * @s: packets sent
 * @pkt: the first of them: @bytes and what is the caller's, the rest is filled in;
 *	the others differ in @seg, which rises by one
 * @n: their number; there must be room for so many
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
 * dblp_sent_skip() - leave a packet number out, RFC 9000 section 21.4
 * @s: packets sent
 * @random: what nobody can foresee
 *
 * A peer that acknowledges what it has not received, to be sent more than the path
 * bears, acknowledges this one, too. The first call only chooses when. There is one
 * in the ring at most, or none is left out: it uses a slot, as one acknowledged,
 * and counts for nothing.
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
 * dblp_sent_ack() - take an ACK frame in
 * @s: packets sent
 * @r: ranges by falling packet number
 * @n: number of ranges, at least 1
 * @ack_delay: nanoseconds, as the peer says
 * @rtt: estimator to feed
 * @now: the time
 * @ops: told of each packet acknowledged or lost
 * @ctx: for @ops
 * @rs: filled for the congestion control
 *
 * Packets below one acknowledged are lost when they are @reorder packets
 * below the largest or 9/8 of a round trip plus @reorder_ns old (RFC 9002
 * section 6.1); both widen when a packet declared lost is acknowledged after
 * all (RFC 8985) and narrow again when none has needed so much for a while.
 *
 * One packet may show that thousands are lost. So DBLP_LOSE_MAX are looked at: the
 * others by the next ACK, or by dblp_sent_timeout(), for which it is time then.
 *
 * Return: bytes newly acknowledged, or -1 when the ACK names a packet that was
 * never sent, as its number was not reached or was left out: then nothing was
 * changed.
 */
s64 dblp_sent_ack(struct dblp_sent *s, const struct dblp_acked_range *r, u32 n,
		  u64 ack_delay, struct dblp_rtt *rtt, u64 now,
		  const struct dblp_sent_ops *ops, void *ctx,
		  struct dblp_rate_sample *rs);

/**
 * dblp_sent_loss() - how much of what was sent of late was lost
 * @s: packets sent
 *
 * Of the last megabyte or so; what arrived after all was not lost.
 *
 * Return: parts per million of the bytes.
 */
u32 dblp_sent_loss(const struct dblp_sent *s);

/**
 * dblp_sent_timeout() - declare packets lost that are overdue
 * @s: packets sent
 * @rtt: estimator
 * @now: the time
 * @ops: told of each packet lost
 * @ctx: for @ops
 *
 * To be called when @loss_time has come.
 *
 * Return: bytes declared lost, but for those of packets that were too large.
 */
u32 dblp_sent_timeout(struct dblp_sent *s, const struct dblp_rtt *rtt, u64 now,
		      const struct dblp_sent_ops *ops, void *ctx);

/**
 * dblp_sent_inflight() - walk the packets in flight
 * @s: packets sent
 * @pn: where to start; set to the number of the packet found
 *
 * Return: the first packet in flight with that number or a larger one, or NULL.
 */
struct dblp_sent_pkt *dblp_sent_inflight(struct dblp_sent *s, u64 *pn);

/**
 * dblp_sent_lose() - declare a probe of the path's size lost
 * @s: packets sent
 * @pn: its number
 * @ops: told of it
 * @ctx: for @ops
 */
void dblp_sent_lose(struct dblp_sent *s, u64 pn,
		    const struct dblp_sent_ops *ops, void *ctx);

/**
 * dblp_sent_lose_larger() - declare packets lost that the path does not take
 * @s: packets sent
 * @bytes: of the largest that it takes; those in fragments do not count
 * @now: the time
 * @ops: told of each packet lost
 * @ctx: for @ops
 *
 * Of DBLP_LOSE_MAX that is judged here, of others by dblp_sent_timeout().
 */
void dblp_sent_lose_larger(struct dblp_sent *s, u32 bytes, u64 now,
			   const struct dblp_sent_ops *ops, void *ctx);

/**
 * dblp_sent_trim() - forget lost packets early, for want of room
 * @s: packets sent
 * @want: slots wanted
 *
 * If the ACKs of those come after all, they are not heard.
 *
 * Return: slots there are, perhaps fewer.
 */
u32 dblp_sent_trim(struct dblp_sent *s, u32 want);

/**
 * dblp_sent_lose_oldest() - make room, also by what is in flight
 * @s: packets sent
 * @want: slots wanted, at most as many as the ring has
 * @ops: told of each packet lost
 * @ctx: for @ops
 *
 * A probe that cannot be sent because all slots wait for answers would never
 * learn that the path is back: so what was sent first gives way to it, unheard.
 */
void dblp_sent_lose_oldest(struct dblp_sent *s, u32 want,
			   const struct dblp_sent_ops *ops, void *ctx);

#endif /* _NET_DBLP_RECOVERY_H */
