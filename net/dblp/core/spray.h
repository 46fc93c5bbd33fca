/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ports that the packets of a connection are sent from. Routers that choose
 * paths by addresses and ports may use another path for each port. So
 * round-trip time, reordering and loss are measured for each port.
 *
 * Pure: see wire.h. Times are nanoseconds of one monotonic clock.
 */
#ifndef _NET_DBLP_SPRAY_H
#define _NET_DBLP_SPRAY_H

#include <linux/types.h>

struct dblp_sent;

#define DBLP_SPRAY_MAX		16U	/* ports of a connection */
#define DBLP_SPRAY_DEAD		6U	/* losses in a row: dead */
#define DBLP_SPRAY_LOSS		4U	/* weight of loss in the cost */
#define DBLP_SPRAY_MEMORY	65536U	/* bytes that the loss rate covers */
#define DBLP_SPRAY_PARTS	32U	/* of the window, sent in a row */

/**
 * struct dblp_port - a port, and the path behind it
 * @sent: packets sent, including probes
 * @acked: position in @sent, from 1, of the latest packet acknowledged
 * @before: @acked before the present ACK
 * @acked_sent: when packet @acked was sent
 * @srtt: smoothed round-trip time, 0 before the first sample
 * @var: mean deviation of the round-trip time
 * @scan: packets with a lower number are not in flight from this port
 * @inflight_pkts: packets in flight
 * @recent: bytes recently acknowledged or declared lost
 * @recent_lost: bytes of @recent that were lost
 * @missed: packets sent after @acked that were lost, DBLP_SPRAY_DEAD at most;
 *	without probes
 * @announced: the peer accepts packets from this port
 * @acked_at: when a packet was last acknowledged, or when the port was first
 *	probed
 * @probe_at: earliest time of the next probe, 0 before the first
 * @pass: virtual time of stride scheduling: the port with the smallest sends
 *	next. It grows by the bytes sent, times the cost of a byte
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
	u64	acked_at;
	u64	probe_at;
	u64	pass;
};

/** dblp_port_dead() - is a port used for probes only? */
static inline bool dblp_port_dead(const struct dblp_port *p)
{
	return !p->announced || p->missed >= DBLP_SPRAY_DEAD;
}

/**
 * dblp_port_note() - bytes were acknowledged or declared lost
 * @p: the port
 * @acked: bytes acknowledged, or 0
 * @lost: bytes lost, or 0
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
 * @ports: all ports of the connection; the first is always announced
 * @n: number of ports
 * @srtt: round-trip time to assume for a port without a sample
 * @bytes: bytes that the port sends before the next is picked
 *
 * The share of a port falls with the square of its round-trip time and with its
 * loss rate; each packet lost in a row halves it. So a path gets more bytes
 * until its queue is about as long as those of the others. Each path still gets
 * enough bytes to be measured. A dead port gets none while another port is not
 * dead.
 *
 * Return: index of the port.
 */
u32 dblp_port_pick(struct dblp_port *ports, u32 n, u64 srtt, u32 bytes);

/**
 * dblp_port_next() - the port for a packet or a train
 * @s: packets sent
 * @len: bytes of the packet or train
 * @cwnd: congestion window, bytes
 * @srtt: as for dblp_port_pick()
 * @force: pick a port even if the present one has not sent its part yet
 *
 * A port sends 1 / DBLP_SPRAY_PARTS of the window in a row, because frequent
 * changes of the port cause gaps that the peer has to acknowledge.
 *
 * Return: index of the port.
 */
u32 dblp_port_next(struct dblp_sent *s, u32 len, u32 cwnd, u64 srtt, bool force);

/**
 * dblp_port_due() - a port to be probed now: not announced yet, or dead
 * @ports: all ports of the connection
 * @n: number of ports
 * @wait: probe timeout, see dblp_pto()
 * @now: the time
 *
 * The interval between probes is the time since @acked_at, from @wait to
 * DBLP_PTO_MAX_NS. So the cost of a dead path falls with time.
 *
 * Return: index of the port, or @n if none is due. The caller must probe it.
 */
u32 dblp_port_due(struct dblp_port *ports, u32 n, u64 wait, u64 now);

#endif /* _NET_DBLP_SPRAY_H */
