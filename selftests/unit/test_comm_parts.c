// SPDX-License-Identifier: GPL-2.0-only
/*
 * libdblp: the modules of a communicator, one by one.
 */
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "test.h"
#include "../lib/ranks.h"

/* Mark all steps that wait for step @from, directly or indirectly */
static void mark_after(const struct dblp_sched *s, u32 from, bool *marked)
{
	u32 i, k;

	memset(marked, 0, s->n);
	marked[from] = true;
	/* A waiting step has a higher number */
	for (i = from; i < s->n; i++)
		for (k = s->after[i]; marked[i] && k < s->after[i + 1]; k++)
			marked[s->next[k]] = true;
}

/* Do steps wait for all steps with which they conflict, and for no others? */
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

TEST(steps_wait_for_conflicting_steps)
{
	static const u32 ranks[] = { 1, 2, 3, 8, 12 };
	static const u64 counts[] = { 1, 10, 100 };
	struct dblp_layout layout = dblp_layout_plain;
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
				/* In one piece, and in one for each message */
				for (layout.most = 0; layout.most <= 7; layout.most += 7) {
					ASSERT_EQ(0, dblp_sched_new(&plan, &layout, &s));
					ASSERT_TRUE(order_is_good(s));
					dblp_sched_put(s);
				}
			}
}

/*
 * A root has as many steps before its sum as after it, and all of those wait for the
 * sum only
 */
TEST(a_root_of_the_maximum_number_of_ranks_has_few_dependencies)
{
	const struct dblp_plan plan = {
		.algo = DBLP_PS, .nranks = DBLP_RANKS_MAX, .count = 1000,
	};
	struct dblp_sched *s;

	ASSERT_EQ(0, dblp_sched_new(&plan, &dblp_layout_plain, &s));
	ASSERT_EQ(2 * DBLP_RANKS_MAX - 1, s->n);
	EXPECT_EQ(s->n - 1, s->after[s->n]);
	dblp_sched_put(s);
}

/* A sender over AF_DBLP; the test sends and reports its messages */
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
	s->comm.n_links = 1;
	s->comm.attr.message_bytes = 400;
	s->comm.transport = &dblp_transport_dblp;
	s->link.comm = &s->comm;
	if (dblp_sched_new(&plan, &dblp_layout_plain, &s->sched))
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
	/* The first step sends all elements to the root */
	s->req->task[0].req = s->req;
	s->req->task[0].step = &s->sched->step[0];
	return &s->req->task[0];
}

static void sender_free(struct sender *s)
{
	dblp_records_free(&s->link);
	dblp_losses_free(s->req);
	dblp_keys_free(&s->comm);
	dblp_sched_put(s->sched);
	free(s->req);
}

TEST(reports_are_matched_to_messages)
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
		/* Report all except the last two: each is the first in the ring */
		for (; next <= tag - 2; next++) {
			report.info.tag = next;
			ASSERT_EQ(next, s.link.record->tag);
			ASSERT_EQ(t, dblp_losses_reported(&s.link, &report));
		}
	}
	/* Report the others, the last one first */
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

TEST(the_budget_of_a_message_is_limited)
{
	struct sender s;
	struct dblp_task *t = sender_new(&s, 20000);
	u32 i, ppm = 0;

	/* The saved budget soon exceeds a message */
	for (i = 0; i < 100; i++) {
		ppm = dblp_losses_budget(&s.link, t, 400, 20000);
		dblp_carry_give(s.req->key->carry, 400, 1, ppm, 0);
	}
	EXPECT_EQ(DBLP_CARRY_TIMES * 20000, ppm);
	EXPECT_EQ(1000000, dblp_losses_budget(&s.link, t, 400, 500000));
	sender_free(&s);
}

/* Send message @n of 100 elements, of which every tenth is not zero */
static void send_sparse(struct sender *s, struct dblp_task *t, u32 n)
{
	u32 i;

	for (i = 0; i < 100; i += 10)
		s->v[n * 100 + i] = (float)(n * 100 + i + 1);
	if (dblp_pack(&s->link, t) || dblp_losses_sent(&s->link, t, n + 1, 100))
		abort();
	t->done += 100;
}

/* The report arrives after other messages were packed */
TEST(losses_of_a_packed_vector_are_kept_at_their_positions)
{
	struct dblp_msg report = { 0 };
	struct dblp_range range;
	struct sender s;
	struct dblp_task *t = sender_new(&s, 10000);
	const float *residual = s.req->key->residual;
	u32 n, i;

	s.req->op.flags |= DBLP_OP_SPARSE;
	s.link.shift[0] = DBLP_SPARSE_SHIFTS;
	for (n = 0; n < 3; n++)
		send_sparse(&s, t, n);
	/* Blocks have one element: the second message loses its fourth one */
	ASSERT_EQ(0, s.link.out.sparse.shift);
	ASSERT_EQ(10, s.link.out.sparse.packed);
	ASSERT_EQ(40, s.link.record->bytes);
	range.offset = DBLP_HEAD_LEN + dblp_sparse_front(100, 0) + 3 * 4;
	range.length = 4;
	report.range = &range;
	for (n = 0; n < 3; n++) {
		report.info.tag = n + 1;
		report.n = n == 1;
		ASSERT_EQ(t, dblp_losses_reported(&s.link, &report));
	}
	for (i = 0; i < 300; i++)
		ASSERT_EQ(i == 130 ? 131 : 0, residual[i]);
	EXPECT_EQ(4, s.req->result.lost);
	free(s.link.out.packed);
	sender_free(&s);
}

/* Send the elements of one of two lanes, as the first or the second step */
static void send_choice(struct sender *s, struct dblp_task *t, u64 tag)
{
	s->link.out.n_packed = 0;
	if (dblp_pack(&s->link, t) || dblp_losses_sent(&s->link, t, tag, 100))
		abort();
}

/* Returns true if each lane has its own elements only */
static bool send_two(struct sender *s, struct dblp_task *t)
{
	bool good;
	u32 i;

	for (i = 0; i < 100; i++)
		s->v[i] = i < 48 ? 1000 + i : 1 + i;
	s->sched->way[0] = (struct dblp_way) { .choice = DBLP_CHOICE_LARGE, .large = 480000 };
	send_choice(s, t, 1);
	good = s->link.out.sparse.packed == 48;
	s->sched->way[0] = (struct dblp_way) { .choice = DBLP_CHOICE_REST, .large = 480000 };
	send_choice(s, t, 2);
	return good && s->link.out.sparse.packed == 52;
}

static bool only_50_is_left(const float *residual)
{
	bool good = true;
	u32 i;

	for (i = 0; i < 100; i++)
		good &= residual[i] == (i == 50 ? 51 : 0);
	return good;
}

/* A report for one lane says nothing about losses on the other lane */
TEST(losses_on_two_lanes_are_kept_at_their_positions)
{
	struct dblp_msg report = { 0 };
	struct dblp_range range;
	struct sender s;
	struct dblp_task *t;
	const float *residual;
	u32 i, first;

	/* In both orders of reports, and if blocks would be larger than those of lanes */
	for (i = 0; i < 4; i++) {
		t = sender_new(&s, 10000);
		residual = s.req->key->residual;
		s.link.shift[0] = DBLP_SPARSE_SHIFTS;
		s.req->op.block = i / 2 * 64;
		EXPECT_TRUE(send_two(&s, t));
		range.offset = DBLP_HEAD_LEN +
			       dblp_sparse_front(100, s.link.out.sparse.shift) + 2 * 4;
		range.length = 4;
		for (first = 0; first < 2; first++) {
			report = (struct dblp_msg) { .range = &range };
			report.info.tag = 1 + (first != i % 2);
			report.n = report.info.tag == 2;
			ASSERT_EQ(t, dblp_losses_reported(&s.link, &report));
		}
		EXPECT_TRUE(only_50_is_left(residual));
		free(s.link.out.packed);
		free(s.link.chosen);
		sender_free(&s);
	}
}

/* A peer may report losses in a front, which is critical */
TEST(reported_losses_of_a_front_are_ignored)
{
	struct dblp_range range = { .length = 4 };
	struct dblp_sparse packed;
	struct sender s;
	struct dblp_task *t = sender_new(&s, 10000);
	struct dblp_step step = *t->step;
	u32 front = DBLP_HEAD_LEN + dblp_sparse_front(100, 0), reliable, late;

	s.req->op.flags |= DBLP_OP_SPARSE;
	s.link.shift[0] = DBLP_SPARSE_SHIFTS;
	send_sparse(&s, t, 0);
	t->done = 0;
	step.op = DBLP_STEP_ADD;
	t->step = &step;
	s.link.in.stage = (char *)s.link.out.packed;
	s.link.in.inbox.len = front + 40;
	s.link.in.inbox.map = (struct dblp_msg) { .range = &range, .n = 1 };
	for (reliable = 0; reliable < 2; reliable++)
		for (late = 0; late < 2; late++) {
			step.reliable = reliable;
			range.offset = late ? front : front - 1;
			EXPECT_EQ(late && !reliable ? 0 : -EPROTO,
				  dblp_packed_take(&s.link, t, &packed));
		}
	/* The other elements were added, once */
	EXPECT_EQ(1, s.v[0]);
	EXPECT_EQ(22, s.v[10]);
	free(s.link.out.packed);
	sender_free(&s);
}

/* Rank 0 of two, with an engine but without its thread */
static void stand_alone(struct dblp_comm *comm, struct dblp_link link[2],
			const struct dblp_transport *how)
{
	memset(comm, 0, sizeof(*comm));
	memset(link, 0, 2 * sizeof(*link));
	pthread_mutex_init(&comm->lock, NULL);
	comm->nranks = 2;
	comm->n_nics = 1;
	comm->n_links = 1;
	comm->failed_rank = -1;
	comm->epoll = -1;
	TAILQ_INIT(&comm->inbox);
	TAILQ_INIT(&comm->reqs);
	comm->transport = how;
	comm->link = link;
	comm->woken_end = &comm->woken;
	link[1].comm = comm;
	link[1].rank = 1;
	link[1].fd = -1;
}

/* A socket that accepts in turn: nothing, half of a message, nothing, the other half */
static struct refuser {
	struct sender		*s;
	u32			calls;
	u64			tag;
	u32			budget;
	struct dblp_carry	carry;
	bool			same;
} refuser;

static void look_again(const struct refuser *r)
{
	struct epoll_event ev = {
		.events = EPOLLOUT | EPOLLET, .data.ptr = &r->s->link,
	};

	if (epoll_ctl(r->s->comm.epoll, EPOLL_CTL_MOD, r->s->link.fd, &ev))
		abort();
}

static ssize_t send_refused(int fd, const struct iovec *iov,
			    const struct dblp_sndinfo *info)
{
	struct refuser *r = &refuser;
	const struct dblp_carry *carry = r->s->req->key->carry;
	const size_t len = iov[0].iov_len + iov[1].iov_len;
	const u32 call = r->calls++ % 4;

	if (!call) {
		r->tag++;
		r->budget = info->budget;
		r->carry = *carry;
	}
	r->same &= info->tag == r->tag && info->budget == r->budget &&
		   info->critical == DBLP_HEAD_LEN &&
		   !memcmp(&r->carry, carry, sizeof(*carry));
	r->s->comm.quit = r->calls == 40;
	if (call % 2)
		return call == 1 ? len / 2 : len;
	look_again(r);
	return -EAGAIN;
}

/* The socket already has the budget of the operation */
int __real_getsockopt(int fd, int level, int option, void *value, socklen_t *len);

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
	return level == SOL_DBLP ? 0 :
	       __real_getsockopt(fd, level, option, value, len);
}

/* Otherwise each attempt would reduce the debt and skip a tag */
TEST(a_message_uses_budget_once_for_all_attempts)
{
	static const struct dblp_transport how = { .name = "full", .send = send_refused };
	struct dblp_task *t;
	struct sender s;

	t = sender_new(&s, 10000);
	refuser = (struct refuser) { .s = &s, .same = true };
	pthread_mutex_init(&s.comm.lock, NULL);
	s.comm.transport = &how;
	s.comm.link = &s.link;
	s.comm.epoll = epoll_create1(0);
	TAILQ_INIT(&s.comm.inbox);
	TAILQ_INIT(&s.comm.reqs);
	TAILQ_INIT(&s.comm.over);
	s.comm.woken_end = &s.comm.woken;
	s.link.fd = eventfd(0, 0);
	s.link.phase = DBLP_INHERIT;
	s.link.own_budget = 10000;
	s.link.source = DBLP_SOURCE_LINK;
	s.link.state = DBLP_LINK_READY;
	s.link.can_write = true;
	s.link.sends.first = t;
	s.link.sends.end = &t->next;
	/* More was lost than allowed */
	s.req->key->carry->credit = -1000000000;
	ASSERT_EQ(0, epoll_ctl(s.comm.epoll, EPOLL_CTL_ADD, s.link.fd,
			       &(struct epoll_event) { 0 }));
	dblp_link_wake(&s.link);
	dblp_engine(&s.comm);
	EXPECT_EQ(0, s.comm.error);
	EXPECT_EQ(10, t->reports);
	EXPECT_EQ(10, s.link.out.tag);
	EXPECT_TRUE(refuser.same);
	/* The budget of ten messages of 400 bytes */
	EXPECT_EQ(-1000000000 + 10 * 400 * 10000, s.req->key->carry->credit);
	close(s.link.fd);
	close(s.comm.epoll);
	sender_free(&s);
}

TEST(data_before_an_error_is_read)
{
	const struct linger reset = { .l_onoff = 1 };
	struct dblp_comm comm;
	struct dblp_link link[2];
	struct dblp_task t;
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int peer = socket(AF_INET, SOCK_STREAM, 0);
	struct pollfd p;
	char c;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ASSERT_EQ(0, bind(fd, (void *)&a, len) || listen(fd, 1) ||
		  getsockname(fd, (void *)&a, &len));
	stand_alone(&comm, link, &dblp_transport_tcp);
	ASSERT_EQ(0, connect(peer, (void *)&a, len));
	link[1].fd = accept(fd, NULL, NULL);
	link[1].state = DBLP_LINK_READY;
	link[1].receives.first = &t;
	ASSERT_EQ(1, send(peer, "x", 1, 0));
	setsockopt(peer, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(peer);
	p = (struct pollfd) { link[1].fd, 0, 0 };
	ASSERT_EQ(1, poll(&p, 1, WAIT_MS));
	ASSERT_TRUE(p.revents & POLLERR);
	dblp_link_event(&link[1], EPOLLIN | EPOLLERR | EPOLLHUP);
	EXPECT_FALSE(dblp_has_failure(&comm));
	EXPECT_TRUE(link[1].can_read);
	EXPECT_EQ(1, recv(link[1].fd, &c, 1, 0));
	EXPECT_EQ(-1, recv(link[1].fd, &c, 1, 0));
	close(link[1].fd);
	close(fd);
}

TEST(a_rank_without_a_report_is_not_compared)
{
	struct dblp_ctlconn ctl[2] = { { .fd = -1 }, { .fd = -1, .rank = 1 } };
	struct dblp_req req = { .seq = UINT32_MAX, .digest = 1 };
	struct dblp_comm comm;
	struct dblp_link link[2];

	stand_alone(&comm, link, &dblp_transport_tcp);
	comm.ctl = ctl;
	comm.n_ctl = 2;
	dblp_ctl_began(&comm, &req);
	EXPECT_FALSE(dblp_has_failure(&comm));
	ctl[1].reported = true;
	ctl[1].reported_seq = UINT32_MAX;
	dblp_ctl_began(&comm, &req);
	dblp_engine_agree(&comm);
	EXPECT_EQ(-EPROTO, comm.error);
}

/* Type of the last queued message */
static u32 last_word(const struct dblp_ctlconn *c)
{
	struct dblp_ctl ctl;

	memcpy(&ctl, c->out + c->n_out - sizeof(ctl), sizeof(ctl));
	return ctl.type;
}

/* Also if many messages are queued for a rank that does not read */
TEST(failures_and_departures_are_always_queued)
{
	struct dblp_ctlconn ctl[2];
	struct dblp_req req = { 0 };
	struct dblp_comm comm;
	struct dblp_link link[2];
	u32 left[20] = { 0 }, other, i;
	int fd[2];

	for (other = 0; other < 2; other++) {
		stand_alone(&comm, link, &dblp_transport_tcp);
		memset(ctl, 0, sizeof(ctl));
		ctl[0].fd = -1;
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
		ctl[other].fd = fd[0];
		while (send(fd[0], "x", 1, MSG_DONTWAIT) > 0) {
		}
		comm.attr.timeout_ms = 1;
		comm.rank = !other;
		comm.ctl = ctl;
		comm.n_ctl = 1 + other;
		comm.left = left;
		comm.n_left = other ? ARRAY_SIZE(left) : 0;
		for (i = 0; i < ARRAY_SIZE(left); i++)
			dblp_ctl_report(&comm, &req);
		dblp_ctl_event(&comm, &ctl[other]);
		EXPECT_EQ(other ? DBLP_CTL_BYE : DBLP_CTL_REPORT, last_word(&ctl[other]));
		dblp_suspect(&comm, 1, -EDOM, NULL);
		dblp_engine_agree(&comm);
		EXPECT_EQ(other ? DBLP_CTL_ABORT : DBLP_CTL_SUSPECT,
			  last_word(&ctl[other]));
		dblp_ctl_bye(&comm);
		EXPECT_EQ(DBLP_CTL_BYE, last_word(&ctl[other]));
		close(fd[0]);
		close(fd[1]);
	}
}

struct hearer {
	int	fd;
	int	heard;
	bool	closes;
};

/* Sends after it has received BYE and the end of the stream */
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

TEST(a_rank_that_leaves_reads_until_the_end)
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
		/* After an error, or with a silent peer, the rank does not wait longer */
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

TEST(only_errors_of_a_peer_are_blamed_on_it)
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
			link[1].sends.first = again ? NULL : &t;
			dblp_link_died(&link[1], -errors[i].error);
			EXPECT_EQ(!again, dblp_has_failure(&comm));
			/* A second attempt has data to send */
			if (again)
				dblp_link_want(&link[1]);
			/* The failure is recorded for the engine's loop */
			EXPECT_EQ(0, comm.error);
			dblp_engine_agree(&comm);
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
		dblp_engine_agree(&comm);
		EXPECT_EQ(i ? errors[i] : 0, comm.error);
		EXPECT_EQ(i ? 0 : -1, comm.failed_rank);
	}
}

/* A module whose rcvinfo is shorter has room for this number of ranges */
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

TEST(the_maximum_number_of_ranges_is_read)
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

TEST_HARNESS_MAIN
