// SPDX-License-Identifier: GPL-2.0-only
/*
 * libdblp: ranks that fail, leave or are late, and failing memory. Ranks are threads, or
 * processes if a test kills them.
 */
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "test.h"
#include "../lib/ranks.h"
#include <join.h>

TEST(ranks_that_disagree_get_the_same_error_at_once)
{
	int k, odd, i;

	for (odd = 0; odd < 3; odd++)
		for (k = 0; k < 8; k++) {
			prepare(3, next_epoch(), 100000, run_allreduce);
			switch (k) {
			case 0: rank[odd].count = 99999; break;
			case 1: rank[odd].op.dtype = DBLP_FLOAT32; break;
			case 2: rank[odd].op.algo = DBLP_RING; break;
			case 3: rank[odd].op.budget = 1; break;
			case 4: rank[odd].op.flags = DBLP_OP_AVERAGE; break;
			case 5: rank[odd].op.key = 1; break;
			case 7: rank[odd].op.flags = DBLP_OP_SPARSE; break;
			/* All ranks wait, so none sends anything */
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

/*
 * The first operations have different roots, so both ranks wait; rank 0 starts them
 * later
 */
static void run_two(struct rank *r)
{
	struct dblp_req *req[2];
	int v[2] = { 0 };

	if (!r->attr.rank)
		usleep(300000);
	r->op.root = r->attr.rank;
	r->err = dblp_allreduce(r->comm, &v[0], 1, &r->op, &req[0]);
	r->op.root = 0;
	r->err = r->err ?: dblp_allreduce(r->comm, &v[1], 1, &r->op, &req[1]) ?:
		 dblp_wait(req[0], WAIT_MS, NULL, 0) | dblp_wait(req[1], WAIT_MS, NULL, 0);
}

TEST(ranks_that_disagree_get_an_error_during_other_operations)
{
	int i;

	prepare(2, next_epoch(), 1, run_two);
	for (i = 0; i < 2; i++)
		rank[i].op.algo = DBLP_PS;
	run_all(2);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(-EPROTO, rank[i].err);
}

/* Fault of the lying rank: it XORs a byte of the front of its packed vectors */
static struct {
	u32	at;
	u8	bits;
} lie;

static ssize_t send_lie(int fd, const struct iovec *iov, const struct dblp_sndinfo *info)
{
	/* The first send of a message has the whole front */
	if (iov[0].iov_len == DBLP_HEAD_LEN && iov[1].iov_len > lie.at)
		((u8 *)iov[1].iov_base)[lie.at] ^= lie.bits;
	return dblp_transport_tcp.send(fd, iov, info);
}

static void run_lie(struct rank *r)
{
	static struct dblp_transport liar;

	liar = dblp_transport_tcp;
	liar.send = send_lie;
	/* The transport is not in use before the first operation */
	r->comm->transport = &liar;
	run_allreduce(r);
}

/* All other ranks name the rank that sends an invalid packed vector */
TEST(an_invalid_packed_vector_is_blamed_on_its_sender)
{
	static const struct {
		u32	at;
		u8	bits;
	} lies[] = {
		{ 0, 8 },	/* another block size, such as 4 elements, not 1024 */
		{ 0, 32 },	/* an unknown block size */
		{ 1, 1 }, { 3, 128 },
		{ 4, 128 },	/* more elements than the vector has */
		{ 7, 8 },	/* fewer elements than bits that are set */
		{ 8, 1 },	/* a block less, or more */
	};
	/* With lanes, packed vectors also name the large elements */
	static const struct dblp_lane lanes[] = { { .large = 300000, .rest = 1 }, { 0 } };
	u32 i, k;

	for (i = 0; i < 3 * ARRAY_SIZE(lies); i++) {
		lie.at = lies[i / 3].at;
		lie.bits = lies[i / 3].bits;
		prepare(3, next_epoch(), 1000, run_allreduce);
		for (k = 0; k < 3; k++) {
			rank[k].op.algo = DBLP_PS;
			/* The root's data is copied, data sent to the root is added */
			rank[k].op.root = i % 3 == 1;
			if (i % 3 < 2) {
				rank[k].op.flags = DBLP_OP_SPARSE;
				continue;
			}
			rank[k].attr.lane = lanes;
			rank[k].attr.lanes = 2;
		}
		rank[1].run = run_lie;
		run_all(3);
		/* The liar may end before it gets the error */
		for (k = 0; k < 3; k += 2) {
			EXPECT_EQ(-EPROTO, rank[k].err);
			EXPECT_EQ(1, rank[k].failed);
		}
	}
}

static void run_abort(struct rank *r)
{
	struct dblp_req *req, *never;
	int *v = new_vector(r, 0);
	float residual = 1;

	r->err = dblp_residual_set(r->comm, 1, DBLP_FLOAT32, &residual, 1) ?:
		 dblp_allreduce(r->comm, v, r->count, &r->op, &req);
	if (r->attr.rank == 1)
		dblp_comm_abort(r->comm, EDOM);
	r->err = r->err ?: dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	/* A failed operation leaves residuals incomplete */
	r->good = dblp_allreduce(r->comm, v, r->count, &r->op, &never) == -EDOM &&
		  dblp_residual_get(r->comm, 1, DBLP_FLOAT32, &residual, 1) == -EDOM;
	free(v);
}

/* The others wait for rank 2 until it gets the error */
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

TEST(an_abort_reaches_all_ranks)
{
	prepare(4, next_epoch(), 100000, run_abort);
	rank[2].run = run_idle;
	run_all(4);
	expect_good(_metadata, 4);
	EXPECT_EQ(-EDOM, rank[2].err);
	expect_failed(_metadata, 4, -EDOM, 1, WAIT_MS);
}

/*
 * dblp_wait() returns -EAGAIN for unfinished requests only; other values here are not
 * errors. The last rank takes no part, so the operation of the others never ends by
 * itself.
 */
static void run_odd_abort(struct rank *r)
{
	static const int errors[] = { EAGAIN, 4096, 0, -1 };
	struct dblp_req *req;
	int v = 0;

	if (r->attr.rank == 2) {
		while (__atomic_load_n(&n_over, __ATOMIC_SEQ_CST) < 2)
			usleep(1000);
		dblp_comm_abort(r->comm, errors[r->count]);
	}
	r->err = dblp_allreduce(r->comm, &v, 1, &r->op, &req);
	__atomic_add_fetch(&n_over, 1, __ATOMIC_SEQ_CST);
	r->err = r->err ?: dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
}

TEST(an_abort_with_an_invalid_error_is_a_cancellation)
{
	int i, k;

	for (k = 0; k < 4; k++) {
		n_over = 0;
		prepare(3, next_epoch(), k, run_odd_abort);
		run_all(3);
		for (i = 0; i < 3; i++)
			EXPECT_EQ(-ECANCELED, rank[i].err);
	}
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
				/* 0.2 s plus the delay of a busy machine */
				EXPECT_GT(WAIT_MS * MS_NS, shared->rank[i].failed_at -
					  shared->killed_at);
			}
		}
}

/* Rank 1 leaves after its last operation, the others begin one more without it */
static void run_short(struct rank *r)
{
	run_allreduce(r);
	if (r->attr.rank != 1)
		run_allreduce(r);
}

TEST(a_rank_that_leaves_fails_ranks_that_still_need_it)
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

/* The rank leaves before any connection for data exists */
TEST(a_rank_that_leaves_at_once_fails_ranks_that_need_it)
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

/* Only one rank of a group without rank 0 begins */
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

TEST(no_operation_waits_forever_after_rank_0_fails)
{
	n_over = 0;
	prepare(4, next_epoch(), 1, run_pair);
	rank[0].run = run_nothing;
	EACH_RANK(4, r->attr.timeout_ms = 2000, r->op.algo = DBLP_AVERAGE, r->op.levels = 2,
		     r->op.radix[0] = 2, r->op.radix[1] = 2);
	run_all(4);
	EXPECT_EQ(-ECONNRESET, rank[2].err);
	EXPECT_EQ(0, rank[2].failed);
}

/* An allocation fails once, after @fail_after others; tests set this, too */
static _Thread_local int fail_after = -1;

void *__real_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);

/* Allocations of an engine after its communicator has failed for lack of memory */
static _Thread_local bool has_failed;
static u32 n_asked;

static bool memory_fails(void)
{
	bool fails = fail_after >= 0 && !fail_after--;

	if (has_failed && rank[0].comm && rank[0].comm->error)
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
 * Independent of the machine's load: @wait_ms is so long that no rank is late by chance.
 * When a rank waits for the last rank only, its clock skips this time.
 */
#define LATE_MS		1000000

static _Thread_local u64 passed;

u64 __real_dblp_comm_now(void);
u64 __real_dblp_ctl_timeout(struct dblp_comm *comm, u64 now);

u64 __wrap_dblp_comm_now(void)
{
	return __real_dblp_comm_now() + passed;
}

/* Number of checks of timeouts by engines; a stalled rank 0 makes none */
static u64 n_looks;
static bool stall, stalled;
/* The clock of rank 0 skips at once, and then its memory fails */
static bool poor;
/*
 * @pausing: the last rank sends the second message of its contribution after the clock of rank 0
 *	has skipped
 */
static bool pausing, skipped;
/*
 * @stopping: rank 0 is stopped when it waits for the last rank only, which then begins. When
 *	rank 0 continues, the clock has skipped and the contribution has arrived.
 */
static bool stopping, stops;
static _Thread_local bool stops_here;

int __real_epoll_wait(int fd, struct epoll_event *ev, int n, int ms);

int __wrap_epoll_wait(int fd, struct epoll_event *ev, int n, int ms)
{
	int arrived = 0;

	if (!stops_here)
		return __real_epoll_wait(fd, ev, n, ms);
	stops_here = false;
	while (!arrived) {
		usleep(1000);
		if (ioctl(dblp_link_of(rank[0].comm, 2, 0)->fd, FIONREAD, &arrived))
			abort();
	}
	passed = 16 * LATE_MS * MS_NS;
	errno = EINTR;
	return -1;
}

static ssize_t send_one_and_pause(int fd, const struct iovec *iov, const struct dblp_sndinfo *info)
{
	/* That of a connection's first message has no data behind it */
	bool begins = iov[0].iov_len == DBLP_HEAD_LEN && iov[1].iov_len;
	static _Thread_local u32 n;
	ssize_t sent;

	while (begins && n == 1 && !__atomic_load_n(&skipped, __ATOMIC_SEQ_CST))
		usleep(1000);
	sent = dblp_transport_tcp.send(fd, iov, info);
	n += begins && sent > 0;
	return sent;
}

/* Is only the contribution of the last rank missing, or with @pausing only its second message? */
static bool waits_for_last(const struct dblp_req *req, u32 last)
{
	bool waits = false;
	u32 i;

	for (i = 0; i < req->sched->n; i++) {
		const struct dblp_task *t = &req->task[i];

		if (t->step->op != DBLP_STEP_ADD || t->ended)
			continue;
		if (t->begun || t->step->peer != last || (pausing && !dblp_task_way(t).goes_on))
			return false;
		waits = true;
	}
	return waits;
}

static void look(const struct dblp_comm *comm)
{
	__atomic_add_fetch(&n_looks, 1, __ATOMIC_SEQ_CST);
	while (!comm->rank && __atomic_load_n(&stall, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(&stalled, true, __ATOMIC_SEQ_CST);
		usleep(1000);
	}
}

/* Called by the engine before it looks for late ranks */
u64 __wrap_dblp_ctl_timeout(struct dblp_comm *comm, u64 now)
{
	const struct dblp_req *req = TAILQ_FIRST(&comm->reqs);
	bool last = req && req->op.wait_ms == LATE_MS;

	look(comm);
	if (poor && last && !comm->rank && !passed) {
		passed = 16 * LATE_MS * MS_NS;
		fail_after = 0;
		return now;
	}
	if (!last || passed || !waits_for_last(req, comm->nranks - 1))
		return __real_dblp_ctl_timeout(comm, now);
	if (stopping) {
		stops_here = true;
		__atomic_store_n(&stops, true, __ATOMIC_SEQ_CST);
		return now;
	}
	/* The waits of all rounds */
	passed = 16 * LATE_MS * MS_NS;
	/* The second message is received after this engine has looked for late ranks */
	__atomic_store_n(&skipped, pausing, __ATOMIC_SEQ_CST);
	return now;
}

/* Packet loss: each answer is overdue when the engine checks, but some arrive */
static u64 n_came;

static bool is_alive_late(int fd, uint64_t *received)
{
	(void)fd;
	*received += n_came;
	return false;
}

TEST(a_silent_rank_has_failed)
{
	static const struct dblp_transport lossy = { .is_alive = is_alive_late };
	struct dblp_ctlconn ctl = { .rank = 1, .fd = dup(0) };
	struct dblp_link links[2] = { 0 };
	struct dblp_comm comm = {
		.attr = { .keepalive_ms = 1000, .timeout_ms = 5000 },
		.nranks = 2,
		.transport = &lossy,
		.epoll = -1,
		.ctl = &ctl,
		.n_ctl = 1,
		.n_links = 1,
		.link = links,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	u64 at, came_at = 0;

	links[1].state = DBLP_LINK_READY;
	ASSERT_LE(0, ctl.fd);
	for (at = 0; !comm.decision.is_set && at < 100000 * MS_NS; at = comm.check_at) {
		if (at >= came_at + 3000 * MS_NS && at < 50000 * MS_NS) {
			came_at = at;
			n_came++;
		}
		__real_dblp_ctl_timeout(&comm, at);
	}
	EXPECT_EQ(ETIMEDOUT, comm.decision.error);
	EXPECT_EQ(1, comm.decision.rank);
	EXPECT_LT(45000 * MS_NS, came_at);
	EXPECT_LE(came_at + 4000 * MS_NS, at);
	EXPECT_GE(came_at + 5000 * MS_NS, at);
	dblp_fd_close(&ctl.fd);
}

/* Connect a control connection of rank 0 to a peer that reads nothing; return the peer */
static int connect_full(struct dblp_ctlconn *ctl, size_t *n)
{
	struct sockaddr_dblp at = { .sdblp_family = AF_DBLP };
	int listener, fd;
	ssize_t sent;

	if (dblp_addr_parse("127.0.0.1", &at))
		abort();
	listener = dblp_socket(&at, IPPROTO_TCP);
	fd = dblp_socket(&at, IPPROTO_TCP);
	if (dblp_listen(listener, &at) || dblp_name_of(listener, false, &at) ||
	    dblp_connect(fd, &at, -1))
		abort();
	ctl->fd = dblp_accept(listener);
	close(listener);
	for (*n = 0; (sent = send(ctl->fd, &at, sizeof(at), MSG_DONTWAIT)) > 0;)
		*n += (size_t)sent;
	return fd;
}

/* Read until the end; return the number of bytes */
static void *count_bytes(void *fd)
{
	size_t total = 0;
	char buf[4096];
	ssize_t n;

	while ((n = recv(*(int *)fd, buf, sizeof(buf), 0)) > 0)
		total += (size_t)n;
	return (void *)total;
}

TEST(rank_0_leaves_after_its_decision_was_received)
{
	struct dblp_ctlconn ctl = { .rank = 1 };
	struct dblp_comm comm = {
		.attr = { .timeout_ms = 3600000 },
		.nranks = 3,
		.error = -ECONNRESET,
		.ctl = &ctl,
		.n_ctl = 1,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	bool failed;
	pthread_t thread;
	void *received;
	size_t full;
	int peer, i;

	/* Rank 0 does not wait for a host that has failed, and reads nothing */
	for (i = 0; i < 2; i++) {
		failed = !i;
		ctl.alive_at = dblp_comm_now() - failed * comm.attr.timeout_ms * 1000000ULL;
		peer = connect_full(&ctl, &full);
		/* The decision; leaving appends BYE */
		ctl.n_out = sizeof(struct dblp_ctl);
		if (!failed)
			pthread_create(&thread, NULL, count_bytes, &peer);
		dblp_ctl_bye(&comm);
		dblp_fd_close(&ctl.fd);
		if (!failed) {
			pthread_join(thread, &received);
			EXPECT_EQ(full + 2 * sizeof(struct dblp_ctl), (size_t)received);
		}
		close(peer);
	}
}

TEST(an_engine_handles_control_messages_while_data_flows)
{
	n_looks = 0;
	prepare(2, next_epoch(), 20000, run_allreduce);
	EACH_RANK(2, r->op.algo = DBLP_PS, r->attr.message_bytes = 8);
	run_all(2);
	expect_good(_metadata, 2);
	/* Three operations of 10000 messages in each direction */
	EXPECT_LE(60000, n_looks);
}

/* Each rank fails by itself while rank 0, which all need, is busy */
static void run_stalled(struct rank *r)
{
	struct timespec pause = { .tv_nsec = 300000000 };
	struct dblp_req *req;
	int v = 0;

	if (!r->attr.rank) {
		__atomic_store_n(&stall, true, __ATOMIC_SEQ_CST);
		r->err = dblp_allreduce(r->comm, &v, 1, &r->op, &req);
	}
	while (!__atomic_load_n(&stalled, __ATOMIC_SEQ_CST))
		usleep(1000);
	if (r->attr.rank)
		r->err = dblp_allreduce(r->comm, &v, 1, &r->op, &req);
	if (r->attr.rank) {
		dblp_comm_abort(r->comm, EDOM + r->attr.rank);
	} else {
		nanosleep(&pause, NULL);
		__atomic_store_n(&stall, false, __ATOMIC_SEQ_CST);
	}
	r->err = r->err ?: dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
}

TEST(all_ranks_name_the_same_failed_rank_while_rank_0_is_busy)
{
	int i;

	prepare(4, next_epoch(), 1, run_stalled);
	for (i = 0; i < 4; i++) {
		rank[i].attr.timeout_ms = 600000;
		rank[i].op.algo = DBLP_PS;
	}
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

/* Also if the late rank does not receive */
TEST(a_late_rank_is_skipped_and_may_return)
{
	static const u64 counts[] = { 1000, 4000000 };
	int k;

	for (k = 0; k < 2; k++) {
		prepare_late_for_sure(counts[k]);
		run_all(3);
		expect_late(_metadata, counts[k]);
	}
}

static void run_paused(struct rank *r)
{
	static struct dblp_transport slow;
	int *v = new_vector(r, 0);
	struct dblp_req *req;

	/* The transport is not in use before the first operation */
	if (r->attr.rank + 1 == r->nranks) {
		slow = dblp_transport_tcp;
		slow.send = send_one_and_pause;
		r->comm->transport = &slow;
	}
	r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	r->good = !r->err && is_sum(r, v, 0, r->count, 0);
	free(v);
}

/* Although its second message arrives after the others have waited long enough */
TEST(a_contribution_that_has_begun_is_not_late)
{
	pausing = true;
	skipped = false;
	prepare(3, next_epoch(), 1000, run_paused);
	EACH_RANK(3, r->op.algo = DBLP_PS, r->op.wait_ms = LATE_MS, r->attr.message_bytes = 3000);
	run_all(3);
	pausing = false;
	expect_good(_metadata, 3);
	EXPECT_TRUE(skipped);
	EXPECT_EQ(0, rank[0].result.late_ranks);
	EXPECT_EQ(0, rank[0].result.missing);
}

static void run_stopped(struct rank *r)
{
	int *v = new_vector(r, 0), first = 0;
	struct dblp_op all = r->op;
	struct dblp_req *req;

	/* Create the connections first */
	all.wait_ms = 0;
	r->err = dblp_allreduce(r->comm, &first, 1, &all, &req) ?:
		 dblp_wait(req, WAIT_MS, NULL, 0);
	while (r->attr.rank == 2 && !__atomic_load_n(&stops, __ATOMIC_SEQ_CST))
		usleep(1000);
	r->err = r->err ?: dblp_allreduce(r->comm, v, r->count, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	r->good = !r->err && is_sum(r, v, 0, r->count, 0);
	free(v);
}

TEST(a_contribution_that_arrives_while_the_process_is_stopped_is_not_late)
{
	stopping = true;
	prepare(3, next_epoch(), 1000, run_stopped);
	EACH_RANK(3, r->op.algo = DBLP_PS, r->op.wait_ms = LATE_MS);
	run_all(3);
	stopping = false;
	expect_good(_metadata, 3);
	EXPECT_TRUE(stops);
	EXPECT_EQ(0, rank[0].result.late_ranks);
}

/* The last rank is late in all rounds */
static void run_late_half(struct rank *r)
{
	bool last = r->attr.rank + 1 == (int)r->nranks;
	int *v = new_vector(r, 0), more[2][3] = { 0 };
	struct dblp_op all = r->op;
	struct dblp_req *req;

	/* Messages to the last rank need a connection; its own ones are late */
	all.wait_ms = 0;
	r->err = dblp_allreduce(r->comm, more[0], 3, &all, &req) ?:
		 dblp_wait(req, WAIT_MS, NULL, 0);
	while (last && __atomic_load_n(&n_over, __ATOMIC_SEQ_CST) + 1 < r->nranks)
		usleep(1000);
	r->err = r->err ?: dblp_reduce_scatter(r->comm, v, r->count, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	__atomic_add_fetch(&n_over, 1, __ATOMIC_SEQ_CST);
	/* The last rank would miss a rank that leaves now */
	r->err = r->err ?: dblp_allreduce(r->comm, more[1], 3, &all, &req) ?:
		 dblp_wait(req, WAIT_MS, NULL, 0);
	r->good = !r->err;
	free(v);
}

TEST(a_late_rank_is_counted_once)
{
	prepare_late_for_sure(999);
	EACH_RANK(3, r->run = run_late_half, r->op.algo = DBLP_RING);
	run_all(3);
	expect_good(_metadata, 3);
	/* Two rounds with the last rank, each with a third of the vector */
	EXPECT_EQ(1, rank[0].result.late_ranks);
	EXPECT_EQ(666 * 4, rank[0].result.missing);
}

TEST(long_waits_do_not_overflow)
{
	EXPECT_EQ(7 + 3 * 1000 * MS_NS, dblp_round_until(7, 1000, 2));
	EXPECT_LT(UINT64_MAX / 2, dblp_round_until(0, UINT32_MAX, DBLP_RANKS_MAX));
	EXPECT_LT(UINT64_MAX / 2, dblp_round_until(UINT64_MAX / 2, UINT32_MAX, 4000));
	EXPECT_EQ(INT32_MAX, dblp_poll_ms(UINT64_MAX));
	EXPECT_EQ(2, dblp_poll_ms(MS_NS));
	EXPECT_EQ(0, dblp_poll_ms(0));
}

/* The others begin after rank 0 has failed */
static void run_poor_late(struct rank *r)
{
	float *v = calloc(r->count, sizeof(*v));
	struct dblp_op all = r->op;
	struct dblp_req *req;

	/* Create the connections first: they need memory, too */
	all.wait_ms = 0;
	r->err = dblp_allreduce(r->comm, v, r->count, &all, &req) ?:
		 dblp_wait(req, WAIT_MS, NULL, 0);
	while (r->attr.rank && !__atomic_load_n(&n_over, __ATOMIC_SEQ_CST))
		usleep(1000);
	r->err = r->err ?: dblp_allreduce(r->comm, v, r->count, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, NULL, 0);
	__atomic_store_n(&n_over, 1, __ATOMIC_SEQ_CST);
	free(v);
}

/*
 * Rank 0 owns two parts. Once the error in the first has failed the communicator, it does
 * not touch the second
 */
TEST(a_vector_is_unchanged_after_its_operation_has_failed)
{
	int i;

	n_over = 0;
	poor = true;
	prepare(4, next_epoch(), 1000, run_poor_late);
	EACH_RANK(4, r->op.algo = DBLP_BCUBE, r->op.levels = 2, r->op.radix[0] = 2,
		     r->op.radix[1] = 2, r->op.rule = DBLP_RESCALE, r->op.dtype = DBLP_FLOAT32,
		     r->op.wait_ms = LATE_MS);
	run_all(4);
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(-ENOMEM, rank[i].err);
		EXPECT_EQ(0, rank[i].failed);
	}
	EXPECT_EQ(0, n_asked);
}

/* Like run_late(), with floats: the sum of the others is rescaled */
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
	/* The last rank would miss a rank that leaves now */
	op.wait_ms = 0;
	r->err = r->err ?: dblp_allreduce(r->comm, more, 3, &op, &req) ?:
		 dblp_wait(req, WAIT_MS, NULL, 0);
	r->good = !r->err;
	/* The sum 1 + 2 of two ranks is rescaled to 4.5 for three, or has the mean 1.5 */
	for (i = 0; i < r->count; i++)
		r->good &= v[i] == (float)(i % 7) *
			   (r->op.flags & DBLP_OP_AVERAGE ? 1.5F : 4.5F);
	free(v);
}

TEST(contributions_that_arrive_are_rescaled)
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
				/*
				 * A chain from rank 2 to 1 to 0, which passes counts on
				 */
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

TEST(without_memory_operations_fail_with_an_error)
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
	/* A failed operation does not bind its key to a vector */
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

TEST_HARNESS_MAIN
