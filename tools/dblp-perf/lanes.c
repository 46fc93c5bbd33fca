// SPDX-License-Identifier: GPL-2.0-only
/* Mode collective: lanes, and the elements of each. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arg.h"
#include "collective.h"
#include "conn.h"

static struct dblp_lane lane[DBLP_LANES_MAX];
/* Share of the vector of each lane, ppm; the last lane with a share has the rest */
static uint32_t shares[DBLP_LANES_MAX];
static struct dblp_lane_part part[DBLP_LANES_MAX];

enum { LANE_SHARE, LANE_TOS, LANE_PRIORITY, LANE_BUDGET, LANE_POLICY, LANE_NOT_ECT, LANE_AFTER,
	LANE_LARGE, LANE_REST };

static const char *const words[] = {
	[LANE_SHARE]	= "share",
	[LANE_TOS]	= "tos",
	[LANE_PRIORITY]	= "priority",
	[LANE_BUDGET]	= "budget",
	[LANE_POLICY]	= "policy",
	[LANE_NOT_ECT]	= "not-ect",
	[LANE_AFTER]	= "after",
	[LANE_LARGE]	= "large",
	[LANE_REST]	= "rest",
	NULL
};

static void set_word(struct dblp_lane *l, uint32_t *part_of, char *word)
{
	char *name = strsep(&word, "="), *value = word;
	int which = choice("lane", name, words);

	if (!value != (which == LANE_NOT_ECT || which == LANE_AFTER))
		wrong("--lane: %s %s", name, value ? "has no value" : "has a value");
	switch (which) {
	case LANE_SHARE: *part_of = share("lane share", value); break;
	case LANE_TOS: l->tos = number("lane tos", value, 0, 252); break;
	case LANE_PRIORITY: l->priority = number("lane priority", value, 0, UINT32_MAX); break;
	case LANE_LARGE: l->large = share("lane large", value); break;
	case LANE_REST: l->rest = number("lane rest", value, 0, DBLP_LANES_MAX - 1); break;
	case LANE_NOT_ECT: l->flags |= DBLP_LANE_NOT_ECT; break;
	case LANE_AFTER: l->flags |= DBLP_LANE_AFTER; break;
	case LANE_BUDGET:
		l->budget = share("lane budget", value);
		l->flags |= DBLP_LANE_BUDGET;
		break;
	case LANE_POLICY:
		l->policy = choice("lane policy", value, dblp_policy_names);
		l->flags |= DBLP_LANE_POLICY;
		break;
	}
}

void lanes_option(char *text)
{
	uint32_t i = coll.attr.lanes;
	char *word;

	if (i == DBLP_LANES_MAX)
		wrong("at most %u lanes are supported", DBLP_LANES_MAX);
	while ((word = strsep(&text, ",")))
		set_word(&lane[i], &shares[i], word);
	coll.attr.lane = lane;
	coll.attr.lanes = i + 1;
}

void lanes_check(void)
{
	uint32_t i, all = 0, lossy = 0;

	for (i = 0; i < coll.attr.lanes; i++) {
		all += shares[i];
		lossy |= lane[i].flags & ~(uint32_t)DBLP_LANE_AFTER;
		if (lane[i].tos % 4)
			wrong("--lane: tos takes a multiple of 4, not %u", lane[i].tos);
		if (lane[i].large && (lane[i].rest >= coll.attr.lanes || lane[lane[i].rest].large))
			wrong("--lane: the rest of lane %u has no lane of its own, which takes all of it", i);
		if (lane[i].large && coll.op.rule == DBLP_RESCALE)
			wrong("--rule rescale needs all elements of a lane, without large");
	}
	if (all > DBLP_PPM)
		wrong("--lane: shares are more than all");
	if (lossy && !cfg.main.proto->lossy)
		wrong("--lane: %s has no budget, policy and not-ect", cfg.main.proto->name);
}

static void put_part(uint64_t end, uint32_t by)
{
	uint64_t first = coll.op.parts ? part[coll.op.parts - 1].end : 0;

	if (end == first)
		return;
	part[coll.op.parts++] = (struct dblp_lane_part) {
		.first = first, .end = end, .lane = by,
	};
	coll.op.part = part;
}

void lanes_divide(uint64_t count)
{
	uint64_t end = 0;
	uint32_t i, last = 0;

	coll.op.parts = 0;
	coll.op.part = NULL;
	for (i = 0; i < coll.attr.lanes; i++)
		last = shares[i] ? i : last;
	for (i = 0; i < last; i++) {
		end += count * shares[i] / DBLP_PPM;
		put_part(end, i);
	}
	if (last)
		put_part(count, last);
}

static void report_lane(uint32_t i, const struct lane_record *record, const uint64_t *ns)
{
	if (cfg.json)
		printf("%s{\"asked_bytes\":%" PRIu64 ",\"missing_bytes\":%" PRIu64,
		       i ? "," : "", record->asked, record->missing);
	else
		printf("  lane %u: %" PRIu64 " bytes missing of %" PRIu64 "\n", i,
		       record->missing, record->asked);
	report_samples(ns);
	if (cfg.json)
		printf("}");
}

void lanes_report(const struct lane_record *record, const uint64_t *ns)
{
	uint32_t i;

	if (!coll.attr.lanes)
		return;
	if (cfg.json)
		printf(",\"lanes\":[");
	for (i = 0; i < coll.attr.lanes; i++)
		report_lane(i, &record[i], ns + (size_t)i * results->n);
	if (cfg.json)
		printf("]");
}
