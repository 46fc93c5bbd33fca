// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any bytes as lanes, parts and a plan: accepted ones have steps within the vector
 * only, and each element has one owner. The same bytes as a vector: each element is
 * large or small.
 */
#include <choose.h>
#include <errno.h>
#include <lanes.h>
#include <reduce.h>
#include <string.h>

#include "exact.h"
#include "fuzz.h"

#define LANES	4
#define PARTS	16
#define MAX	4096

/* Next byte of the input, 0 after its end */
static const u8 *at;
static size_t left;

static u32 byte(void)
{
	if (!left)
		return 0;
	left--;
	return *at++;
}

static u32 word(void)
{
	u32 high = byte();

	return high << 8 | byte();
}

static void take_lanes(struct dblp_lane *lane)
{
	u32 i;

	for (i = 0; i < LANES; i++)
		lane[i] = (struct dblp_lane) {
			.flags = byte(), .tos = byte(), .large = word() * 16,
			.rest = byte(),
		};
}

/* Most parts adjoin each other */
static u64 take_parts(struct dblp_lane_part *part, u32 n)
{
	u64 end = 0;
	u32 i;

	for (i = 0; i < n; i++) {
		part[i].first = byte() < 250 ? end : byte();
		end += byte();
		part[i] = (struct dblp_lane_part) {
			.first = part[i].first, .end = end, .lane = byte() % 5,
		};
	}
	return end;
}

/* Mark the elements that a rank owns */
static void check_steps(const struct dblp_plan *plan, const struct dblp_layout *layout,
			u8 *owned)
{
	ssize_t n = dblp_layout_steps(plan, layout, NULL, NULL, 0), i;
	struct dblp_step *step;
	struct dblp_way *way;

	CHECK(n >= 0);
	step = malloc(n * sizeof(*step) + 1);
	way = malloc(n * sizeof(*way) + 1);
	CHECK(dblp_layout_steps(plan, layout, step, way, n) == n);
	for (i = 0; i < n; i++) {
		u64 end = step[i].offset + step[i].count, e;

		CHECK(step[i].count && end <= plan->count);
		CHECK(way[i].lane < layout->lanes);
		for (e = step[i].offset; step[i].op == DBLP_STEP_FINISH && e < end; e++)
			owned[e]++;
	}
	free(step);
	free(way);
}

static void check_plan(const struct dblp_layout *layout, u64 count)
{
	struct dblp_plan plan = {
		.algo = byte() % DBLP_AVERAGE, .nranks = 1 + byte() % 9,
		.count = count,
	};
	u8 owned[PARTS * 256] = { 0 };
	u64 e;

	for (plan.rank = 0; plan.rank < plan.nranks; plan.rank++)
		check_steps(&plan, layout, owned);
	for (e = 0; e < count; e++)
		CHECK(owned[e] == 1);
}

static void check_choice(const u8 *data, size_t len)
{
	const u32 dtype = byte() % DBLP_DTYPES, esize = dblp_dtype_size(dtype);
	const u32 share = word() * 15;
	const u64 count = len / esize;
	u8 *v = exact(data, count * esize), *large, *rest;
	u64 i;

	large = exact(data, count * esize);
	rest = exact(data, count * esize);
	dblp_choose(dtype, v, count, share, true, large);
	dblp_choose(dtype, v, count, share, false, rest);
	for (i = 0; i < count * esize; i++)
		CHECK((large[i] | rest[i]) == v[i] && (!large[i] || !rest[i]));
	free_exact(v, count * esize);
	free_exact(large, count * esize);
	free_exact(rest, count * esize);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct dblp_lane_part part[PARTS];
	struct dblp_lane lane[LANES];
	struct dblp_layout layout = { lane, 0, part, 0, 0 };
	u64 count;
	int err;

	at = data;
	left = len;
	layout.lanes = 1 + byte() % LANES;
	layout.parts = 1 + byte() % PARTS;
	take_lanes(lane);
	count = take_parts(part, layout.parts);
	err = dblp_lanes_check(lane, layout.lanes);
	CHECK(!err || err == -EINVAL);
	if (err)
		memset(lane, 0, sizeof(lane));
	err = dblp_parts_check(&layout, count);
	CHECK(!err || err == -EINVAL || err == -ENOENT);
	if (!err)
		check_plan(&layout, count);
	check_choice(data, len < MAX ? len : MAX);
	return 0;
}

size_t fuzz_seed(struct prng *r, u8 *p, size_t max)
{
	size_t len = 2 + LANES * 5 + PARTS * 3 + 8 + prng_below(r, 200), i;

	if (len > max)
		len = max;
	for (i = 0; i < len; i++)
		p[i] = prng_any(r);
	/* Lanes without flags, and adjoining parts */
	for (i = 2; i < 2 + LANES * 5 && i < len; i += 5)
		p[i] = p[i + 1] = p[i + 4] = 0;
	return len;
}
