/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ports that the packets of a connection are sent from. Routers that choose between
 * paths by addresses and ports may send those of each another way, so what arrives,
 * overtakes and is lost is judged port by port.
 *
 * Pure: see wire.h. Times are nanoseconds of one monotonic clock.
 */
#ifndef _NET_DBLP_SPRAY_H
#define _NET_DBLP_SPRAY_H

#include <linux/types.h>

struct dblp_sent;

#define DBLP_SPRAY_MAX		16U	/* ports of a connection */
#define DBLP_SPRAY_DEAD		6U	/* packets lost in a row by which a port is dead */
#define DBLP_SPRAY_LOSS		4U	/* so many times as much counts what is lost */
#define DBLP_SPRAY_MEMORY	65536U	/* bytes over which that is measured */
#define DBLP_SPRAY_PARTS	32U	/* of the window: least that a port sends in a row */

/**
 * struct dblp_port - a port, and the path behind it
 * @sent: packets sent, those of probes included
 * @acked: of these, the latest that was acknowledged; counted from 1
 * @before: @acked before the present ACK
 * @acked_sent: when the latest was sent
 * @srtt: smoothed round-trip time, 0 before the first sample
 * @var: its mean deviation
 * @scan: packet numbers below are not in flight from this port, if any is
 * @inflight_pkts: packets in flight
 * @recent: bytes recently acknowledged or declared lost
 * @recent_lost: bytes of @recent that were lost
 * @missed: packets lost behind @acked, DBLP_SPRAY_DEAD at most; without probes
 * @announced: the peer takes packets from here
 * @heard: when a packet was last acknowledged, or when the port was first tried
 * @probe_at: not tried again before, 0 if it was not tried
 * @pass: who sends next: the one that has least, which grows by what it sends, times
 *	what each byte costs there
 */
struct dblp_port {
	u32	sent;
	u32	acked;
	u32	before;
	u64	acked_sent;
	u64	srtt;
	u64	var;
	u64	scan;
	u32	inflight_pkts;
	u32	recent;
	u32	recent_lost;
	u8	missed;
	bool	announced;
	u64	heard;
	u64	probe_at;
	u64	pass;
};

/** dblp_port_dead() - is nothing sent from there, but to try it? */
static inline bool dblp_port_dead(const struct dblp_port *p)
{
	return !p->announced || p->missed >= DBLP_SPRAY_DEAD;
}

/**
 * dblp_port_note() - bytes were acknowledged or declared lost
 * @p: the port
 * @acked: of one kind
 * @lost: or the other
 */
static inline void dblp_port_note(struct dblp_port *p, u32 acked, u32 lost)
{
	p->recent += acked + lost;
	p->recent_lost += lost;
	while (p->recent > DBLP_SPRAY_MEMORY) {
		p->recent /= 2;
		p->recent_lost /= 2;
	}
}

/**
 * dblp_port_pick() - the port that sends next
 * @ports: all of the connection; the first is always announced
 * @n: how many
 * @srtt: round-trip time of a port without a sample
 * @bytes: that it sends before the next is picked
 *
 * A port gets a part that is the less the longer its round trip, as its square, and the
 * more of its packets are lost; each packet lost in a row halves it. So a path gets more
 * until its queue is about as long as those of the others, and each is tried often
 * enough to tell. A dead port gets nothing while another lives.
 *
 * Return: its index.
 */
u32 dblp_port_pick(struct dblp_port *ports, u32 n, u64 srtt, u32 bytes);

/**
 * dblp_port_next() - the port for a packet or a train
 * @s: packets sent
 * @len: bytes of it
 * @cwnd: bytes of the window
 * @srtt: as for dblp_port_pick()
 * @anew: whatever is left of the part of the last one
 *
 * A part of the window goes from one port: the more ports alternate, the more gaps the
 * peer has to acknowledge.
 *
 * Return: its index.
 */
u32 dblp_port_next(struct dblp_sent *s, u32 len, u32 cwnd, u64 srtt, bool anew);

/**
 * dblp_port_due() - a port to be probed now: one not announced yet, or a dead one
 * @ports: all of the connection
 * @n: how many
 * @wait: probe timeout, see dblp_pto()
 * @now: the time
 *
 * A port is tried again after as long as it was not heard, from @wait to
 * DBLP_PTO_MAX_NS: a path that stays dark costs less and less.
 *
 * Return: its index, or @n if there is none. It counts as tried.
 */
u32 dblp_port_due(struct dblp_port *ports, u32 n, u64 wait, u64 now);

#endif /* _NET_DBLP_SPRAY_H */
