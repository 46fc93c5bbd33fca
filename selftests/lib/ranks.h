/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ranks of a communicator, as threads or processes, for the tests over TCP in user
 * space and those over AF_DBLP. To be included once.
 */
#ifndef DBLP_TEST_RANKS_H
#define DBLP_TEST_RANKS_H

#include <engine.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/types.h>

#include "kselftest_harness.h"

#define RANKS_MAX	9
/* Long enough for a busy machine */
#define WAIT_MS		60000

/* A key-value store, as programs have it */
static struct {
	pthread_mutex_t	lock;
	char		key[64];
	char		value[128];
	size_t		n;
} store = { .lock = PTHREAD_MUTEX_INITIALIZER };

static inline int store_set(void *kv, const char *key, const void *v, size_t n)
{
	pthread_mutex_lock(&store.lock);
	snprintf(store.key, sizeof(store.key), "%s", key);
	memcpy(store.value, v, n);
	store.n = n;
	pthread_mutex_unlock(&store.lock);
	return 0;
}

static inline int store_get(void *kv, const char *key, void *v, size_t *n)
{
	int err = -EAGAIN;

	pthread_mutex_lock(&store.lock);
	if (!strcmp(store.key, key) && *n >= store.n) {
		memcpy(v, store.value, store.n);
		*n = store.n;
		err = 0;
	}
	pthread_mutex_unlock(&store.lock);
	return err;
}

/* struct rank - work of a rank, and its result */
struct rank {
	pthread_t		thread;
	struct dblp_comm_attr	attr;
	struct dblp_op		op;
	const char		*netns;
	u32			nranks;
	u64			count;
	void			(*run)(struct rank *r);
	struct dblp_comm	*comm;
	int			opened;
	int			err;
	int			error;
	int			failed;
	bool			good;
	struct dblp_result	result;
	struct dblp_comm_stats	stats;
	char			text[256];
};

static struct rank rank[RANKS_MAX];
static const char *transport = "tcp";

static inline u64 strangers_of(const struct rank *r)
{
	struct dblp_comm_stats stats;

	dblp_comm_stats(r->comm, &stats, sizeof(stats));
	return stats.strangers;
}

static inline void *rank_main(void *arg)
{
	struct rank *r = arg;

	if (r->netns && dblp_netns_enter(r->netns))
		abort();
	r->opened = dblp_comm_open(&r->comm, &r->attr);
	if (r->opened) {
		snprintf(r->text, sizeof(r->text), "%s", dblp_comm_why(NULL));
		return NULL;
	}
	snprintf(r->text, sizeof(r->text), "%s", dblp_comm_describe(r->comm));
	r->run(r);
	r->error = dblp_comm_error(r->comm, &r->failed);
	if (r->error && *dblp_comm_why(r->comm))
		snprintf(r->text, sizeof(r->text), "%s", dblp_comm_why(r->comm));
	dblp_comm_stats(r->comm, &r->stats, sizeof(r->stats));
	dblp_comm_close(r->comm);
	return NULL;
}

/* Set defaults of @n ranks; a test changes them before run_all() */
static inline void prepare(int n, u32 epoch, u64 count, void (*run)(struct rank *r))
{
	int i;

	memset(rank, 0, sizeof(rank));
	for (i = 0; i < n; i++) {
		rank[i].attr = (struct dblp_comm_attr) {
			.size = sizeof(rank[i].attr),
			.rank = i,
			.nranks = n,
			.epoch = epoch,
			.rendezvous = "kv",
			.transport = transport,
			.kv_set = store_set,
			.kv_get = store_get,
			.join_ms = WAIT_MS,
		};
		rank[i].op = (struct dblp_op) {
			.size = sizeof(rank[i].op),
			.algo = DBLP_TRANSPOSE,
			.dtype = DBLP_INT32,
		};
		rank[i].nranks = n;
		rank[i].count = count;
		rank[i].run = run;
	}
}

/* Run the statements for each of the first @n ranks, as @r */
#define EACH_RANK(n, ...) do { \
	struct rank *r; \
	\
	for (r = rank; r < rank + (n); r++) \
		__VA_ARGS__; \
} while (0)

static inline void run_all(int n)
{
	int i;

	for (i = 0; i < n; i++)
		pthread_create(&rank[i].thread, NULL, rank_main, &rank[i]);
	for (i = 0; i < n; i++)
		pthread_join(rank[i].thread, NULL);
}

static inline u32 next_epoch(void)
{
	static u32 epoch;

	return ++epoch;
}

/* Contribution of rank @r to element @i, different for each @time */
static inline int value_of(u32 r, u64 i, u32 time)
{
	return (int)((r + 1) * 2654435761u ^ (u32)i * 40503u ^ time);
}

static inline u32 sum_of(u32 n, u64 i, u32 time)
{
	u32 sum = 0, r;

	for (r = 0; r < n; r++)
		sum += (u32)value_of(r, i, time);
	return sum;
}

static inline int *new_vector(const struct rank *r, u32 time)
{
	int *v = malloc(r->count * sizeof(*v) + 1);
	u64 i;

	for (i = 0; i < r->count; i++)
		v[i] = value_of((u32)(r - rank), i, time);
	return v;
}

static inline bool is_sum(const struct rank *r, const int *v, u64 from, u64 n, u32 time)
{
	u64 i;

	for (i = from; i < from + n; i++)
		if ((u32)v[i] != sum_of(r->nranks, i, time))
			return false;
	return true;
}

/* Runs three operations concurrently */
static inline void run_allreduce(struct rank *r)
{
	struct dblp_req *req[3] = { NULL };
	int *v[3], i;

	r->good = true;
	for (i = 0; i < 3; i++) {
		v[i] = new_vector(r, i);
		r->err = dblp_allreduce(r->comm, v[i], r->count, &r->op, &req[i]);
		r->good &= !r->err;
	}
	for (i = 2; i >= 0; i--) {
		if (req[i])
			r->err = dblp_wait(req[i], WAIT_MS, &r->result, sizeof(r->result));
		r->good &= !r->err && is_sum(r, v[i], 0, r->count, i);
	}
	for (i = 0; i < 3; i++)
		free(v[i]);
}

/* Reduce-scatter, then allgather */
static __attribute__((unused)) u64 n_owned;

static inline void run_halves(struct rank *r)
{
	int *v = new_vector(r, 0), *own = calloc(r->count + 1, sizeof(*own));
	struct dblp_span part[64];
	struct dblp_req *req;
	int k, n = dblp_comm_owned(r->comm, r->count, &r->op, part, 64);

	r->err = dblp_reduce_scatter(r->comm, v, r->count, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	r->good = !r->err && n >= 0 && n <= 64 &&
		  dblp_comm_owned(r->comm, r->count, &r->op, NULL, 0) == n;
	for (k = 0; r->good && k < n; k++) {
		const u64 first = part[k].first, length = part[k].end - first;

		r->good = first < part[k].end && is_sum(r, v, first, length, 0);
		memcpy(own + first, v + first, length * sizeof(*v));
		__atomic_add_fetch(&n_owned, length, __ATOMIC_SEQ_CST);
	}
	r->err = r->err ?: dblp_allgather(r->comm, own, r->count, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, NULL, 0);
	r->good &= is_sum(r, own, 0, r->count, 0);
	free(own);
	free(v);
}

/*
 * A free port, below those that the kernel gives to the sockets of other processes until it
 * is used here
 */
static inline u16 free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	u16 port;
	int fd, err;

	do {
		if (getrandom(&port, sizeof(port), 0) != sizeof(port))
			abort();
		port = 10000 + port % 10000;
		a.sin_port = htons(port);
		fd = socket(AF_INET, SOCK_STREAM, 0);
		err = bind(fd, (void *)&a, sizeof(a));
		close(fd);
	} while (err);
	return port;
}

static inline void expect_good(struct __test_metadata *_metadata, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		EXPECT_EQ(0, rank[i].opened);
		EXPECT_TRUE(rank[i].good) {
			TH_LOG("rank %d: %s", i, rank[i].text);
		}
	}
}

/* All ranks report the same failed rank and error, soon */
static inline void expect_failed(struct __test_metadata *_metadata, int n, int error,
			  int failed, u64 ms)
{
	int i;

	for (i = 0; i < n; i++) {
		EXPECT_EQ(error, rank[i].err);
		EXPECT_EQ(error, rank[i].error);
		EXPECT_EQ(failed, rank[i].failed);
		EXPECT_GT(ms * 1000000, rank[i].result.ns);
	}
}

/* Shared memory of the processes */
static struct shared {
	u64			killed_at;
	volatile bool		over;
	struct {
		u64		failed_at;
		int		err;
		int		failed;
		volatile u32	rounds;
	} rank[RANKS_MAX];
} *shared;

static inline void shared_new(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		abort();
}

/* Runs rounds until the process is killed or another rank fails */
static inline void run_until_killed(struct rank *r)
{
	int me = (int)(r - rank), *v = new_vector(r, 0);
	struct dblp_req *req;

	do {
		r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req);
		if (r->good && shared->rank[me].rounds == 20) {
			/* Its child outlives it, until the end of the test */
			if (!fork()) {
				while (!shared->over)
					usleep(1000);
				_exit(0);
			}
			shared->killed_at = dblp_comm_now();
			kill(getpid(), SIGKILL);
		}
		if (!r->err)
			r->err = dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
		shared->rank[me].rounds++;
	} while (!r->err);
	shared->rank[me].failed_at = dblp_comm_now();
	shared->rank[me].err = dblp_comm_error(r->comm, &shared->rank[me].failed);
	free(v);
}

/* Run each rank in a process of its own */
static inline void fork_ranks(pid_t *pid, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		pid[i] = fork();
		if (pid[i])
			continue;
		rank_main(&rank[i]);
		_exit(0);
	}
}

/* Kill rank @killed of @n during rounds of @algo */
static inline void kill_one(int n, int algo, int killed, const char *at)
{
	pid_t pid[RANKS_MAX];
	int i;

	memset(shared, 0, sizeof(*shared));
	prepare(n, next_epoch(), 50000, run_until_killed);
	for (i = 0; i < n; i++) {
		rank[i].attr.rendezvous = at;
		rank[i].op.algo = algo;
		rank[i].good = i == killed;
	}
	fork_ranks(pid, n);
	for (i = 0; i < n; i++)
		waitpid(pid[i], NULL, 0);
	shared->over = true;
}

/* The last rank starts the first operation after the others have finished it */
static int n_over;

static inline void run_late(struct rank *r)
{
	bool last = r->attr.rank + 1 == r->nranks;
	int *v = new_vector(r, 0), *second = new_vector(r, 1);
	struct dblp_req *req;
	u64 i;

	while (last && __atomic_load_n(&n_over, __ATOMIC_SEQ_CST) + 1 < r->nranks)
		usleep(1000);
	r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	__atomic_add_fetch(&n_over, 1, __ATOMIC_SEQ_CST);
	r->op.wait_ms = 0;
	r->err = r->err ?: dblp_allreduce(r->comm, second, r->count, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, NULL, 0);
	r->good = !r->err && is_sum(r, second, 0, r->count, 1);
	for (i = 0; i < r->count && r->op.rule == DBLP_BUBBLE; i++)
		r->good &= (u32)v[i] == sum_of(r->nranks - 1, i, 0);
	free(v);
	free(second);
}

/* The late rank is the last of three, with a parameter server */
static inline void prepare_late(u64 count)
{
	n_over = 0;
	prepare(3, next_epoch(), count, run_late);
	EACH_RANK(3, r->op.algo = DBLP_PS, r->op.wait_ms = 4000);
}

static inline void expect_late(struct __test_metadata *_metadata, u64 count)
{
	expect_good(_metadata, 3);
	EXPECT_EQ(1, rank[0].result.late_ranks);
	EXPECT_EQ(count * 4, rank[0].result.missing);
	EXPECT_EQ(count * 8, rank[0].result.asked);
	EXPECT_EQ(0, rank[2].result.late_ranks);
	EXPECT_LT(0, rank[0].stats.late);
}

#endif /* DBLP_TEST_RANKS_H */
