// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mode collective: a rank, and the rendezvous of --spawn. The measured rounds begin on all ranks at once. After the
 * last round the ranks exchange their results reliably.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collective.h"
#include "conn.h"

/**
 * struct record - results of a rank
 * @sent: bytes sent in measured rounds
 * @asked: bytes of contributions to be received in measured rounds
 * @missing: missing bytes of @asked
 * @late_ranks: ranks without which measured rounds continued
 * @missing_ever: missing bytes of all rounds
 * @differing: elements of all rounds that were not the full sum
 * @lane: results of each lane
 * @ns: duration of each measured round; then those of each lane
 */
struct record {
	uint64_t	sent;
	uint64_t	asked;
	uint64_t	missing;
	uint64_t	late_ranks;
	uint64_t	missing_ever;
	uint64_t	differing;
	struct lane_record lane[DBLP_LANES_MAX];
	uint64_t	ns[];
};

static struct dblp_comm *comm;
static uint32_t rank, nranks;

/* Rendezvous of --spawn: through shared memory */

static int tell_where(void *kv, const char *key, const void *v, size_t n)
{
	struct spawned *s = kv;

	(void)key;
	if (n > sizeof(s->where))
		return -E2BIG;
	memcpy(s->where, v, n);
	__atomic_store_n(&s->where_len, n, __ATOMIC_RELEASE);
	return 0;
}

static int ask_where(void *kv, const char *key, void *v, size_t *n)
{
	struct spawned *s = kv;
	size_t len = __atomic_load_n(&s->where_len, __ATOMIC_ACQUIRE);

	(void)key;
	if (!len)
		return -EAGAIN;
	if (len > *n)
		return -E2BIG;
	memcpy(v, s->where, len);
	*n = len;
	return 0;
}

static void prepare(void)
{
	pthread_barrierattr_t attr;

	if (!coll.spawn)
		return;
	coll.spawned = mmap(NULL, sizeof(*coll.spawned), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (coll.spawned == MAP_FAILED)
		fail("no memory for %u ranks", cfg.n_from);
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	errno = pthread_barrier_init(&coll.spawned->barrier, &attr, cfg.n_from);
	if (errno)
		fail("creating a barrier of %u ranks", cfg.n_from);
	if (coll.attr.rendezvous)
		return;
	coll.attr.rendezvous = "kv";
	coll.attr.kv = coll.spawned;
	coll.attr.kv_set = tell_where;
	coll.attr.kv_get = ask_where;
}

static size_t record_words(void)
{
	return sizeof(struct record) / sizeof(uint64_t) +
	       (size_t)cfg.count * (1 + coll.attr.lanes);
}

static struct record *record_of(uint64_t *all, uint32_t of)
{
	return (struct record *)(all + of * record_words());
}

static void __attribute__((noreturn)) op_failed(const char *what, int error)
{
	int32_t culprit = -1;

	dblp_comm_error(comm, &culprit);
	errno = -error;
	if (culprit >= 0)
		fail("rank %u: %s: rank %d has failed", rank, what, culprit);
	fail("rank %u: %s", rank, what);
}

/* Uses the connections of the rounds: other devices may not reach all ranks */
static void sum_reliably(const char *what, void *buf, uint64_t words)
{
	struct dblp_op op = coll.op;
	struct dblp_req *req;
	int err;

	op.flags = DBLP_OP_BUDGET;
	op.budget = 0;
	op.rule = DBLP_BUBBLE;
	op.dtype = DBLP_INT32;
	op.wait_ms = 0;
	op.block = 0;
	op.plan_flags = 0;
	op.parts = 0;
	op.part = NULL;
	if (op.algo == DBLP_AVERAGE)
		op.algo = DBLP_BCUBE;
	err = dblp_allreduce(comm, buf, words, &op, &req) ?:
	      dblp_wait(req, -1, NULL, 0);
	if (err)
		op_failed(what, err);
}

/* Ranks of --spawn begin at the same time, others when the last message arrives */
static void begin_together(void)
{
	int32_t word = 0;

	if (coll.spawned)
		pthread_barrier_wait(&coll.spawned->barrier);
	else
		sum_reliably("the barrier", &word, 1);
}

static int operate(struct vector *v, struct dblp_req **req)
{
	switch (coll.what) {
	case WHAT_REDUCE_SCATTER:
		return dblp_reduce_scatter(comm, v->buf, v->count, &coll.op, req);
	case WHAT_ALLGATHER:
		return dblp_allgather(comm, v->buf, v->count, &coll.op, req);
	default:
		return dblp_allreduce(comm, v->buf, v->count, &coll.op, req);
	}
}

/* Returns the duration of the round on this rank, ns */
static uint64_t one_round(struct vector *v, uint32_t i, struct dblp_result *result)
{
	struct dblp_req *req;
	uint64_t begin, ns;
	char what[80];
	int err;

	vector_begin(v, comm, i);
	if (i)
		sleep_ns(coll.gap_ms * 1000000ULL);
	begin_together();
	begin = now_ns();
	if (!rank && i == cfg.warmup)
		results->started_ns = begin;
	err = operate(v, &req) ?: dblp_wait(req, -1, result, sizeof(*result));
	ns = now_ns() - begin;
	if (err) {
		snprintf(what, sizeof(what), "round %u with %zu bytes", i, v->bytes);
		op_failed(what, err);
	}
	vector_check(v, i);
	return ns;
}

static void note_lanes(struct record *own, const struct dblp_result *result, uint32_t round)
{
	uint32_t i;

	for (i = 0; i < coll.attr.lanes; i++) {
		own->lane[i].asked += result->lane[i].asked;
		own->lane[i].missing += result->lane[i].missing;
		own->ns[(1 + i) * cfg.count + round] = result->lane[i].ns;
	}
}

static void run_rounds(struct vector *v, struct record *own)
{
	struct dblp_result result;
	uint32_t i;

	for (i = 0; i < cfg.warmup + cfg.count; i++) {
		uint64_t ns = one_round(v, i, &result);

		coll.op.turn++;
		own->missing_ever += result.missing;
		if (i < cfg.warmup)
			continue;
		own->ns[i - cfg.warmup] = ns;
		own->sent += result.sent;
		own->asked += result.asked;
		own->missing += result.missing;
		own->late_ranks += result.late_ranks;
		note_lanes(own, &result, i - cfg.warmup);
	}
	own->differing = v->differing;
}

/*
 * Each sum that is not full must be explained by missing bytes of some rank. With
 * feedback the same loss makes another sum too large.
 */
static void check_differing(uint64_t *all)
{
	const uint64_t times = coll.op.rule == DBLP_FEEDBACK ? 2 : 1;
	uint64_t missing = 0, differing;
	uint32_t i;

	for (i = 0; i < nranks; i++)
		missing += record_of(all, i)->missing_ever;
	differing = record_of(all, rank)->differing;
	errno = 0;
	if (differing * sizeof(int32_t) > times * missing)
		fail("rank %u: wrong: %" PRIu64 " sums are not full, but only %" PRIu64
		     " bytes are missing", rank, differing, missing);
}

static uint64_t slowest(uint64_t *all, uint32_t i)
{
	uint64_t most = 0;
	uint32_t r;

	for (r = 0; r < nranks; r++)
		if (record_of(all, r)->ns[i] > most)
			most = record_of(all, r)->ns[i];
	return most;
}

static void take_results(uint64_t *all)
{
	uint32_t i;

	results->sent = 0;
	results->asked = 0;
	results->missing = 0;
	results->late_ranks = 0;
	results->elapsed_ns = 0;
	for (i = 0; i < nranks; i++) {
		results->sent += record_of(all, i)->sent;
		results->asked += record_of(all, i)->asked;
		results->missing += record_of(all, i)->missing;
		results->late_ranks += record_of(all, i)->late_ranks;
	}
	results->n = cfg.count;
	for (i = 0; i < cfg.count; i++) {
		results->sample[i] = slowest(all, i);
		results->elapsed_ns += results->sample[i];
	}
}

/* Sums each lane over ranks, and takes the slowest rank of each round */
static void report_all(uint64_t *all, uint32_t size)
{
	struct lane_record lane[DBLP_LANES_MAX] = { 0 };
	uint64_t *ns = xcalloc((size_t)cfg.count * coll.attr.lanes + 1, sizeof(*ns));
	uint32_t r, i;

	for (r = 0; r < nranks; r++)
		for (i = 0; i < coll.attr.lanes; i++) {
			lane[i].asked += record_of(all, r)->lane[i].asked;
			lane[i].missing += record_of(all, r)->lane[i].missing;
		}
	for (i = 0; i < cfg.count * coll.attr.lanes; i++)
		ns[i] = slowest(all, cfg.count + i);
	collective_report(size, nranks, lane, ns);
	free(ns);
}

/* The sum of all ranks' arrays is every record: a rank writes only its own */
static void measure(uint32_t size)
{
	const uint64_t words = (uint64_t)nranks * record_words();
	uint64_t *all = xcalloc(words, sizeof(*all));
	struct vector v;

	vector_init(&v, size, rank, nranks);
	lanes_divide(v.count);
	run_rounds(&v, record_of(all, rank));
	sum_reliably("exchanging results", all, words * 2);
	check_differing(all);
	if (!rank) {
		take_results(all);
		report_all(all, size);
	}
	vector_free(&v);
	free(all);
}

static void open_comm(unsigned int index)
{
	struct dblp_comm_attr attr = coll.attr;
	int err;

	if (coll.spawn)
		attr.rank = (int32_t)index;
	err = dblp_comm_open(&comm, &attr);
	errno = -err;
	if (err == -EAFNOSUPPORT)
		lacking("this kernel has no %s",
			cfg.main.proto->protocol || !access("/sys/module/dblp", F_OK) ?
			"IPv6, which an address needs" : cfg.main.proto->name);
	if (err == -ENOENT && cfg.main.cc)
		lacking("%s has no congestion control '%s'", cfg.main.proto->name,
			cfg.main.cc);
	if (err && attr.rank < 0)
		fail("joining the ranks of the environment");
	if (err && *dblp_comm_why(NULL))
		fail("rank %d: joining the other ranks: %s", attr.rank, dblp_comm_why(NULL));
	if (err)
		fail("rank %d: joining the other ranks", attr.rank);
	rank = dblp_comm_rank(comm);
	nranks = dblp_comm_nranks(comm);
}

static void rounds(unsigned int index)
{
	unsigned int i;

	open_comm(index);
	collective_check_ranks(nranks);
	for (i = 0; i < coll.n_sizes; i++) {
		coll.op.key = i + 1;
		measure(coll.size[i]);
	}
	dblp_comm_close(comm);
}

const struct mode mode_collective = {
	.name		= "collective",
	.summary	= "sum of a vector over all ranks: time of a round",
	.prepare	= prepare,
	.connect	= rounds,
};
