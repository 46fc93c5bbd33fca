// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Attributes of a communicator that its program leaves to the environment.
 */

#include "engine.h"

#include <errno.h>
#include <stdlib.h>

/* Milliseconds of variable @name, unless *@ms is set */
static int take_ms(uint32_t *ms, const char *name)
{
	const char *text = getenv(name);
	char *end;
	unsigned long n;

	if (*ms || !text || !*text)
		return 0;
	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n > UINT32_MAX)
		return dblp_why(-EINVAL, "%s=%s is not a number of milliseconds",
				name, text);
	*ms = (uint32_t)n;
	return 0;
}

static void take_text(const char **text, const char *name)
{
	const char *value = getenv(name);

	if (!*text && value && *value)
		*text = value;
}

int dblp_attr_env(struct dblp_comm_attr *a)
{
	take_text(&a->ports, "DBLP_PORTS");
	take_text(&a->bind, "DBLP_BIND");
	return take_ms(&a->join_ms, "DBLP_JOIN_MS") ?:
	       take_ms(&a->timeout_ms, "DBLP_TIMEOUT_MS") ?:
	       take_ms(&a->operation_ms, "DBLP_OPERATION_MS");
}
