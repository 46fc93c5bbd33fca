// SPDX-License-Identifier: GPL-2.0-only
/* Decisions of the scheduler of asynchronous updates, and its estimates of rates */
#include <math.h>
#include <order.h>
#include <rates.h>

#include "test.h"

#define HOSTS	9
#define SERVER	8

/* Eight joining hosts, each with an update, and the server, all at the same rates */
static struct fab_host even[HOSTS];
static struct fab_update ready[FAB_UPDATES_MAX];
static struct fab_plan plan;

static struct fab_state network(double server)
{
	u32 i;

	for (i = 0; i < HOSTS; i++) {
		even[i] = (struct fab_host) { 1000, 1000, i != SERVER };
		ready[i] = (struct fab_update) { i, 100, i };
	}
	even[SERVER].tx = even[SERVER].rx = server;
	return (struct fab_state) {
		.version = 100, .bound = 20, .bytes = 1000, .server = SERVER,
		.hosts = HOSTS, .host = even,
	};
}

TEST(updates_are_ordered_by_arrival)
{
	struct fab_state s = network(1000);

	even[0].tx = 200;
	even[1].tx = 500;
	ready[3].since = 9;
	fab_order(&s, ready, 4, &plan);
	ASSERT_EQ(plan.sent, 4);
	EXPECT_EQ(plan.order[0], 2);
	EXPECT_EQ(plan.order[1], 3);
	EXPECT_EQ(plan.order[2], 1);
	EXPECT_EQ(plan.order[3], 0);
}

/* The server's device is the slowest: the older update goes first */
TEST(least_rate_on_the_way)
{
	struct fab_state s = network(100);

	even[0].tx = 200;
	ready[0].since = 0;
	ready[1].since = 1;
	fab_order(&s, ready, 2, &plan);
	EXPECT_EQ(plan.order[0], 0);
}

TEST(updates_without_slack_go_first)
{
	struct fab_state s = network(1000);

	even[2].tx = 10;
	ready[2].version = 100 - s.bound;
	fab_order(&s, ready, 4, &plan);
	EXPECT_EQ(plan.sent, 4);
	EXPECT_EQ(plan.order[0], 2);
}

/*
 * Of two updates without slack one is dropped; so are updates that are late in any
 * order
 */
TEST(late_updates_are_dropped)
{
	struct fab_state s = network(1000);

	ready[0].version = 100 - s.bound;
	ready[1].version = 100 - s.bound;
	ready[2].version = 100 - s.bound - 1;
	even[0].tx = 500;
	fab_order(&s, ready, 4, &plan);
	EXPECT_EQ(plan.sent, 2);
	EXPECT_EQ(plan.order[0], 1);
	EXPECT_EQ(plan.order[1], 3);
	s.ahead = 1;
	fab_order(&s, ready, 4, &plan);
	EXPECT_EQ(plan.sent, 1);
	EXPECT_EQ(plan.order[0], 3);
}

/* A run that counted as failed has reached the server, and the model was read */
TEST(a_model_may_be_newer_than_is_known)
{
	const uint64_t newer = 103;
	struct fab_leg leg[] = { { 1, &newer, true, 1 }, { 1, &newer, true, 1 } };
	struct fab_state s = network(1000);

	ready[0].version = newer;
	fab_order(&s, ready, 1, &plan);
	EXPECT_EQ(plan.sent, 1);
	EXPECT_EQ(fab_next(100, 20, leg, 2), 0);
	EXPECT_EQ(fab_late(100, 20, leg, 2), 2);
	EXPECT_EQ(fab_late(123, 20, leg, 2), 1);
	EXPECT_EQ(fab_late(124, 20, leg, 2), 0);
}

/*
 * At the host with the most residual bandwidth, and never at one that cannot join
 * updates
 */
TEST(updates_are_joined_at_the_host_with_most_bandwidth)
{
	struct fab_state s = network(100);
	u32 i;

	even[5].rx = 8000;
	for (i = 0; i < 4; i++)
		even[i].tx = 8000;
	fab_order(&s, ready, 4, &plan);
	ASSERT_EQ(plan.runs, 1);
	EXPECT_EQ(plan.run[0].at, 5);
	for (i = 0; i < HOSTS; i++)
		even[i].joins = false;
	fab_order(&s, ready, 4, &plan);
	EXPECT_EQ(plan.runs, 4);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(plan.run[i].at, FAB_DIRECT);
}

/* A slow host alone would hold up the server */
TEST(updates_of_a_slow_host_are_joined_at_another_one)
{
	struct fab_state s = network(1000);

	even[0].tx = 100;
	fab_order(&s, ready, 1, &plan);
	ASSERT_EQ(plan.runs, 1);
	EXPECT_NE(plan.run[0].at, FAB_DIRECT);
	even[0].tx = 900;
	fab_order(&s, ready, 1, &plan);
	EXPECT_EQ(plan.run[0].at, FAB_DIRECT);
}

/* All other updates are joined without waiting for a much slower host */
TEST(a_slow_host_does_not_delay_others)
{
	struct fab_state s = network(400);

	even[1].tx = even[1].rx = 50;
	fab_order(&s, ready, 4, &plan);
	ASSERT_EQ(plan.runs, 2);
	EXPECT_EQ(plan.run[0].n, 3);
	EXPECT_EQ(plan.order[3], 1);
}

TEST(which_updates_join_the_last_run)
{
	struct fab_state s = network(500);
	struct fab_update u = { 1, 100, 0 };

	EXPECT_TRUE(fab_comes_along(&s, &u, 0));
	u.version -= s.bound;
	EXPECT_TRUE(fab_comes_along(&s, &u, 0));
	s.ahead = 1;
	EXPECT_FALSE(fab_comes_along(&s, &u, 0));
	u.version = 100;
	EXPECT_TRUE(fab_comes_along(&s, &u, 0));
	even[1].tx = 400;
	EXPECT_FALSE(fab_comes_along(&s, &u, 0));
}

/* fab_next(): which run leaves */

static const uint64_t old[] = { 90, 95 }, fresh[] = { 100, 100, 100 };

TEST(the_next_run_is_ready_and_leaves_time_for_old_ones)
{
	struct fab_leg leg[] = {
		{ 2, old, false, 5 }, { 3, fresh, true, 2 }, { 1, fresh, true, 1 },
	};

	EXPECT_EQ(fab_next(100, 20, leg, 3), 2);
	leg[2].whole = false;
	EXPECT_EQ(fab_next(100, 20, leg, 3), 1);
	/* Three updates before the old ones are too many, one is not */
	EXPECT_EQ(fab_next(100, 12, leg, 3), -1);
	leg[2].whole = true;
	EXPECT_EQ(fab_next(100, 12, leg, 3), 2);
	EXPECT_EQ(fab_next(100, 10, leg, 3), -1);
	leg[0].whole = true;
	EXPECT_EQ(fab_next(100, 10, leg, 3), 0);
	EXPECT_EQ(fab_next(100, 10, leg, 0), -1);
}

/*
 * Random events: updates become ready, plans are made, updates join the last run, runs
 * are collected, leave or fail, and some failed runs are applied nevertheless. No update
 * exceeds its bound, and if all runs are collected, one can leave.
 */
struct life {
	struct prng	r;
	struct fab_state s;
	struct fab_update ready[40];
	u32		n;
	struct fab_leg	leg[40];
	uint64_t	version[40][40];
	u32		legs;
	u64		applied;
	u64		joined;
	u64		late;
};

static void count_ahead(struct life *l)
{
	u32 i;

	l->s.ahead = 0;
	for (i = 0; i < l->legs; i++)
		l->s.ahead += l->leg[i].n;
}

/* The last ready update joins the last run */
static void come_along(struct life *l)
{
	const u32 last = l->legs - 1;

	count_ahead(l);
	if (!l->legs || !l->n || l->leg[last].n == 40 ||
	    !fab_comes_along(&l->s, &l->ready[l->n - 1], prng_below(&l->r, SERVER)))
		return;
	l->version[last][l->leg[last].n++] = l->ready[--l->n].version;
	l->leg[last].whole = false;
	l->joined++;
}

static void make_plan(struct life *l)
{
	u32 i, k;

	count_ahead(l);
	fab_order(&l->s, l->ready, l->n, &plan);
	for (i = 0; i < plan.runs; i++) {
		struct fab_leg *leg = &l->leg[l->legs];

		*leg = (struct fab_leg) { .n = plan.run[i].n, .version = l->version[l->legs],
					  .seconds = prng_below(&l->r, 9) };
		for (k = 0; k < leg->n; k++)
			l->version[l->legs][k] =
				l->ready[plan.order[plan.run[i].first + k]].version;
		l->legs++;
	}
	l->n = 0;
}

static void take_leg(struct life *l, u32 gone)
{
	u32 i;

	for (i = gone; i + 1 < l->legs; i++) {
		l->leg[i] = l->leg[i + 1];
		memcpy(l->version[i], l->version[i + 1], sizeof(l->version[i]));
		l->leg[i].version = l->version[i];
	}
	l->legs--;
}

static void take_late_legs(struct life *l)
{
	u32 late;

	while ((late = fab_late(l->s.version, l->s.bound, l->leg, l->legs)) < l->legs) {
		take_leg(l, late);
		l->late++;
	}
}

static u32 on_the_way(const struct life *l)
{
	u32 sum = l->n, i;

	for (i = 0; i < l->legs; i++)
		sum += l->leg[i].n;
	return sum;
}

TEST(no_update_is_applied_beyond_its_bound)
{
	static struct life l;
	u32 t, i, k;
	int gone;

	l.r.state = 7;
	l.s = network(200);
	l.s.bound = 9;
	for (t = 0; t < 200000; t++) {
		switch (prng_below(&l.r, 6)) {
		case 0:
			if (on_the_way(&l) < 30)
				l.ready[l.n++] = (struct fab_update) {
					prng_below(&l.r, l.s.hosts),
					l.s.version + 3 - prng_below(&l.r, l.s.version < 11 ?
								     l.s.version + 4 : 14), t };
			continue;
		case 1:
			make_plan(&l);
			continue;
		case 2:
			if (l.legs)
				l.leg[prng_below(&l.r, l.legs)].whole = true;
			continue;
		case 3:
			if (l.legs && !prng_below(&l.r, 10))
				take_leg(&l, prng_below(&l.r, l.legs));
			if (!prng_below(&l.r, 10))
				l.s.version += prng_below(&l.r, 4);
			continue;
		case 4:
			come_along(&l);
			continue;
		}
		take_late_legs(&l);
		gone = fab_next(l.s.version, l.s.bound, l.leg, l.legs);
		for (i = 0; i < l.legs && l.leg[i].whole;)
			i++;
		ASSERT_TRUE(gone >= 0 || i < l.legs || !l.legs);
		if (gone < 0)
			continue;
		ASSERT_TRUE(l.leg[gone].whole);
		for (k = 0; k < l.leg[gone].n; k++, l.s.version++, l.applied++)
			ASSERT_LE((s64)(l.s.version - l.leg[gone].version[k]), l.s.bound);
		take_leg(&l, gone);
	}
	EXPECT_GT(l.applied, 10000);
	EXPECT_GT(l.joined, 1000);
	EXPECT_GT(l.late, 100);
}

/* The replica never lags more than the bound, whatever the order of events */
TEST(a_replica_stays_within_its_bound)
{
	struct fab_divergence d = { .max = 10 };
	double norm, behind = 0, under_way = 0;
	struct prng r = { 3 };
	bool sending = false;
	u32 t, steps = 0;

	for (t = 0; t < 100000; t++) {
		norm = prng_below(&r, 400) / 100.;
		switch (prng_below(&r, 3)) {
		case 0:
			if (!fab_divergence_fits(&d, norm))
				continue;
			fab_divergence_step(&d, norm);
			behind += norm;
			steps++;
			break;
		case 1:
			if (sending)
				continue;
			fab_divergence_send(&d);
			under_way = behind;
			sending = true;
			break;
		case 2:
			if (!sending)
				continue;
			fab_divergence_ack(&d);
			behind -= under_way;
			sending = false;
			break;
		}
		ASSERT_LE(behind, d.max * (1 + 1e-9));
	}
	EXPECT_GT(steps, 1000);
	EXPECT_FALSE(fab_divergence_fits(&d, 10.5));
}

TEST(the_weight_decreases_with_the_delay)
{
	EXPECT_EQ(fab_weight(0), 1);
	EXPECT_EQ(fab_weight(3), 0.5);
	EXPECT_LT(fab_weight(UINT64_MAX), 1e-9);
}

/* The bottleneck of a message is the device that is slower with others, too */
TEST(rates)
{
	struct rate host[4][RATE_WAYS] = { };
	struct rates r = { .hosts = 4, .host = host };
	u32 i;

	EXPECT_EQ(rates_of(&r, 0, RATE_TX), RATE_UNKNOWN);
	rates_sample(&r, 0, 3, 100);
	rates_sample(&r, 1, 3, 90);
	EXPECT_EQ(rates_of(&r, 2, RATE_TX), 100);
	rates_sample(&r, 1, 2, 400);
	EXPECT_EQ(rates_of(&r, 3, RATE_RX), 100);
	EXPECT_EQ(rates_of(&r, 0, RATE_TX), 400);
	EXPECT_EQ(rates_of(&r, 1, RATE_TX), 400);
	rates_sample(&r, 0, 2, 50);
	EXPECT_EQ(rates_of(&r, 0, RATE_TX), 100);
	/* Old samples are forgotten */
	for (i = 0; i < RATE_SAMPLES; i++)
		rates_sample(&r, 1, 3, 20);
	EXPECT_EQ(rates_of(&r, 3, RATE_RX), 400);
	rates_sample(&r, 1, 2, 400);
	EXPECT_EQ(rates_of(&r, 3, RATE_RX), 20);
	EXPECT_EQ(rates_use(&r, 1, 3), 20);
	EXPECT_EQ(rates_left(&r, 3, RATE_RX), 1);
	EXPECT_EQ(rates_left(&r, 1, RATE_TX), 380);
}

TEST_HARNESS_MAIN
