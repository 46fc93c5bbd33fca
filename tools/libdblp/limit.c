// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Time limits of operations. When an operation exceeds its limit, its rank
 * reports that to rank 0, which asks all ranks how many operations they have
 * begun. The absent ranks are those that have not begun this one, or do not
 * answer because their process is stopped. Rank 0 sends their numbers to all,
 * and the communicator fails.
 */

#include "engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static uint64_t limit_ns(const struct dblp_req *req)
{
	return MS_NS * (req->op.limit_ms ? req->op.limit_ms : req->comm->attr.operation_ms);
}

uint64_t dblp_limit_until(const struct dblp_req *req)
{
	const uint64_t limit = limit_ns(req);

	return limit && !req->limit_passed ? req->begin + limit : UINT64_MAX;
}

static void list_ranks(const struct dblp_absent *a, char *text, size_t size)
{
	uint32_t i, n = a->n < DBLP_ABSENT_RANKS ? a->n : DBLP_ABSENT_RANKS;
	size_t at = 0;

	for (i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%u",
				       !i ? "" : i + 1 == a->n ? " and " : ", ", a->rank[i]);
	if (a->n > n)
		snprintf(text + at, size - at, " and %u more", a->n - n);
}

/*
 * Set the texts for dblp_comm_why() and dblp_comm_absent(), before the
 * communicator fails
 */
static void explain(struct dblp_comm *comm, const struct dblp_ctl *late,
		    const struct dblp_absent *a)
{
	char ranks[128];

	list_ranks(a, ranks, sizeof(ranks));
	if (late->nics)
		dblp_comm_explain(comm, "rank %u has waited %u ms for rank %s to send or receive",
				  late->rank, late->message_bytes, ranks);
	else if (a->n)
		dblp_comm_explain(comm, "operation %u has not ended after %u ms: rank%s %s %s not begun it",
				  late->seq, late->message_bytes, a->n > 1 ? "s" : "", ranks,
				  a->n > 1 ? "have" : "has");
	else
		dblp_comm_explain(comm, "operation %u has not ended after %u ms on rank %u, though all ranks have begun it",
				  late->seq, late->message_bytes, late->rank);
	pthread_mutex_lock(&comm->lock);
	comm->absent = *a;
	pthread_mutex_unlock(&comm->lock);
}

static void add(struct dblp_absent *a, uint32_t rank)
{
	if (a->n < DBLP_ABSENT_RANKS)
		a->rank[a->n] = (uint16_t)rank;
	a->n++;
}

/* Rank 0 knows the absent ranks of @late: send them to all, before the failure */
static void send_absent(struct dblp_comm *comm, const struct dblp_ctl *late,
			const struct dblp_absent *a)
{
	struct dblp_ctl ctl = *late;
	uint32_t i;

	if (!dblp_decide(comm, a->n ? a->rank[0] : late->rank, ETIMEDOUT, NULL))
		return;
	ctl.type = DBLP_CTL_ABSENT;
	ctl.nranks = a->n;
	memcpy(ctl.transport, a->rank, sizeof(a->rank));
	for (i = 1; i < comm->n_ctl; i++)
		dblp_ctl_send(comm, &comm->ctl[i], &ctl);
	explain(comm, late, a);
}

/*
 * Operations that the program has begun; the engine may not have taken all of
 * them
 */
static uint32_t count_begun(struct dblp_comm *comm)
{
	uint32_t n;

	pthread_mutex_lock(&comm->lock);
	n = comm->seq;
	pthread_mutex_unlock(&comm->lock);
	return n;
}

static bool has_begun(uint32_t begun, uint32_t seq)
{
	return (int32_t)(begun - seq) > 0;
}

/* All ranks have answered, or the timeout has passed: find the absent ones */
static void find_absent(struct dblp_comm *comm)
{
	struct dblp_absent a = { 0 };
	uint32_t i;

	comm->querying = false;
	if (!has_begun(count_begun(comm), comm->late.seq))
		add(&a, 0);
	for (i = 1; i < comm->n_ctl; i++)
		if (!comm->ctl[i].answered ||
		    !has_begun(comm->ctl[i].begun, comm->late.seq))
			add(&a, i);
	send_absent(comm, &comm->late, &a);
}

/*
 * Set a timeout for answers, which take a round trip unless a process is
 * stopped
 */
static bool start_query(struct dblp_comm *comm, const struct dblp_ctl *late)
{
	uint64_t limit = comm->attr.timeout_ms * MS_NS;

	if (comm->querying)
		return false;
	comm->querying = true;
	comm->late = *late;
	/* Rank 0 may have to wait for another rank before it answers */
	comm->query_until = dblp_comm_now() + (comm->rank ? 2 * limit : limit);
	return true;
}

static void query_ranks(struct dblp_comm *comm, const struct dblp_ctl *late)
{
	struct dblp_ctl ctl = dblp_ctl_make(comm, DBLP_CTL_ASK);
	uint32_t i;

	if (!start_query(comm, late))
		return;
	for (i = 1; i < comm->n_ctl; i++) {
		/* A rank that has left said so then */
		comm->ctl[i].answered = comm->ctl[i].bye;
		dblp_ctl_send(comm, &comm->ctl[i], &ctl);
	}
}

/* Rank 0 has not answered, so its process is stopped: fail without it */
static void fail_without_rank_0(struct dblp_comm *comm)
{
	struct dblp_absent a = { 0 };
	uint16_t peer;

	if (!dblp_decide(comm, 0, ETIMEDOUT, NULL))
		return;
	add(&a, 0);
	memcpy(&peer, comm->late.transport, sizeof(peer));
	if (comm->late.nics && peer)
		dblp_comm_explain(comm, "rank %u has waited %u ms for rank %u to send or receive, and rank 0 does not answer",
				  comm->rank, comm->late.message_bytes, peer);
	explain(comm, &comm->late, &a);
}

/* Is an answer missing that may still arrive? */
static bool is_waiting(const struct dblp_comm *comm)
{
	uint32_t i;

	for (i = 1; i < comm->n_ctl; i++)
		if (comm->ctl[i].fd >= 0 && !comm->ctl[i].answered)
			return true;
	return comm->rank;
}

uint64_t dblp_limit_timeout(struct dblp_comm *comm, uint64_t now)
{
	if (!comm->querying)
		return UINT64_MAX;
	if (now < comm->query_until && is_waiting(comm))
		return comm->query_until;
	if (comm->rank)
		fail_without_rank_0(comm);
	else
		find_absent(comm);
	return UINT64_MAX;
}

static void limit_exceeded(struct dblp_comm *comm, const struct dblp_ctl *late)
{
	struct dblp_absent a = { 0 };

	memcpy(a.rank, late->transport, sizeof(a.rank));
	a.n = late->nranks;
	if (late->nics)
		send_absent(comm, late, &a);
	else
		query_ranks(comm, late);
}

void dblp_limit_over(struct dblp_req *req)
{
	struct dblp_comm *comm = req->comm;
	struct dblp_ctl late = dblp_ctl_make(comm, DBLP_CTL_LATE);
	struct dblp_absent a = { 0 };

	req->limit_passed = true;
	late.seq = req->seq;
	late.message_bytes = (uint32_t)(limit_ns(req) / MS_NS);
	if (req->peer >= 0) {
		late.nics = late.nranks = 1;
		add(&a, (uint32_t)req->peer);
		memcpy(late.transport, a.rank, sizeof(a.rank));
	}
	if (!comm->rank)
		limit_exceeded(comm, &late);
	else if (comm->ctl[0].fd >= 0 && start_query(comm, &late))
		dblp_ctl_send(comm, &comm->ctl[0], &late);
}

static bool is_list(const struct dblp_comm *comm, const struct dblp_ctl *ctl)
{
	struct dblp_absent a;
	uint32_t i;

	memcpy(a.rank, ctl->transport, sizeof(a.rank));
	for (i = 0; i < ctl->nranks && i < DBLP_ABSENT_RANKS; i++)
		if (a.rank[i] >= comm->nranks)
			return false;
	return ctl->nranks <= comm->nranks && (!ctl->nics || ctl->nranks == 1);
}

bool dblp_limit_message(struct dblp_comm *comm, struct dblp_ctlconn *c,
			const struct dblp_ctl *ctl)
{
	struct dblp_ctl begun = dblp_ctl_make(comm, DBLP_CTL_BEGUN);
	struct dblp_absent a = { .n = ctl->nranks };

	if (!is_list(comm, ctl))
		return false;
	switch (ctl->type) {
	case DBLP_CTL_LATE:
		if (!comm->rank && !comm->error)
			limit_exceeded(comm, ctl);
		return true;
	case DBLP_CTL_ASK:
		begun.seq = count_begun(comm);
		dblp_ctl_send(comm, c, &begun);
		return true;
	case DBLP_CTL_BEGUN:
		c->answered = true;
		c->begun = ctl->seq;
		return true;
	case DBLP_CTL_ABSENT:
		memcpy(a.rank, ctl->transport, sizeof(a.rank));
		if (comm->rank && !comm->decision.is_set)
			explain(comm, ctl, &a);
		return true;
	}
	return false;
}
