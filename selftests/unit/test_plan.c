// SPDX-License-Identifier: GPL-2.0-only
/* Plans of collective operations, executed in memory */
#include "plan_world.h"

#include <errno.h>

#include <linux/minmax.h>

/* An element: value, number of contributions, and whether it was finished */
struct elem {
	s32	value;
	u32	contributions;
	u32	finished;
};

static struct elem *vector_of(struct world *w, u32 rank)
{
	return (struct elem *)w->arg + rank * w->plan.count;
}

/* Contribution of @rank to element @i; unique for each rank */
static s32 contribution(u32 rank, u64 i)
{
	return (rank + 1) * 1000003 + i * (rank + 7919);
}

static void do_local(struct world *w, u32 rank, struct pstep *p)
{
	struct elem *v = vector_of(w, rank) + p->s.offset;
	u64 i;

	for (i = 0; i < p->s.count; i++) {
		if (p->s.op == DBLP_STEP_CLEAR)
			v[i] = (struct elem) { 0 };
		else if (v[i].contributions != p->s.contributions)
			w->wrong = "finished before it was complete";
		else
			v[i].finished++;
	}
}

static void do_send(struct world *w, u32 rank, struct pstep *p)
{
	size_t size = p->s.count * sizeof(struct elem);

	p->data = malloc(size);
	memcpy(p->data, vector_of(w, rank) + p->s.offset, size);
}

static void do_recv(struct world *w, u32 rank, struct pstep *p,
		    struct pstep *from)
{
	struct elem *v = vector_of(w, rank) + p->s.offset, *in = from->data;
	u64 i;

	for (i = 0; i < p->s.count; i++) {
		if (in[i].contributions != p->s.contributions)
			w->wrong = "wrong contributions";
		if (p->s.op == DBLP_STEP_ADD) {
			v[i].value += (u32)in[i].value;
			v[i].contributions += in[i].contributions;
		} else {
			v[i] = in[i];
		}
	}
	free(in);
	from->data = NULL;
}

/* Average: does @from differ from @to only in the digit of the turn? */
static bool contributes(const struct dblp_plan *plan, u32 to, u32 from)
{
	u32 stride = 1, l;

	if (plan->flags & DBLP_PLAN_SERVER && from == plan->root)
		return false;
	if (plan->algo != DBLP_AVERAGE || !plan->levels)
		return true;
	for (l = 0; l < plan->turn % plan->levels; l++)
		stride *= plan->radix[l];
	return from % stride == to % stride &&
	       from / (stride * plan->radix[l]) == to / (stride * plan->radix[l]);
}

static u32 contributors(const struct dblp_plan *plan, u32 to)
{
	u32 n = 0, r;

	for (r = 0; r < plan->nranks; r++)
		n += contributes(plan, to, r);
	return n;
}

static const char *check_sums(struct world *w)
{
	u32 to, from;
	u64 i;

	for (to = 0; to < w->plan.nranks; to++) {
		for (i = 0; i < w->plan.count; i++) {
			u32 sum = 0;

			for (from = 0; from < w->plan.nranks; from++)
				if (contributes(&w->plan, to, from))
					sum += contribution(from, i);
			if (vector_of(w, to)[i].value != (s32)sum)
				return "wrong sum";
			if (vector_of(w, to)[i].finished != 1)
				return "not finished once";
		}
	}
	return NULL;
}

/* The root has the sum; vectors of other ranks are undefined */
static const char *check_reduced(struct world *w)
{
	u64 i;
	u32 r;

	for (i = 0; i < w->plan.count; i++) {
		const struct elem *e = &vector_of(w, w->plan.root)[i];
		u32 sum = 0;

		for (r = 0; r < w->plan.nranks; r++)
			if (contributes(&w->plan, w->plan.root, r))
				sum += contribution(r, i);
		if (e->value != (s32)sum || e->finished != 1)
			return "the root lacks the sum";
	}
	return NULL;
}

/* All ranks have the vector of the root */
static const char *check_spread(struct world *w)
{
	u64 i;
	u32 r;

	for (r = 0; r < w->plan.nranks; r++)
		for (i = 0; i < w->plan.count; i++)
			if (vector_of(w, r)[i].value != contribution(w->plan.root, i))
				return "a rank lacks the vector of the root";
	return NULL;
}

/* @each: initial contributions of a vector */
static const char *carry_out(struct world *w, u32 each,
			     const char *(*check)(struct world *w))
{
	const char *wrong;
	u32 r;
	u64 i;

	w->arg = malloc(w->plan.nranks * w->plan.count * sizeof(struct elem) + 1);
	for (r = 0; r < w->plan.nranks; r++)
		for (i = 0; i < w->plan.count; i++)
			vector_of(w, r)[i] = (struct elem) {
				contribution(r, i), each, 0
			};
	w->local = do_local;
	w->send = do_send;
	w->recv = do_recv;
	wrong = world_run(w) ?: check(w);
	for (r = 0; r < w->plan.nranks; r++)
		for (i = 0; i < w->rank[r].n; i++)
			free(w->rank[r].step[i].data);
	free(w->arg);
	return wrong;
}

/* Does @lane connect the ranks? Each lane connects ranks that differ in one digit only */
static bool joined(const struct dblp_plan *plan, u32 a, u32 b, u32 lane)
{
	u32 stride = 1, l;

	if (!plan->levels || (plan->algo != DBLP_BCUBE &&
			      plan->algo != DBLP_AVERAGE))
		return !lane;
	for (l = 0; l < lane && l < plan->levels; l++)
		stride *= plan->radix[l];
	return l < plan->levels && a % stride == b % stride &&
	       a / (stride * plan->radix[l]) == b / (stride * plan->radix[l]);
}

static bool overlap(const struct dblp_step *a, const struct dblp_step *b)
{
	return a->offset < b->offset + b->count &&
	       b->offset < a->offset + a->count;
}

/* Two steps of one operation on the same element, in any order; returns an error text */
static const char *check_same(const struct dblp_step *a,
			      const struct dblp_step *b)
{
	if (a->op == DBLP_STEP_SEND && !a->reliable && !b->reliable)
		return "an element is reduced twice";
	if (a->op != DBLP_STEP_SEND && a->op != DBLP_STEP_ADD)
		return "an element is copied, cleared or finished twice";
	return NULL;
}

static const char *check_rank(const struct world *w, u32 rank)
{
	const struct prank *r = &w->rank[rank];
	const char *wrong = NULL;
	size_t i, k;

	for (i = 0; i < r->n; i++) {
		const struct dblp_step *a = &r->step[i].s;

		if (!a->count || a->offset + a->count > w->plan.count)
			return "range outside of the vector";
		if (!pstep_local(&r->step[i]) &&
		    !joined(&w->plan, rank, a->peer, a->lane))
			return "wrong lane";
		if (!a->round != (a->op == DBLP_STEP_CLEAR))
			return "wrong round";
		if (a->reliable && (a->op == DBLP_STEP_ADD || pstep_local(&r->step[i])))
			return "only copies are reliable";
		if (!a->reliable && a->op == DBLP_STEP_COPY)
			return "each copy is reliable";
		for (k = 0; k < i; k++) {
			const struct dblp_step *b = &r->step[k].s;

			if (b->round > a->round ||
			    (b->round == a->round && b->op > a->op))
				return "out of order";
			if (b->round == a->round && dblp_step_conflict(a, b))
				return "steps of a round conflict";
			if (a->op == b->op && overlap(a, b))
				wrong = check_same(a, b) ?: wrong;
		}
	}
	return wrong;
}

/* Published costs of an algorithm */
struct bound {
	u64	elements;	/* sent by a rank on a lane */
	u64	all;		/* sent by all ranks on all lanes, exactly */
	u32	incast;		/* senders to a rank in a round on a lane */
	u32	rounds;		/* with messages */
};

static u64 div_up(u64 a, u64 b)
{
	return (a + b - 1) / b;
}

static u32 tree_depth(u32 n, u32 fanin)
{
	u32 depth = 0;
	u64 at;

	for (at = n - 1; at; at = (at - 1) / fanin)
		depth++;
	return depth;
}

/* BML: (N - 1)/kN of the vector in each direction and level; each split rounds up */
static struct bound cube_bound(const struct dblp_plan *plan)
{
	u32 k = plan->levels, l, p, s;
	struct bound b = { .rounds = 2 * k };

	for (l = 0; l < k; l++)
		b.incast = max(b.incast, plan->radix[l] - 1);
	for (l = 0; l < k; l++) {
		u64 sent = 0;

		for (p = 0; p < k; p++) {
			u64 part = div_up(plan->count, k);

			for (s = 0; (p + s) % k != l; s++)
				part = div_up(part, plan->radix[(p + s) % k]);
			sent += 2 * div_up(part, plan->radix[l]) *
				(plan->radix[l] - 1);
		}
		b.elements = max(b.elements, sent);
	}
	b.all = 2 * (plan->nranks - 1) * plan->count;
	return b;
}

static struct bound bound_of(const struct dblp_plan *plan)
{
	u64 n = plan->nranks, count = plan->count, all = 2 * (n - 1) * count;
	u32 fanin = plan->fanin ?: 2, m;

	switch (plan->algo) {
	case DBLP_PS:
		return (struct bound) { (n - 1) * count, all, n - 1, 2 };
	case DBLP_RING:
		return (struct bound) {
			2 * (n - 1) * div_up(count, n), all, 1, 2 * (n - 1)
		};
	case DBLP_TREE:
		return (struct bound) {
			(1 + fanin) * count, all, fanin, 2 * tree_depth(n, fanin)
		};
	case DBLP_BCUBE:
		if (plan->levels)
			return cube_bound(plan);
		break;
	case DBLP_AVERAGE:
		m = contributors(plan, 0);
		return (struct bound) {
			2 * (m - 1) * div_up(count, m), 2 * (m - 1) * count * (n / m),
			m - 1, 2
		};
	}
	return (struct bound) { 2 * (n - 1) * div_up(count, n), all, n - 1, 2 };
}

#define LANES	DBLP_LEVELS_MAX

struct cost {
	u64	elements;
	u64	all;
	u32	incast;
	u32	rounds;
	u64	lost;
};

/* Count the data rank @r sends, its senders, and the bytes it may lose at @budget ppm */
static void count_rank(const struct prank *r, u32 budget, struct cost *c)
{
	u64 sent[LANES] = { 0 };
	u32 senders[LANES] = { 0 };
	u32 round = 0;
	size_t i;

	for (i = 0; i < r->n; i++) {
		const struct dblp_step *s = &r->step[i].s;

		if (pstep_local(&r->step[i]))
			continue;
		if (s->round != round) {
			round = s->round;
			memset(senders, 0, sizeof(senders));
		}
		if (s->op == DBLP_STEP_SEND) {
			sent[s->lane] += s->count;
			c->all += s->count;
			c->elements = max(c->elements, sent[s->lane]);
			continue;
		}
		c->incast = max(c->incast, ++senders[s->lane]);
		c->lost += (u64)dblp_step_budget(s, budget) * s->count *
			   s->contributions;
	}
	/* The round between the halves has no messages */
	c->rounds = max(c->rounds, round ? round - 1 : 0);
}

#define BUDGET	408000

static const char *check_cost(const struct world *w)
{
	struct bound b = bound_of(&w->plan);
	struct cost c = { 0 };
	u32 r;

	for (r = 0; r < w->plan.nranks; r++)
		count_rank(&w->rank[r], BUDGET, &c);
	if (c.elements > b.elements)
		return "a rank sends too much";
	if (c.all != b.all)
		return "all send too much or too little";
	if (c.incast > b.incast)
		return "too many send to one";
	if (c.rounds > b.rounds)
		return "too many rounds";
	/* Half of the received data is reduced */
	if (c.lost > (u64)BUDGET * c.all / 2)
		return "more than the budget may be lost";
	return NULL;
}

/* Check all properties of the plans; returns an error text, or NULL */
static const char *check_steps(struct world *w)
{
	const char *wrong = NULL;
	u32 r;

	for (r = 0; r < w->plan.nranks && !wrong; r++)
		wrong = check_rank(w, r);
	return wrong ?: world_match(w) ?: check_cost(w) ?: carry_out(w, 1, check_sums);
}

static const char *check_plan(const struct dblp_plan *plan, u64 seed)
{
	struct world w = {
		.plan = *plan,
		.buffered = seed & 1,
		.rng = { seed },
	};
	const char *wrong;

	if (!world_init(&w))
		return "refused";
	wrong = check_steps(&w);
	world_free(&w);
	return wrong;
}

static void draw_radix(struct prng *rng, struct dblp_plan *plan)
{
	u32 at, radix;

	plan->levels = prng_below(rng, 5);
	if (!plan->levels)
		return;
	dblp_plan_radix(plan->nranks, plan->levels, plan->radix);
	at = prng_below(rng, plan->levels);
	radix = plan->radix[at];
	plan->radix[at] = plan->radix[0];
	plan->radix[0] = radix;
}

/* A random plan of at most @max ranks; short vectors are as likely as long ones */
static struct dblp_plan draw_plan(struct prng *rng, u32 max)
{
	struct dblp_plan plan = {
		.algo = prng_below(rng, DBLP_ALGOS),
		.nranks = 1 + prng_below(rng, max),
	};

	plan.root = prng_below(rng, plan.nranks);
	plan.fanin = prng_below(rng, 5);
	plan.turn = prng_below(rng, 9);
	plan.count = prng_below(rng, 2) ? prng_below(rng, 3 * plan.nranks) :
					  prng_below(rng, 300);
	draw_radix(rng, &plan);
	if (plan.nranks > 1 && plan.algo != DBLP_TRANSPOSE &&
	    (plan.algo == DBLP_PS || plan.algo == DBLP_TREE) &&
	    prng_below(rng, 2))
		plan.flags |= DBLP_PLAN_SERVER;
	return plan;
}

static void say_plan(const struct dblp_plan *p, const char *wrong)
{
	fprintf(stderr, "# algo %u nranks %u count %llu root %u fanin %u turn %u levels %u (%u %u %u %u) flags %x: %s\n",
	       p->algo, p->nranks, (unsigned long long)p->count, p->root,
	       p->fanin, p->turn, p->levels, p->radix[0], p->radix[1],
	       p->radix[2], p->radix[3], p->flags, wrong);
}

TEST(any_plan)
{
	struct prng rng = { 1 };
	u32 i;

	for (i = 0; i < 1500; i++) {
		struct dblp_plan plan = draw_plan(&rng, i % 50 ? 18 : 40);
		const char *wrong = check_plan(&plan, prng_u64(&rng));

		if (wrong)
			say_plan(&plan, wrong);
		ASSERT_EQ(wrong, NULL);
	}
}

/* Faults of a step, or of both ends of a message */
enum mutation {
	DROP,
	OP,
	LATER,
	EARLIER,
	PEER,
	LANE,
	CONTRIBUTIONS,
	RELIABLE,
	OFFSET,
	SHORTER,
	LONGER,
	MUTATIONS,
};

static void mutate(struct prank *r, size_t at, enum mutation how)
{
	struct dblp_step *s = &r->step[at].s;

	switch (how) {
	case DROP:
		memmove(&r->step[at], &r->step[at + 1],
			(r->n - at - 1) * sizeof(*r->step));
		r->n--;
		break;
	case OP:
		s->op = s->op == DBLP_STEP_ADD ? DBLP_STEP_COPY :
			s->op == DBLP_STEP_COPY ? DBLP_STEP_ADD :
			s->op == DBLP_STEP_CLEAR ? DBLP_STEP_FINISH :
			s->op == DBLP_STEP_FINISH ? DBLP_STEP_CLEAR :
			DBLP_STEP_ADD;
		break;
	case LATER:
		s->round++;
		break;
	case EARLIER:
		s->round--;
		break;
	case PEER:
		s->peer++;
		break;
	case LANE:
		s->lane++;
		break;
	case CONTRIBUTIONS:
		s->contributions++;
		break;
	case RELIABLE:
		s->reliable ^= 1;
		break;
	case OFFSET:
		s->offset++;
		break;
	case SHORTER:
		s->count--;
		break;
	case LONGER:
		s->count++;
		break;
	case MUTATIONS:
		break;
	}
}

/*
 * Is the fault in an unused field of a local step, or without effect? A rank's own
 * contribution can be finished at any time, and a level with one rank has no messages.
 */
static bool harmless(const struct dblp_plan *plan, const struct pstep *p,
		     enum mutation how)
{
	if (p->s.op == DBLP_STEP_CLEAR)
		return how == LANE || how == CONTRIBUTIONS;
	if (p->s.op != DBLP_STEP_FINISH)
		return false;
	return how == LANE ||
	       ((how == LATER || how == EARLIER) &&
		(p->s.contributions == 1 || plan->levels > 1));
}

/* Fault at both ends of a message; an earlier or later message may be valid, too */
static bool mutate_both(struct world *w, u32 rank, size_t at, enum mutation how)
{
	struct pstep *p = &w->rank[rank].step[at];

	if (!pstep_receives(p) || how == LATER || how == EARLIER ||
	    how == PEER || how == OP)
		return false;
	mutate(&w->rank[p->s.peer], p->match, how);
	mutate(&w->rank[rank], at, how);
	return true;
}

static const char *check_mutant(struct prng *rng, enum mutation how, bool both,
				struct dblp_plan *plan)
{
	struct world w = { .buffered = prng_below(rng, 2), .rng = *rng };
	const char *wrong = "harmless";
	struct prank *r;
	size_t at;
	u32 rank;

	*plan = draw_plan(rng, 12);
	w.plan = *plan;
	world_init(&w);
	world_match(&w);
	for (rank = 0; rank < plan->nranks; rank++)
		for (at = 0; at < w.rank[rank].n; at++)
			w.rank[rank].step[at].matched = false;
	rank = prng_below(rng, plan->nranks);
	r = &w.rank[rank];
	if (r->n) {
		at = prng_below(rng, r->n);
		if (both ? mutate_both(&w, rank, at, how) :
			   !harmless(plan, &r->step[at], how)) {
			if (!both)
				mutate(r, at, how);
			wrong = check_steps(&w);
		}
	}
	world_free(&w);
	return wrong;
}

/* The checks detect each fault of a step */
TEST(mutants_are_caught)
{
	struct prng rng = { 2 };
	struct dblp_plan plan;
	const char *wrong;
	u32 i;

	for (i = 0; i < 4000; i++) {
		enum mutation how = i % MUTATIONS;
		bool both = i / MUTATIONS & 1;

		wrong = check_mutant(&rng, how, both, &plan);
		if (!wrong) {
			fprintf(stderr, "# mutation %u of %u\n", how, 1 + both);
			say_plan(&plan, "not caught");
		}
		EXPECT_NE(wrong, NULL);
	}
}

/* Elements that a rank sends on each lane, in 1/1000 of the vector, incast, and rounds */
static const struct {
	struct dblp_plan	plan;
	u32			share;
	u32			incast;
	u32			rounds;
} published[] = {
	/* 2 (N - 1) / N is the minimum */
	{ { .algo = DBLP_TRANSPOSE, .nranks = 9 }, 1777, 8, 2 },
	{ { .algo = DBLP_RING, .nranks = 9 }, 1777, 1, 16 },
	/* BML: 2 (N - 1) / kN of the vector on each of k NICs */
	{ { .algo = DBLP_BCUBE, .nranks = 9, .levels = 2, .radix = { 3, 3 } },
	  888, 2, 4 },
	{ { .algo = DBLP_BCUBE, .nranks = 64, .levels = 3, .radix = { 4, 4, 4 } },
	  656, 3, 6 },
	/* The server sends the vector to all ranks */
	{ { .algo = DBLP_PS, .nranks = 9 }, 8000, 8, 2 },
	{ { .algo = DBLP_TREE, .nranks = 15 }, 3000, 2, 6 },
	{ { .algo = DBLP_TREE, .nranks = 13, .fanin = 3 }, 4000, 3, 4 },
	/* DS-Sync: like transpose, with three ranks */
	{ { .algo = DBLP_AVERAGE, .nranks = 9, .levels = 2, .radix = { 3, 3 } },
	  1333, 2, 2 },
};

TEST(published_costs)
{
	u32 i, r;

	for (i = 0; i < ARRAY_SIZE(published); i++) {
		struct world w = { .plan = published[i].plan };
		struct cost c = { 0 };

		w.plan.count = 576000;
		ASSERT_TRUE(world_init(&w));
		for (r = 0; r < w.plan.nranks; r++)
			count_rank(&w.rank[r], 0, &c);
		world_free(&w);
		EXPECT_EQ(c.elements * 1000 / w.plan.count, published[i].share);
		EXPECT_EQ(c.incast, published[i].incast);
		EXPECT_EQ(c.rounds, published[i].rounds);
	}
}

/* DS-Sync: after a turn for each digit each rank has the sum of all */
TEST(turns_reach_all)
{
	struct prng rng = { 3 };
	u32 i, r, k;

	for (i = 0; i < 60; i++) {
		struct world w = { .rng = { i } };
		s32 value[40], sum = 0;

		w.plan = draw_plan(&rng, 40);
		w.plan.algo = DBLP_AVERAGE;
		w.plan.flags = 0;
		w.plan.count = 1;
		for (r = 0; r < w.plan.nranks; r++)
			sum += value[r] = prng_below(&rng, 1000);
		for (w.plan.turn = 0; w.plan.turn < max(w.plan.levels, 1u);
		     w.plan.turn++) {
			s32 next[40] = { 0 };

			for (r = 0; r < w.plan.nranks; r++)
				for (k = 0; k < w.plan.nranks; k++)
					next[r] += contributes(&w.plan, r, k) *
						   value[k];
			memcpy(value, next, sizeof(value));
			ASSERT_EQ(check_plan(&w.plan, i), NULL);
		}
		for (r = 0; r < w.plan.nranks; r++)
			ASSERT_EQ(value[r], sum);
	}
}

/* Both halves add up to the plan; with less room, the first steps are written */
TEST(halves_and_room)
{
	struct dblp_step all[600], half[600];
	struct prng rng = { 4 };
	ssize_t n, first, second;
	u32 i;

	for (i = 0; i < 300; i++) {
		struct dblp_plan plan = draw_plan(&rng, 40);

		plan.rank = prng_below(&rng, plan.nranks);
		n = dblp_plan_steps(&plan, all, ARRAY_SIZE(all));
		ASSERT_TRUE(n >= 0 && n <= ARRAY_SIZE(all));
		plan.flags ^= DBLP_PLAN_REDUCE;
		first = dblp_plan_steps(&plan, half, ARRAY_SIZE(half));
		plan.flags ^= DBLP_PLAN_REDUCE | DBLP_PLAN_SPREAD;
		second = dblp_plan_steps(&plan, half + first,
					 ARRAY_SIZE(half) - first);
		ASSERT_EQ(first + second, n);
		ASSERT_EQ(memcmp(all, half, n * sizeof(*all)), 0);
		plan.flags ^= DBLP_PLAN_REDUCE;
		memset(half, 0xee, sizeof(half));
		ASSERT_EQ(dblp_plan_steps(&plan, half, n / 2), n);
		ASSERT_EQ(memcmp(all, half, n / 2 * sizeof(*all)), 0);
		if (n)
			ASSERT_EQ(half[n / 2].op, 0xeeeeeeee);
	}
}

/* Reduce and broadcast are the halves of plans with a root */
TEST(roots_get_the_sum_and_give_their_vector)
{
	struct prng rng = { 5 };
	const char *wrong;
	u32 i;

	for (i = 0; i < 600; i++) {
		const bool reduce = i & 1;
		struct world w = {
			.plan = draw_plan(&rng, 40), .rng = { i }, .buffered = i & 2,
		};

		w.plan.algo = i % 3 ? DBLP_TREE : DBLP_PS;
		w.plan.flags = reduce ? DBLP_PLAN_REDUCE : DBLP_PLAN_SPREAD;
		ASSERT_TRUE(world_init(&w));
		wrong = world_match(&w) ?:
			carry_out(&w, reduce ? 1 : w.plan.nranks,
				  reduce ? check_reduced : check_spread);
		world_free(&w);
		if (wrong)
			say_plan(&w.plan, wrong);
		ASSERT_EQ(wrong, NULL);
	}
}

/* Rank i owns part i, as in other libraries' reduce-scatter */
TEST(owners)
{
	static const u32 algos[] = { DBLP_TRANSPOSE, DBLP_RING };
	struct dblp_step step[64];
	ssize_t n;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(algos); i++) {
		struct dblp_plan plan = {
			.algo = algos[i], .nranks = 7, .count = 23,
			.flags = DBLP_PLAN_REDUCE,
		};
		u64 at = 0;

		for (plan.rank = 0; plan.rank < 7; plan.rank++) {
			n = dblp_plan_steps(&plan, step, ARRAY_SIZE(step));
			ASSERT_EQ(step[n - 1].op, DBLP_STEP_FINISH);
			EXPECT_EQ(step[n - 1].offset, at);
			EXPECT_EQ(step[n - 1].count, 3 + (plan.rank < 2));
			at += step[n - 1].count;
		}
		EXPECT_EQ(at, plan.count);
	}
}

/* Maximum numbers of ranks and elements do not overflow */
TEST(limits)
{
	static struct dblp_step step[4 * DBLP_RANKS_MAX];
	ssize_t n, i;
	u32 algo;

	for (algo = 0; algo < DBLP_ALGOS; algo++) {
		struct dblp_plan plan = {
			.algo = algo, .nranks = DBLP_RANKS_MAX,
			.rank = DBLP_RANKS_MAX - 1, .count = DBLP_COUNT_MAX,
			.levels = 16, .fanin = DBLP_RANKS_MAX,
			.flags = DBLP_PLAN_REDUCE,
		};
		u64 sent = 0, kept;

		ASSERT_EQ(dblp_plan_radix(plan.nranks, 16, plan.radix), 0);
		EXPECT_EQ(plan.radix[15], 2);
		n = dblp_plan_steps(&plan, step, ARRAY_SIZE(step));
		ASSERT_TRUE(n > 0 && n < ARRAY_SIZE(step));
		for (i = 0; i < n; i++) {
			ASSERT_TRUE(step[i].count <= plan.count &&
				    step[i].offset <= plan.count - step[i].count);
			sent += step[i].op == DBLP_STEP_SEND ? step[i].count : 0;
		}
		/* A rank sends all except the part that it owns; roots send everything */
		kept = algo == DBLP_AVERAGE ? plan.count / 2 :
		       algo == DBLP_PS || algo == DBLP_TREE ? 0 :
		       plan.count / plan.nranks;
		EXPECT_EQ(sent, plan.count - kept);
	}
}

static const struct dblp_plan refused[] = {
	{ .algo = DBLP_ALGOS, .nranks = 2 },
	{ .nranks = 0 },
	{ .nranks = DBLP_RANKS_MAX + 1 },
	{ .nranks = 2, .rank = 2 },
	{ .nranks = 2, .root = 2 },
	{ .nranks = 2, .fanin = DBLP_RANKS_MAX + 1 },
	{ .nranks = 2, .flags = 1 << 3 },
	{ .nranks = 2, .count = DBLP_COUNT_MAX + 1 },
	{ .nranks = 1, .flags = DBLP_PLAN_SERVER },
	{ .nranks = 2, .flags = DBLP_PLAN_SERVER, .algo = DBLP_RING },
	{ .nranks = 6, .algo = DBLP_BCUBE, .levels = 2, .radix = { 2, 2 } },
	{ .nranks = 6, .algo = DBLP_BCUBE, .levels = 2, .radix = { 6, 0 } },
	{ .nranks = 6, .algo = DBLP_BCUBE, .levels = 3, .radix = { 0, 2, 3 } },
	{ .nranks = 6, .algo = DBLP_BCUBE, .levels = DBLP_LEVELS_MAX + 1 },
	{ .nranks = 1, .algo = DBLP_BCUBE, .levels = 4,
	  .radix = { 65536, 65536, 65536, 65536 } },
	/* The product of the radices is 1 modulo 2^64 */
	{ .nranks = 1, .algo = DBLP_BCUBE, .levels = 6,
	  .radix = { 641, 6700417, UINT32_MAX, 641, 6700417, UINT32_MAX } },
};

TEST(invalid_plans_are_refused)
{
	struct dblp_step step;
	u32 radix, i;

	for (i = 0; i < ARRAY_SIZE(refused); i++)
		EXPECT_EQ(dblp_plan_steps(&refused[i], &step, 1), -EINVAL);
	EXPECT_EQ(dblp_plan_radix(0, 1, &radix), -EINVAL);
	EXPECT_EQ(dblp_plan_radix(DBLP_RANKS_MAX + 1, 1, &radix), -EINVAL);
	EXPECT_EQ(dblp_plan_radix(1, 0, &radix), -EINVAL);
	EXPECT_EQ(dblp_plan_radix(1, DBLP_LEVELS_MAX + 1, &radix), -EINVAL);
}

TEST(radix)
{
	u32 radix[DBLP_LEVELS_MAX], n, k, l, power;

	for (n = 1; n <= 300; n++) {
		for (k = 1; k <= 5; k++) {
			ASSERT_EQ(dblp_plan_radix(n, k, radix), 0);
			for (l = 0, power = 1; l < k; l++)
				power *= radix[l];
			ASSERT_EQ(power, n);
			for (l = 1; l < k; l++)
				ASSERT_TRUE(radix[l] <= radix[l - 1]);
		}
	}
	for (n = 2; n <= 256; n++) {
		for (k = 1, power = n; power <= DBLP_RANKS_MAX; k++, power *= n) {
			ASSERT_EQ(dblp_plan_radix(power, k, radix), 0);
			ASSERT_EQ(radix[0], n);
			ASSERT_EQ(radix[k - 1], n);
		}
	}
}

TEST_HARNESS_MAIN
