// SPDX-License-Identifier: GPL-2.0-only
/* Path MTU: black holes, and losses that are no black hole */
#include "pmtu.h"
#include "test.h"

#define S	1000000000ULL

/**
 * struct path - a simulated path of a sender
 * @p: state of the sender
 * @takes: larger packets are lost
 * @loss: loss of packets that fit, percent
 * @burst: mean number of consecutive packets lost, or not lost
 * @bad: packets that fit are being lost now
 * @now: time
 * @rng: random numbers for losses
 * @fallbacks: number of times that @p became smaller
 */
struct path {
	struct dblp_pmtu	p;
	u32			takes;
	u32			loss;
	u32			burst;
	bool			bad;
	u64			now;
	struct prng		rng;
	u32			fallbacks;
};

static void begin(struct path *path, u32 max, u32 takes, u32 loss, u64 seed)
{
	memset(path, 0, sizeof(*path));
	dblp_pmtu_init(&path->p, DBLP_PMTU_MIN, DBLP_PMTU_BASE, max);
	path->takes = takes;
	path->loss = loss;
	path->burst = 1;
	path->rng.state = seed;
	path->now = S;
}

static bool arrives(struct path *path, u32 size)
{
	if (!prng_below(&path->rng, path->burst))
		path->bad = prng_below(&path->rng, 100) < path->loss;
	return size <= path->takes && !path->bad;
}

static void tell(struct path *path, u32 size, bool probe, bool arrived)
{
	u32 before = path->p.mtu;

	if (arrived)
		dblp_pmtu_acked(&path->p, size, probe, path->now);
	else
		dblp_pmtu_lost(&path->p, size, probe, path->now);
	path->fallbacks += path->p.mtu < before;
}

/* Send all due probes; returns the number that arrived */
static u32 send_probes(struct path *path)
{
	u32 size[2], n = 0, i, got = 0;
	bool ok;

	while ((size[n] = dblp_pmtu_next(&path->p, path->now)) && n < 1)
		n++;
	n += !!size[n];
	for (i = 0; i < n; i++) {
		ok = arrives(path, size[i]);
		got += ok;
		tell(path, size[i], true, ok);
	}
	return got;
}

/* A round trip with @n full packets and all due probes */
static void trip(struct path *path, u32 n)
{
	u32 size, i, got = 0;

	for (i = 0; i < n; i++) {
		bool ok;

		size = path->p.mtu;
		ok = arrives(path, size);
		got += ok;
		tell(path, size, false, ok);
	}
	got += send_probes(path);
	if (!got)
		dblp_pmtu_timeout(&path->p, DBLP_PMTU_DOUBT);
	path->now += S / 100;
}

TEST(pmtu__follows_the_route)
{
	struct dblp_pmtu p;

	dblp_pmtu_init(&p, 576, 1200, 1500);
	EXPECT_EQ(1500, p.mtu);
	EXPECT_EQ(0, dblp_pmtu_next(&p, S));
	dblp_pmtu_route(&p, 9000);
	EXPECT_EQ(9000, p.mtu);
	dblp_pmtu_route(&p, 1400);
	EXPECT_EQ(1400, p.mtu);
	EXPECT_EQ(0, dblp_pmtu_next(&p, 1000 * S));
	/* The minimum is a bound */
	dblp_pmtu_route(&p, 100);
	EXPECT_EQ(576, p.mtu);
	dblp_pmtu_init(&p, 1280, 1280, 68);
	EXPECT_EQ(1280, p.mtu);
}

TEST(pmtu__finds_black_holes)
{
	static const u32 cases[][2] = {
		{ 1500, 1499 }, { 1500, 1492 }, { 1500, 1420 }, { 1500, 1280 },
		{ 1500, 1200 }, { 9000, 8999 }, { 9000, 1500 }, { 9000, 4000 },
		{ 64000, 1500 }, { 64000, 60000 }, { 1500, 600 }, { 1100, 700 },
	};
	u32 i, n, t;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		for (n = 1; n <= 20; n += 19) {
			struct path path;

			begin(&path, cases[i][0], cases[i][1], 0, i + 1);
			for (t = 0; t < 200 &&
			     (path.p.state != DBLP_PMTU_COMPLETE ||
			      !path.fallbacks); t++)
				trip(&path, n);
			EXPECT_EQ(DBLP_PMTU_COMPLETE, path.p.state);
			EXPECT_LE(path.p.mtu, cases[i][1]);
			EXPECT_GE(path.p.mtu + DBLP_PMTU_STEP, cases[i][1]);
			EXPECT_LE(path.fallbacks, 2);
		}
}

/* One round trip more than the number of rounds, even with few packets */
TEST(pmtu__falls_back_in_some_round_trips)
{
	struct path path;
	u32 n, t;

	for (n = 1; n <= 100; n *= 10) {
		begin(&path, 1500, 1300, 0, 1);
		for (t = 0; t < 100 && !path.fallbacks; t++)
			trip(&path, n);
		EXPECT_LE(t, DBLP_PMTU_PROOF + DBLP_PMTU_PROBES + 2);
	}
}

/* Loss that does not depend on the size is not a black hole, however high it is */
TEST(pmtu__bears_loss)
{
	static const u32 losses[] = { 10, 30, 50, 70, 80, 90, 95 };
	u32 i, n, burst, seed, t;

	for (i = 0; i < ARRAY_SIZE(losses); i++)
		for (n = 1; n <= 16; n *= 4)
			for (burst = 1; burst <= 16; burst *= 4)
				for (seed = 1; seed <= 20; seed++) {
					struct path path;

					begin(&path, 1500, 1500, losses[i],
					      i * 1000 + n * 100 + seed);
					path.burst = burst;
					for (t = 0; t < 1000; t++)
						trip(&path, n);
					EXPECT_EQ(0, path.fallbacks);
				}
}

/* A black hole is found on a path with other losses, too */
TEST(pmtu__finds_black_holes_under_loss)
{
	u32 loss, t;

	for (loss = 10; loss <= 80; loss += 10) {
		struct path path;

		begin(&path, 1500, 1300, loss, loss);
		for (t = 0; t < 500 && !path.fallbacks; t++)
			trip(&path, 4);
		TH_LOG("%u %% loss: after %u round trips", loss, t);
		EXPECT_EQ(1, path.fallbacks);
	}
}

/* Packets lost long ago and declared lost together count as one loss, not twenty */
TEST(pmtu__uses_evidence_once)
{
	struct dblp_pmtu p;
	u32 i;

	dblp_pmtu_init(&p, 576, 1200, 1500);
	for (i = 0; i < 1000; i++)
		dblp_pmtu_lost(&p, 1500, false, S);
	for (i = 0; i < 1000; i++)
		if (dblp_pmtu_next(&p, S))
			dblp_pmtu_acked(&p, 1200, true, S);
	EXPECT_EQ(1500, p.mtu);
	EXPECT_LE(p.rounds, 1);
}

/* After a false detection, the full size is tried first */
TEST(pmtu__tries_the_whole_first)
{
	struct path path;

	begin(&path, 9000, 1500, 0, 1);
	while (!path.fallbacks)
		trip(&path, 10);
	EXPECT_EQ(DBLP_PMTU_BASE, path.p.mtu);
	path.takes = 9000;
	trip(&path, 10);
	EXPECT_EQ(9000, path.p.mtu);
	EXPECT_EQ(DBLP_PMTU_COMPLETE, path.p.state);
	EXPECT_EQ(0, dblp_pmtu_next(&path.p, path.now + 10000 * S));
}

/*
 * A receiver without memory drops data, but not probes: only a loss of probes is a
 * black hole
 */
TEST(pmtu__tells_a_hole_from_a_receiver_without_memory)
{
	u32 takes, t;

	for (takes = 1300; takes <= 1500; takes += 200) {
		struct path path;

		begin(&path, 1500, takes, 0, 1);
		for (t = 0; t < 1000 && !path.fallbacks; t++) {
			tell(&path, 1500, false, false);
			send_probes(&path);
		}
		EXPECT_EQ(takes < 1500, path.fallbacks);
	}
}

TEST(pmtu__searches_again_later)
{
	struct path path;
	u64 at;

	begin(&path, 1500, 1400, 0, 1);
	while (!path.fallbacks || path.p.state != DBLP_PMTU_COMPLETE)
		trip(&path, 10);
	at = path.p.raise_at;
	EXPECT_GE(at, path.now - S + DBLP_PMTU_RAISE_NS);
	EXPECT_EQ(0, dblp_pmtu_next(&path.p, at - 1));
	EXPECT_EQ(1500, dblp_pmtu_next(&path.p, at));
	EXPECT_EQ(0, dblp_pmtu_next(&path.p, at));
	dblp_pmtu_acked(&path.p, 1500, true, at);
	EXPECT_EQ(1500, path.p.mtu);
}

/* A size is given up after its probe was lost three times */
TEST(pmtu__gives_probes_three_tries)
{
	struct path path;
	u32 i, size;

	begin(&path, 1500, 1400, 0, 1);
	while (!path.fallbacks)
		trip(&path, 10);
	for (i = 0; i < DBLP_PMTU_PROBES; i++) {
		EXPECT_EQ(1500, dblp_pmtu_next(&path.p, path.now));
		dblp_pmtu_lost(&path.p, 1500, true, path.now);
	}
	size = dblp_pmtu_next(&path.p, path.now);
	EXPECT_EQ((1200 + 1500) / 2, size);
	/* A probe that could not be sent does not count */
	dblp_pmtu_unsent(&path.p, size);
	EXPECT_EQ(size, dblp_pmtu_next(&path.p, path.now));
}

/* The route's MTU grows, but the path has a black hole */
TEST(pmtu__searches_when_the_route_widens)
{
	struct path path;

	begin(&path, 1500, 1400, 0, 1);
	while (!path.fallbacks || path.p.state != DBLP_PMTU_COMPLETE)
		trip(&path, 10);
	path.takes = 9000;
	dblp_pmtu_route(&path.p, 9000);
	EXPECT_LE(path.p.mtu, 1400);
	trip(&path, 10);
	EXPECT_EQ(9000, path.p.mtu);
	/* A smaller MTU of the route applies at once */
	dblp_pmtu_route(&path.p, 1300);
	EXPECT_EQ(1300, path.p.mtu);
	EXPECT_EQ(0, dblp_pmtu_next(&path.p, path.now));
}

/* Acknowledged small packets are no evidence, large ones end a suspicion */
TEST(pmtu__large_packets_end_a_suspicion)
{
	struct dblp_pmtu p;
	u32 i;

	dblp_pmtu_init(&p, 576, 1200, 1500);
	EXPECT_TRUE(dblp_pmtu_quiet(&p));
	for (i = 0; i < 3; i++)
		dblp_pmtu_lost(&p, 1400, false, S);
	EXPECT_FALSE(dblp_pmtu_quiet(&p));
	dblp_pmtu_acked(&p, 1399, false, S);
	EXPECT_TRUE(p.suspected);
	EXPECT_EQ(1200, dblp_pmtu_next(&p, S));
	dblp_pmtu_acked(&p, 1400, false, S);
	EXPECT_TRUE(dblp_pmtu_quiet(&p));
	/* Lost packets of the fallback size cause no suspicion */
	for (i = 0; i < 100; i++)
		dblp_pmtu_lost(&p, 1200, false, S);
	EXPECT_TRUE(dblp_pmtu_quiet(&p));
}

/* Without large packets, small probes stop after a while */
TEST(pmtu__sends_no_more_probes_than_needed)
{
	struct dblp_pmtu p;
	u32 n = 0;

	dblp_pmtu_init(&p, 576, 1200, 1500);
	dblp_pmtu_timeout(&p, 1);
	EXPECT_EQ(0, dblp_pmtu_next(&p, S));
	dblp_pmtu_timeout(&p, 2);
	while (dblp_pmtu_next(&p, S)) {
		dblp_pmtu_acked(&p, 1200, true, S);
		ASSERT_LT(n++, 10);
	}
	EXPECT_EQ(1, n);
	EXPECT_EQ(1500, p.mtu);
}

TEST_HARNESS_MAIN
