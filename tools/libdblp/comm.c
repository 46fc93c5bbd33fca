// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Communicators: functions that programs call.
 */

#include "engine.h"
#include "reduce.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

uint64_t dblp_comm_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

void dblp_comm_count(struct dblp_comm *comm, uint64_t *field)
{
	pthread_mutex_lock(&comm->lock);
	++*field;
	pthread_mutex_unlock(&comm->lock);
}

/* Atomic, because another thread may call fork() at any time */
void dblp_fd_close(int *fd)
{
	int old = __atomic_exchange_n(fd, -1, __ATOMIC_SEQ_CST);

	if (old >= 0)
		close(old);
}

/* Attributes */

/* Sizes in release 0.1, the first one: these never change */
#define ATTR_LEAST	(offsetof(struct dblp_comm_attr, lanes) + 4)
#define OP_LEAST	(offsetof(struct dblp_op, key) + 8)

/*
 * take_sized() - copy a structure that begins with its size
 *
 * Fields that a shorter structure lacks become 0. Fields of a longer structure
 * that this library does not know must be 0.
 */
static int take_sized(void *to, size_t len, const void *from, size_t least)
{
	uint32_t size;
	size_t i;

	memcpy(&size, from, sizeof(size));
	if (size < least)
		return -EINVAL;
	for (i = len; i < size; i++)
		if (((const char *)from)[i])
			return -E2BIG;
	memset(to, 0, len);
	memcpy(to, from, size < len ? size : len);
	return 0;
}

/*
 * Fill @size bytes of the program's structure. Fields that this library does
 * not know become 0.
 */
static void fill_sized(void *to, size_t size, const void *from, size_t len)
{
	if (!size)
		return;
	memset(to, 0, size);
	memcpy(to, from, size < len ? size : len);
}

/*
 * Number in the first variable that is set; -1 if there is none or it is
 * invalid
 */
static int32_t from_env(const char *const names[])
{
	int i;

	for (i = 0; names[i]; i++) {
		const char *text = getenv(names[i]);
		char *end;
		long n;

		if (!text)
			continue;
		n = strtol(text, &end, 10);
		return *text && !*end && n >= 0 && n <= DBLP_RANKS_MAX ?
		       (int32_t)n : -1;
	}
	return -1;
}

static int set_ranks(struct dblp_comm *comm)
{
	static const char *const ranks[] = {
		"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", NULL
	};
	static const char *const sizes[] = {
		"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
		"SLURM_NTASKS", NULL
	};
	int32_t rank = comm->attr.rank, nranks = comm->attr.nranks;

	if (rank == DBLP_COMM_RANK_ENV)
		rank = from_env(ranks);
	if (nranks == DBLP_COMM_RANK_ENV)
		nranks = from_env(sizes);
	if (rank < 0 || rank >= nranks || nranks > DBLP_RANKS_MAX)
		return -EINVAL;
	comm->rank = (uint32_t)rank;
	comm->nranks = (uint32_t)nranks;
	return 0;
}

static void set_defaults(struct dblp_comm_attr *a)
{
	a->join_ms = a->join_ms ?: 60000;
	a->timeout_ms = a->timeout_ms ?: 5000;
	a->keepalive_ms = a->keepalive_ms ?: 1000;
	a->message_bytes = a->message_bytes ?: DBLP_COMM_BYTES;
}

static int set_transport(struct dblp_comm *comm)
{
	const char *name = comm->attr.transport;

	comm->transport = &dblp_transport_dblp;
	if (!name || !strcmp(name, "dblp"))
		return 0;
	comm->transport = &dblp_transport_tcp;
	if (!strcmp(name, "tcp"))
		return 0;
	if (strncmp(name, "tcp:", 4) || !name[4] ||
	    strlen(name + 4) >= sizeof(comm->cc))
		return -EINVAL;
	strcpy(comm->cc, name + 4);
	return 0;
}

static int set_devices(struct dblp_comm *comm)
{
	const char *at = comm->attr.devices ?: "";

	do {
		struct dblp_nic *nic = &comm->nic[comm->n_nics];
		size_t len = strcspn(at, ",");

		if (comm->n_nics == DBLP_NICS_MAX || len >= IFNAMSIZ ||
		    (!len && comm->attr.devices))
			return -EINVAL;
		memcpy(nic->name, at, len);
		nic->source = DBLP_SOURCE_LISTENER;
		nic->index = comm->n_nics++;
		at += len;
	} while (*at++);
	return 0;
}

static int set_lanes(struct dblp_comm *comm)
{
	const struct dblp_comm_attr *a = &comm->attr;
	uint32_t n = a->lanes ?: 1;
	int err = !a->lane != !a->lanes ? -EINVAL :
		  dblp_lanes_check(a->lanes ? a->lane : comm->lane, n);

	if (err)
		return err;
	if (a->lanes)
		memcpy(comm->lane, a->lane, n * sizeof(*comm->lane));
	comm->n_lanes = n;
	/*
	 * One more link, for send and recv, keeps them out of the order of
	 * other operations
	 */
	comm->n_links = n * comm->n_nics + 1;
	return 0;
}

static int set_attr(struct dblp_comm *comm, const struct dblp_comm_attr *attr)
{
	struct dblp_comm_attr *a = &comm->attr;
	int err = take_sized(a, sizeof(*a), attr, ATTR_LEAST);

	if (!err)
		err = a->reserved ? -EINVAL : dblp_attr_env(a);
	if (err)
		return err;
	set_defaults(a);
	if (a->keepalive_ms < 1000 || a->keepalive_ms > a->timeout_ms / 2 ||
	    a->timeout_ms > 3600000 || a->message_bytes % 8 ||
	    a->message_bytes > DBLP_MSG_MAX / 2)
		return -EINVAL;
	err = set_ranks(comm);
	if (!err)
		err = set_transport(comm);
	if (!err)
		err = set_devices(comm);
	if (!err)
		err = dblp_ports_parse(comm) ?: dblp_secret_take(comm);
	return err ?: set_lanes(comm);
}

/* Opening and closing */

static int new_lock(struct dblp_comm *comm)
{
	pthread_condattr_t attr;

	if (pthread_condattr_init(&attr))
		return -ENOMEM;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&comm->lock, NULL);
	pthread_cond_init(&comm->cond, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

static struct dblp_comm *new_comm(void)
{
	struct dblp_comm *comm = calloc(1, sizeof(*comm));
	int i;

	if (!comm)
		return NULL;
	comm->epoll = -1;
	comm->wake = -1;
	comm->ended_fd = -1;
	comm->door = -1;
	comm->suspect = -1;
	comm->failed_rank = -1;
	comm->due = UINT64_MAX;
	TAILQ_INIT(&comm->reqs);
	TAILQ_INIT(&comm->over);
	TAILQ_INIT(&comm->inbox);
	TAILQ_INIT(&comm->done);
	for (i = 0; i < DBLP_NICS_MAX; i++)
		comm->nic[i].listener = -1;
	if (new_lock(comm) || dblp_fork_add(comm)) {
		free(comm);
		return NULL;
	}
	return comm;
}

static int allocate(struct dblp_comm *comm)
{
	size_t n = (size_t)comm->nranks * comm->n_links;
	struct dblp_ctlconn *ctl;
	struct dblp_link *link;
	uint32_t i;

	comm->n_ctl = comm->rank ? 1 : comm->nranks;
	ctl = calloc(comm->n_ctl, sizeof(*ctl));
	comm->table = calloc((size_t)comm->nranks * comm->n_nics, sizeof(*comm->table));
	comm->left = calloc(comm->nranks, sizeof(*comm->left));
	comm->left_at = calloc(comm->nranks, sizeof(*comm->left_at));
	link = calloc(n, sizeof(*link));
	/*
	 * fork() may happen at any time: fds must be -1 before a child sees
	 * them
	 */
	for (i = 0; ctl && i < comm->n_ctl; i++) {
		ctl[i].source = DBLP_SOURCE_CTL;
		ctl[i].fd = -1;
		ctl[i].rank = i;
	}
	for (i = 0; link && i < n; i++)
		link[i].fd = -1;
	__atomic_store_n(&comm->ctl, ctl, __ATOMIC_RELEASE);
	__atomic_store_n(&comm->link, link, __ATOMIC_RELEASE);
	if (!ctl || !link || !comm->table || !comm->left || !comm->left_at || getrandom(&comm->id, sizeof(comm->id), 0) < 0)
		return -ENOMEM;
	return 0;
}

static int make_fds(struct dblp_comm *comm)
{
	struct epoll_event ev = {
		.events = EPOLLIN,
		.data.ptr = &comm->wake_source,
	};

	comm->wake_source = DBLP_SOURCE_WAKE;
	comm->epoll = epoll_create1(EPOLL_CLOEXEC);
	comm->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	comm->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	if (comm->epoll < 0 || comm->wake < 0 || comm->ended_fd < 0 ||
	    epoll_ctl(comm->epoll, EPOLL_CTL_ADD, comm->wake, &ev))
		return -errno;
	return 0;
}

/* Start the engine, with all signals blocked */
static int start(struct dblp_comm *comm)
{
	char name[sizeof(DBLP_THREAD_NAME) + 10];
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&comm->thread, NULL, dblp_engine, comm);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	comm->running = !err;
	snprintf(name, sizeof(name), DBLP_THREAD_NAME "%u", comm->rank);
	if (!err)
		pthread_setname_np(comm->thread, name);
	return -err;
}

static void describe(struct dblp_comm *comm)
{
	char addr[DBLP_ADDR_TEXT];

	dblp_addr_format(&comm->nic[0].addr, addr);
	snprintf(comm->describe, sizeof(comm->describe),
		 "rank %u of %u, epoch %u, over %s%s%s at %s, devices %s, messages of %u bytes, lanes %u",
		 comm->rank, comm->nranks, comm->attr.epoch,
		 comm->transport->name, comm->cc[0] ? ":" : "", comm->cc, addr,
		 comm->attr.devices ?: "as routed", comm->attr.message_bytes, comm->n_lanes);
}

int dblp_comm_open(struct dblp_comm **new, const struct dblp_comm_attr *attr)
{
	struct dblp_comm *comm = new_comm();
	int err;

	dblp_why_forget();
	if (!comm)
		return -ENOMEM;
	err = set_attr(comm, attr);
	if (!err)
		err = allocate(comm);
	if (!err)
		err = make_fds(comm);
	if (!err)
		err = dblp_files_reserve(comm) ?: dblp_join(comm);
	if (!err)
		err = dblp_lanes_try(comm);
	if (!err)
		err = dblp_links_begin(comm);
	if (!err)
		err = dblp_ctl_begin(comm);
	if (!err) {
		describe(comm);
		/* Strings belong to the caller */
		comm->attr.rendezvous = NULL;
		comm->attr.transport = NULL;
		comm->attr.devices = NULL;
		comm->attr.lane = NULL;
		comm->attr.secret = NULL;
		comm->attr.ports = NULL;
		comm->attr.bind = NULL;
		err = start(comm);
	}
	if (err)
		dblp_comm_close(comm);
	else
		*new = comm;
	return err;
}

static void wake(struct dblp_comm *comm)
{
	uint64_t one = 1;

	if (write(comm->wake, &one, sizeof(one)) < 0) {
		/* EAGAIN: the engine is awake anyway */
	}
}

static void free_reqs(struct dblp_reqs *reqs)
{
	struct dblp_req *req;
	uint32_t i;

	while ((req = TAILQ_FIRST(reqs))) {
		TAILQ_REMOVE(reqs, req, entry);
		for (i = 0; i < req->sched->n; i++)
			free(req->task[i].own);
		req->users = 1;
		dblp_req_put(req);
	}
}

void dblp_comm_close(struct dblp_comm *comm)
{
	uint32_t i;

	if (!comm)
		return;
	if (comm->running) {
		pthread_mutex_lock(&comm->lock);
		comm->quit = true;
		pthread_mutex_unlock(&comm->lock);
		wake(comm);
		pthread_join(comm->thread, NULL);
	}
	free_reqs(&comm->reqs);
	free_reqs(&comm->over);
	free_reqs(&comm->inbox);
	free_reqs(&comm->done);
	dblp_keys_free(comm);
	dblp_links_end(comm);
	for (i = 0; i < comm->n_nics; i++)
		dblp_fd_close(&comm->nic[i].listener);
	for (i = 0; comm->ctl && i < comm->n_ctl; i++)
		dblp_fd_close(&comm->ctl[i].fd);
	dblp_fd_close(&comm->epoll);
	dblp_fd_close(&comm->wake);
	dblp_fd_close(&comm->ended_fd);
	dblp_fork_del(comm);
	for (i = 0; i < sizeof(comm->sched) / sizeof(*comm->sched); i++)
		dblp_sched_put(comm->sched[i]);
	pthread_cond_destroy(&comm->cond);
	pthread_mutex_destroy(&comm->lock);
	free(comm->ctl);
	free(comm->table);
	free(comm->left);
	free(comm->left_at);
	free(comm->link);
	explicit_bzero(comm->secret, sizeof(comm->secret));
	explicit_bzero(comm->data_key, sizeof(comm->data_key));
	free(comm);
}

void dblp_comm_abort(struct dblp_comm *comm, int error)
{
	pthread_mutex_lock(&comm->lock);
	if (!comm->abort)
		comm->abort = error > 0 ? (uint32_t)error : ECANCELED;
	pthread_mutex_unlock(&comm->lock);
	wake(comm);
}

uint32_t dblp_comm_rank(const struct dblp_comm *comm)
{
	return comm->rank;
}

uint32_t dblp_comm_nranks(const struct dblp_comm *comm)
{
	return comm->nranks;
}

const char *dblp_comm_describe(const struct dblp_comm *comm)
{
	return comm->describe;
}

int dblp_comm_error(struct dblp_comm *comm, int32_t *rank)
{
	int err;

	pthread_mutex_lock(&comm->lock);
	err = comm->error;
	if (rank)
		*rank = comm->failed_rank;
	pthread_mutex_unlock(&comm->lock);
	return err;
}

int dblp_comm_absent(struct dblp_comm *comm, uint32_t *rank, size_t room)
{
	uint32_t i, n = 0;

	pthread_mutex_lock(&comm->lock);
	if (comm->error == -ETIMEDOUT)
		n = comm->absent.n;
	for (i = 0; i < n && i < room && i < DBLP_ABSENT_RANKS; i++)
		rank[i] = comm->absent.rank[i];
	pthread_mutex_unlock(&comm->lock);
	return (int)n;
}

int dblp_comm_fd(const struct dblp_comm *comm)
{
	return comm->ended_fd;
}

void dblp_comm_stats(struct dblp_comm *comm, struct dblp_comm_stats *stats,
		     size_t size)
{
	pthread_mutex_lock(&comm->lock);
	fill_sized(stats, size, &comm->stats, sizeof(comm->stats));
	pthread_mutex_unlock(&comm->lock);
}

/* Operations */

void dblp_req_put(struct dblp_req *req)
{
	if (--req->users)
		return;
	dblp_losses_free(req);
	dblp_sched_put(req->sched);
	free(req);
}

/**
 * struct what - kind of an operation
 * @half: &enum dblp_plan_flags: one half of an allreduce, or 0
 * @rooted: only the root has the sum, or the vector
 * @pair: send and recv: a plan of 2 ranks, of which rank 0 sends
 * @me: with @pair: this rank's number in that plan
 * @peer: with @pair: the other rank of the communicator
 */
struct what {
	uint32_t	half;
	bool		rooted;
	bool		pair;
	uint32_t	me;
	uint32_t	peer;
};

/*
 * With other algorithms, a vector holds partial sums where its old elements
 * should be kept
 */
static bool may_keep(const struct dblp_op *op, uint32_t half)
{
	return !(op->flags & DBLP_OP_SPARSE) &&
	       (half == DBLP_PLAN_SPREAD || op->algo == DBLP_PS ||
		op->algo == DBLP_TRANSPOSE || op->algo == DBLP_AVERAGE);
}

static int check_op(const struct dblp_op *op, const struct what *what)
{
	const uint32_t flags = DBLP_OP_BUDGET | DBLP_OP_POLICY | DBLP_OP_PHASE |
			       DBLP_OP_AVERAGE | DBLP_OP_CARRY | DBLP_OP_SPARSE |
			       DBLP_OP_KEEP;

	if (op->flags & ~flags || !dblp_dtype_size(op->dtype) ||
	    op->rule >= DBLP_RULES || op->budget > DBLP_PPM ||
	    op->policy > DBLP_POLICY_EARLY || op->phase >= DBLP_PHASES ||
	    op->plan_flags & ~(uint32_t)DBLP_PLAN_SERVER)
		return -EINVAL;
	if (op->flags & DBLP_OP_KEEP && !may_keep(op, what->half))
		return -EINVAL;
	if (what->rooted && op->algo != DBLP_PS && op->algo != DBLP_TREE)
		return -EINVAL;
	if (op->flags & DBLP_OP_CARRY && !(op->flags & DBLP_OP_BUDGET))
		return -EINVAL;
	if ((op->prune || op->block) && !(op->flags & DBLP_OP_SPARSE))
		return -EINVAL;
	if (op->prune >= DBLP_PPM || (op->prune && op->rule != DBLP_FEEDBACK) ||
	    op->block & (op->block - 1) || op->block > DBLP_BLOCK_MAX)
		return -EINVAL;
	return 0;
}

static struct dblp_plan plan_of(const struct dblp_comm *comm, uint64_t count,
				const struct dblp_op *op, const struct what *what)
{
	struct dblp_plan plan;

	/* Clear padding, too: plans are compared byte by byte */
	memset(&plan, 0, sizeof(plan));
	plan.algo = op->algo;
	plan.nranks = what->pair ? 2 : comm->nranks;
	plan.rank = what->pair ? what->me : comm->rank;
	plan.flags = op->plan_flags | what->half;
	plan.root = op->root;
	plan.fanin = op->fanin;
	plan.turn = op->turn;
	plan.levels = op->levels;
	memcpy(plan.radix, op->radix, sizeof(plan.radix));
	plan.count = count;
	return plan;
}

static bool is_of(const struct dblp_sched *s, const struct dblp_plan *plan,
		  const struct dblp_layout *layout)
{
	return !memcmp(&s->plan, plan, sizeof(*plan)) &&
	       s->layout.parts == layout->parts &&
	       (!layout->parts || !memcmp(s->layout.part, layout->part,
					  layout->parts * sizeof(*layout->part)));
}

/* Index of this plan among the last ones, or of the oldest one */
static size_t find_sched(const struct dblp_comm *comm,
			 const struct dblp_plan *plan,
			 const struct dblp_layout *layout)
{
	const size_t last = sizeof(comm->sched) / sizeof(*comm->sched) - 1;
	size_t i;

	for (i = 0; i < last && comm->sched[i]; i++)
		if (is_of(comm->sched[i], plan, layout))
			break;
	return i;
}

/* Move a plan, @found at index @i or new, to the front, and take a reference */
static void use_sched(struct dblp_comm *comm, size_t i, struct dblp_sched *found)
{
	if (comm->sched[i] != found)
		dblp_sched_put(comm->sched[i]);
	memmove(&comm->sched[1], &comm->sched[0], i * sizeof(*comm->sched));
	comm->sched[0] = found;
	found->refs++;
}

/*
 * Find or compute a plan; new ones are computed without the lock. With a
 * reference
 */
static int get_sched(struct dblp_comm *comm, const struct dblp_plan *plan,
		     const struct dblp_layout *layout, struct dblp_sched **sched)
{
	struct dblp_sched *s;
	size_t i;
	int err;

	pthread_mutex_lock(&comm->lock);
	i = find_sched(comm, plan, layout);
	s = comm->sched[i];
	if (!s || !is_of(s, plan, layout)) {
		pthread_mutex_unlock(&comm->lock);
		err = dblp_sched_new(plan, layout, &s);
		if (err)
			return err;
		pthread_mutex_lock(&comm->lock);
		/*
		 * Another thread may have added the same plan, or replaced
		 * entry @i
		 */
		i = find_sched(comm, plan, layout);
	}
	use_sched(comm, i, s);
	pthread_mutex_unlock(&comm->lock);
	*sched = s;
	return 0;
}

uint64_t dblp_hash(uint64_t h, const void *data, size_t len)
{
	const unsigned char *at = data;

	while (len--)
		h = (h ^ *at++) * 0x100000001b3ULL;
	return h;
}

/* Hash of what all ranks must give alike */
static uint64_t digest_of(const struct dblp_req *req)
{
	struct dblp_plan plan = req->sched->plan;
	struct dblp_op op = req->op;
	uint64_t h;

	plan.rank = 0;
	op.size = 0;
	op.limit_ms = 0;
	op.part = NULL;
	h = dblp_hash(DBLP_HASH, &plan, sizeof(plan));
	h = dblp_hash(h, &op, sizeof(op));
	return dblp_hash(h, req->sched->layout.part,
			 op.parts * sizeof(*op.part));
}

static int new_req(struct dblp_comm *comm, void *buf, uint64_t count,
		   const struct dblp_op *op, const struct what *what,
		   struct dblp_req **new)
{
	struct dblp_layout layout = {
		.lane = comm->lane, .lanes = comm->n_lanes,
	};
	struct dblp_sched *sched;
	struct dblp_req *req;
	struct dblp_plan plan;
	struct dblp_op own;
	uint32_t i;
	int err = take_sized(&own, sizeof(own), op, OP_LEAST);

	if (!err)
		err = check_op(&own, what);
	if (err)
		return err;
	layout.part = own.part;
	layout.parts = own.parts;
	err = dblp_parts_check(&layout, count);
	/* Runs cannot say which elements travelled by which lane */
	if (!err && own.rule == DBLP_RESCALE && dblp_layout_splits(&layout))
		err = -EINVAL;
	if (err)
		return err;
	plan = plan_of(comm, count, &own, what);
	err = get_sched(comm, &plan, &layout, &sched);
	if (err)
		return err;
	req = calloc(1, sizeof(*req) + sched->n * sizeof(*req->task));
	if (!req) {
		pthread_mutex_lock(&comm->lock);
		dblp_sched_put(sched);
		pthread_mutex_unlock(&comm->lock);
		return -ENOMEM;
	}
	req->comm = comm;
	req->op = own;
	req->sched = sched;
	req->peer = what->pair ? (int32_t)what->peer : -1;
	req->buf = buf;
	req->esize = dblp_dtype_size(own.dtype);
	req->digest = digest_of(req);
	req->left = sched->n;
	req->users = 2;
	req->result.failed_rank = -1;
	for (i = 0; i < sched->n; i++) {
		req->task[i].req = req;
		req->task[i].step = &sched->step[i];
		req->task[i].waits = sched->waits[i];
		req->lane_left[sched->way[i].lane]++;
	}
	*new = req;
	return 0;
}

/* Number of an operation: of all ranks, or from one rank to another */
static uint32_t next_seq(struct dblp_req *req)
{
	struct dblp_link *l;

	if (req->peer < 0)
		return req->comm->seq++;
	l = dblp_pair_link(req->comm, (uint32_t)req->peer);
	return req->sched->plan.rank ? l->n_recvs++ : l->n_sends++;
}

static int submit(struct dblp_req *req, struct dblp_req **new)
{
	struct dblp_comm *comm = req->comm;
	int err;

	pthread_mutex_lock(&comm->lock);
	err = comm->error ?: dblp_losses_prepare(req);
	if (!err) {
		req->seq = next_seq(req);
		req->begin = dblp_comm_now();
		TAILQ_INSERT_TAIL(&comm->inbox, req, entry);
		*new = req;
	} else {
		req->users = 1;
		dblp_req_put(req);
	}
	pthread_mutex_unlock(&comm->lock);
	if (!err)
		wake(comm);
	return err;
}

static int begin(struct dblp_comm *comm, void *buf, uint64_t count,
		 const struct dblp_op *op, struct what what, struct dblp_req **new)
{
	struct dblp_req *req;

	return new_req(comm, buf, count, op, &what, &req) ?: submit(req, new);
}

int dblp_allreduce(struct dblp_comm *comm, void *buf, uint64_t count,
		   const struct dblp_op *op, struct dblp_req **req)
{
	return begin(comm, buf, count, op, (struct what) { 0 }, req);
}

int dblp_reduce_scatter(struct dblp_comm *comm, void *buf, uint64_t count,
			const struct dblp_op *op, struct dblp_req **req)
{
	return begin(comm, buf, count, op,
		     (struct what) { .half = DBLP_PLAN_REDUCE }, req);
}

int dblp_allgather(struct dblp_comm *comm, void *buf, uint64_t count,
		   const struct dblp_op *op, struct dblp_req **req)
{
	return begin(comm, buf, count, op,
		     (struct what) { .half = DBLP_PLAN_SPREAD }, req);
}

int dblp_reduce(struct dblp_comm *comm, void *buf, uint64_t count,
		const struct dblp_op *op, struct dblp_req **req)
{
	return begin(comm, buf, count, op,
		     (struct what) { .half = DBLP_PLAN_REDUCE, .rooted = true }, req);
}

int dblp_broadcast(struct dblp_comm *comm, void *buf, uint64_t count,
		   const struct dblp_op *op, struct dblp_req **req)
{
	return begin(comm, buf, count, op,
		     (struct what) { .half = DBLP_PLAN_SPREAD, .rooted = true }, req);
}

/* Reliable, whatever the budget of the job */
static struct dblp_op reliable(uint32_t algo, uint32_t dtype)
{
	return (struct dblp_op) {
		.size = sizeof(struct dblp_op),
		.flags = DBLP_OP_BUDGET,
		.algo = algo,
		.dtype = dtype,
	};
}

/* An allreduce of one element: its sum needs all ranks */
int dblp_barrier(struct dblp_comm *comm, struct dblp_req **new)
{
	const struct dblp_op op = reliable(DBLP_TREE, DBLP_INT32);
	struct dblp_req *req;
	int err = new_req(comm, NULL, 1, &op, &(struct what) { 0 }, &req);

	if (err)
		return err;
	req->buf = (char *)&req->word;
	return submit(req, new);
}

static int begin_pair(struct dblp_comm *comm, void *buf, uint64_t count, uint32_t dtype,
		      uint32_t me, uint32_t peer, struct dblp_req **new)
{
	const struct dblp_op op = reliable(DBLP_PS, dtype);
	const struct what what = {
		.half = DBLP_PLAN_SPREAD, .pair = true, .me = me, .peer = peer,
	};
	struct dblp_req *req;
	int err;

	if (peer >= comm->nranks || peer == comm->rank)
		return -EINVAL;
	err = new_req(comm, buf, count ?: 1, &op, &what, &req);
	if (err)
		return err;
	/* Without elements a word is sent, whose digest differs from that of one element */
	if (!count) {
		req->buf = (char *)&req->word;
		req->digest = ~req->digest;
	}
	return submit(req, new);
}

int dblp_comm_send(struct dblp_comm *comm, const void *buf, uint64_t count,
		   uint32_t dtype, uint32_t to, struct dblp_req **req)
{
	return begin_pair(comm, (void *)buf, count, dtype, 0, to, req);
}

int dblp_comm_recv(struct dblp_comm *comm, void *buf, uint64_t count,
		   uint32_t dtype, uint32_t from, struct dblp_req **req)
{
	return begin_pair(comm, buf, count, dtype, 1, from, req);
}

int dblp_comm_owned(struct dblp_comm *comm, uint64_t count,
		    const struct dblp_op *op, struct dblp_span *part,
		    size_t room)
{
	const struct what what = { .half = DBLP_PLAN_REDUCE };
	struct dblp_req *req;
	size_t n = 0;
	uint32_t i;
	int err = new_req(comm, NULL, count, op, &what, &req);

	if (err)
		return err;
	for (i = 0; i < req->sched->n; i++) {
		const struct dblp_step *step = &req->sched->step[i];

		if (step->op != DBLP_STEP_FINISH)
			continue;
		if (n < room)
			part[n] = (struct dblp_span) {
				step->offset, step->offset + step->count
			};
		n++;
	}
	pthread_mutex_lock(&comm->lock);
	req->users = 1;
	dblp_req_put(req);
	pthread_mutex_unlock(&comm->lock);
	return (int)n;
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec) {
		.tv_sec = (time_t)(ns / 1000000000ULL),
		.tv_nsec = (long)(ns % 1000000000ULL),
	};
}

int dblp_wait(struct dblp_req *req, int timeout_ms, struct dblp_result *result,
	      size_t size)
{
	struct dblp_comm *comm = req->comm;
	const struct timespec until = time_of(dblp_comm_now() +
		(timeout_ms > 0 ? (uint64_t)timeout_ms * MS_NS : 0));
	int err = 0;
	uint64_t one;

	pthread_mutex_lock(&comm->lock);
	while (!req->ended && !err)
		err = timeout_ms < 0 ?
		      pthread_cond_wait(&comm->cond, &comm->lock) :
		      pthread_cond_timedwait(&comm->cond, &comm->lock, &until);
	if (!req->ended) {
		pthread_mutex_unlock(&comm->lock);
		return -EAGAIN;
	}
	if (read(comm->ended_fd, &one, sizeof(one)) < 0) {
		/* It was incremented when the operation ended */
	}
	fill_sized(result, size, &req->result, sizeof(req->result));
	err = req->result.error;
	if (req->users == 1)
		TAILQ_REMOVE(&comm->done, req, entry);
	dblp_req_put(req);
	pthread_mutex_unlock(&comm->lock);
	return err;
}
