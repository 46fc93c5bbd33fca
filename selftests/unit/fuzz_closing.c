// SPDX-License-Identifier: GPL-2.0-only
/* Any state of a message: it is closed only when allowed, and always in time */
#include <linux/dblp.h>

#include "closing.h"
#include "fuzz.h"
#include "values.h"

struct reader {
	const u8	*p;
	const u8	*end;
};

static u64 get(struct reader *r, u32 bytes)
{
	u64 v = 0;

	for (; bytes; bytes--)
		v = v << 8 | (r->p < r->end ? *r->p++ : 0);
	return v;
}

static void check_verdict(const struct dblp_close_state *s)
{
	u64 most = (u64)s->budget * (s->length - s->critical) / DBLP_PPM;
	bool may = !s->critical_missing && !s->meta_missing;
	bool due = s->deadline_at && s->now >= s->deadline_at;

	CHECK(dblp_budget_bytes(s->budget, s->length - s->critical) == most);
	switch (dblp_close_decide(s)) {
	case DBLP_CLOSE_COMPLETE:
		CHECK(!s->missing && !s->meta_missing);
		break;
	case DBLP_CLOSE_BUDGET:
		CHECK(may && s->missing && s->missing <= most);
		CHECK(s->policy != DBLP_POLICY_FULL);
		break;
	case DBLP_CLOSE_DEADLINE:
		CHECK(may && s->missing && due);
		break;
	case DBLP_WAIT:
		CHECK(s->missing || s->meta_missing);
		CHECK(!may || !due);
		CHECK(!may || s->policy != DBLP_POLICY_EAGER ||
		      s->missing > most);
		break;
	}
}

/* If exactly a first pass of segments arrives, the others may be missing */
static void check_pass(const struct dblp_close_state *s, u32 seg_size, u32 loss)
{
	u32 n = (s->length - 1) / seg_size + 1, pass, held;
	u64 most = (u64)s->budget * (s->length - s->critical) / DBLP_PPM;

	pass = dblp_first_pass(n, seg_size, s->length, s->critical, s->budget,
			       s->policy, loss);
	CHECK(pass >= 1 && pass <= n);
	held = n - pass;
	CHECK((u64)held * seg_size <= most || held == 0);
	CHECK(!held || s->policy == DBLP_POLICY_EAGER);
	CHECK(!held || dblp_may_miss(seg_size, s->length, s->critical,
				     s->budget));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct reader r = { data, data + len };
	struct dblp_close_state s = {};
	u32 seg_size;

	s.length = 1 + get(&r, 4) % DBLP_MSG_MAX;
	s.missing = get(&r, 4) % ((u64)s.length + 1);
	s.critical = get(&r, 4) % ((u64)s.length + 1);
	s.critical_missing = s.critical && s.missing && get(&r, 1) & 1;
	s.meta_missing = get(&r, 1) & 1;
	s.budget = get(&r, 3) % (DBLP_PPM + 1);
	s.policy = get(&r, 1) % __DBLP_POLICY_MAX;
	s.now = get(&r, 2);
	s.early_at = get(&r, 2);
	s.deadline_at = get(&r, 2);
	/* If only non-critical bytes are missing, the critical ones are not */
	if (!s.critical_missing && s.missing > s.length - s.critical)
		s.missing = s.length - s.critical;
	check_verdict(&s);
	seg_size = 256 + get(&r, 2) % 65273;
	check_pass(&s, seg_size, get(&r, 3) % (DBLP_PPM + 1));
	return 0;
}

size_t fuzz_seed(struct prng *r, u8 *p, size_t max)
{
	return fuzz_any(r, p, max);
}
