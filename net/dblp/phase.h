/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Phases: named sets of socket settings, one table for each network namespace.
 */
#ifndef _NET_DBLP_PHASE_H
#define _NET_DBLP_PHASE_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/dblp.h>
#include <linux/mutex.h>
#include <linux/seqlock.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include "job.h"

struct dblp_cc_ops;
struct dblp_sock;
struct net;

/* Numbers of the initial phases of a namespace */
#define DBLP_PHASE_CRITICAL	1
#define DBLP_PHASE_TOLERANT	2

/**
 * struct dblp_phase - an entry of the table
 * @name: "" in an unused entry
 * @budget: ppm; 0 with policy full
 * @policy: &enum dblp_policy
 * @order: &enum dblp_order
 * @fill: &enum dblp_fill
 * @cap: ppm, or DBLP_INHERIT if the phase has none
 */
struct dblp_phase {
	char	name[DBLP_NAME_MAX];
	u32	budget;
	u32	cap;
	u8	policy;
	u8	order;
	u8	fill;
};

/**
 * struct dblp_defaults - initial settings of sockets made by socket()
 * @cc: congestion control
 * @cap: DBLP_BUDGET_CAP, ppm, or DBLP_INHERIT if it is not set
 * @user_timeout_ms: DBLP_USER_TIMEOUT
 * @keepalive_ms: DBLP_KEEPALIVE
 * @gso: 1 if packets may form trains, else 0; not copied to sockets, which read
 *	it for each train
 *
 * The fields are independent, so they need not be read consistently.
 */
struct dblp_defaults {
	const struct dblp_cc_ops	*cc;
	u32				cap;
	u32				user_timeout_ms;
	u32				keepalive_ms;
	u32				gso;
};

/**
 * struct dblp_config - settings of operators for a network namespace
 * @lock: serializes all changes here; taken before the lock of any socket. It
 *	is not held while sockets are walked or send packets, because all users
 *	may wait for it
 * @seq: written with @lock held, around each change of @phases that sockets
 *	must see
 * @phases: by number; read under @seq
 * @users: for each phase but 0: number of sockets that chose it themselves.
 *	Incremented under @lock, or for a child whose listener is one of them
 * @defaults: settings of new sockets; written with @lock held, and read without
 * @defaults_generation: changes with @defaults; under @lock
 * @phases_generation: changes with @phases; under @lock
 * @jobs: by number; under @lock
 * @jobs_generation: changes when a job is added, deleted or set. It does not
 *	change when the detector moves a job, because any owner of a job could
 *	interrupt all dumps then
 */
struct dblp_config {
	struct mutex		lock;	/* for all of it; before socket locks */
	seqlock_t		seq;
	struct dblp_phase	phases[DBLP_PHASES];
	atomic_t		users[DBLP_PHASES];
	struct dblp_defaults	defaults;
	u32			defaults_generation;
	u32			phases_generation;
	struct xarray		jobs;
	atomic_t		jobs_generation;
};

/* Bit of an option in @own of a socket: the option was set for this socket */
#define DBLP_OWN(option)	BIT(option)
#define DBLP_OWN_OPTS		(DBLP_OWN(DBLP_BUDGET) | \
				 DBLP_OWN(DBLP_BUDGET_CAP) | \
				 DBLP_OWN(DBLP_CLOSE_POLICY) | \
				 DBLP_OWN(DBLP_ORDER) | DBLP_OWN(DBLP_FILL) | \
				 DBLP_OWN(DBLP_PHASE))

/* phase.c: settings of operators */
void dblp_defaults_init(struct dblp_defaults *d);
void dblp_defaults_read(struct dblp_config *c, struct dblp_defaults *d);
void dblp_defaults_write(struct dblp_config *c, const struct dblp_defaults *d);
void dblp_config_init(struct dblp_config *c);
struct dblp_config *dblp_config(struct net *net);
bool dblp_phase_get(struct net *net, u32 id, struct dblp_phase *p);
int dblp_phase_delete(struct net *net, u32 id);
void dblp_drop_phase(struct dblp_sock *dsk);
void dblp_choose_phase(struct dblp_sock *dsk, u8 id);
void dblp_leave_config(struct dblp_sock *dsk);

#endif /* _NET_DBLP_PHASE_H */
