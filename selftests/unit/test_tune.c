// SPDX-License-Identifier: GPL-2.0-only
/*
 * The controller of a loss budget (tune.c), beside vectors whose noise and losses are
 * computed without it.
 */
#include <math.h>
#include <libdblp.h>
#include <plan.h>
#include <reduce.h>
#include <tune.h>

#include "test.h"
#include "../lib/ranks.h"

#define COUNT		2000
#define SEGMENT		10

/* Ranks: their gradients, of which each has @common of its energy from all of them */
struct ranks {
	struct prng	rng;
	u32		n;
	double		common;
	u32		rule;
	float		v[RANKS_MAX][COUNT];
	float		residual[RANKS_MAX][COUNT];
	double		missing;
	double		error;
	double		noise;
};

/* Mean 0, variance 1 */
static double draw(struct prng *rng)
{
	double sum = 0;
	int i;

	for (i = 0; i < 12; i++)
		sum += prng_below(rng, 1 << 24) / (double)(1 << 24);
	return sum - 6;
}

static void draw_gradients(struct ranks *w, double *truth)
{
	u32 i, r;

	for (i = 0; i < COUNT; i++) {
		truth[i] = sqrt(w->common) * draw(&w->rng);
		for (r = 0; r < w->n; r++)
			w->v[r][i] = truth[i] + sqrt(1 - w->common) * draw(&w->rng);
	}
}

/* Each rank loses @share of its segments; the rest is added to @sum */
static void lose(struct ranks *w, double share, double *sum, u32 *got,
		 struct dblp_energy *e)
{
	u32 r, i;

	for (r = 0; r < w->n; r++) {
		bool lost = false;

		for (i = 0; i < COUNT; i++) {
			float *v = &w->v[r][i], *residual = &w->residual[r][i];

			if (i % SEGMENT == 0)
				lost = prng_below(&w->rng, 1000000) < share * 1000000;
			*v += w->rule == DBLP_FEEDBACK ? *residual : 0;
			e->sent += *v * *v;
			*residual = lost ? *v : 0;
			e->missing += lost ? sizeof(*v) : 0;
			e->lost += *residual * *residual;
			sum[i] += lost ? 0 : *v;
			got[i] += !lost;
		}
	}
}

/* A round with a loss of @share, which the controller learns */
static struct dblp_energy do_round(struct ranks *w, struct dblp_tune *t, double share)
{
	struct dblp_energy e = {
		.contributions = w->n,
		.rule = w->rule,
		.bytes = (u64)w->n * COUNT * sizeof(float),
	};
	double truth[COUNT], sum[COUNT] = { 0 }, all, got_all;
	u32 got[COUNT] = { 0 }, i, r;

	draw_gradients(w, truth);
	lose(w, share, sum, got, &e);
	for (i = 0; i < COUNT; i++) {
		for (r = 0, all = 0; r < w->n; r++)
			all += w->v[r][i] / w->n;
		got_all = w->rule != DBLP_RESCALE ? w->n : got[i] ?: 1;
		e.mean += sum[i] / got_all * (sum[i] / got_all);
		w->error += pow(sum[i] / w->n - all, 2);
		w->noise += pow(all - truth[i], 2);
	}
	w->missing = e.missing / (double)e.bytes;
	dblp_tune_round(t, &e);
	return e;
}

TEST(nothing_is_lost_before_the_first_round)
{
	struct dblp_tune t = { 0 };

	EXPECT_EQ(0, dblp_tune_budget(&t, DBLP_PPM));
}

/* Agreement is that of the gradients, whatever is lost, by any rule */
TEST(agreement_is_measured_despite_losses)
{
	static const double commons[] = { 0, 0.1, 0.5, 0.9 }, shares[] = { 0, 0.1, 0.5 };
	struct ranks *w = calloc(1, sizeof(*w));
	u32 rule, c, s, n, i;

	for (rule = 0; rule < DBLP_RULES; rule++)
		for (c = 0; c < 4; c++)
			for (s = 0; s < 3; s++)
				for (n = 2; n <= 8; n += 3) {
					struct dblp_tune t = { 0 };

					/* Residuals of half of all elements are as large as gradients */
					if (rule == DBLP_FEEDBACK && s == 2)
						continue;
					*w = (struct ranks){ .rng = { 1 }, .n = n, .rule = rule,
							     .common = commons[c] };
					for (i = 0; i < 30; i++)
						do_round(w, &t, shares[s]);
					EXPECT_TRUE(fabs(t.agreement - commons[c]) < 0.1)
						TH_LOG("rule %u, %u ranks, loss %g: %g instead of %g", rule, n,
						       shares[s], t.agreement, commons[c]);
				}
	free(w);
}

/* Ranks that have nothing in common: the energy of their mean is E(1/k) of them, here 1/n */
TEST(few_losses_of_many_ranks_are_no_agreement)
{
	static const u64 missing[] = { 0, 1, 8, 15, 16, 30 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(missing); i++) {
		const struct dblp_energy e = { .contributions = 64, .rule = DBLP_RESCALE, .sent = 64,
					       .mean = 1.0 / 64, .missing = missing[i], .bytes = 1000000 };
		struct dblp_tune t = { 0 };

		dblp_tune_round(&t, &e);
		EXPECT_TRUE(t.agreement < 1e-4)
			TH_LOG("%d ppm lost: %g", (int)missing[i], t.agreement);
	}
}

/* The promise: error is at the target share of the noise, both measured without the controller */
TEST(error_is_held_at_the_target)
{
	static const double commons[] = { 0, 0.3, 0.8 };
	struct ranks *w = calloc(1, sizeof(*w));
	u32 c, n, target, i;
	double ratio;

	for (target = 50000; target <= 200000; target *= 2)
		for (c = 0; c < 3; c++)
			for (n = 2; n <= 8; n += 6) {
				struct dblp_tune t = { .target = target };

				*w = (struct ranks){ .rng = { 1 }, .n = n, .common = commons[c] };
				for (i = 0; i < 60; i++) {
					if (i == 20)
						w->error = w->noise = 0;
					do_round(w, &t, dblp_tune_budget(&t, DBLP_PPM) / 1e6);
				}
				ratio = w->error / w->noise * DBLP_PPM / target;
				EXPECT_TRUE(ratio > 0.75 && ratio < 1.25)
					TH_LOG("target %u, %u ranks, agreement %g: %g of the target", target, n,
					       commons[c], ratio);
			}
	free(w);
}

/* Without anything saved, one round spends the target */
TEST(a_budget_is_the_root_of_the_formula)
{
	struct dblp_tune t = { .rounds = 1, .target = 200000 };
	double x, spent;

	for (t.contributions = 2; t.contributions <= 64; t.contributions *= 2)
		for (t.agreement = 0; t.agreement < 0.85; t.agreement += 0.2) {
			/* Budgets are rounded down to multiples of 0.1 % */
			x = (dblp_tune_budget(&t, DBLP_PPM) + 500) / 1e6;
			spent = (x + x * x * (t.contributions - 1) * t.agreement) / (1 - t.agreement);
			EXPECT_TRUE(fabs(spent - 0.2) < 0.012)
				TH_LOG("%u ranks, agreement %g: %g", t.contributions, t.agreement, spent);
		}
}

TEST(ranks_that_agree_lose_less)
{
	struct ranks *w = calloc(1, sizeof(*w));
	u32 before = DBLP_PPM, budget, c, i;

	for (c = 0; c <= 10; c += 2) {
		struct dblp_tune t = { 0 };

		*w = (struct ranks){ .rng = { 1 }, .n = 4, .rule = DBLP_FEEDBACK, .common = c / 10.0 };
		for (i = 0; i < 20; i++)
			do_round(w, &t, dblp_tune_budget(&t, DBLP_PPM) / 1e6);
		t.saved = 0;
		budget = dblp_tune_budget(&t, DBLP_PPM);
		EXPECT_LT(budget, before);
		before = budget;
	}
	EXPECT_EQ(0, before);
	free(w);
}

TEST(no_budget_exceeds_the_cap)
{
	static const u32 caps[] = { 0, 999, 1000, 8000, 408000, DBLP_PPM };
	struct ranks *w = calloc(1, sizeof(*w));
	struct dblp_tune t = { 0 };
	u32 budget, i;

	*w = (struct ranks){ .rng = { 1 }, .n = 4 };
	for (i = 0; i < 20; i++)
		do_round(w, &t, 0);
	for (i = 0; i < ARRAY_SIZE(caps); i++) {
		budget = dblp_tune_budget(&t, caps[i]);
		EXPECT_LE(budget, caps[i]);
		EXPECT_EQ(0, budget % 1000);
	}
	t.target = 500000;
	EXPECT_EQ(408000, dblp_tune_budget(&t, 408000));
	free(w);
}

/* Calm rounds save for bursts up to a limit, and what was lost beyond the target is repaid */
TEST(calm_rounds_save_for_bursts)
{
	struct ranks *w = calloc(1, sizeof(*w));
	struct dblp_tune t = { .target = 100000 };
	u32 calm, i;

	*w = (struct ranks){ .rng = { 1 }, .n = 4, .rule = DBLP_FEEDBACK };
	for (i = 0; i < 100; i++)
		do_round(w, &t, 0);
	EXPECT_EQ(DBLP_TUNE_SAVED, t.saved);
	EXPECT_TRUE(abs((int)dblp_tune_budget(&t, DBLP_PPM) - 200000) < 10000);
	/* Deadlines lose more than any budget */
	for (i = 0; i < 4; i++)
		do_round(w, &t, 0.9);
	EXPECT_EQ(-DBLP_TUNE_SAVED, t.saved);
	EXPECT_EQ(0, dblp_tune_budget(&t, DBLP_PPM));
	for (calm = 0; dblp_tune_budget(&t, DBLP_PPM) < 95000; calm++)
		do_round(w, &t, 0);
	EXPECT_TRUE(calm > 8 && calm <= DBLP_TUNE_SAVED);
	free(w);
}

/* A GradScaler that overflows makes infinities on all ranks */
TEST(rounds_without_finite_energy_are_omitted)
{
	static const double bad[] = { INFINITY, NAN, 0 };
	struct ranks *w = calloc(1, sizeof(*w));
	struct dblp_tune t = { 0 }, before;
	struct dblp_energy e;
	u32 i;

	*w = (struct ranks){ .rng = { 1 }, .n = 4 };
	e = do_round(w, &t, 0.1);
	before = t;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		e.sent = bad[i];
		dblp_tune_round(&t, &e);
		EXPECT_EQ(0, memcmp(&t, &before, sizeof(t)));
	}
	e.sent = 1;
	e.mean = NAN;
	dblp_tune_round(&t, &e);
	EXPECT_EQ(0, memcmp(&t, &before, sizeof(t)));
	free(w);
}

TEST(one_rank_has_no_noise_to_measure)
{
	const struct dblp_energy e = { .contributions = 1, .sent = 1, .mean = 1, .bytes = 4 };
	struct dblp_tune t = { 0 };

	dblp_tune_round(&t, &e);
	EXPECT_EQ(0, dblp_tune_budget(&t, DBLP_PPM));
}

static double norm2(const float *v)
{
	return dblp_reduce_squares(DBLP_FLOAT32, v, COUNT);
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

/* Rounds that prune, which leaves residuals as losses do, also over TCP */
static void run_energies(struct rank *r)
{
	const u32 n = r->nranks - !!r->op.plan_flags;
	const bool server = r->op.plan_flags && !r->attr.rank;
	float v[COUNT], residual[COUNT] = { 0 }, sent[COUNT];
	struct dblp_req *req;
	u32 round, i;

	r->good = true;
	for (round = 0; round < 3 && !r->err; round++) {
		for (i = 0; i < COUNT; i++) {
			v[i] = sin(i * (r->attr.rank + 1) + round);
			sent[i] = v[i] + residual[i];
		}
		r->err = dblp_allreduce(r->comm, v, COUNT, &r->op, &req) ?:
			 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
		if (r->op.rule == DBLP_FEEDBACK)
			r->err |= dblp_residual_get(r->comm, 0, DBLP_FLOAT32, residual, COUNT);
		r->good &= near(r->result.energy_sent, server ? 0 : norm2(sent)) &&
			   near(r->result.energy_lost, norm2(residual)) &&
			   !norm2(residual) == (!r->attr.rank || !r->op.prune) &&
			   near(r->result.energy_mean,
				norm2(v) / (r->op.flags & DBLP_OP_AVERAGE ? 1 : n * n));
	}
}

TEST(energies_are_those_of_the_vectors)
{
	int k, i;

	for (k = 0; k < 8; k++) {
		prepare(3, next_epoch(), COUNT, run_energies);
		for (i = 0; i < 3; i++) {
			rank[i].op.dtype = DBLP_FLOAT32;
			rank[i].op.algo = DBLP_PS;
			rank[i].op.flags = DBLP_OP_ENERGY | (k & 1 ? DBLP_OP_AVERAGE : 0);
			rank[i].op.plan_flags = k & 2 ? DBLP_PLAN_SERVER : 0;
			if (k & 4)
				continue;
			rank[i].op.rule = DBLP_FEEDBACK;
			rank[i].op.flags |= DBLP_OP_SPARSE;
			rank[i].op.prune = 300000;
		}
		run_all(3);
		for (i = 0; i < 3; i++) {
			EXPECT_EQ(0, rank[i].err);
			EXPECT_TRUE(rank[i].good)
				TH_LOG("case %d, rank %d", k, i);
		}
	}
}

/* Without the flag nothing is measured; elements of 16 bits may be divided before they are sent */
static void run_halves_of_floats(struct rank *r)
{
	u16 v[64];
	struct dblp_req *req;
	u32 i;

	/* bfloat16: 1.0 */
	for (i = 0; i < 64; i++)
		v[i] = 0x3f80;
	r->err = dblp_allreduce(r->comm, v, 64, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	r->good = r->result.energy_sent == (r->op.flags & DBLP_OP_ENERGY ? 64 : 0) &&
		  r->result.energy_mean == r->result.energy_sent;
	r->op.flags |= DBLP_OP_ENERGY;
	r->good &= dblp_reduce_scatter(r->comm, v, 64, &r->op, &req) == -EINVAL &&
		   dblp_reduce(r->comm, v, 64, &r->op, &req) == -EINVAL;
}

TEST(energies_are_measured_if_wanted)
{
	int k, i;

	for (k = 0; k < 2; k++) {
		prepare(2, next_epoch(), 64, run_halves_of_floats);
		EACH_RANK(2, r->op.dtype = DBLP_BFLOAT16, r->op.algo = DBLP_PS,
			  r->op.flags = DBLP_OP_AVERAGE | (k ? DBLP_OP_ENERGY : 0));
		run_all(2);
		for (i = 0; i < 2; i++) {
			EXPECT_EQ(0, rank[i].err);
			EXPECT_TRUE(rank[i].good);
		}
	}
}

TEST_HARNESS_MAIN
