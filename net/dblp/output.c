// SPDX-License-Identifier: GPL-2.0-only
/*
 * The send loop: control frames first, then segments as congestion control, the
 * pacer and the peer's credit allow. packet.c builds the packets. Files above
 * call dblp_flush() in conn.c, which calls dblp_push() and then ends the
 * connection if dblp_end() was called.
 */
#include <linux/udp.h>

#include "dblp.h"

/*
 * Time by which packets may precede the schedule of the pacer, in ns. Bursts
 * cost less CPU time. Where packets queue on the path anyway, a burst of a
 * quarter of the queueing delay adds little. The limit is the burst of TCP.
 */
static u64 dblp_pace_ahead(const struct dblp_sock *dsk)
{
	u64 most = NSEC_PER_SEC >> READ_ONCE(dsk->sk.sk_pacing_shift);
	u64 waits = dsk->rtt.srtt - min(dsk->rtt.srtt, dsk->rtt.base);

	return max_t(u64, min(waits / 4, most), DBLP_PACE_AHEAD_NS);
}

/* Delay of the pacer's timer, in ns; 0 if packets did not wait for the pacer */
static u64 dblp_pace_late(const struct dblp_sock *dsk, u64 now)
{
	bool waits = dsk->due.pace && dsk->due.pace <= dsk->pace.next;

	return waits ? now - min(now, dsk->pace.next) : 0;
}

/* Number of packets of @size bytes that cwnd and pacer allow now, at least 1 */
static u32 dblp_burst(const struct dblp_sock *dsk, const struct dblp_out *out,
		      u32 size)
{
	u64 window = dblp_cc_window(&dsk->cc, &dsk->rtt, dsk->sent.delivered_at,
				    out->now);
	u64 until = out->now + out->ahead;
	u64 ahead = until - clamp(dsk->pace.next, out->now, until);
	u64 rate = dsk->cc.pacing_rate, n;

	n = div_u64(window - min_t(u64, window, dsk->sent.inflight), size);
	if (rate)
		n = min(n, 1 + div_u64(mul_u64_u64_div_u64(rate, ahead,
							   NSEC_PER_SEC),
				       size));
	return clamp_t(u64, n, 1, UDP_MAX_SEGMENTS);
}

/*
 * Maximum number of packets in a train, which the stack handles as one UDP
 * datagram (GSO). IP must not have to fragment the packets of a train. The
 * stack segments trains for devices without GSO.
 */
static u32 dblp_train_max(const struct dst_entry *dst, u32 size, u32 mss)
{
	const struct net_device *dev;
	u32 room, segs;

	rcu_read_lock();
	dev = dst_dev_rcu(dst);
	room = min_t(u32, READ_ONCE(dev->gso_max_size), U16_MAX);
	segs = READ_ONCE(dev->gso_max_segs);
	rcu_read_unlock();
	/* Single packets are sent in fragments where the MTU is that small */
	if (size > mss || dst_xfrm(dst) || dst_mtu(dst) < DBLP_PMTU_MIN ||
	    room < MAX_HEADER + 2 * size)
		return 1;
	return min_t(u32, (room - MAX_HEADER) / size, segs);
}

/* Number of segments of the next train */
static u32 dblp_train_len(struct dblp_sock *dsk, const struct dblp_out *out)
{
	u32 size = out->msg->room + out->msg->seg_size;
	u32 n = dblp_tx_run(out->msg);

	if (n > 1 && !READ_ONCE(dsk->dn->config.defaults.gso))
		return 1;
	if (n > 1)
		n = min(n, dblp_train_max(out->dst, size, out->mss));
	if (n > 1)
		n = min(n, dblp_burst(dsk, out, size));
	return n;
}

/* May a full packet be sent? Sets @due.pace if time alone will permit it */
static bool dblp_may_send(struct dblp_sock *dsk, const struct dblp_out *out,
			  u32 mss)
{
	u64 acked_at = dsk->sent.delivered_at, window;

	if (dblp_tsq_full(dsk, mss))
		return false;
	window = dblp_cc_window(&dsk->cc, &dsk->rtt, acked_at, out->now);
	if (dsk->sent.inflight && dsk->sent.inflight + mss > window) {
		u64 at = dblp_cc_opens_at(&dsk->cc, &dsk->rtt, acked_at,
					  dsk->sent.inflight);

		dsk->due.pace = at == U64_MAX ? 0 : max(at, dsk->pace.next);
		return false;
	}
	if (!dsk->cc.pacing_rate || dsk->pace.next <= out->now + out->ahead)
		return true;
	dsk->due.pace = dsk->pace.next - out->ahead / 2;
	return false;
}

static bool dblp_push_ctl(struct dblp_sock *dsk, struct dblp_out *out)
{
	u32 most = min_t(u32, DBLP_HDR_LEN + DBLP_CTL_MAX, out->mss);

	while (dblp_ctl_waits(dsk) &&
	       (dsk->answer >= most || dblp_may_send(dsk, out, most)))
		if (!dblp_send_ctl(dsk, out, -1))
			return false;
	return true;
}

/* Mark rate samples as application-limited until all in flight is delivered */
static void dblp_note_idle(struct dblp_sock *dsk)
{
	struct dblp_sent *sent = &dsk->sent;

	sent->app_limited = sent->delivered + sent->inflight ?: 1;
}

static bool dblp_push_data(struct dblp_sock *dsk, struct dblp_out *out)
{
	while (dblp_may_send(dsk, out, out->mss)) {
		out->msg = dblp_tx_pick(dsk, &out->seg, &out->again);
		if (!out->msg) {
			dblp_note_idle(dsk);
			break;
		}
		out->n = out->again ? 1 : dblp_train_len(dsk, out);
		out->n = dblp_ring_room(dsk, out->n);
		if (!out->n || !dblp_send_segs(dsk, out))
			return false;
	}
	return true;
}

/* Out of credit: queue a PING, so that a lost FLOW cannot stall the sender */
static void dblp_ask_credit(struct dblp_sock *dsk)
{
	if (dsk->tx.asked)
		return;
	dsk->tx.asked = dblp_tx_wants(dsk);
	if (dsk->tx.asked)
		dblp_ctl_add(dsk, DBLP_FRAME_PING);
}

/*
 * Does a message wait for credit, its CLOSE or its loss map? With nothing in
 * flight, only probes detect that the peer is gone.
 */
static bool dblp_awaits_peer(const struct dblp_sock *dsk)
{
	return !list_empty(&dsk->tx.msgs) && !dsk->due.pace;
}

/* Time for which the peer was silent when the last packet was sent, in ns */
static u64 dblp_silence(const struct dblp_sock *dsk)
{
	u64 received = dblp_last_received(dsk);

	return dsk->tx.last_sent - min(dsk->tx.last_sent, received);
}

static void dblp_set_pto(struct dblp_sock *dsk)
{
	u64 end = dsk->tx.progress + dblp_user_timeout(dsk), pto;

	dsk->due.pto = 0;
	dsk->due.keepalive = 0;
	if (dsk->sent.loss_time)
		return;
	if (!dsk->sent.inflight_pkts) {
		dblp_ring_idle(dsk);
		if (dblp_awaits_peer(dsk))
			dsk->due.pto = dsk->tx.last_sent + DBLP_PERSIST_NS;
		else
			dblp_keepalive_set(dsk);
		return;
	}
	pto = dblp_cc_pto(&dsk->cc, &dsk->rtt, DBLP_ACK_DELAY_NS,
			  dsk->tx.pto_count, dblp_silence(dsk));
	/* The last probe timeout expires together with the user timeout */
	dsk->due.pto = min(dsk->tx.last_sent + pto, end);
}

/*
 * Sending failed for lack of memory, of room in the ring, or of a route. Retry,
 * and give up after the same time as with a silent peer. With packets in
 * flight, the next ACK or probe timeout retries.
 */
static void dblp_retry(struct dblp_sock *dsk, u64 now)
{
	u64 end;

	if (dsk->sent.inflight_pkts) {
		dsk->stuck_since = 0;
		return;
	}
	if (!dblp_ctl_waits(dsk) && list_empty(&dsk->tx.msgs))
		return;
	if (!dsk->stuck_since)
		dsk->stuck_since = now;
	end = dsk->stuck_since + dblp_user_timeout(dsk);
	dsk->due.pace = min(end, now + dblp_backoff(DBLP_RETRY_NS,
						    now - dsk->stuck_since));
	if (now < end)
		return;
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_CONNTIMEOUT);
	dblp_end(dsk, DBLP_RST_TIMEOUT, ETIMEDOUT);
}

/*
 * May ports be probed? An idle connection stays idle, so data must be in
 * flight. A receiver probes while it has packets to acknowledge, because its
 * ACKs would be lost on dead paths.
 */
static bool dblp_may_try_ports(const struct dblp_sock *dsk)
{
	return dsk->sent.n_ports > 1 &&
	       (dsk->sent.inflight || dsk->acks.pending);
}

/*
 * Is there anything to send? Usually not, after a packet was received or a
 * message read. PMTU probes are sent only while other packets are in flight.
 */
static bool dblp_has_work(const struct dblp_sock *dsk)
{
	return dsk->tx.cur || dblp_ctl_waits(dsk) ||
	       !list_empty(&dsk->tx.lost) || !dsk->pmtu.max ||
	       (dsk->sent.inflight && !dblp_pmtu_known(&dsk->pmtu)) ||
	       dblp_may_try_ports(dsk);
}

static void dblp_try_ports(struct dblp_sock *dsk, struct dblp_out *out)
{
	struct dblp_sent *s = &dsk->sent;
	u64 wait;
	u32 port;

	if (!dblp_may_try_ports(dsk))
		return;
	wait = dblp_pto(&dsk->rtt, DBLP_ACK_DELAY_NS, 0);
	do {
		port = dblp_port_due(s->ports, s->n_ports, wait, out->now);
	} while (port < s->n_ports && dblp_send_port_probe(dsk, out, port));
}

/* Send PMTU probes. Black hole detection can have two due: a small, a large */
static void dblp_probe_size(struct dblp_sock *dsk, struct dblp_out *out)
{
	bool sent = true;
	u32 probe;

	while (sent) {
		probe = dblp_path_probe(dsk, out->now);
		if (!probe)
			return;
		sent = dblp_send_size_probe(dsk, out, probe);
		dblp_path_probed(dsk, probe, sent);
	}
}

/* Returns false if memory, room in the ring, or a route is lacking */
static bool dblp_push_all(struct dblp_sock *dsk, u64 now)
{
	struct dblp_out out = { .now = now };

	if (!dblp_has_work(dsk)) {
		dblp_note_idle(dsk);
		return true;
	}
	if (dblp_sent_skips(&dsk->sent))
		dblp_sent_skip(&dsk->sent, get_random_u32());
	out.ahead = dblp_pace_ahead(dsk);
	out.mss = dblp_mss(dsk, &out.dst);
	dblp_ask_credit(dsk);
	/* Starting a cancelled message in dblp_push_data() queues its CANCEL */
	if (!out.dst || !dblp_push_ctl(dsk, &out) ||
	    !dblp_push_data(dsk, &out) || !dblp_push_ctl(dsk, &out))
		return false;
	dblp_probe_size(dsk, &out);
	dblp_try_ports(dsk, &out);
	return true;
}

/*
 * Send an ACK now or set its deadline. An ACK costs both ends as much CPU time
 * as several packets. So the faster packets arrive, the more share one ACK.
 */
static void dblp_ack_or_wait(struct dblp_sock *dsk, u64 now)
{
	u64 at = now + DBLP_ACK_DELAY_NS;

	if (!dsk->acks.pending && !dsk->acks.now)
		return;
	if (dsk->acks.pending >= DBLP_ACK_EVERY)
		at = dsk->counts.pkts_received > DBLP_ACK_QUICKLY ?
		     dsk->acks.sent_at + DBLP_ACK_SPACE_NS : now;
	if (dsk->acks.now || dsk->acks.pending >= DBLP_ACK_EVERY_FAST ||
	    at <= now)
		dblp_send_ack(dsk, now);
	else if (!dsk->due.ack || dsk->due.ack > at)
		dsk->due.ack = at;
}

/*
 * Work on many messages at once is deferred and done in steps.
 *
 * A packet that completes one message may deliver thousands that wait for it. A
 * new cap changes the first pass of each message. Many messages may have the
 * same deadline. So this work is only recorded where it arises, and dblp_work()
 * does a step of it per packet and per expiry of the timer. The timer pauses
 * for as long as its step took, so that other connections, waiters for the
 * socket, and processes can run.
 *
 * Messages are processed in order, and none twice for the same reason.
 */

/* Called after @due.work; the steps set it again if work remains */
static void dblp_work(struct dblp_sock *dsk, u64 now)
{
	dsk->due.work = 0;
	dblp_rx_deliver(dsk, DBLP_STEPS);
	dblp_rx_judge_some(dsk, now);
	dblp_tx_recount_some(dsk);
	dblp_tx_settle(dsk, DBLP_STEPS);
	dblp_txbuf_sweep(dsk, DBLP_STEPS);
}

/**
 * dblp_push() - send all that may be sent now, and set the timer
 * @dsk: socket
 *
 * Callers use dblp_flush(), which also ends the connection if necessary.
 */
void dblp_push(struct dblp_sock *dsk)
{
	u64 now = ktime_get_ns();

	sock_owned_by_me(&dsk->sk);
	if (dsk->state < DBLP_STATE_ESTABLISHED)
		return;
	if (dsk->due.work && now >= dsk->due.work)
		dblp_work(dsk, now);
	if (dsk->end_reason)
		return;
	dblp_cap_rate(dsk);
	dsk->pace.late = dblp_pace_late(dsk, now);
	dsk->due.pace = 0;
	WRITE_ONCE(dsk->tsq.max, 0);
	if (dblp_push_all(dsk, now))
		dsk->stuck_since = 0;
	else
		dblp_retry(dsk, now);
	if (dsk->end_reason)
		return;
	dblp_ack_or_wait(dsk, now);
	dblp_set_pto(dsk);
	dblp_timer_update(dsk);
}

/*
 * Find a segment in flight that is still needed, and that has room for another
 * copy in its counter. The search is bounded, because thousands of packets in
 * flight may carry no such segment.
 */
static struct dblp_tx_msg *dblp_inflight_seg(struct dblp_sock *dsk, u64 *from,
					     u32 *seg)
{
	struct dblp_sent_pkt *pkt;
	struct dblp_tx_msg *msg;
	int i;

	for (i = 0; i < DBLP_PROBE_LOOK; i++, ++*from) {
		pkt = dblp_sent_inflight(&dsk->sent, from);
		if (!pkt)
			return NULL;
		msg = pkt->data ? dblp_tx_find(dsk, pkt->msg) : NULL;
		if (!msg || dblp_tx_over(msg) ||
		    dblp_tx_copies_full(msg, pkt->seg))
			continue;
		*seg = pkt->seg;
		++*from;
		return msg;
	}
	return NULL;
}

/* Probe with one segment: a new one, or one of a packet in flight */
static bool dblp_probe_seg(struct dblp_sock *dsk, struct dblp_out *out,
			   u64 *from)
{
	out->n = 1;
	out->msg = dblp_tx_pick(dsk, &out->seg, &out->again);
	if (!out->msg) {
		out->msg = dblp_inflight_seg(dsk, from, &out->seg);
		out->again = true;
	}
	return out->msg && dblp_ring_room(dsk, 1) && dblp_send_segs(dsk, out);
}

/**
 * dblp_probe() - probe timeout: send packets that elicit an ACK
 * @dsk: socket
 * @now: the time
 *
 * RFC 9002 section 6.2.4: send two packets with data regardless of cwnd, or one
 * if dblp_cc_probes() says so. Add a packet of unacknowledged control frames,
 * or a PING if there is nothing else. Control frames that do not fit wait for
 * the next probe or for an ACK.
 */
void dblp_probe(struct dblp_sock *dsk, u64 now)
{
	u64 next = dsk->sent.next, from = 0;
	struct dblp_out out = { .now = now };

	sock_owned_by_me(&dsk->sk);
	/* Also if sending fails: otherwise the next probe is due at once */
	dsk->tx.last_sent = now;
	out.mss = dblp_mss(dsk, &out.dst);
	if (!out.dst) {
		/* With nothing in flight, dblp_retry() has to count the time */
		if (!dsk->sent.inflight_pkts && !dblp_ctl_owed(dsk))
			dblp_ctl_add(dsk, DBLP_FRAME_PING);
		return;
	}
	if (dblp_ring_room(dsk, DBLP_PROBE_PKTS) < DBLP_PROBE_PKTS)
		dblp_lose_oldest(dsk, DBLP_PROBE_PKTS);
	if (dblp_probe_seg(dsk, &out, &from) &&
	    dblp_cc_probes(&dsk->cc, &dsk->rtt, dsk->tx.pto_count) > 1)
		dblp_probe_seg(dsk, &out, &from);
	if (dsk->sent.next == next && !dblp_ctl_owed(dsk))
		dblp_ctl_add(dsk, DBLP_FRAME_PING);
	/* Alternate the ranks, because CLOSE frames alone may fill a packet */
	if (!dblp_ctl_owed(dsk) ||
	    !dblp_send_ctl(dsk, &out, dsk->tx.pto_count & 1))
		return;
	if (dsk->sent.next == next + 1)
		dblp_send_ctl(dsk, &out, !(dsk->tx.pto_count & 1));
}
