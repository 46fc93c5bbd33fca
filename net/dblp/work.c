// SPDX-License-Identifier: GPL-2.0-only
/*
 * What many messages wait for at once is done in steps.
 *
 * A packet that lets one message be read lets all be read that wait behind it, one
 * that changes the cap changes what is sent of each message, and a moment can be
 * the deadline of all. There may be thousands of them. So whoever finds that out
 * only notes what is to be done. dblp_work() does some of it, when packets come and from
 * the timer. That goes on when as much time has passed again: in between come packets
 * of others, who waits for the socket, and processes.
 *
 * Nothing is looked at twice for one reason, and what was noted last comes last.
 */
#include "dblp.h"

/**
 * dblp_rx_wait() - a message cannot be closed now
 * @dsk: socket
 * @msg: open message, which may be closed when the cap is raised, or a first pass
 *	is over
 * @at: or at this time; 0 never
 */
void dblp_rx_wait(struct dblp_sock *dsk, struct dblp_rx_msg *msg, u64 at)
{
	sock_owned_by_me(&dsk->sk);
	if (list_empty(&msg->list))
		list_add_tail(&msg->list, &dsk->rx_waits);
	if (!at)
		return;
	/* That it is looked at too early does no harm */
	if (!RB_EMPTY_NODE(&msg->due.node)) {
		if (msg->due.expires <= at)
			return;
		timerqueue_del(&dsk->rx_due, &msg->due);
	}
	msg->due.expires = at;
	timerqueue_add(&dsk->rx_due, &msg->due);
	dsk->work_at = dblp_earliest(dsk->work_at, at);
}

/** dblp_rx_unwait() - a message is closed, or goes */
void dblp_rx_unwait(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	list_del_init(&msg->list);
	if (!RB_EMPTY_NODE(&msg->due.node))
		timerqueue_del(&dsk->rx_due, &msg->due);
}

/**
 * dblp_rx_judge() - close a message if that is allowed, where no packet can be
 * refused: when there is no memory, try again
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

/** dblp_rx_judge_all() - perhaps more may be forgiven now */
void dblp_rx_judge_all(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (list_empty(&dsk->rx_waits))
		return;
	list_splice_tail_init(&dsk->rx_waits, &dsk->rx_judge);
	dblp_work_soon(dsk);
}

/* The message that waits longest for what has happened, or whose time has come */
static struct dblp_rx_msg *dblp_rx_next_judged(struct dblp_sock *dsk, u64 now)
{
	struct timerqueue_node *due = timerqueue_getnext(&dsk->rx_due);

	if (due && due->expires <= now)
		return container_of(due, struct dblp_rx_msg, due);
	return list_first_entry_or_null(&dsk->rx_judge, struct dblp_rx_msg,
					list);
}

static void dblp_rx_judge_some(struct dblp_sock *dsk, u64 now)
{
	struct timerqueue_node *due;
	struct dblp_rx_msg *msg;
	int n = DBLP_STEPS;

	while (n-- && (msg = dblp_rx_next_judged(dsk, now)))
		dblp_rx_judge(dsk, msg);
	if (dblp_rx_next_judged(dsk, now)) {
		dblp_work_soon(dsk);
		return;
	}
	due = timerqueue_getnext(&dsk->rx_due);
	if (due)
		dsk->work_at = dblp_earliest(dsk->work_at, due->expires);
}

/**
 * dblp_work() - do some of what there is to do
 * @dsk: socket with @work_at in the past; it is set anew
 * @now: the time
 *
 * The caller is dblp_push(), which has to follow.
 */
void dblp_work(struct dblp_sock *dsk, u64 now)
{
	sock_owned_by_me(&dsk->sk);
	dsk->work_at = 0;
	dblp_rx_deliver(dsk, DBLP_STEPS);
	dblp_rx_judge_some(dsk, now);
	dblp_tx_recount_some(dsk);
	dblp_tx_settle(dsk, DBLP_STEPS);
}

/**
 * dblp_work_finish() - the connection is over: what users are told of is done
 * @dsk: socket
 *
 * What they have to be told may be that a message ends before all of its pieces
 * came: see dblp_rx_deliver().
 */
void dblp_work_finish(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dblp_rx_deliver(dsk, U32_MAX);
	dblp_tx_settle(dsk, U32_MAX);
	dsk->work_at = 0;
}
