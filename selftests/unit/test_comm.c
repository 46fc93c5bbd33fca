// SPDX-License-Identifier: GPL-2.0-only
/*
 * libdblp: communicators over TCP on the loopback interface. Ranks are threads, and
 * processes where some are killed.
 */
#define _GNU_SOURCE
#include <sanitizer/lsan_interface.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "test.h"
#include "../lib/ranks.h"

TEST(all_ranks_get_the_sum_by_every_plan)
{
	static const u64 counts[] = { 0, 1, 5, 1000, 50001 };
	int n, algo, c, i;

	for (n = 1; n <= 5; n++)
		for (algo = DBLP_PS; algo < DBLP_AVERAGE; algo++)
			for (c = 0; c < 5; c++) {
				prepare(n, next_epoch(), counts[c], run_allreduce);
				for (i = 0; i < n; i++) {
					rank[i].op.algo = algo;
					rank[i].attr.message_bytes = 16000;
				}
				run_all(n);
				for (i = 0; i < n; i++) {
					ASSERT_EQ(0, rank[i].opened);
					ASSERT_EQ(0, rank[i].err);
					ASSERT_TRUE(rank[i].good);
				}
			}
}

/* Only the parts that a rank owns, then all of it again */
static u64 n_owned;

static void run_halves(struct rank *r)
{
	int *v = new_vector(r, 0);
	struct dblp_req *req;
	struct dblp_span part[2] = { 0 };
	int k, n = dblp_comm_owned(r->comm, r->count, &r->op, part, 2);
	u64 at = 0;

	r->err = dblp_reduce_scatter(r->comm, v, r->count, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, NULL, 0);
	r->good = !r->err && n >= 0 && n <= 2 &&
		  dblp_comm_owned(r->comm, r->count, &r->op, NULL, 0) == n;
	for (k = 0; r->good && k < n; k++) {
		r->good = part[k].first < part[k].end &&
			  is_sum(r, v, part[k].first,
				 part[k].end - part[k].first, 0);
		__atomic_add_fetch(&n_owned, part[k].end - part[k].first,
				   __ATOMIC_SEQ_CST);
		if (at < part[k].first)
			memset(v + at, 0, (part[k].first - at) * sizeof(*v));
		at = part[k].end;
	}
	memset(v + at, 0, (r->count - at) * sizeof(*v));
	r->err = r->err ?: dblp_allgather(r->comm, v, r->count, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, NULL, 0);
	r->good &= is_sum(r, v, 0, r->count, 0);
	free(v);
}

TEST(halves_of_an_allreduce_make_a_whole)
{
	int algo, i;

	/* A BCube with one level, then with two */
	for (algo = DBLP_PS; algo <= DBLP_AVERAGE; algo++) {
		prepare(4, next_epoch(), 1001, run_halves);
		for (i = 0; i < 4; i++) {
			rank[i].op.algo = algo;
			if (algo < DBLP_AVERAGE)
				continue;
			rank[i].op.algo = DBLP_BCUBE;
			rank[i].op.levels = 2;
			rank[i].op.radix[0] = 2;
			rank[i].op.radix[1] = 2;
		}
		n_owned = 0;
		run_all(4);
		/* Each element has one owner */
		ASSERT_EQ(1001, n_owned);
		for (i = 0; i < 4; i++) {
			ASSERT_EQ(0, rank[i].err);
			ASSERT_TRUE(rank[i].good);
		}
	}
}

/* The mean of floats; the averages of groups of two become that of all */
static void run_average(struct rank *r)
{
	float *v = malloc(r->count * sizeof(*v));
	struct dblp_req *req;
	u64 i;

	for (i = 0; i < r->count; i++)
		v[i] = (float)((r->attr.rank + 1) * 12);
	do {
		r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req) ?:
			 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	} while (!r->err && ++r->op.turn < r->op.levels);
	r->good = !r->err;
	for (i = 0; i < r->count; i++)
		r->good &= v[i] == 30;
	free(v);
}

TEST(averages_are_those_of_all_ranks)
{
	int i, average;

	for (average = 0; average < 2; average++) {
		prepare(4, next_epoch(), 999, run_average);
		for (i = 0; i < 4; i++) {
			rank[i].op.dtype = DBLP_FLOAT32;
			rank[i].op.flags = DBLP_OP_AVERAGE;
			if (!average)
				continue;
			rank[i].op.algo = DBLP_AVERAGE;
			rank[i].op.levels = 2;
			rank[i].op.radix[0] = 2;
			rank[i].op.radix[1] = 2;
		}
		run_all(4);
		for (i = 0; i < 4; i++) {
			EXPECT_EQ(0, rank[i].err);
			EXPECT_TRUE(rank[i].good);
			EXPECT_EQ(0, rank[i].result.missing);
			EXPECT_EQ(-1, rank[i].result.failed_rank);
		}
	}
}

TEST(ranks_meet_at_an_address_a_list_or_what_the_environment_says)
{
	char tcp[64], file[64], list[32] = "/tmp/test_comm.XXXXXX";
	const char *const how[] = { tcp, file, "env", NULL };
	int i, k, fd = mkstemp(list);
	char port[8];

	ASSERT_LE(0, fd);
	for (k = 0; k < 4; k++) {
		u16 at = free_port();

		snprintf(tcp, sizeof(tcp), "tcp://localhost:%u", at);
		snprintf(file, sizeof(file), "file:%s", list);
		ASSERT_EQ(0, ftruncate(fd, 0));
		ASSERT_LT(0, dprintf(fd, "# ranks\n127.0.0.1:%u\n127.0.0.2:1 # x\n\n[::1]:1\n", at));
		snprintf(port, sizeof(port), "%u", k == 2 ? at - 1 : at);
		setenv("MASTER_ADDR", "127.0.0.1", 1);
		setenv(k == 2 ? "MASTER_PORT" : "DBLP_PORT", port, 1);
		if (k == 2)
			unsetenv("DBLP_PORT");
		/* An IPv6 address beside IPv4 ones works where both do */
		prepare(3, next_epoch(), 1000, run_allreduce);
		for (i = 0; i < 3; i++)
			rank[i].attr.rendezvous = how[k];
		run_all(3);
		expect_good(_metadata, 3);
		if (k == 1)
			EXPECT_NE(NULL, strstr(rank[1].text, "127.0.0.2:"));
		lseek(fd, 0, SEEK_SET);
	}
	close(fd);
	unlink(list);
}

TEST(ranks_and_their_number_come_from_the_environment)
{
	struct dblp_comm_attr attr;

	prepare(1, next_epoch(), 10, run_allreduce);
	rank[0].attr.rank = DBLP_COMM_RANK_ENV;
	rank[0].attr.nranks = DBLP_COMM_RANK_ENV;
	attr = rank[0].attr;
	run_all(1);
	EXPECT_EQ(-EINVAL, rank[0].opened);
	setenv("PMI_RANK", "0", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
	run_all(1);
	expect_good(_metadata, 1);
	setenv("RANK", "1", 1);
	rank[0].attr = attr;
	run_all(1);
	EXPECT_EQ(-EINVAL, rank[0].opened);
	setenv("RANK", "x", 1);
	run_all(1);
	EXPECT_EQ(-EINVAL, rank[0].opened);
	unsetenv("RANK");
}

static void run_who(struct rank *r)
{
	r->good = dblp_comm_rank(r->comm) == (u32)(r - rank) &&
		  dblp_comm_nranks(r->comm) == r->nranks;
}

TEST(a_rank_can_ask_which_one_it_is)
{
	prepare(3, next_epoch(), 10, run_who);
	run_all(3);
	expect_good(_metadata, 3);
	setenv("RANK", "0", 1);
	setenv("WORLD_SIZE", "1", 1);
	prepare(1, next_epoch(), 10, run_who);
	rank[0].attr.rank = DBLP_COMM_RANK_ENV;
	rank[0].attr.nranks = DBLP_COMM_RANK_ENV;
	run_all(1);
	expect_good(_metadata, 1);
}

TEST(what_is_in_use_is_told)
{
	prepare(2, next_epoch(), 10, run_allreduce);
	rank[0].attr.transport = "tcp:reno";
	rank[1].attr.transport = "tcp:reno";
	run_all(2);
	expect_good(_metadata, 2);
	EXPECT_NE(NULL, strstr(rank[1].text, "rank 1 of 2, epoch "));
	EXPECT_NE(NULL, strstr(rank[1].text, "over tcp:reno at "));
	EXPECT_EQ(NULL, strchr(rank[1].text, '\n'));
}

TEST(attributes_that_contradict_themselves_are_refused)
{
	struct {
		struct dblp_comm_attr	attr;
		char			more[8];
	} longer;
	struct dblp_comm *comm = NULL;
	struct dblp_comm_attr good, a;

	prepare(1, next_epoch(), 10, run_allreduce);
	good = rank[0].attr;
#define REFUSED(err, change) do { \
		a = good; \
		change; \
		EXPECT_EQ(err, dblp_comm_open(&comm, &a)); \
		EXPECT_EQ(NULL, comm); \
	} while (0)
	REFUSED(-EINVAL, a.size = 4);
	REFUSED(-EINVAL, a.reserved = 1);
	REFUSED(-EINVAL, a.rank = 1);
	REFUSED(-EINVAL, a.nranks = 0);
	REFUSED(-EINVAL, a.nranks = DBLP_RANKS_MAX + 1);
	REFUSED(-EINVAL, a.transport = "udp");
	REFUSED(-EINVAL, a.transport = "tcp:");
	REFUSED(-EINVAL, a.transport = "tcp:abcdefghijklmnop");
	REFUSED(-ENOENT, a.transport = "tcp:nothing");
	REFUSED(-EINVAL, a.devices = "lo,");
	REFUSED(-EINVAL, a.devices = "");
	REFUSED(-ENODEV, a.devices = "nothing");
	REFUSED(-EINVAL, a.rendezvous = "udp://127.0.0.1:1");
	REFUSED(-EINVAL, a.rendezvous = "tcp://127.0.0.1");
	REFUSED(-ENOENT, a.rendezvous = "file:/nothing");
	REFUSED(-EINVAL, a.kv_get = NULL);
	unsetenv("DBLP_PORT");
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	REFUSED(-EINVAL, a.rendezvous = "env"; setenv("MASTER_PORT", "abc", 1));
	REFUSED(-EINVAL, a.rendezvous = "env"; setenv("MASTER_PORT", "1x", 1));
	REFUSED(-EINVAL, a.rendezvous = "env"; setenv("MASTER_PORT", "65535", 1));
	REFUSED(-EINVAL, a.rendezvous = "env"; setenv("DBLP_PORT", "-1", 1));
	REFUSED(-EINVAL, a.rendezvous = "env"; setenv("DBLP_PORT", "65536", 1));
	unsetenv("DBLP_PORT");
	REFUSED(-EINVAL, a.message_bytes = 4);
	REFUSED(-EINVAL, a.message_bytes = 1U << 31);
	REFUSED(-EINVAL, a.keepalive_ms = 999);
	REFUSED(-EINVAL, a.timeout_ms = 1999);
	memset(&longer, 0, sizeof(longer));
	longer.attr = good;
	longer.attr.size = sizeof(longer);
	longer.more[7] = 1;
	EXPECT_EQ(-E2BIG, dblp_comm_open(&comm, &longer.attr));
	longer.more[7] = 0;
	EXPECT_EQ(0, dblp_comm_open(&comm, &longer.attr));
	dblp_comm_close(comm);
	dblp_comm_close(NULL);
}

/* A program that was built with 0.1, and one that knows a longer result */
static void run_sizes(struct rank *r)
{
	struct {
		struct dblp_result	result;
		char			more[8];
	} longer;
	struct dblp_req *req[3];
	int v[3][2] = { 0 }, i;

	r->op.size = 128;
	for (i = 0; i < 3; i++)
		r->err |= dblp_allreduce(r->comm, v[i], 2, &r->op, &req[i]);
	if (r->err)
		return;
	memset(&longer, 1, sizeof(longer));
	r->err = dblp_wait(req[0], WAIT_MS, &longer.result, 40) |
		 dblp_wait(req[1], WAIT_MS, NULL, 0);
	r->good = longer.result.asked == 4 && longer.result.ns &&
		  longer.result.least == 0x01010101;
	r->err |= dblp_wait(req[2], WAIT_MS, &longer.result, sizeof(longer));
	r->good &= longer.result.failed_rank == -1 && !longer.more[0] &&
		   !longer.more[7];
}

TEST(structures_may_have_been_shorter_or_longer)
{
	int i;

	prepare(2, next_epoch(), 1, run_sizes);
	for (i = 0; i < 2; i++) {
		rank[i].attr.size = 40 + 6 * sizeof(void *);
		rank[i].op.flags = DBLP_OP_AVERAGE;
	}
	run_all(2);
	expect_good(_metadata, 2);
}

static void run_bad_ops(struct rank *r)
{
	struct dblp_op op[10];
	struct dblp_req *req;
	struct dblp_span part;
	int v, i;

	for (i = 0; i < 10; i++)
		op[i] = r->op;
	op[0].size = 8;
	op[1].algo = DBLP_ALGOS;
	op[2].rule = DBLP_RULES;
	op[3].dtype = DBLP_DTYPES;
	op[4].budget = DBLP_PPM + 1;
	op[5].policy = DBLP_POLICY_EARLY + 1;
	op[6].phase = DBLP_PHASES;
	op[7].flags = 1U << 31;
	op[8].algo = DBLP_PS;
	op[8].root = 2;
	op[9].plan_flags = DBLP_PLAN_REDUCE;
	for (i = 0; i < 10; i++)
		if (dblp_allreduce(r->comm, &v, 1, &op[i], &req) != -EINVAL ||
		    dblp_comm_owned(r->comm, 1, &op[i], &part, 1) != -EINVAL)
			r->err = i + 1;
	if (dblp_allreduce(r->comm, &v, DBLP_COUNT_MAX + 1, &r->op, &req) != -EINVAL)
		r->err = 100;
	r->good = !r->err;
	/* None of them counts: the ranks go on */
	run_allreduce(r);
}

TEST(operations_that_contradict_themselves_change_nothing)
{
	prepare(2, next_epoch(), 1000, run_bad_ops);
	run_all(2);
	EXPECT_EQ(0, rank[0].err);
	EXPECT_EQ(0, rank[1].err);
	expect_good(_metadata, 2);
}

static bool readable(int fd, int ms)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, ms) == 1;
}

static void run_polled(struct rank *r)
{
	struct dblp_req *req[2];
	int *v[2] = { new_vector(r, 0), new_vector(r, 1) };
	int fd = dblp_comm_fd(r->comm), i;
	struct timespec pause = { .tv_nsec = 50000000 };

	/* Rank 1 comes later, so that the others have to wait */
	if (r->attr.rank == 1)
		nanosleep(&pause, NULL);
	r->good = !readable(fd, 0);
	for (i = 0; i < 2; i++)
		r->err |= dblp_allreduce(r->comm, v[i], r->count, &r->op, &req[i]);
	if (r->attr.rank != 1)
		r->good &= dblp_wait(req[0], 0, NULL, 0) == -EAGAIN;
	for (i = 0; i < 2; i++) {
		r->good &= readable(fd, WAIT_MS);
		r->err |= dblp_wait(req[i], WAIT_MS, &r->result, sizeof(r->result));
	}
	r->good &= !readable(fd, 0) && is_sum(r, v[0], 0, r->count, 0) &&
		   is_sum(r, v[1], 0, r->count, 1);
	free(v[0]);
	free(v[1]);
}

TEST(what_has_ended_can_be_polled_for)
{
	prepare(3, next_epoch(), 1000, run_polled);
	run_all(3);
	expect_good(_metadata, 3);
}

TEST(ranks_that_disagree_get_the_same_error_at_once)
{
	int k, odd, i;

	for (odd = 0; odd < 3; odd++)
		for (k = 0; k < 7; k++) {
			prepare(3, next_epoch(), 100000, run_allreduce);
			switch (k) {
			case 0: rank[odd].count = 99999; break;
			case 1: rank[odd].op.dtype = DBLP_FLOAT32; break;
			case 2: rank[odd].op.algo = DBLP_RING; break;
			case 3: rank[odd].op.budget = 1; break;
			case 4: rank[odd].op.flags = DBLP_OP_AVERAGE; break;
			case 5: rank[odd].op.key = 1; break;
			/* All wait, so that nobody sends anything */
			case 6:
				for (i = 0; i < 3; i++) {
					rank[i].op.algo = DBLP_PS;
					rank[i].op.root = i;
				}
				break;
			}
			run_all(3);
			expect_failed(_metadata, 3, -EPROTO,
				      rank[0].failed, WAIT_MS);
		}
}

TEST(ranks_that_disagree_about_the_communicator_do_not_open_it)
{
	int k, i;

	for (k = 0; k < 4; k++) {
		prepare(3, next_epoch(), 1000, run_allreduce);
		switch (k) {
		case 0: rank[1].attr.nranks = 4; break;
		case 1: rank[1].attr.message_bytes = 800; break;
		case 2: rank[1].attr.transport = "tcp:reno"; break;
		case 3: rank[1].attr.devices = "lo,lo"; break;
		}
		run_all(3);
		for (i = 0; i < 3; i++)
			EXPECT_EQ(-EINVAL, rank[i].opened);
	}
}

static void run_abort(struct rank *r)
{
	struct dblp_req *req, *never;
	int *v = new_vector(r, 0);

	r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req);
	if (r->attr.rank == 1)
		dblp_comm_abort(r->comm, EDOM);
	r->err = r->err ?: dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	r->good = dblp_allreduce(r->comm, v, r->count, &r->op, &never) == -EDOM;
	free(v);
}

/* Rank 2 lets the others wait until it hears */
static void run_idle(struct rank *r)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	struct dblp_req *req;
	int v = 0;

	while (!(r->err = dblp_allreduce(r->comm, &v, 0, &r->op, &req))) {
		r->err = dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
		if (r->err)
			break;
		nanosleep(&pause, NULL);
	}
	r->good = true;
}

TEST(an_abort_reaches_all)
{
	prepare(4, next_epoch(), 100000, run_abort);
	rank[2].run = run_idle;
	run_all(4);
	expect_good(_metadata, 4);
	EXPECT_EQ(-EDOM, rank[2].err);
	expect_failed(_metadata, 4, -EDOM, 1, WAIT_MS);
}

TEST(a_rank_that_is_killed_is_named_by_all_others)
{
	char at[64];
	int algo, i, killed;

	shared_new();
	for (algo = DBLP_PS; algo <= DBLP_RING; algo++)
		for (killed = 0; killed < 4; killed++) {
			snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", free_port());
			kill_one(4, algo, killed, at);
			for (i = 0; i < 4; i++) {
				if (i == killed)
					continue;
				EXPECT_EQ(-ECONNRESET, shared->rank[i].err);
				EXPECT_EQ(killed, shared->rank[i].failed);
				EXPECT_LE(20, shared->rank[i].rounds);
				/* 0.2 s, and what a busy machine takes */
				EXPECT_GT(WAIT_MS * MS_NS, shared->rank[i].failed_at -
					  shared->killed_at);
			}
		}
}

/* Rank 1 leaves after its last operation, the others go on for one more without it */
static void run_short(struct rank *r)
{
	run_allreduce(r);
	if (r->attr.rank != 1)
		run_allreduce(r);
}

TEST(a_rank_that_leaves_fails_those_who_still_need_it)
{
	int i;

	prepare(3, next_epoch(), 1000, run_short);
	run_all(3);
	EXPECT_TRUE(rank[1].good);
	for (i = 0; i < 3; i += 2) {
		EXPECT_EQ(-ECONNRESET, rank[i].err);
		EXPECT_EQ(1, rank[i].failed);
	}
}

static void run_nothing(struct rank *r)
{
	r->good = true;
}

/* Not even connections are there */
TEST(a_rank_that_leaves_at_once_fails_those_who_need_it)
{
	int leaves, i;

	for (leaves = 0; leaves < 3; leaves++) {
		prepare(3, next_epoch(), 1000, run_allreduce);
		rank[leaves].run = run_nothing;
		for (i = 0; i < 3; i++)
			rank[i].attr.timeout_ms = 2000;
		run_all(3);
		for (i = 0; i < 3; i++) {
			if (i == leaves)
				continue;
			EXPECT_EQ(-ECONNRESET, rank[i].err);
			EXPECT_EQ(leaves, rank[i].failed);
		}
	}
}

/* Of two that are a group, without rank 0, one only begins */
static void run_pair(struct rank *r)
{
	struct dblp_req *req;
	int v = 0;

	if (r->attr.rank == 2) {
		r->err = dblp_allreduce(r->comm, &v, 1, &r->op, &req) ?:
			 dblp_wait(req, WAIT_MS, NULL, 0);
		__atomic_store_n(&n_over, 1, __ATOMIC_SEQ_CST);
	}
	while (!__atomic_load_n(&n_over, __ATOMIC_SEQ_CST))
		usleep(1000);
}

TEST(nothing_waits_for_ever_without_rank_0)
{
	int i;

	n_over = 0;
	prepare(4, next_epoch(), 1, run_pair);
	rank[0].run = run_nothing;
	for (i = 0; i < 4; i++) {
		rank[i].attr.timeout_ms = 2000;
		rank[i].op.algo = DBLP_AVERAGE;
		rank[i].op.levels = 2;
		rank[i].op.radix[0] = 2;
		rank[i].op.radix[1] = 2;
	}
	run_all(4);
	EXPECT_EQ(-ECONNRESET, rank[2].err);
	EXPECT_EQ(0, rank[2].failed);
}

/* Memory fails once, after so many times that it does not; the tests call it, too */
static _Thread_local int fail_after = -1;

void *__real_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);

/* What a thread asks for after that */
static _Thread_local bool has_failed;
static u32 n_asked;

static bool memory_fails(void)
{
	bool fails = fail_after >= 0 && !fail_after--;

	if (has_failed)
		__atomic_add_fetch(&n_asked, 1, __ATOMIC_SEQ_CST);
	has_failed |= fails;
	return fails;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return memory_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_malloc(size_t size)
{
	return memory_fails() ? NULL : __real_malloc(size);
}

/*
 * How busy the machine is does not matter: @wait_ms is so long that nobody is late by
 * chance, and passes on a rank when it waits for the last one only.
 */
#define LATE_MS		1000000

static _Thread_local u64 passed;

u64 __real_dblp_comm_now(void);
u64 __real_dblp_ctl_timeout(struct dblp_comm *comm, u64 now);

u64 __wrap_dblp_comm_now(void)
{
	return __real_dblp_comm_now() + passed;
}

static bool waits_for_last(const struct dblp_req *req, u32 last)
{
	bool waits = false;
	u32 i;

	for (i = 0; i < req->sched->n; i++) {
		const struct dblp_task *t = &req->task[i];

		if (t->step->op != DBLP_STEP_ADD || t->ended)
			continue;
		if (t->begun || t->step->peer != last)
			return false;
		waits = true;
	}
	return waits;
}

/* How often engines looked what is due; rank 0 does not while it is stalled */
static u64 n_looks;
static bool stall, stalled;
/* Time passes on rank 0 at once, and there is no memory then */
static bool poor;

static void look(const struct dblp_comm *comm)
{
	__atomic_add_fetch(&n_looks, 1, __ATOMIC_SEQ_CST);
	while (!comm->rank && __atomic_load_n(&stall, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(&stalled, true, __ATOMIC_SEQ_CST);
		usleep(1000);
	}
}

/* Called by the engine, before it looks who is late */
u64 __wrap_dblp_ctl_timeout(struct dblp_comm *comm, u64 now)
{
	const struct dblp_req *req = comm->reqs;

	look(comm);
	if (poor && req && !comm->rank && !passed) {
		passed = 16 * LATE_MS * MS_NS;
		fail_after = 0;
		return now;
	}
	if (!req || req->op.wait_ms != LATE_MS || passed ||
	    !waits_for_last(req, comm->nranks - 1))
		return __real_dblp_ctl_timeout(comm, now);
	/* Of all rounds */
	passed = 16 * LATE_MS * MS_NS;
	return now;
}

TEST(an_engine_hears_all_while_data_flows)
{
	int i;

	n_looks = 0;
	prepare(2, next_epoch(), 20000, run_allreduce);
	for (i = 0; i < 2; i++) {
		rank[i].op.algo = DBLP_PS;
		rank[i].attr.message_bytes = 8;
	}
	run_all(2);
	expect_good(_metadata, 2);
	/* 10000 messages either way of each of three operations */
	EXPECT_LE(60000, n_looks);
}

/* Rank 0 is busy when the others fail, each by itself */
static void run_stalled(struct rank *r)
{
	struct timespec pause = { .tv_nsec = 300000000 };
	struct dblp_req *req;
	int v = 0;

	if (!r->attr.rank)
		__atomic_store_n(&stall, true, __ATOMIC_SEQ_CST);
	r->err = dblp_allreduce(r->comm, &v, 1, &r->op, &req);
	while (!__atomic_load_n(&stalled, __ATOMIC_SEQ_CST))
		usleep(1000);
	if (r->attr.rank) {
		dblp_comm_abort(r->comm, EDOM + r->attr.rank);
	} else {
		nanosleep(&pause, NULL);
		__atomic_store_n(&stall, false, __ATOMIC_SEQ_CST);
	}
	r->err = r->err ?: dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
}

TEST(all_name_the_same_rank_however_busy_rank_0_is)
{
	int i;

	prepare(4, next_epoch(), 1, run_stalled);
	for (i = 0; i < 4; i++)
		rank[i].attr.timeout_ms = 600000;
	run_all(4);
	EXPECT_LT(0, rank[0].failed);
	expect_failed(_metadata, 4, -EDOM - rank[0].failed, rank[0].failed, WAIT_MS);
}

static void prepare_late_for_sure(u64 count)
{
	int i;

	prepare_late(count);
	for (i = 0; i < 3; i++)
		rank[i].op.wait_ms = LATE_MS;
}

/* Also when it does not take what is sent to it */
TEST(a_late_rank_is_left_out_and_comes_back)
{
	static const u64 counts[] = { 1000, 4000000 };
	int k;

	for (k = 0; k < 2; k++) {
		prepare_late_for_sure(counts[k]);
		run_all(3);
		expect_late(_metadata, counts[k]);
	}
}

/* The last one is late in all rounds */
static void run_late_half(struct rank *r)
{
	bool last = r->attr.rank + 1 == (int)r->nranks;
	int *v = new_vector(r, 0), more[2][3] = { 0 };
	struct dblp_op all = r->op;
	struct dblp_req *req;

	/* What is sent to the last one needs a connection; what it sends comes later */
	all.wait_ms = 0;
	r->err = dblp_allreduce(r->comm, more[0], 3, &all, &req) ?:
		 dblp_wait(req, WAIT_MS, NULL, 0);
	while (last && __atomic_load_n(&n_over, __ATOMIC_SEQ_CST) + 1 < r->nranks)
		usleep(1000);
	r->err = r->err ?: dblp_reduce_scatter(r->comm, v, r->count, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	__atomic_add_fetch(&n_over, 1, __ATOMIC_SEQ_CST);
	/* Whoever leaves now would be missed by the last one */
	r->err = r->err ?: dblp_allreduce(r->comm, more[1], 3, &all, &req) ?:
		 dblp_wait(req, WAIT_MS, NULL, 0);
	r->good = !r->err;
	free(v);
}

TEST(a_late_rank_is_counted_once)
{
	int i;

	prepare_late_for_sure(999);
	for (i = 0; i < 3; i++) {
		rank[i].run = run_late_half;
		rank[i].op.algo = DBLP_RING;
	}
	run_all(3);
	expect_good(_metadata, 3);
	/* Two rounds from the last one, a third of the vector each */
	EXPECT_EQ(1, rank[0].result.late_ranks);
	EXPECT_EQ(666 * 4, rank[0].result.missing);
}

TEST(a_wait_may_be_as_long_as_can_be_said)
{
	EXPECT_EQ(7 + 3 * 1000 * MS_NS, dblp_round_until(7, 1000, 2));
	EXPECT_LT(UINT64_MAX / 2, dblp_round_until(0, UINT32_MAX, DBLP_RANKS_MAX));
	EXPECT_LT(UINT64_MAX / 2, dblp_round_until(UINT64_MAX / 2, UINT32_MAX, 4000));
	EXPECT_EQ(INT32_MAX, dblp_poll_ms(UINT64_MAX));
	EXPECT_EQ(2, dblp_poll_ms(MS_NS));
	EXPECT_EQ(0, dblp_poll_ms(0));
}

/* The others come when rank 0 has failed */
static void run_poor_late(struct rank *r)
{
	float *v = calloc(r->count, sizeof(*v));
	struct dblp_req *req;

	while (r->attr.rank && !__atomic_load_n(&n_over, __ATOMIC_SEQ_CST))
		usleep(1000);
	r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, NULL, 0);
	__atomic_store_n(&n_over, 1, __ATOMIC_SEQ_CST);
	free(v);
}

/* Of the two parts that rank 0 owns the second one is not looked at any more */
TEST(a_vector_is_left_alone_when_its_operation_has_failed)
{
	int i;

	n_over = 0;
	poor = true;
	prepare(4, next_epoch(), 1000, run_poor_late);
	for (i = 0; i < 4; i++) {
		rank[i].op.algo = DBLP_BCUBE;
		rank[i].op.levels = 2;
		rank[i].op.radix[0] = 2;
		rank[i].op.radix[1] = 2;
		rank[i].op.rule = DBLP_RESCALE;
		rank[i].op.dtype = DBLP_FLOAT32;
		rank[i].op.wait_ms = LATE_MS;
	}
	run_all(4);
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(-ENOMEM, rank[i].err);
		EXPECT_EQ(0, rank[i].failed);
	}
	EXPECT_EQ(0, n_asked);
}

/* As run_late(), with floats: the others have to stand for the last one */
static void run_late_float(struct rank *r)
{
	bool last = r->attr.rank + 1 == (int)r->nranks;
	float *v = malloc(r->count * sizeof(*v)), more[3] = { 0 };
	struct dblp_op op = r->op;
	struct dblp_req *req;
	u64 i;

	for (i = 0; i < r->count; i++)
		v[i] = (float)(r->attr.rank + 1) * (float)(i % 7);
	while (last && __atomic_load_n(&n_over, __ATOMIC_SEQ_CST) + 1 < r->nranks)
		usleep(1000);
	r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	__atomic_add_fetch(&n_over, 1, __ATOMIC_SEQ_CST);
	/* Whoever leaves now would be missed by the last one */
	op.wait_ms = 0;
	r->err = r->err ?: dblp_allreduce(r->comm, more, 3, &op, &req) ?:
		 dblp_wait(req, WAIT_MS, NULL, 0);
	r->good = !r->err;
	/* 1 + 2 are 4.5 of three, or 1.5 on average */
	for (i = 0; i < r->count; i++)
		r->good &= v[i] == (float)(i % 7) *
			   (r->op.flags & DBLP_OP_AVERAGE ? 1.5F : 4.5F);
	free(v);
}

TEST(what_is_there_stands_for_what_is_missing)
{
	int chain, average, i;

	for (chain = 0; chain < 2; chain++)
		for (average = 0; average < 2; average++) {
			prepare_late_for_sure(100000);
			for (i = 0; i < 3; i++) {
				rank[i].run = run_late_float;
				rank[i].op.rule = DBLP_RESCALE;
				rank[i].op.dtype = DBLP_FLOAT32;
				rank[i].op.flags = average ? DBLP_OP_AVERAGE : 0;
				rank[i].attr.message_bytes = 80000;
				/* From 2 to 1 to 0: how many there are travels along */
				if (chain)
					rank[i].op.algo = DBLP_TREE;
				rank[i].op.fanin = 1;
			}
			run_all(3);
			expect_good(_metadata, 3);
			EXPECT_EQ(2, rank[0].result.least);
			EXPECT_EQ(0, rank[0].result.none);
		}
}

/* As TCP, but every other element of a message with data counts as lost */
static int recv_holes(int fd, struct dblp_inbox *in)
{
	int n = dblp_transport_tcp.recv(fd, in);
	u32 i;

	if (n <= 0 || !in->closed || !in->iov[1].iov_len)
		return n;
	in->map.n = (u32)(in->iov[1].iov_len / 8);
	free(in->map.range);
	in->map.range = malloc(in->map.n * sizeof(*in->map.range));
	for (i = 0; i < in->map.n; i++)
		in->map.range[i] = (struct dblp_range) { DBLP_HEAD_LEN + 8 * i, 4 };
	return n;
}

/* From 2 to 1, with holes, and to 0, with as many runs as there are elements */
static void run_holes(struct rank *r)
{
	struct dblp_transport holes = dblp_transport_tcp;
	float *v = malloc(r->count * sizeof(*v));
	struct dblp_req *req;
	u64 i;

	holes.recv = recv_holes;
	if (r->attr.rank == 1)
		r->comm->transport = &holes;
	for (i = 0; i < r->count; i++)
		v[i] = 2;
	r->err = dblp_reduce_scatter(r->comm, v, r->count, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	r->good = !r->err;
	/* All was added, but three halves of half of it is what the counts say */
	for (i = 0; !r->attr.rank && i < r->count; i++)
		r->good &= v[i] == (i % 2 ? 6 : 9);
	r->comm->transport = &dblp_transport_tcp;
	free(v);
}

TEST(a_sum_may_have_as_many_runs_as_elements)
{
	int i;

	prepare(3, next_epoch(), 10000, run_holes);
	for (i = 0; i < 3; i++) {
		rank[i].op.algo = DBLP_TREE;
		rank[i].op.fanin = 1;
		rank[i].op.rule = DBLP_RESCALE;
		rank[i].op.dtype = DBLP_FLOAT32;
		rank[i].attr.message_bytes = 16000;
	}
	run_all(3);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, rank[i].err);
	expect_good(_metadata, 3);
	EXPECT_EQ(2, rank[0].result.least);
}

/* What a rank owns of a BCube is in as many parts as there are levels */
TEST(a_result_is_of_all_parts)
{
	static const u32 runs[][3] = {
		/* One element of each part: contributions, then none and least of both */
		{ 4, 4, 0 << 8 | 4 }, { 3, 4, 0 << 8 | 3 }, { 4, 2, 0 << 8 | 2 },
		{ 0, 4, 1 << 8 | 0 }, { 4, 0, 1 << 8 | 0 }, { 0, 0, 2 << 8 | 0 },
	};
	struct dblp_plan plan = {
		.algo = DBLP_BCUBE, .nranks = 4, .levels = 2, .radix = { 2, 2 },
		.count = 8,
	};
	struct dblp_run memory[2][8];
	struct dblp_sched *sched;
	u32 i, k, part;

	ASSERT_EQ(0, dblp_sched_new(&plan, &sched));
	for (i = 0; i < ARRAY_SIZE(runs); i++) {
		float v[8] = { 0 };
		struct dblp_req req = {
			.sched = sched, .buf = (char *)v, .esize = sizeof(*v),
			.op = { .rule = DBLP_RESCALE, .dtype = DBLP_FLOAT32 },
			.counts = { memory[0], memory[1], 0, 8 },
		};

		for (k = 0; k < 8; k++)
			memory[0][k] = (struct dblp_run) { k + 1, 4 };
		req.counts.n = 8;
		for (k = 0, part = 0; k < sched->n; k++) {
			struct dblp_task t = { .req = &req, .step = &sched->step[k] };

			if (t.step->op != DBLP_STEP_FINISH)
				continue;
			ASSERT_EQ(1, t.step->count);
			memory[0][t.step->offset].contributions = runs[i][part++];
			ASSERT_EQ(0, dblp_losses_finish(&t));
		}
		ASSERT_EQ(2, part);
		EXPECT_EQ(runs[i][2] >> 8, req.result.none);
		EXPECT_EQ(runs[i][2] & 255, req.result.least);
	}
	dblp_sched_put(sched);
}

/* Does @to wait for @from, directly or for others that do? Marks all that do */
static void mark_after(const struct dblp_sched *s, u32 from, bool *marked)
{
	u32 i, k;

	memset(marked, 0, s->n);
	marked[from] = true;
	/* Who waits stands behind */
	for (i = from; i < s->n; i++)
		for (k = s->after[i]; marked[i] && k < s->after[i + 1]; k++)
			marked[s->next[k]] = true;
}

/* Steps wait for all those with which they conflict, and for no others */
static bool order_is_good(const struct dblp_sched *s)
{
	bool *marked = malloc(s->n + 1), good = true;
	u32 *waits = calloc(s->n + 1, sizeof(*waits));
	u32 i, k;

	for (i = 0; i < s->n; i++) {
		for (k = s->after[i]; k < s->after[i + 1]; k++) {
			good &= s->next[k] > i && s->next[k] < s->n &&
				dblp_step_conflict(&s->step[i],
						   &s->step[s->next[k]]);
			waits[s->next[k]]++;
		}
		mark_after(s, i, marked);
		for (k = i + 1; k < s->n; k++)
			good &= marked[k] ||
				!dblp_step_conflict(&s->step[i], &s->step[k]);
	}
	good &= !memcmp(waits, s->waits, s->n * sizeof(*waits));
	free(marked);
	free(waits);
	return good;
}

TEST(steps_wait_for_those_with_which_they_conflict)
{
	static const u32 ranks[] = { 1, 2, 3, 8, 12 };
	static const u64 counts[] = { 1, 10, 100 };
	struct dblp_plan plan;
	struct dblp_sched *s;
	u32 i, c, levels;

	for (i = 0; i < ARRAY_SIZE(ranks) * 8; i++)
		for (levels = 0; levels < 3; levels++)
			for (c = 0; c < ARRAY_SIZE(counts); c++) {
				memset(&plan, 0, sizeof(plan));
				plan.nranks = ranks[i / 8];
				plan.algo = i % 8 < DBLP_ALGOS ? i % 8 : DBLP_PS;
				plan.rank = (levels + c) % plan.nranks;
				plan.flags = i % 8 == 7 && plan.nranks > 1 ?
					     DBLP_PLAN_SERVER : 0;
				plan.levels = levels;
				plan.count = counts[c];
				if (levels)
					dblp_plan_radix(plan.nranks, levels,
							plan.radix);
				ASSERT_EQ(0, dblp_sched_new(&plan, &s));
				ASSERT_TRUE(order_is_good(s));
				dblp_sched_put(s);
			}
}

/* A root has as many steps before its sum as behind it; all wait for that alone */
TEST(as_many_ranks_as_can_be_do_not_wait_for_each_other)
{
	const struct dblp_plan plan = {
		.algo = DBLP_PS, .nranks = DBLP_RANKS_MAX, .count = 1000,
	};
	struct dblp_sched *s;

	ASSERT_EQ(0, dblp_sched_new(&plan, &s));
	ASSERT_EQ(2 * DBLP_RANKS_MAX - 1, s->n);
	EXPECT_EQ(s->n - 1, s->after[s->n]);
	dblp_sched_put(s);
}

/* A sender over AF_DBLP: its messages are sent and reported here */
struct sender {
	struct dblp_comm	comm;
	struct dblp_link	link;
	struct dblp_sched	*sched;
	struct dblp_req		*req;
	float			v[1000];
};

static struct dblp_task *sender_new(struct sender *s, u32 budget)
{
	const struct dblp_plan plan = {
		.algo = DBLP_PS, .nranks = 2, .rank = 1, .count = 1000,
	};

	memset(s, 0, sizeof(*s));
	s->comm.nranks = 2;
	s->comm.n_nics = 1;
	s->comm.attr.message_bytes = 400;
	s->comm.transport = &dblp_transport_dblp;
	s->link.comm = &s->comm;
	if (dblp_sched_new(&plan, &s->sched))
		abort();
	s->req = calloc(1, sizeof(*s->req) + s->sched->n * sizeof(*s->req->task));
	s->req->comm = &s->comm;
	s->req->sched = s->sched;
	s->req->buf = (char *)s->v;
	s->req->esize = sizeof(*s->v);
	s->req->op.rule = DBLP_FEEDBACK;
	s->req->op.flags = DBLP_OP_BUDGET | DBLP_OP_CARRY;
	s->req->op.budget = budget;
	if (dblp_losses_prepare(s->req))
		abort();
	/* Its first step sends all to the root */
	s->req->task[0].req = s->req;
	s->req->task[0].step = &s->sched->step[0];
	return &s->req->task[0];
}

static void sender_free(struct sender *s)
{
	dblp_losses_forget(&s->link);
	dblp_losses_free(s->req);
	dblp_keys_free(&s->comm);
	dblp_sched_put(s->sched);
	free(s->req);
}

TEST(reports_are_found_where_they_are_expected)
{
	struct dblp_msg report = { 0 };
	struct sender s;
	struct dblp_task *t = sender_new(&s, 10000);
	u64 tag, next = 1;

	for (tag = 1; tag <= 9; tag++) {
		ASSERT_EQ(0, dblp_losses_sent(&s.link, t, tag, 100));
		t->done += 100;
		if (tag % 3)
			continue;
		/* All but the last two: each is the first one */
		for (; next <= tag - 2; next++) {
			report.info.tag = next;
			ASSERT_EQ(next, s.link.record->tag);
			ASSERT_EQ(t, dblp_losses_reported(&s.link, &report));
		}
	}
	/* Those that are left, from the last one on */
	for (tag = 9; tag >= next; tag--) {
		report.info.tag = tag;
		ASSERT_EQ(t, dblp_losses_reported(&s.link, &report));
		ASSERT_EQ(NULL, dblp_losses_reported(&s.link, &report));
	}
	ASSERT_EQ(0, dblp_losses_sent(&s.link, t, 10, 100));
	ASSERT_EQ(10, s.link.record->tag);
	EXPECT_EQ(1, t->reports);
	sender_free(&s);
}

TEST(no_message_loses_all_that_was_saved_up)
{
	struct sender s;
	struct dblp_task *t = sender_new(&s, 20000);
	u32 i, ppm = 0;

	/* Each has saved up what a message is worth long before */
	for (i = 0; i < 100; i++) {
		ppm = dblp_losses_budget(&s.link, t, 100, 20000);
		dblp_carry_give(s.req->key->carry, 400, 1, ppm, 0);
	}
	EXPECT_EQ(DBLP_CARRY_TIMES * 20000, ppm);
	EXPECT_EQ(1000000, dblp_losses_budget(&s.link, t, 100, 500000));
	sender_free(&s);
}

static void run_keys(struct rank *r)
{
	struct dblp_op other = r->op;
	struct dblp_req *req, *second;
	int *v = new_vector(r, 0), *w = new_vector(r, 1);

	other.key = 2;
	r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req);
	/* Not before it has ended, and not with another length */
	r->good = !r->err &&
		  dblp_allreduce(r->comm, w, r->count, &r->op, &second) == -EBUSY;
	r->err |= dblp_allreduce(r->comm, w, r->count, &other, &second);
	r->err |= dblp_wait(second, WAIT_MS, NULL, 0) | dblp_wait(req, WAIT_MS, NULL, 0);
	r->good &= is_sum(r, v, 0, r->count, 0) && is_sum(r, w, 0, r->count, 1) &&
		   dblp_allreduce(r->comm, w, 1, &r->op, &req) == -EINVAL;
	free(v);
	free(w);
}

TEST(a_key_belongs_to_one_vector)
{
	int i;

	prepare(1, next_epoch(), 1000, run_keys);
	prepare(2, next_epoch(), 200000, run_keys);
	for (i = 0; i < 2; i++) {
		rank[i].op.rule = DBLP_FEEDBACK;
		rank[i].op.key = 1;
	}
	run_all(2);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, rank[i].err);
	expect_good(_metadata, 2);
}

/* A key is of what is reduced: only spread, any vector has any */
static void run_gathers(struct rank *r)
{
	struct dblp_req *req[2];
	int v[3] = { 0 }, i;

	for (i = 0; i < 2; i++)
		r->err |= dblp_allgather(r->comm, v + i, i + 1, &r->op, &req[i]);
	for (i = 0; i < 2 && !r->err; i++)
		r->err |= dblp_wait(req[i], WAIT_MS, NULL, 0);
	r->good = !r->comm->key;
}

TEST(what_is_not_reduced_leaves_losses_alone)
{
	int server, i;

	for (server = 0; server < 2; server++) {
		prepare(2, next_epoch(), 1, run_gathers);
		for (i = 0; i < 2; i++) {
			rank[i].op.algo = DBLP_PS;
			rank[i].op.rule = DBLP_FEEDBACK;
			rank[i].op.plan_flags = server ? DBLP_PLAN_SERVER : 0;
		}
		run_all(2);
		expect_good(_metadata, 2);
	}
}

/* Whoever does not wait for the end leaves nothing behind */
static void run_away(struct rank *r)
{
	struct dblp_req *req;
	static int v[2];

	r->err = dblp_allreduce(r->comm, &v[r->attr.rank], 1, &r->op, &req);
	if (r->attr.rank)
		return;
	/* Either way: with the result, or since the other one has left */
	r->good = readable(dblp_comm_fd(r->comm), WAIT_MS);
}

TEST(requests_are_freed_with_the_communicator)
{
	prepare(2, next_epoch(), 1000, run_away);
	rank[0].attr.timeout_ms = 2000;
	rank[1].attr.timeout_ms = 2000;
	run_all(2);
	EXPECT_TRUE(rank[0].good);
	/* The test ends without the check that is made at the end of a program */
	EXPECT_EQ(0, __lsan_do_recoverable_leak_check());
}

/* Says something to @port of this host, and waits for the other end to close */
static ssize_t say(u16 port, const void *what, size_t len, void *answer, size_t room)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	ssize_t n = -1;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	while (connect(fd, (void *)&a, sizeof(a)))
		usleep(1000);
	if (send(fd, what, len, MSG_NOSIGNAL) == (ssize_t)len)
		n = recv(fd, answer, room, MSG_WAITALL);
	close(fd);
	return n;
}

/* Connects to @port of this host, and says nothing; -1 if nobody listens */
static int try_call(u16 port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (!connect(fd, (void *)&a, sizeof(a)))
		return fd;
	close(fd);
	return -1;
}

static int call(u16 port)
{
	int fd = try_call(port);

	if (fd < 0)
		abort();
	return fd;
}

/* Rank 1 says who it is, and is gone when the last one comes */
TEST(who_joins_with_a_rank_that_is_gone_is_told_so)
{
	const struct linger reset = { .l_onoff = 1 };
	struct {
		struct dblp_ctl		ctl;
		struct sockaddr_dblp	addr;
	} hello = { .ctl = {
		.magic = DBLP_CTL_MAGIC, .version = DBLP_COMM_VERSION,
		.type = DBLP_CTL_JOIN, .rank = 1, .nranks = 4, .nics = 1,
		.message_bytes = DBLP_COMM_BYTES, .transport = "tcp",
	} };
	u16 port = free_port();
	char at[64];
	int fd, i;

	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", port);
	prepare(4, next_epoch(), 1, run_allreduce);
	hello.ctl.epoch = rank[0].attr.epoch;
	for (i = 0; i < 4; i++)
		rank[i].attr.rendezvous = at;
	pthread_create(&rank[0].thread, NULL, rank_main, &rank[0]);
	while ((fd = try_call(port)) < 0)
		usleep(1000);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	ASSERT_EQ(sizeof(hello), send(fd, &hello, sizeof(hello), 0));
	close(fd);
	for (i = 2; i < 4; i++)
		pthread_create(&rank[i].thread, NULL, rank_main, &rank[i]);
	for (i = 0; i < 4; i++) {
		if (i == 1)
			continue;
		pthread_join(rank[i].thread, NULL);
		EXPECT_TRUE(rank[i].opened == -ECONNRESET ||
			    rank[i].opened == -EPIPE);
	}
}

TEST(who_does_not_belong_to_the_ranks_is_refused_and_counted)
{
	struct dblp_ctl ctl = { .magic = DBLP_CTL_MAGIC }, answer;
	struct dblp_comm_attr old;
	struct dblp_comm *comm;
	u16 port = free_port();
	char at[64];
	int fd;

	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", port);
	next_epoch();
	prepare(2, next_epoch(), 1000, run_allreduce);
	rank[0].attr.rendezvous = at;
	rank[1].attr.rendezvous = at;
	pthread_create(&rank[0].thread, NULL, rank_main, &rank[0]);
	/* One that says something else, one that says nothing: nobody waits for them */
	EXPECT_EQ(0, say(port, "GET / HTTP/1.1\r\n\r\n", 18, &answer, 1));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	EXPECT_EQ(0, connect(fd, (void *)&(struct sockaddr_in) {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) },
		sizeof(struct sockaddr_in)));
	ctl.version = DBLP_COMM_VERSION + 1;
	EXPECT_EQ(sizeof(answer), say(port, &ctl, sizeof(ctl), &answer,
				      sizeof(answer)));
	EXPECT_EQ(DBLP_CTL_REFUSE, answer.type);
	EXPECT_EQ(EPROTONOSUPPORT, answer.error);
	/* Ranks of yesterday, and one that is there already */
	old = rank[1].attr;
	old.epoch--;
	EXPECT_EQ(-ESTALE, dblp_comm_open(&comm, &old));
	pthread_create(&rank[1].thread, NULL, rank_main, &rank[1]);
	pthread_join(rank[0].thread, NULL);
	pthread_join(rank[1].thread, NULL);
	close(fd);
	expect_good(_metadata, 2);
	EXPECT_EQ(1, rank[0].stats.strangers);
	EXPECT_EQ(1, rank[0].stats.versions);
	EXPECT_EQ(1, rank[0].stats.stale);
}

static u64 time_ns(const struct timespec *t)
{
	return (u64)t->tv_sec * 1000000000 + (u64)t->tv_nsec;
}

static u16 port_of_rank(const struct rank *r)
{
	return (u16)atoi(strstr(r->text, "127.0.0.1:") + 10);
}

static u64 strangers_of(const struct rank *r)
{
	struct dblp_comm_stats stats;

	dblp_comm_stats(r->comm, &stats, sizeof(stats));
	return stats.strangers;
}

/* Many are there before the other rank is */
static void run_among_strangers(struct rank *r)
{
	int fd[300], i;

	for (i = 0; !r->attr.rank && i < 300; i++)
		fd[i] = call(port_of_rank(r));
	/* There is room for two ranks and 64 more */
	while (!r->attr.rank && strangers_of(r) < 300 - 66)
		usleep(1000);
	__atomic_add_fetch(&n_over, !r->attr.rank, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&n_over, __ATOMIC_SEQ_CST))
		usleep(1000);
	run_allreduce(r);
	for (i = 0; !r->attr.rank && i < 300; i++)
		close(fd[i]);
}

TEST(strangers_that_are_silent_make_room_for_ranks)
{
	char at[64];
	int i;

	n_over = 0;
	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", free_port());
	prepare(2, next_epoch(), 1000, run_among_strangers);
	for (i = 0; i < 2; i++) {
		rank[i].attr.rendezvous = at;
		/* Whoever goes does not do so because of his silence */
		rank[i].attr.timeout_ms = 600000;
	}
	run_all(2);
	expect_good(_metadata, 2);
}

/* Who says what no rank says is sent away: all who came before were let in by then */
static void wait_for_door(u16 port)
{
	static const char text[128] = "GET / HTTP/1.1";
	int fd = call(port);
	char c;

	send(fd, text, sizeof(text), MSG_NOSIGNAL);
	while (recv(fd, &c, 1, 0) > 0) {
	}
	close(fd);
}

TEST(who_came_first_makes_room_while_ranks_meet)
{
	const struct timespec at_most = { .tv_sec = WAIT_MS / 1000 };
	struct pollfd p[2];
	u16 port = free_port();
	int fd[67], i;
	char at[64];

	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", port);
	prepare(2, next_epoch(), 1000, run_allreduce);
	for (i = 0; i < 2; i++)
		rank[i].attr.rendezvous = at;
	pthread_create(&rank[0].thread, NULL, rank_main, &rank[0]);
	while ((fd[0] = try_call(port)) < 0)
		usleep(1000);
	for (i = 1; i < 65; i++)
		fd[i] = call(port);
	wait_for_door(port);
	/* The last one has the place of the first one now */
	close(fd[0]);
	wait_for_door(port);
	/* There is room for two ranks and 64 more */
	fd[0] = call(port);
	for (; i < 67; i++)
		fd[i] = call(port);
	p[0] = (struct pollfd) { fd[1], POLLIN, 0 };
	p[1] = (struct pollfd) { fd[64], POLLIN, 0 };
	EXPECT_EQ(1, ppoll(p, 2, &at_most, NULL));
	EXPECT_TRUE(p[0].revents);
	pthread_create(&rank[1].thread, NULL, rank_main, &rank[1]);
	for (i = 0; i < 2; i++)
		pthread_join(rank[i].thread, NULL);
	for (i = 0; i < 67; i++)
		close(fd[i]);
	expect_good(_metadata, 2);
}

/* The other end of @fd is a socket of this process, too; a second descriptor of it */
static int dup_other_end(int fd)
{
	struct sockaddr_in own, peer;
	socklen_t len = sizeof(own);
	int i;

	getsockname(fd, (void *)&own, &len);
	for (i = 3; i < 256; i++) {
		len = sizeof(peer);
		if (!getpeername(i, (void *)&peer, &len) &&
		    peer.sin_family == AF_INET && peer.sin_port == own.sin_port)
			return dup(i);
	}
	return -1;
}

/* A child that another library has made has what it has not closed */
static void run_held(struct rank *r)
{
	static const char text[64] = "GET / HTTP/1.1";
	int fd = call(port_of_rank(r)), held, i;

	while ((held = dup_other_end(fd)) < 0)
		usleep(1000);
	send(fd, text, sizeof(text), MSG_NOSIGNAL);
	while (!strangers_of(r))
		usleep(1000);
	for (i = 0; i < 20; i++) {
		send(fd, text, sizeof(text), MSG_NOSIGNAL);
		run_allreduce(r);
	}
	close(held);
	close(fd);
}

TEST(who_was_sent_away_is_not_heard_again)
{
	char at[64];

	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", free_port());
	prepare(1, next_epoch(), 1000, run_held);
	rank[0].attr.rendezvous = at;
	run_all(1);
	expect_good(_metadata, 1);
	EXPECT_EQ(1, rank[0].stats.strangers);
}

static int sockets(void)
{
	struct stat st;
	int fd, n = 0;

	for (fd = 3; fd < 256; fd++)
		n += !fstat(fd, &st) && S_ISSOCK(st.st_mode);
	return n;
}

TEST(children_have_no_sockets_of_who_still_joins)
{
	int status, before = sockets();
	char key[64], value[128];
	size_t n = sizeof(value);

	prepare(2, next_epoch(), 1000, run_allreduce);
	pthread_create(&rank[0].thread, NULL, rank_main, &rank[0]);
	snprintf(key, sizeof(key), "dblp/%u/0", rank[0].attr.epoch);
	while (store_get(NULL, key, value, &n))
		usleep(1000);
	/* Where ranks come, and where data does */
	EXPECT_EQ(before + 2, sockets());
	if (!fork())
		_exit(sockets() - before);
	ASSERT_LT(0, wait(&status));
	EXPECT_EQ(0, status);
	pthread_create(&rank[1].thread, NULL, rank_main, &rank[1]);
	pthread_join(rank[0].thread, NULL);
	pthread_join(rank[1].thread, NULL);
	expect_good(_metadata, 2);
}

/* Without descriptors nobody is accepted, and nothing else changes */
static void run_poor(struct rank *r)
{
	static const char text[64] = "GET / HTTP/1.1";
	struct timespec cpu[2], pause = { .tv_nsec = 300000000 };
	struct rlimit old, none;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons(port_of_rank(r)),
	};
	char c;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	getrlimit(RLIMIT_NOFILE, &old);
	none = old;
	none.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &none);
	if (connect(fd, (void *)&a, sizeof(a)))
		abort();
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu[0]);
	nanosleep(&pause, NULL);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu[1]);
	run_allreduce(r);
	r->good &= time_ns(&cpu[1]) - time_ns(&cpu[0]) < 100 * MS_NS;
	setrlimit(RLIMIT_NOFILE, &old);
	send(fd, text, sizeof(text), MSG_NOSIGNAL);
	/* It is accepted, and sent away */
	r->good &= recv(fd, &c, 1, 0) <= 0;
	while (!strangers_of(r))
		usleep(1000);
	close(fd);
}

TEST(without_descriptors_nobody_is_accepted_until_there_are_some)
{
	char at[64];

	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", free_port());
	prepare(1, next_epoch(), 1000, run_poor);
	rank[0].attr.rendezvous = at;
	run_all(1);
	expect_good(_metadata, 1);
}

/* Rank 0 calls its own listener for data by wrong names */
static void run_called(struct rank *r)
{
	struct dblp_head h = {
		.type = DBLP_HEAD_HELLO, .epoch = r->attr.epoch, .from = 1,
		.comm = 1,
	};
	uint8_t head[DBLP_HEAD_LEN];
	u16 port = port_of_rank(r);
	char c;

	if (!r->attr.rank) {
		say(port, "GET / HTTP/1.1\r\n\r\n GET / HTTP/1.1\r\n\r\n"
		    "GET / HTTP/1.1\r\n\r\n GET / HTTP/1.1\r\n\r\n", 64, &c, 1);
		/* Of this epoch, but not of this communicator */
		dblp_head_put(&h, head);
		say(port, head, sizeof(head), &c, 1);
		/* The version is behind four bytes that all have */
		head[4]++;
		say(port, head, sizeof(head), &c, 1);
		h.epoch--;
		dblp_head_put(&h, head);
		say(port, head, sizeof(head), &c, 1);
	}
	run_allreduce(r);
}

TEST(a_connection_of_an_old_epoch_is_refused_and_counted)
{
	char at[64];
	int i;

	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", free_port());
	prepare(2, next_epoch(), 1000, run_called);
	for (i = 0; i < 2; i++)
		rank[i].attr.rendezvous = at;
	run_all(2);
	expect_good(_metadata, 2);
	EXPECT_EQ(2, rank[0].stats.strangers);
	EXPECT_EQ(1, rank[0].stats.versions);
	EXPECT_EQ(1, rank[0].stats.stale);
}

/* An engine without a thread: rank 0 of two */
static void stand_alone(struct dblp_comm *comm, struct dblp_link link[2],
			const struct dblp_transport *how)
{
	memset(comm, 0, sizeof(*comm));
	memset(link, 0, 2 * sizeof(*link));
	pthread_mutex_init(&comm->lock, NULL);
	comm->nranks = 2;
	comm->n_nics = 1;
	comm->suspect = -1;
	comm->failed_rank = -1;
	comm->epoll = -1;
	comm->transport = how;
	comm->link = link;
	comm->woken_end = &comm->woken;
	link[1].comm = comm;
	link[1].rank = 1;
	link[1].fd = -1;
}

TEST(what_came_before_an_error_is_read)
{
	const struct linger reset = { .l_onoff = 1 };
	struct dblp_comm comm;
	struct dblp_link link[2];
	struct dblp_task t;
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0), peer;
	struct pollfd p;
	char c;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ASSERT_EQ(0, bind(fd, (void *)&a, len) || listen(fd, 1) ||
		  getsockname(fd, (void *)&a, &len));
	stand_alone(&comm, link, &dblp_transport_tcp);
	peer = call(ntohs(a.sin_port));
	link[1].fd = accept(fd, NULL, NULL);
	link[1].state = DBLP_LINK_READY;
	link[1].in = &t;
	ASSERT_EQ(1, send(peer, "x", 1, 0));
	setsockopt(peer, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(peer);
	p = (struct pollfd) { link[1].fd, 0, 0 };
	ASSERT_EQ(1, poll(&p, 1, WAIT_MS));
	ASSERT_TRUE(p.revents & POLLERR);
	dblp_link_event(&link[1], EPOLLIN | EPOLLERR | EPOLLHUP);
	EXPECT_EQ(0, comm.error);
	EXPECT_TRUE(link[1].can_read);
	EXPECT_EQ(1, recv(link[1].fd, &c, 1, 0));
	EXPECT_EQ(-1, recv(link[1].fd, &c, 1, 0));
	close(link[1].fd);
	close(fd);
}

TEST(who_has_reported_nothing_does_not_disagree)
{
	struct dblp_ctlconn ctl[2] = { { .fd = -1 }, { .fd = -1, .rank = 1 } };
	struct dblp_req req = { .seq = UINT32_MAX, .digest = 1 };
	struct dblp_comm comm;
	struct dblp_link link[2];

	stand_alone(&comm, link, &dblp_transport_tcp);
	comm.ctl = ctl;
	comm.n_ctl = 2;
	dblp_ctl_began(&comm, &req);
	EXPECT_EQ(0, comm.error);
	ctl[1].reported = true;
	ctl[1].told = UINT32_MAX;
	dblp_ctl_began(&comm, &req);
	EXPECT_EQ(-EPROTO, comm.error);
}

struct hearer {
	int	fd;
	int	heard;
	bool	closes;
};

/* Says something before it hears that the other one leaves, and when it has heard it */
static void *hear_bye(void *arg)
{
	struct hearer *h = arg;
	struct dblp_ctl ctl;
	char c = 0;

	if (recv(h->fd, &ctl, sizeof(ctl), MSG_WAITALL) == sizeof(ctl) &&
	    ctl.type == DBLP_CTL_BYE && !recv(h->fd, &c, 1, 0)) {
		usleep(50000);
		__atomic_store_n(&h->heard, send(h->fd, &c, 1, MSG_NOSIGNAL),
				 __ATOMIC_SEQ_CST);
	}
	if (h->closes)
		close(h->fd);
	return NULL;
}

TEST(who_leaves_is_heard_before_it_has_left)
{
	struct dblp_ctlconn ctl = { .fd = -1 };
	struct hearer h = { .closes = true };
	struct dblp_comm comm;
	struct dblp_link link[2];
	pthread_t thread;
	u64 begun;
	int i, fd[2];

	for (i = 0; i < 3; i++) {
		stand_alone(&comm, link, &dblp_transport_tcp);
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
		ctl.fd = fd[0];
		h.fd = fd[1];
		h.heard = 0;
		comm.rank = 1;
		comm.ctl = &ctl;
		comm.n_ctl = 1;
		/* After an error, and behind one that is silent, nobody waits longer */
		comm.error = i == 1 ? EDOM : 0;
		h.closes = !i;
		comm.attr.timeout_ms = i == 2 ? 200 : WAIT_MS;
		ASSERT_EQ(1, send(fd[1], "x", 1, 0));
		pthread_create(&thread, NULL, hear_bye, &h);
		begun = dblp_comm_now();
		dblp_ctl_bye(&comm);
		EXPECT_GT(WAIT_MS / 2 * MS_NS, dblp_comm_now() - begun);
		EXPECT_EQ(!i, ctl.fd < 0);
		if (!i)
			EXPECT_EQ(1, __atomic_load_n(&h.heard, __ATOMIC_SEQ_CST));
		pthread_join(thread, NULL);
		if (i) {
			close(fd[0]);
			close(fd[1]);
		}
	}
}

static void run_keepalive(struct rank *r)
{
	int second[2] = { 0, 0 }, fd[2], i;
	socklen_t len = sizeof(second[0]);

	/* A connection for data is made when it is needed */
	run_allreduce(r);
	fd[0] = r->comm->ctl[!r->attr.rank].fd;
	fd[1] = dblp_link_of(r->comm, !r->attr.rank, 0)->fd;
	for (i = 0; i < 2 && !r->err; i++)
		r->err = getsockopt(fd[i], IPPROTO_TCP, TCP_KEEPIDLE,
				    &second[i], &len);
	/* Who leaves closes them, on both sides: nobody does before all have looked */
	if (!r->err)
		run_allreduce(r);
	r->good &= second[0] == 1 && second[1] == 1;
}

TEST(hosts_are_asked_in_time)
{
	int i;

	prepare(2, next_epoch(), 1, run_keepalive);
	for (i = 0; i < 2; i++) {
		rank[i].attr.keepalive_ms = 1999;
		rank[i].attr.timeout_ms = 4000;
	}
	run_all(2);
	expect_good(_metadata, 2);
}

TEST(only_what_a_peer_does_is_blamed_on_it)
{
	static const struct {
		int	error;
		int	failed;
	} errors[] = {
		{ ECONNRESET, 1 }, { ETIMEDOUT, 1 }, { EHOSTUNREACH, 1 },
		{ ENETUNREACH, 1 }, { EPROTO, 1 },
		{ ENOMEM, 0 }, { ENOBUFS, 0 }, { EPERM, 0 }, { EFAULT, 0 },
		{ ENOENT, 0 }, { EMFILE, 0 }, { EADDRNOTAVAIL, 0 },
	};
	struct dblp_comm comm;
	struct dblp_link link[2];
	struct dblp_task t;
	u32 i, again;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		for (again = 0; again < 2; again++) {
			stand_alone(&comm, link, &dblp_transport_tcp);
			link[1].out = again ? NULL : &t;
			dblp_link_died(&link[1], -errors[i].error);
			EXPECT_EQ(again ? 0 : -errors[i].error, comm.error);
			/* Then something is to be sent */
			if (again)
				dblp_link_want(&link[1]);
			EXPECT_EQ(-errors[i].error, comm.error);
			EXPECT_EQ(errors[i].failed, comm.failed_rank);
		}
}

static int report_error;

int __wrap_dblp_report(int fd, int flags, struct dblp_msg *m)
{
	return report_error;
}

TEST(a_report_that_is_lost_is_an_error)
{
	static const int errors[] = { -EAGAIN, -ENOMEM, -EBADMSG };
	struct dblp_comm comm;
	struct dblp_link link[2];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		stand_alone(&comm, link, &dblp_transport_dblp);
		report_error = errors[i];
		dblp_link_reports(&link[1]);
		EXPECT_EQ(i ? errors[i] : 0, comm.error);
		EXPECT_EQ(i ? 0 : -1, comm.failed_rank);
	}
}

TEST(without_memory_there_is_an_error_and_nothing_else)
{
	struct dblp_comm *comm;
	struct dblp_req *req;
	int i, err, v = 7, many[2] = { 0 };
	bool enough = false;
	struct dblp_op op;

	prepare(1, next_epoch(), 1, NULL);
	op = rank[0].op;
	for (i = 0; ; i++) {
		fail_after = i;
		err = dblp_comm_open(&comm, &rank[0].attr);
		if (fail_after >= 0)
			break;
		ASSERT_EQ(-ENOMEM, err);
	}
	fail_after = -1;
	ASSERT_EQ(0, err);
	EXPECT_LE(6, i);
	for (i = 0; ; i++) {
		fail_after = i;
		err = dblp_allreduce(comm, &v, 1, &rank[0].op, &req);
		if (fail_after >= 0)
			break;
		EXPECT_EQ(-ENOMEM, err);
	}
	fail_after = -1;
	EXPECT_EQ(0, err);
	EXPECT_LE(6, i);
	EXPECT_EQ(0, dblp_wait(req, WAIT_MS, NULL, 0));
	EXPECT_EQ(7, v);
	/* A key belongs to no vector that has not begun */
	op.rule = DBLP_FEEDBACK;
	op.flags = DBLP_OP_BUDGET | DBLP_OP_CARRY;
	for (i = 0; !enough; i++) {
		op.key = i;
		fail_after = i;
		err = dblp_allreduce(comm, many, 1, &op, &req);
		enough = fail_after >= 0;
		fail_after = -1;
		ASSERT_EQ(enough ? 0 : -ENOMEM, err);
		if (err)
			ASSERT_EQ(0, dblp_allreduce(comm, many, 2, &op, &req));
		ASSERT_EQ(0, dblp_wait(req, WAIT_MS, NULL, 0));
	}
	dblp_comm_close(comm);
}

/* A module with a shorter rcvinfo has room for so many ranges */
static _Thread_local u32 n_placed;

ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct cmsghdr *c = msg->msg_control;
	struct dblp_range range;
	u32 i;

	if (!n_placed)
		return __real_recvmsg(fd, msg, flags);
	c->cmsg_level = SOL_DBLP;
	c->cmsg_type = DBLP_PLACED;
	c->cmsg_len = CMSG_LEN(n_placed * sizeof(range));
	if (msg->msg_controllen < c->cmsg_len)
		abort();
	for (i = 0; i < n_placed; i++) {
		range = (struct dblp_range) { 2 * i, 1 };
		memcpy(CMSG_DATA(c) + i * sizeof(range), &range, sizeof(range));
	}
	msg->msg_controllen = c->cmsg_len;
	msg->msg_flags = 0;
	return 1;
}

TEST(as_many_ranges_are_read_as_can_come)
{
	struct dblp_inbox in;
	char head[8], data[512];

	memset(&in, 0, sizeof(in));
	dblp_inbox_set(&in, head, sizeof(head), data, sizeof(data));
	for (n_placed = 127; n_placed <= 138; n_placed++) {
		ASSERT_EQ(1, dblp_transport_dblp.recv(-1, &in));
		ASSERT_EQ(n_placed, in.n);
		ASSERT_EQ(2 * (in.n - 1), in.range[in.n - 1].offset);
		ASSERT_EQ(0, in.map.info.tag);
	}
	n_placed = 0;
}

static void __attribute__((constructor)) use_tcp(void)
{
	transport = "tcp";
}

TEST_HARNESS_MAIN
