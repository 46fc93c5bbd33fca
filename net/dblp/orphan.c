// SPDX-License-Identifier: GPL-2.0-only
/*
 * Orphans: connections that their user has closed, and that have something to
 * deliver still.
 *
 * Nobody waits for them, and nobody sees what they hold. A peer keeps them for as
 * long as it takes messages, but not by acknowledging for its own sake: what counts
 * is segments that arrive for the first time, and messages that are settled, of
 * which there is an end. There may be so many of them in a namespace, and when
 * sockets have nearly all memory that they may have, those that do not get on are
 * the first to go.
 */
#include <net/proto_memory.h>

#include "dblp.h"

/*
 * How often it is looked whether they get on. This is no guess at a path: what ends
 * them is their patience, which this only rounds, or that memory is short, which
 * this is how soon to find out.
 */
#define DBLP_ORPHAN_LOOK_NS	((u64)NSEC_PER_SEC)

static void dblp_orphan_look_again(struct dblp_sock *dsk, u64 now)
{
	dsk->orphan_at = now + min_t(u64, dblp_patience(dsk),
				     DBLP_ORPHAN_LOOK_NS);
}

/**
 * dblp_orphan_begin() - nobody has the socket of a connection any more
 * @dsk: socket in state CLOSING; the caller has a reference besides its own
 */
void dblp_orphan_begin(struct dblp_sock *dsk)
{
	int most = READ_ONCE(dsk->dn->sysctl_max_orphans);
	u64 now = ktime_get_ns();

	sock_owned_by_me(&dsk->sk);
	dsk->orphan = 1;
	if (atomic_inc_return(&dsk->dn->orphans) > most) {
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_ORPHANTOOMANY);
		dblp_abort(dsk, DBLP_RST_CLOSED, 0);
		return;
	}
	dsk->orphan_moved = dsk->tx_moved;
	dsk->orphan_since = now;
	dblp_orphan_look_again(dsk, now);
	dblp_timer_update(dsk);
}

/** dblp_orphan_end() - it is no connection any more */
void dblp_orphan_end(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (dsk->orphan)
		atomic_dec(&dsk->dn->orphans);
	dsk->orphan = 0;
}

/* Halfway from where pressure begins to where nothing more may be charged */
static bool dblp_orphan_in_the_way(const struct dblp_sock *dsk)
{
	const struct sock *sk = &dsk->sk;

	return sk->sk_wmem_queued > SOCK_MIN_SNDBUF &&
	       sk_memory_allocated(sk) > (sk_prot_mem_limits(sk, 1) +
					  sk_prot_mem_limits(sk, 2)) / 2;
}

/**
 * dblp_orphan_look() - does an orphan get on?
 * @dsk: socket; the caller has a reference besides its own, or RCU
 * @now: the time
 */
void dblp_orphan_look(struct dblp_sock *dsk, u64 now)
{
	sock_owned_by_me(&dsk->sk);
	if (dsk->orphan_moved != dsk->tx_moved) {
		dsk->orphan_moved = dsk->tx_moved;
		dsk->orphan_since = now;
	} else if (now - dsk->orphan_since >= dblp_patience(dsk)) {
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_ORPHANTIMEOUT);
		dblp_abort(dsk, DBLP_RST_TIMEOUT, ETIMEDOUT);
		return;
	} else if (dblp_orphan_in_the_way(dsk)) {
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_ORPHANMEMORY);
		dblp_abort(dsk, DBLP_RST_CLOSED, ENOBUFS);
		return;
	}
	dblp_orphan_look_again(dsk, now);
}
