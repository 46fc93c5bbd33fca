// SPDX-License-Identifier: GPL-2.0-only
/*
 * Incoming messages: closing.
 *
 * core/closing.c decides whether a message can be closed. An open message is
 * judged again when a segment arrives, its budget or the cap changes, a first
 * pass ends, or at a given time.
 */
#include "dblp.h"

/* Minimum round-trip time in ns, or a default before the first sample */
static u64 dblp_rx_rtt(const struct dblp_sock *dsk)
{
	return dsk->rtt.min ?: DBLP_INITIAL_RTT_NS;
}

static u64 dblp_rx_largest(const struct dblp_sock *dsk)
{
	const struct dblp_ranges *s = &dsk->acks.pns;

	return s->n ? s->r[s->n - 1].last : 0;
}

/* Bytes received in segments, without those described by zero maps */
static u32 dblp_rx_sent(const struct dblp_rx_msg *msg)
{
	return msg->len - msg->missing - msg->elided;
}

/* Is a critical byte missing? The search continues at the last hole */
static bool dblp_rx_lacks_critical(struct dblp_rx_msg *msg)
{
	if (!msg->critical)
		return false;
	msg->hole = dblp_segmap_next_hole(&msg->have, msg->hole);
	return msg->hole < msg->have.n &&
	       (u64)msg->hole * msg->seg_size < msg->critical;
}

/*
 * Schedule the next judgment of an open message: when the cap changes, when a
 * first pass ends, and at time @at unless that is 0.
 */
static void dblp_rx_wait(struct dblp_sock *dsk, struct dblp_rx_msg *msg, u64 at)
{
	if (list_empty(&msg->list))
		list_add_tail(&msg->list, &dsk->rx.waits);
	if (!at)
		return;
	/* A judgment that is too early does no harm */
	if (!RB_EMPTY_NODE(&msg->due.node)) {
		if (msg->due.expires <= at)
			return;
		timerqueue_del(&dsk->rx.due, &msg->due);
	}
	msg->due.expires = at;
	timerqueue_add(&dsk->rx.due, &msg->due);
	dsk->due.work = dblp_earliest(dsk->due.work, at);
}

static enum dblp_verdict dblp_rx_verdict(struct dblp_sock *dsk,
					 struct dblp_rx_msg *msg)
{
	enum dblp_verdict verdict;
	struct dblp_close_state s = {
		.length = msg->len,
		.missing = msg->missing,
		.critical = msg->critical,
		.critical_missing = dblp_rx_lacks_critical(msg),
		.meta_missing = msg->meta_missing,
		.budget = min(msg->budget, dsk->opt.cap),
		.policy = msg->policy,
		/* With a cap of 0, deadlines must not cause loss, either */
		.deadline_at = dsk->opt.cap ? msg->deadline_at : 0,
	};

	if (msg->policy == DBLP_POLICY_EARLY || s.deadline_at)
		s.now = ktime_get_ns();
	if (msg->policy == DBLP_POLICY_EARLY)
		s.early_at = dblp_early_at(&dsk->rx.early, &msg->timing,
					   msg->len - msg->elided,
					   dblp_rx_sent(msg),
					   dblp_rx_largest(dsk),
					   dblp_rx_rtt(dsk));
	verdict = dblp_close_decide(&s);
	if (verdict == DBLP_WAIT)
		dblp_rx_wait(dsk, msg, dblp_close_again(&s));
	return verdict;
}

static const u8 dblp_rx_reasons[] = {
	[DBLP_CLOSE_COMPLETE]	= DBLP_REASON_COMPLETE,
	[DBLP_CLOSE_BUDGET]	= DBLP_REASON_BUDGET,
	[DBLP_CLOSE_DEADLINE]	= DBLP_REASON_DEADLINE,
};

static bool dblp_rx_over_budget(const struct dblp_sock *dsk,
				const struct dblp_rx_msg *msg)
{
	u32 budget = min(msg->budget, dsk->opt.cap);

	return msg->missing > dblp_budget_bytes(budget,
						msg->len - msg->critical);
}

/* Close a message. A complete one needs no CLOSE, because its ACKs suffice */
static int dblp_rx_close(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
			 enum dblp_verdict verdict)
{
	int err;

	msg->reason = dblp_rx_reasons[verdict];
	msg->flags = dblp_rx_over_budget(dsk, msg) ? DBLP_RCV_OVER_BUDGET : 0;
	if (msg->missing) {
		err = dblp_ctl_add_close(dsk, msg);
		if (err)
			return err;
	}
	if (msg->policy == DBLP_POLICY_EARLY)
		dblp_early_done(&dsk->rx.early, &msg->timing,
				dblp_rx_sent(msg), dblp_rx_rtt(dsk));
	msg->ranges = dblp_segmap_ranges(&msg->have);
	dblp_rx_closed(dsk, msg);
	return 0;
}

/**
 * dblp_rx_try_close() - close a message if allowed
 * @dsk: socket
 * @msg: open message
 *
 * Return: 0, or -ENOMEM without any change.
 */
int dblp_rx_try_close(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	enum dblp_verdict verdict;

	sock_owned_by_me(&dsk->sk);
	/* Fast path: most messages must be complete, and are not yet */
	if (msg->missing && !msg->budget && !msg->deadline_at)
		return 0;
	verdict = dblp_rx_verdict(dsk, msg);
	return verdict == DBLP_WAIT ? 0 : dblp_rx_close(dsk, msg, verdict);
}

/**
 * dblp_rx_judge() - close a message if allowed; without memory, retry later
 * @dsk: socket
 * @msg: open message
 */
void dblp_rx_judge(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	dblp_rx_unwait(dsk, msg);
	if (dblp_rx_try_close(dsk, msg))
		dblp_rx_wait(dsk, msg, ktime_get_ns() + DBLP_RETRY_NS);
}

/** dblp_rx_judge_all() - have dblp_work() judge all open messages again */
void dblp_rx_judge_all(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (list_empty(&dsk->rx.waits))
		return;
	list_splice_tail_init(&dsk->rx.waits, &dsk->rx.judge);
	dblp_work_soon(dsk);
}

/* Next message to judge: one that is due, or the first of @rx.judge */
static struct dblp_rx_msg *dblp_rx_next_judged(struct dblp_sock *dsk, u64 now)
{
	struct timerqueue_node *due = timerqueue_getnext(&dsk->rx.due);

	if (due && due->expires <= now)
		return container_of(due, struct dblp_rx_msg, due);
	return list_first_entry_or_null(&dsk->rx.judge, struct dblp_rx_msg,
					list);
}

/**
 * dblp_rx_judge_some() - judge some messages, for dblp_work()
 * @dsk: socket
 * @now: the time
 */
void dblp_rx_judge_some(struct dblp_sock *dsk, u64 now)
{
	struct timerqueue_node *due;
	struct dblp_rx_msg *msg;
	int n = DBLP_STEPS;

	sock_owned_by_me(&dsk->sk);
	while (n-- && (msg = dblp_rx_next_judged(dsk, now)))
		dblp_rx_judge(dsk, msg);
	if (dblp_rx_next_judged(dsk, now)) {
		dblp_work_soon(dsk);
		return;
	}
	due = timerqueue_getnext(&dsk->rx.due);
	if (due)
		dsk->due.work = dblp_earliest(dsk->due.work, due->expires);
}

/**
 * dblp_rx_update_budget() - update the budget of an open message
 * @msg: the message
 * @ppm: the budget
 * @pn: number of the packet with the budget; an older budget is ignored
 *
 * Return: true if the budget has changed.
 */
bool dblp_rx_update_budget(struct dblp_rx_msg *msg, u32 ppm, u64 pn)
{
	if (pn < msg->budget_pn)
		return false;
	msg->budget_pn = pn;
	if (msg->budget == ppm)
		return false;
	msg->budget = ppm;
	return true;
}

/**
 * dblp_budget_known() - has any packet of a message been received?
 * @dsk: socket
 * @id: message ID
 *
 * A BUDGET that arrives before its message is refused, and its sender repeats
 * it. So no memory is allocated for a message that may never arrive.
 */
bool dblp_budget_known(struct dblp_sock *dsk, u32 id)
{
	sock_owned_by_me(&dsk->sk);
	return dblp_before(id, dsk->rx.next) || dblp_rx_find(dsk, id);
}

/**
 * dblp_rx_budget() - process a BUDGET frame
 * @dsk: socket
 * @f: BUDGET frame for which dblp_budget_known() is true
 * @pn: number of its packet
 *
 * Without memory for a CLOSE the message is judged again later: a repetition of
 * the frame would not change the budget.
 */
void dblp_rx_budget(struct dblp_sock *dsk, const struct dblp_frame *f, u64 pn)
{
	struct dblp_rx_msg *msg = dblp_rx_find(dsk, f->budget.msg_id);

	sock_owned_by_me(&dsk->sk);
	if (msg && !msg->closed &&
	    dblp_rx_update_budget(msg, f->budget.ppm, pn))
		dblp_rx_judge(dsk, msg);
}

/**
 * dblp_rx_straggler() - note a packet of a first pass received after its end
 * @dsk: socket
 * @pn: packet number
 */
void dblp_rx_straggler(struct dblp_sock *dsk, u64 pn)
{
	sock_owned_by_me(&dsk->sk);
	dblp_early_straggler(&dsk->rx.early, pn, dblp_rx_largest(dsk),
			     dblp_rx_rtt(dsk), ktime_get_ns());
}

/** dblp_rx_pass_ended() - judge again if a received packet ends a first pass */
void dblp_rx_pass_ended(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (dblp_early_passed(&dsk->rx.early, dblp_rx_largest(dsk)))
		dblp_rx_judge_all(dsk);
}
