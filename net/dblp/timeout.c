// SPDX-License-Identifier: GPL-2.0-only
/*
 * Expired deadlines: probes, ACKs, pacer, keepalive, user timeout, orphans.
 */
#include "dblp.h"
#include "trace.h"

static void dblp_keepalive_expired(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dsk->due.keepalive = 0;
	dblp_ctl_add(dsk, DBLP_FRAME_PING);
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_KEEPALIVESENT);
}

static void dblp_pto_expired(struct dblp_sock *dsk, u64 now)
{
	if (!dsk->sent.inflight_pkts)
		dsk->tx.progress = now;
	if (now - dsk->tx.progress >= dblp_user_timeout(dsk)) {
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_CONNTIMEOUT);
		dblp_abort(dsk, DBLP_RST_TIMEOUT, ETIMEDOUT);
		return;
	}
	/* Only PMTU probes were in flight: this is no timeout of the path */
	if (dblp_lose_size_probes(dsk))
		return;
	dblp_path_timeout(dsk);
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_PTOEXPIRED);
	dsk->tx.pto_count++;
	trace_dblp_pto(dsk);
	if (dsk->cc.ops->timeout)
		dsk->cc.ops->timeout(&dsk->cc, dsk->tx.pto_count,
				     dsk->sent.delivered_at, now);
	dblp_probe(dsk, now);
}

static void dblp_timer_handle(struct dblp_sock *dsk, u64 now)
{
	if (dsk->due.handshake && now >= dsk->due.handshake)
		dblp_handshake_repeat(dsk, now);
	if (dsk->state == DBLP_STATE_CLOSED)
		return;
	if (dsk->sent.loss_time && now >= dsk->sent.loss_time)
		dblp_loss_expired(dsk, now);
	if (dsk->due.pto && now >= dsk->due.pto)
		dblp_pto_expired(dsk, now);
	if (dsk->due.orphan && now >= dsk->due.orphan)
		dblp_orphan_check(dsk, now);
	if (dsk->state == DBLP_STATE_CLOSED)
		return;
	if (dsk->due.ack && now >= dsk->due.ack)
		dblp_send_ack(dsk, now);
	if (dsk->due.keepalive && now >= dsk->due.keepalive)
		dblp_keepalive_expired(dsk);
	if (dsk->due.spare && now >= dsk->due.spare) {
		dsk->due.spare = 0;
		dblp_txbuf_drop_cache(dsk);
		dblp_ring_shrink(dsk);
	}
	if (dsk->due.charge && now >= dsk->due.charge) {
		WRITE_ONCE(dsk->due.charge, 0);
		dblp_write_space(dsk);
	}
	dblp_flush(dsk);
	dblp_check_closing(dsk);
}

/* Next time for work that is due at @at, after a pause as long as this step */
static u64 dblp_after_pause(u64 at, u64 since)
{
	u64 now;

	if (!at)
		return 0;
	now = ktime_get_ns();
	return at <= now ? now + (now - since) : at;
}

/* The caller has a reference besides the socket's own, or RCU */
static void dblp_timer_run(struct dblp_sock *dsk)
{
	u64 now = ktime_get_ns();

	if (dsk->state != DBLP_STATE_CLOSED)
		dblp_timer_handle(dsk, now);
	dsk->due.work = dblp_after_pause(dsk->due.work, now);
	dsk->sent.loss_time = dblp_after_pause(dsk->sent.loss_time, now);
	/* Arm the timer once, for all deadlines that were set meanwhile */
	dsk->due.armed = 0;
	dblp_timer_update(dsk);
}

/*
 * The path MTU has become less than packets in flight. Retransmit these packets
 * at once; segments cut for the old MTU are sent in IP fragments. The loss is
 * not a sign of congestion.
 */
static void dblp_mtu_reduced(struct dblp_sock *dsk)
{
	if (dsk->state < DBLP_STATE_ESTABLISHED)
		return;
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_MTUREDUCED);
	dblp_lose_larger(dsk, dblp_mss(dsk, NULL));
	dblp_flush(dsk);
}

/**
 * dblp_release_cb() - run work that was deferred to release_sock()
 * @sk: socket
 *
 * Called by release_sock(); or, if no process owns the socket, directly by the
 * timer, for ICMP errors, and when packets have left the queues below.
 */
void dblp_release_cb(struct sock *sk)
{
	struct dblp_sock *dsk = dblp_sk(sk);

	sock_owned_by_me(sk);
	if (test_and_clear_bit(DBLP_DEFER_TIMER, &dsk->deferred))
		dblp_timer_run(dsk);
	if (test_and_clear_bit(DBLP_DEFER_MTU, &dsk->deferred))
		dblp_mtu_reduced(dsk);
	if (test_and_clear_bit(DBLP_DEFER_TSQ, &dsk->deferred)) {
		dblp_flush(dsk);
		dblp_write_space(dsk);
	}
}
