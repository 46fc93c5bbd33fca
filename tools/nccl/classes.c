// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Loss budgets of communicators. DBLP_NCCL_LOSSY lists traffic classes, such as
 * 1:2%,2:0.5%. All other classes are reliable.
 */

#include "plugin.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <units.h>

#define CLASSES_MAX	16

struct classes {
	unsigned int	n;
	struct {
		int		number;
		uint32_t	budget;
	} class[CLASSES_MAX];
};

static struct classes classes;

/* Loss budget of a class, ppm; 0: it is reliable */
static uint32_t budget_of(const struct classes *cs, int number)
{
	unsigned int i;

	for (i = 0; i < cs->n; i++)
		if (cs->class[i].number == number)
			return cs->class[i].budget;
	return 0;
}

/* Add @text, CLASS:SHARE, to the classes. Returns NULL, or the reason why it is wrong */
static const char *add_class(struct classes *cs, char *text)
{
	char *colon = strchr(text, ':');
	const char *why;
	uint32_t budget;
	uint64_t number;

	if (!colon)
		return "is not CLASS:SHARE, such as 1:2%";
	*colon = '\0';
	if (dblp_number_parse(text, 0, INT_MAX, &number))
		why = "does not begin with the number of a class";
	else
		why = dblp_share_parse(colon + 1, &budget);
	*colon = ':';
	if (why)
		return why;
	if (!budget)
		return "is reliable without being named";
	if (budget_of(cs, (int)number))
		return "names a class again";
	cs->class[cs->n].number = (int)number;
	cs->class[cs->n++].budget = budget;
	return NULL;
}

static enum nccl_result add_classes(struct classes *cs, const char *env, char *list)
{
	const char *word[CLASSES_MAX], *why;
	size_t n = dblp_words(list, word, CLASSES_MAX), i;

	if (!n) {
		net_warn("DBLP_NCCL_LOSSY=%s: more than %d traffic classes", env,
			 CLASSES_MAX);
		return ncclInvalidUsage;
	}
	for (i = 0; i < n; i++) {
		why = add_class(cs, (char *)word[i]);
		if (!why)
			continue;
		net_warn("DBLP_NCCL_LOSSY=%s: '%s' %s", env, word[i], why);
		return ncclInvalidUsage;
	}
	return ncclSuccess;
}

enum nccl_result net_classes_init(void)
{
	const char *env = getenv("DBLP_NCCL_LOSSY");
	enum nccl_result result = ncclSuccess;
	struct classes found = { 0 };
	char *list;

	if (env && *env) {
		list = strdup(env);
		if (!list)
			return ncclSystemError;
		result = add_classes(&found, env, list);
		free(list);
	}
	/* Other threads may be opening connections of an earlier communicator */
	if (!result && memcmp(&classes, &found, sizeof(found)))
		classes = found;
	return result;
}

uint32_t net_class_budget(int traffic_class)
{
	return budget_of(&classes, traffic_class);
}

bool net_only_simple(void)
{
	const char *proto = getenv("NCCL_PROTO");
	const char *most = getenv("NCCL_P2P_LL_THRESHOLD");

	return proto && !strcasecmp(proto, "simple") && most &&
	       !strcmp(most, "0");
}
