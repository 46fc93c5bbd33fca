/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For tests of closed messages: numbers of messages by reason.
 */
#ifndef DBLP_TEST_COUNTED_H
#define DBLP_TEST_COUNTED_H

#include "testlib.h"
#include "values.h"

#include <stdio.h>

/* Number of messages closed for each reason, in each counter */
struct counted {
	uint64_t all;
	uint64_t early;
	uint64_t reason[__DBLP_REASON_MAX];
};

/* One message closed as complete, two for the budget, three for the deadline */
static const struct counted one_two_three = {
	.all = 6, .early = 5, .reason = { 1, 2, 3 },
};

static inline struct counted counted_here(const char *side)
{
	static const char *const names[] = {
		"", "Early", "Complete", "Budget", "Deadline",
	};
	uint64_t n[5];
	char name[40];
	int i;

	for (i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "Msg%s%s", side, names[i]);
		n[i] = mib(name);
	}
	return (struct counted) { n[0], n[1], { n[2], n[3], n[4] } };
}

#endif /* DBLP_TEST_COUNTED_H */
