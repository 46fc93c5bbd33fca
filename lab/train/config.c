// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <string.h>

#include "config.h"

enum kind {
	U32,
	REAL,
	DIGEST,
};

static const struct {
	const char	*name;
	size_t		offset;
	enum kind	kind;
	bool		saved;
} fields[] = {
#define FIELD(name, field, kind, saved) \
	{ name, offsetof(struct config, field), kind, saved }
	FIELD("another text", text, DIGEST, true),
	FIELD("--nranks", nranks, U32, true),
	FIELD("--context", context, U32, true),
	FIELD("--hidden", hidden, U32, true),
	FIELD("--batch", batch, U32, true),
	FIELD("--seed", seed, U32, true),
	FIELD("--rate", rate, REAL, true),
	FIELD("--plan number", plan, U32, true),
	FIELD("--fanin", fanin, U32, true),
	FIELD("--levels", levels, U32, true),
	FIELD("--rule number", rule, U32, true),
	FIELD("--epoch", epoch, U32, true),
	FIELD("--eta", eta, REAL, true),
	FIELD("--rounds", rounds, U32, false),
	FIELD("--checkpoint-rounds", every, U32, false),
	FIELD("--resume", resume, U32, false),
	FIELD("--job", job, U32, false),
	FIELD("--phases", phases, U32, false),
	FIELD("--phases of low ppm", low, U32, false),
	FIELD("--phases of high ppm", high, U32, false),
	FIELD("--budget of ppm", budget, U32, false),
	FIELD("--budget auto", tune, U32, true),
	FIELD("--param-budget", owners, U32, false),
	FIELD("--param-budget of ppm", param_budget, U32, false),
	FIELD("--policy number", policy, U32, false),
	FIELD("--budget, --policy or --carry flags", flags, U32, false),
	FIELD("--wait of ms", wait_ms, U32, false),
#undef FIELD
};

static void describe(char *what, size_t i, const char *a, const char *b)
{
	uint32_t x, y;
	double p, q;

	switch (fields[i].kind) {
	case U32:
		memcpy(&x, a, sizeof(x));
		memcpy(&y, b, sizeof(y));
		snprintf(what, CONFIG_DIFFERENCE, "has %s %u, not %u",
			 fields[i].name, x, y);
		break;
	case REAL:
		memcpy(&p, a, sizeof(p));
		memcpy(&q, b, sizeof(q));
		snprintf(what, CONFIG_DIFFERENCE, "has %s %g, not %g",
			 fields[i].name, p, q);
		break;
	case DIGEST:
		snprintf(what, CONFIG_DIFFERENCE, "has %s", fields[i].name);
		break;
	}
}

bool config_differ(const struct config *a, const struct config *b, bool saved,
		   char what[CONFIG_DIFFERENCE])
{
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		const size_t len = fields[i].kind == U32 ? 4 : 8;
		const char *p = (const char *)a + fields[i].offset;
		const char *q = (const char *)b + fields[i].offset;

		if ((saved && !fields[i].saved) || !memcmp(p, q, len))
			continue;
		describe(what, i, p, q);
		return true;
	}
	return false;
}

struct config config_saved(const struct config *c)
{
	struct config saved = { 0 };
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (fields[i].saved)
			memcpy((char *)&saved + fields[i].offset,
			       (const char *)c + fields[i].offset,
			       fields[i].kind == U32 ? 4 : 8);
	return saved;
}
