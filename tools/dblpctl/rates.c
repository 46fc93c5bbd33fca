// SPDX-License-Identifier: GPL-2.0-only
/*
 * Traffic of jobs between two samples of their sockets.
 */

#include <stdlib.h>
#include <string.h>

#include "rates.h"

uint64_t row_asked(const struct row *r)
{
	return r->n[COUNT_DELIVERED] + r->n[COUNT_FORGIVEN];
}

uint32_t row_loss(const struct row *r)
{
	unsigned __int128 lost = r->n[COUNT_PKTS_LOST];
	uint64_t sent = r->n[COUNT_PKTS_SENT];

	if (!sent)
		return 0;
	/* @lost may exceed @sent: packets may be lost after the interval of their sending */
	return lost < sent ? (uint32_t)(lost * DBLP_PPM / sent) : DBLP_PPM;
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* qsort() does not take NULL, which an empty array may be */
static void sort(struct row *rows, size_t n,
		 int (*compare)(const void *a, const void *b))
{
	if (n)
		qsort(rows, n, sizeof(*rows), compare);
}

static int compare_sockets(const void *a, const void *b)
{
	return compare(((const struct row *)a)->socket,
		       ((const struct row *)b)->socket);
}

void rows_by_socket(struct row *rows, size_t n)
{
	sort(rows, n, compare_sockets);
}

static bool is_same(const struct row *now, const struct row *before)
{
	int i;

	for (i = 0; i < N_COUNTS; i++)
		if (now->n[i] < before->n[i])
			return false;
	return true;
}

void rows_since(struct row *rows, size_t n, const struct row *before,
		size_t n_before)
{
	const struct row *old;
	struct row *r;
	int i;

	for (r = rows; r < rows + n; r++) {
		old = n_before ? bsearch(r, before, n_before, sizeof(*r),
					 compare_sockets) : NULL;
		if (old && !is_same(r, old))
			old = NULL;
		for (i = 0; old && i < N_COUNTS; i++)
			r->n[i] -= old->n[i];
		if (!r->n[COUNT_PKTS_SENT])
			r->srtt_us = 0;
	}
}

static int compare_jobs(const void *a, const void *b)
{
	return compare(((const struct row *)a)->job,
		       ((const struct row *)b)->job);
}

static void add(struct row *to, const struct row *r)
{
	int i;

	if (r->is_known) {
		to->is_known = true;
		to->phase = r->phase;
		memcpy(to->name, r->name, sizeof(to->name));
	}
	to->sockets += r->sockets;
	if (to->srtt_us < r->srtt_us)
		to->srtt_us = r->srtt_us;
	for (i = 0; i < N_COUNTS; i++)
		to->n[i] += r->n[i];
}

size_t rows_by_job(struct row *rows, size_t n)
{
	size_t i, last = 0;

	if (!n)
		return 0;
	sort(rows, n, compare_jobs);
	for (i = 1; i < n; i++) {
		if (rows[i].job == rows[last].job)
			add(&rows[last], &rows[i]);
		else
			rows[++last] = rows[i];
	}
	return last + 1;
}

static int compare_traffic(const void *a, const void *b)
{
	const struct row *r = a, *s = b;

	return compare(!r->job, !s->job) ?:
	       compare(row_asked(s), row_asked(r)) ?:
	       compare(s->n[COUNT_RECEIVED], r->n[COUNT_RECEIVED]) ?:
	       compare(r->job, s->job);
}

void rows_order(struct row *rows, size_t n)
{
	sort(rows, n, compare_traffic);
}

uint64_t per_second(uint64_t n, double seconds)
{
	double rate = (double)n / seconds + 0.5;

	/* Also if the rate is too large or, after 0 seconds, not a number */
	return rate < (double)UINT64_MAX ? (uint64_t)rate : UINT64_MAX;
}
