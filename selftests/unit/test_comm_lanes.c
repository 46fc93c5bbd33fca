// SPDX-License-Identifier: GPL-2.0-only
/*
 * libdblp: operations whose elements use several lanes, over TCP on the loopback
 * interface.
 */
#define _GNU_SOURCE
#include "test.h"
#include "../lib/ranks.h"

/* The first lane has the large elements, the last one the rest */
static const struct dblp_lane lanes[3] = {
	{ .large = 300000, .rest = 2, .tos = 0x28, .priority = 4 },
	{ .tos = 0xb8 },
	{ .priority = 1, .flags = DBLP_LANE_AFTER },
};

/* Parts of alternating lanes, some of minimum length */
static struct dblp_lane_part parts[7];

static u32 cut(u64 count)
{
	static const u64 lengths[7] = { 1, 700, 3, 5000, 1, 2, 0 };
	u64 at = 0;
	u32 i;

	for (i = 0; i < 7 && at < count; i++) {
		parts[i].first = at;
		at += i == 6 ? count - at : lengths[i];
		if (at > count)
			at = count;
		parts[i].end = at;
		parts[i].lane = i % 3;
	}
	return i;
}

static void prepare_lanes(int n, u64 count, void (*run)(struct rank *r))
{
	u32 n_parts = cut(count);

	prepare(n, next_epoch(), count, run);
	EACH_RANK(n, r->attr.lane = lanes, r->attr.lanes = 3, r->attr.message_bytes = 16000,
		     r->op.part = parts, r->op.parts = n_parts);
}

TEST(all_ranks_get_the_sum_by_every_plan)
{
	static const u64 counts[] = { 1, 5, 1000, 50001 };
	int n, algo, c, i;

	for (n = 1; n <= 5; n += 2)
		for (algo = DBLP_PS; algo < DBLP_AVERAGE; algo++)
			for (c = 0; c < 4; c++) {
				prepare_lanes(n, counts[c], run_allreduce);
				EACH_RANK(n, r->op.algo = algo,
					     r->op.flags = c % 2 ? DBLP_OP_SPARSE : 0);
				run_all(n);
				for (i = 0; i < n; i++)
					ASSERT_EQ(0, rank[i].err);
				expect_good(_metadata, n);
			}
}

/* Sums that might be lost, but are not */
TEST(sums_with_op_keep_are_exact_without_losses)
{
	int i;

	prepare_lanes(3, 20000, run_allreduce);
	for (i = 0; i < 3; i++)
		rank[i].op.flags = DBLP_OP_KEEP;
	run_all(3);
	expect_good(_metadata, 3);
	/* Contributions and sums */
	EXPECT_LT(4 * 20000, rank[0].result.asked);
}

/* If lanes have all contributions to their parts, contributions can be counted */
TEST(sums_of_parts_are_rescaled)
{
	int i;

	prepare_lanes(4, 20000, run_allreduce);
	EACH_RANK(4, r->attr.lane = lanes + 1, r->attr.lanes = 2, r->op.algo = DBLP_PS,
		     r->op.rule = DBLP_RESCALE, r->op.flags = DBLP_OP_BUDGET,
		     r->op.budget = 10000);
	for (i = 0; i < 7; i++)
		parts[i].lane = i % 2;
	run_all(4);
	expect_good(_metadata, 4);
	EXPECT_EQ(4, rank[0].result.least);
	EXPECT_EQ(0, rank[0].result.none);
}

TEST(reduce_scatter_and_allgather_with_parts_make_an_allreduce)
{
	int i;

	n_owned = 0;
	prepare_lanes(3, 20000, run_halves);
	run_all(3);
	expect_good(_metadata, 3);
	EXPECT_EQ(20000, n_owned);
	prepare_lanes(3, 20000, run_halves);
	EACH_RANK(3, r->op.part = NULL, r->op.parts = 0);
	run_all(3);
	expect_good(_metadata, 3);
	for (i = 0; i < 3; i++) {
		EXPECT_LT(0, rank[i].result.lane[0].ns);
		EXPECT_EQ(0, rank[i].result.lane[1].ns);
		EXPECT_LT(0, rank[i].result.lane[2].ns);
	}
}

TEST(asked_is_reported_by_lane)
{
	const struct dblp_result *r = &rank[0].result;

	prepare_lanes(2, 1001, run_allreduce);
	rank[0].op.algo = DBLP_PS;
	rank[1].op.algo = DBLP_PS;
	run_all(2);
	expect_good(_metadata, 2);
	EXPECT_EQ(4 * 1001, r->asked);
	/*
	 * Parts have 1, 700, 3 and 297 elements; 0 of the first and 89 of the last are
	 * large
	 */
	EXPECT_EQ(4 * 89, r->lane[0].asked);
	EXPECT_EQ(4 * 700, r->lane[1].asked);
	EXPECT_EQ(4 * (1 + 208 + 3), r->lane[2].asked);
	EXPECT_LE(r->lane[0].ns, r->ns);
	EXPECT_LT(0, r->lane[1].ns);
}

/* Does step @i wait for a send by lane 0 in its round, to its peer, that ends with a report? */
static bool waits_for_lane_0(const struct dblp_sched *s, u32 i)
{
	u32 k, e;

	for (k = 0; k < s->n; k++)
		for (e = s->after[k]; e < s->after[k + 1]; e++)
			if (s->next[e] == i && s->step[k].op == DBLP_STEP_SEND)
				return s->way[k].lane == 0 && s->way[k].awaited &&
				       s->step[k].peer == s->step[i].peer &&
				       s->step[k].round == s->step[i].round;
	return false;
}

/* With messages of 700 elements a lane sends several in a round */
TEST(a_lane_waits_for_what_lane_0_sends)
{
	static const struct dblp_lane two[2] = { { .tos = 0x28 }, { .flags = DBLP_LANE_AFTER } };
	const struct dblp_lane_part part[2] = { { 0, 9000, 0, 0 }, { 9000, 50000, 1, 0 } };
	const struct dblp_layout layout = { two, 2, part, 2, 700 };
	struct dblp_plan plan = { .nranks = 4, .rank = 1, .count = 50000 };
	struct dblp_sched *s;
	u32 i, sends;

	for (plan.algo = DBLP_PS; plan.algo <= DBLP_RING; plan.algo++) {
		ASSERT_EQ(0, dblp_sched_new(&plan, &layout, &s));
		for (i = 0, sends = 0; i < s->n; i++) {
			if (s->step[i].op != DBLP_STEP_SEND)
				continue;
			sends += s->way[i].lane;
			EXPECT_EQ(s->way[i].lane == 1, waits_for_lane_0(s, i));
		}
		EXPECT_LT(50, sends);
		dblp_sched_put(s);
	}
}

/* Large elements are not sent twice: the overhead is a few bytes for their positions */
TEST(elements_on_two_lanes_are_sent_once)
{
	static const struct dblp_lane two[2] = { { .large = 200000, .rest = 1 } };

	prepare_lanes(2, 100000, run_allreduce);
	EACH_RANK(2, r->attr.lane = two, r->attr.lanes = 2, r->op.part = NULL, r->op.parts = 0,
		     r->op.algo = DBLP_PS);
	run_all(2);
	expect_good(_metadata, 2);
	EXPECT_LT(400000, rank[1].result.sent);
	EXPECT_GT(400000 * 1.02, rank[1].result.sent);
	EXPECT_EQ(80000, rank[0].result.lane[0].asked);
	EXPECT_EQ(320000, rank[0].result.lane[1].asked);
}

/* Rounds with pruning, and a last one that delivers all kept elements */
static void run_kept(struct rank *r)
{
	int *v = malloc(r->count * sizeof(*v)), round;
	s64 *sum = calloc(r->count, sizeof(*sum));
	struct dblp_req *req;
	u64 i, pruned = 0;

	r->good = true;
	for (round = 0; round < 4 && !r->err; round++) {
		for (i = 0; i < r->count; i++)
			v[i] = (int)((r->attr.rank + 1) * (i % 64 > 7 ? 1 : 1000));
		if (round == 3)
			r->op.prune = 0;
		r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req) ?:
			 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
		for (i = 0; i < r->count; i++)
			sum[i] += v[i];
		pruned += r->result.pruned;
	}
	r->good = !r->err && pruned;
	for (i = 0; i < r->count; i++)
		r->good &= sum[i] == 4 * 6 * (i % 64 > 7 ? 1 : 1000);
	free(v);
	free(sum);
}

/* Also if blocks are so large that they have elements of both lanes */
TEST(elements_pruned_on_two_lanes_are_sent_later)
{
	u32 block;

	for (block = 0; block <= 64; block += 64) {
		prepare_lanes(3, 50001, run_kept);
		EACH_RANK(3, r->op.flags = DBLP_OP_SPARSE, r->op.rule = DBLP_FEEDBACK,
			     r->op.prune = block ? 100000 : 100, r->op.block = block);
		run_all(3);
		expect_good(_metadata, 3);
	}
}

static int priority_of(int fd)
{
	int priority = -1;
	socklen_t len = sizeof(priority);

	getsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, &len);
	return priority;
}

static int tos_of(int fd)
{
	int tos = -1;
	socklen_t len = sizeof(tos);

	getsockopt(fd, IPPROTO_IP, IP_TOS, &tos, &len);
	return tos;
}

/* The options of the sockets at both ends */
static void run_options(struct rank *r)
{
	bool good = true;
	u32 i;

	run_allreduce(r);
	good &= r->good && tos_of(r->comm->ctl[!r->attr.rank].fd) == 0xb8;
	for (i = 0; i < 3; i++) {
		int fd = dblp_link_of(r->comm, !r->attr.rank, i)->fd;

		good &= tos_of(fd) == (int)lanes[i].tos &&
			priority_of(fd) == (int)lanes[i].priority;
	}
	/* After a peer has left, its connections are closed */
	run_allreduce(r);
	r->good &= good;
}

TEST(connections_of_a_lane_have_its_priority)
{
	prepare_lanes(2, 20000, run_options);
	run_all(2);
	expect_good(_metadata, 2);
	EXPECT_NE(NULL, strstr(rank[0].text, "lanes 3"));
}

/* Each level of a cube has its own device, and each lane uses all devices */
TEST(each_lane_has_all_devices)
{
	int i;

	prepare_lanes(4, 20000, run_allreduce);
	for (i = 0; i < 4; i++) {
		rank[i].attr.devices = "lo,lo";
		rank[i].op.algo = DBLP_BCUBE;
		rank[i].op.levels = 2;
		rank[i].op.radix[0] = 2;
		rank[i].op.radix[1] = 2;
	}
	run_all(4);
	expect_good(_metadata, 4);
}

static void run_bad_parts(struct rank *r)
{
	struct dblp_lane_part bad[2] = { { 0, 4, 0, 0 }, { 4, 10, 1, 0 } };
	struct dblp_op op = r->op;
	struct dblp_req *req = NULL;
	bool good = true;
	int v[10];

	op.part = bad;
	op.parts = 2;
#define REFUSED(error, change) do { \
		struct dblp_op was = op; \
		struct dblp_lane_part before[2]; \
		memcpy(before, bad, sizeof(bad)); \
		change; \
		good &= dblp_allreduce(r->comm, v, 10, &op, &req) == (error) && !req && \
			dblp_comm_owned(r->comm, 10, &op, NULL, 0) == (error); \
		op = was; \
		memcpy(bad, before, sizeof(bad)); \
	} while (0)
	REFUSED(-ENOENT, bad[1].lane = 3);
	REFUSED(-EINVAL, bad[1].first = 3);
	REFUSED(-EINVAL, bad[1].first = 5);
	REFUSED(-EINVAL, bad[1].end = 9);
	REFUSED(-EINVAL, op.parts = 1);
	REFUSED(-EINVAL, op.part = NULL);
	/* The first lane does not have all contributions */
	REFUSED(-EINVAL, op.rule = DBLP_RESCALE);
	run_allreduce(r);
	r->good &= good;
}

TEST(invalid_parts_change_nothing)
{
	prepare_lanes(2, 1000, run_bad_parts);
	run_all(2);
	expect_good(_metadata, 2);
}

TEST(ranks_that_disagree_about_parts_get_the_same_error)
{
	static struct dblp_lane_part other[7];
	int i;

	prepare_lanes(3, 50000, run_allreduce);
	memcpy(other, parts, sizeof(other));
	other[6].lane = 1;
	rank[2].op.part = other;
	run_all(3);
	for (i = 0; i < 3; i++)
		rank[i].good = true;
	/* All name the rank whose difference is detected first */
	expect_failed(_metadata, 3, -EPROTO, rank[0].failed, WAIT_MS);
}

TEST(ranks_that_disagree_about_lanes_do_not_open_it)
{
	static struct dblp_lane other[3];
	int i;

	prepare_lanes(3, 1000, run_allreduce);
	memcpy(other, lanes, sizeof(other));
	other[1].budget = 1;
	rank[1].attr.lane = other;
	run_all(3);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(-EINVAL, rank[i].opened);
}

TEST(a_late_rank_is_missing_on_all_lanes)
{
	cut(30000);
	prepare_late(30000);
	EACH_RANK(3, r->attr.lane = lanes, r->attr.lanes = 3, r->op.part = parts,
		     r->op.parts = 7);
	run_all(3);
	expect_late(_metadata, 30000);
	EXPECT_EQ(rank[0].result.missing, rank[0].result.lane[0].missing +
		  rank[0].result.lane[1].missing + rank[0].result.lane[2].missing);
}

TEST_HARNESS_MAIN
