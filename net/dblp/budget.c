// SPDX-License-Identifier: GPL-2.0-only
/*
 * The budget of messages under way: the sender can change it, and the latest
 * word counts.
 *
 * Each DATA packet says the budget, and packet numbers say which word is the
 * latest. As there may be no more DATA to say it with, a BUDGET frame says it
 * once more.
 */
#include <linux/random.h>

#include "dblp.h"

static bool dblp_budget_movable(const struct dblp_tx_msg *msg, u32 ppm)
{
	return !msg->closed && !msg->own_budget && msg->budget != ppm &&
	       msg->policy != DBLP_POLICY_FULL;
}

/*
 * What was not sent yet of a message that was begun in sequence is shuffled now:
 * what will be missing must not be its tail. Its bytes stay where they are, so
 * these segments leave one by one.
 */
static void dblp_budget_reorder(struct dblp_tx_msg *msg)
{
	u32 base = max(msg->cursor, msg->crit_segs);

	if (!msg->auto_order || msg->shuffled || msg->reshuffled ||
	    base >= msg->acked.n)
		return;
	msg->reshuffled = 1;
	msg->shuffle_base = base;
	dblp_shuffle_init(&msg->shuffle, msg->acked.n - base,
			  get_random_u64());
	if (dblp_tx_begun(msg))
		dblp_elide_skip(msg);
}

/* A message of which nothing was sent had no budget before */
static void dblp_budget_move(struct dblp_tx_msg *msg, u32 ppm)
{
	msg->budget = ppm;
	msg->budget_most = dblp_tx_begun(msg) ? max(msg->budget_most, ppm) : ppm;
	if (ppm)
		dblp_budget_reorder(msg);
}

/**
 * dblp_set_budget() - change the budget of a socket
 * @dsk: socket, locked
 * @ppm: 0 ... DBLP_PPM: of messages to be sent, and of those under way that were
 *	not given one of their own
 */
void dblp_set_budget(struct dblp_sock *dsk, u32 ppm)
{
	struct dblp_tx_msg *msg;

	list_for_each_entry(msg, &dsk->tx_msgs, list) {
		if (!dblp_budget_movable(msg, ppm))
			continue;
		if (dblp_tx_begun(msg))
			dblp_ctl_budget(dsk, msg);
		dblp_budget_move(msg, ppm);
	}
	/* Pieces that are still to be taken from the user */
	if (dsk->tx_part && dblp_budget_movable(&dsk->tx_part->msg, ppm))
		dsk->tx_part->msg.budget = ppm;
	dsk->budget = ppm;
	if (dsk->state < DBLP_STATE_ESTABLISHED)
		return;
	dblp_tx_recount(dsk);
	dblp_flush(dsk);
}

/**
 * dblp_budget_late() - give a message the budget that its socket has now
 * @dsk: socket, locked
 * @msg: message or piece about to be queued, of which nothing was sent: the
 *	socket was not locked while its bytes were copied
 */
void dblp_budget_late(const struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	if (dblp_budget_movable(msg, dsk->budget))
		dblp_budget_move(msg, dsk->budget);
}
