// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Loss budgets of communicators. DBLP_NCCL_LOSSY lists traffic classes, such as
 * 1:2%,2:0.5%. All other classes are reliable.
 */

#include "plugin.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CLASSES_MAX	16
#define PERCENT		10000	/* ppm */

static struct {
	int		number;
	uint32_t	budget;
} class[CLASSES_MAX];
static unsigned int n_classes;

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Parse a number of at most @most, and move @text behind it */
static bool take_number(const char **text, unsigned long most, uint32_t *n)
{
	unsigned long found;
	char *end;

	if (!is_digit(**text))
		return false;
	errno = 0;
	found = strtoul(*text, &end, 10);
	*text = end;
	*n = (uint32_t)found;
	return !errno && found <= most;
}

/* Parse 2%, 0.5% or 5000ppm; a value finer than 1 ppm is invalid */
static bool take_share(const char **text, uint32_t *ppm)
{
	uint32_t unit = PERCENT;

	if (!take_number(text, DBLP_PPM, ppm))
		return false;
	if (!strncmp(*text, "ppm", 3)) {
		*text += 3;
		return *ppm;
	}
	if (*ppm > DBLP_PPM / PERCENT)
		return false;
	*ppm *= PERCENT;
	if (**text == '.')
		for (++*text; is_digit(**text); ++*text) {
			unit /= 10;
			if (!unit)
				return false;
			*ppm += (uint32_t)(**text - '0') * unit;
		}
	return *(*text)++ == '%' && *ppm && *ppm <= DBLP_PPM;
}

/* Parse CLASS:SHARE */
static bool take_class(const char **text)
{
	uint32_t number, budget;

	if (n_classes == CLASSES_MAX || !take_number(text, INT_MAX, &number) ||
	    *(*text)++ != ':' || net_class_budget((int)number) ||
	    !take_share(text, &budget))
		return false;
	class[n_classes].number = (int)number;
	class[n_classes++].budget = budget;
	return !**text || **text == ',';
}

enum nccl_result net_classes_init(void)
{
	const char *list = getenv("DBLP_NCCL_LOSSY"), *at = list;

	n_classes = 0;
	while (at && *at) {
		if (!take_class(&at) || (*at == ',' && !at[1])) {
			net_warn("DBLP_NCCL_LOSSY=%s is invalid: it takes up to %d traffic classes, each once, with a loss budget, such as 1:2%%,2:0.5%%",
				 list, CLASSES_MAX);
			return ncclInvalidUsage;
		}
		at += *at == ',';
	}
	return ncclSuccess;
}

uint32_t net_class_budget(int traffic_class)
{
	unsigned int i;

	for (i = 0; i < n_classes; i++)
		if (class[i].number == traffic_class)
			return class[i].budget;
	return 0;
}

bool net_only_simple(void)
{
	const char *proto = getenv("NCCL_PROTO");
	const char *most = getenv("NCCL_P2P_LL_THRESHOLD");

	return proto && !strcasecmp(proto, "simple") && most &&
	       !strcmp(most, "0");
}
