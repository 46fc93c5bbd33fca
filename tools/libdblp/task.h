/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: operations and their steps.
 *
 *	op.c		beginning operations, waiting for them
 *	sched.c		plans, and dependencies between their steps
 *	task.c		the end of steps and of operations
 *	losses.c	residuals, counts of contributions, and budgets
 *	late.c		continuing without late ranks
 */
#ifndef DBLP_TASK_H
#define DBLP_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "comm.h"
#include "head.h"
#include "lanes.h"
#include "repair.h"
#include "rule.h"
#include "sparse.h"
#include "util.h"

struct dblp_comm;
struct dblp_link;
struct dblp_msg;

/* sched.c */

/**
 * struct dblp_sched - the steps of a rank, and their dependencies
 * @plan: the plan
 * @layout: lanes and parts of the plan; @layout.part is a copy
 * @digest: hash of the plan, which is the same on all ranks
 * @refs: users; protected by the communicator's lock
 * @n: number of steps
 * @step: the steps
 * @way: lane of each step, and which elements it carries
 * @waits: for each step, the number of steps for which it waits
 * @after: for each step, index in @next of the first step that waits for it;
 *	@after[@n] is the end of the last one's
 * @next: indices of the waiting steps
 */
struct dblp_sched {
	struct dblp_plan	plan;
	struct dblp_layout	layout;
	uint64_t		digest;
	unsigned int		refs;
	uint32_t		n;
	struct dblp_step	*step;
	struct dblp_way		*way;
	uint32_t		*waits;
	uint32_t		*after;
	uint32_t		*next;
};

/*
 * dblp_sched_new() - compute steps and dependencies, with one reference; 0 or a
 *	negative errno
 */
int dblp_sched_new(const struct dblp_plan *plan, const struct dblp_layout *layout,
		   struct dblp_sched **sched);
void dblp_sched_put(struct dblp_sched *s);

/* Operations */

/**
 * struct dblp_task - a step of an operation, with its state
 * @req: the operation
 * @step: the step
 * @next: next task in the queue of the link
 * @waits: steps that must end before it may begin
 * @reports: sent messages whose report has not arrived
 * @done: elements whose messages were sent or received completely
 * @begun: some bytes were sent or received
 * @ended: no other step waits for it any more
 * @late: the operation has continued without it
 * @own: copy of the data that is still to be sent to a late rank, or NULL
 * @own_from: @done when @own was copied: its first element
 */
struct dblp_task {
	struct dblp_req		*req;
	const struct dblp_step	*step;
	struct dblp_task	*next;
	uint32_t		waits;
	uint32_t		reports;
	uint64_t		done;
	bool			begun;
	bool			ended;
	bool			late;
	char			*own;
	uint64_t		own_from;
};

/**
 * struct dblp_req - an operation
 * @comm: the communicator
 * @entry: in a list of the communicator
 * @op: its attributes
 * @sched: its steps
 * @peer: send and recv: the other rank, in a plan of 2 ranks; else -1
 * @word: the vector of a barrier, or of a send or recv without elements
 * @buf: the vector
 * @esize: bytes of an element
 * @seq: number of the operation: among those of all ranks, or from one rank to
 *	another
 * @digest: hash of what all ranks must agree on
 * @begin: when the program began it, ns
 * @reported: it took longer than REPORT_MS and was reported to rank 0
 * @limit_passed: its time limit has passed and was reported to rank 0
 * @late_at: next time at which a contribution becomes late, ns
 * @left: tasks that have not ended
 * @lane_left: the same, for each lane
 * @queued: late tasks and copies for late ranks that are still in the queue of
 *	a link
 * @key: residual and saved budget for the next operation, or NULL
 * @counts: contributions of each element
 * @budgets: received messages whose budget is in @result
 * @users: references: the program (until dblp_wait()), the engine (until the
 *	request leaves @over of the communicator)
 * @ended: the program may take the result
 * @result: the result
 * @task: one for each step
 */
struct dblp_req {
	struct dblp_comm	*comm;
	TAILQ_ENTRY(dblp_req)	entry;
	struct dblp_op		op;
	struct dblp_sched	*sched;
	int32_t			peer;
	uint64_t		word;
	char			*buf;
	uint32_t		esize;
	uint32_t		seq;
	uint64_t		digest;
	uint64_t		begin;
	bool			reported;
	bool			limit_passed;
	uint64_t		late_at;
	uint32_t		left;
	uint32_t		lane_left[DBLP_LANES_MAX];
	uint32_t		queued;
	struct dblp_key		*key;
	struct dblp_counts	counts;
	uint64_t		budgets;
	unsigned int		users;
	bool			ended;
	struct dblp_result	result;
	struct dblp_task	task[];
};

TAILQ_HEAD(dblp_reqs, dblp_req);

/**
 * struct dblp_repair - elements that a message has lost, and its receiver keeps
 * @old: in the last operation: repaired in this one
 * @lost: in this operation
 */
struct dblp_repair {
	struct dblp_stale	old;
	struct dblp_stale	lost;
};

/**
 * struct dblp_key - state kept from one operation to the next one
 * @next: next key of the communicator
 * @key: number of the vector
 * @count: elements of the vector
 * @dtype: &enum dblp_dtype
 * @busy: an operation with this key has not ended
 * @used: an operation has used this key: @average is valid
 * @average: its operations have %DBLP_OP_AVERAGE
 * @residual: %DBLP_FEEDBACK: lost and pruned contributions, or NULL
 * @carry: %DBLP_OP_CARRY: saved budgets, by rank and link, or NULL
 * @repair: %DBLP_OP_REPAIR: lost elements, by rank and link, of sent and then of
 *	received messages, or NULL
 */
struct dblp_key {
	struct dblp_key		*next;
	uint64_t		key;
	uint64_t		count;
	uint32_t		dtype;
	bool			busy;
	bool			used;
	bool			average;
	void			*residual;
	struct dblp_carry	*carry;
	struct dblp_repair	(*repair)[2];
};

/**
 * struct dblp_record - a sent message whose report has not arrived
 * @next: next record of the link
 * @tag: tag of the message
 * @task: its task
 * @offset: first element of the vector in the message
 * @count: elements of the vector in the message
 * @bytes: bytes of elements that were sent
 * @budget: budget of the message, ppm
 * @is_sparse: @sparse and @front are valid
 * @sparse: blocks of the packed vector; its bitmap is in @front
 * @front: copy of the front of the packed vector
 */
struct dblp_record {
	struct dblp_record	*next;
	uint64_t		tag;
	struct dblp_task	*task;
	uint64_t		offset;
	uint64_t		count;
	uint32_t		bytes;
	uint32_t		budget;
	bool			is_sparse;
	struct dblp_sparse	sparse;
	uint8_t			front[];
};

/* task.c */

/** dblp_task_is_local() - does the step need no other rank? */
static inline bool dblp_task_is_local(const struct dblp_task *t)
{
	return t->step->op == DBLP_STEP_CLEAR || t->step->op == DBLP_STEP_FINISH;
}

/** dblp_task_run() - run a local step, which ends */
void dblp_task_run(struct dblp_task *t);
/** dblp_task_end() - a step has ended: wake the steps that wait for it */
void dblp_task_end(struct dblp_task *t);
/** dblp_task_head() - make the head of the next message of a step, from rank @from */
void dblp_task_head(const struct dblp_task *t, uint32_t from, uint32_t runs,
		    uint8_t p[DBLP_HEAD_LEN]);
/** dblp_task_share() - bytes of contributions in a step, if nothing is lost */
uint64_t dblp_task_share(const struct dblp_task *t);
/** dblp_task_missing() - count bytes of contributions that are lost or late */
void dblp_task_missing(const struct dblp_task *t, uint64_t bytes);
/*
 * dblp_req_first() - set @first of the communicator to the first operation from
 *	@req on that has not ended and involves all ranks
 */
void dblp_req_first(struct dblp_comm *comm, struct dblp_req *req);
/** dblp_req_unqueue() - a late task or copy has left its queue; may hand @req over */
void dblp_req_unqueue(struct dblp_req *req);
/** dblp_req_end() - the operation has ended: publish its result */
void dblp_req_end(struct dblp_req *req);
/** dblp_req_put() - drop a reference; with the lock */
void dblp_req_put(struct dblp_req *req);

/* losses.c */

void dblp_keys_free(struct dblp_comm *comm);
/*
 * dblp_losses_prepare() - allocate memory for @req; with the lock. 0 or a
 *	negative errno
 */
int dblp_losses_prepare(struct dblp_req *req);
/** dblp_losses_free() - free that memory; with the lock */
void dblp_losses_free(struct dblp_req *req);
void dblp_losses_begin(struct dblp_req *req);
/** dblp_losses_end() - all steps have ended: measure energies, if wanted */
void dblp_losses_end(struct dblp_req *req);
/** dblp_losses_clear() - the vector was cleared: no element has a contribution */
void dblp_losses_clear(struct dblp_task *t);
/** dblp_losses_need_counts() - do runs precede the messages of this step? */
bool dblp_losses_need_counts(const struct dblp_task *t);
/**
 * dblp_losses_added() - count the contributions of an added message
 * @t: the step
 * @count: elements of the vector in the message
 * @sparse: blocks of the vector that were sent, or NULL: all
 * @map: loss map of the message
 * @run: contributions in it
 * @n: number of runs; 0: all elements have the contributions of the plan
 *
 * Return: 0 or -ENOMEM.
 */
int dblp_losses_added(struct dblp_task *t, uint64_t count,
		      const struct dblp_sparse *sparse,
		      const struct dblp_msg *map, const struct dblp_run *run,
		      uint32_t n);
/** dblp_losses_cut() - runs of the next message: their number, or a negative errno */
int dblp_losses_cut(const struct dblp_task *t, uint64_t count,
		    struct dblp_run *run, uint32_t room);
/** dblp_losses_finish() - apply the rule; 0 or -ENOMEM */
int dblp_losses_finish(struct dblp_task *t);
/*
 * dblp_losses_budget() - budget of the next message, of @bytes bytes of
 *	elements, ppm
 */
uint32_t dblp_losses_budget(struct dblp_link *l, const struct dblp_task *t,
			    uint32_t bytes, uint32_t budget);
/** dblp_losses_repair() - lost elements of the messages of a step, or none */
struct dblp_repair *dblp_losses_repair(const struct dblp_link *l,
				       const struct dblp_task *t);
/** dblp_losses_pruned() - residual for pruned elements of the next message, or NULL */
void *dblp_losses_pruned(const struct dblp_task *t);
/*
 * dblp_losses_sent() - record a sent message, packed as l->out.sparse says if it is
 *	sparse; 0 or -ENOMEM
 */
int dblp_losses_sent(struct dblp_link *l, struct dblp_task *t, uint64_t tag,
		     uint64_t count);
/*
 * dblp_losses_reported() - handle a report; returns the step of the message, or
 *	NULL
 */
struct dblp_task *dblp_losses_reported(struct dblp_link *l,
				       const struct dblp_msg *m);
void dblp_records_free(struct dblp_link *l);

/* late.c */

/** dblp_late_timeout() - as dblp_ctl_timeout(), for an operation with @wait_ms */
uint64_t dblp_late_timeout(struct dblp_req *req, uint64_t now);
/** dblp_late_free() - free the copy of data for a late rank */
void dblp_late_free(struct dblp_task *t);

/** dblp_round_until() - when contributions of a round become late, ns */
static inline uint64_t dblp_round_until(uint64_t begin, uint32_t wait_ms,
					uint32_t round)
{
	uint64_t until;

	return __builtin_mul_overflow(wait_ms * MS_NS, (uint64_t)round + 1,
				      &until) ||
	       __builtin_add_overflow(until, begin, &until) ? UINT64_MAX : until;
}

#endif /* DBLP_TASK_H */
