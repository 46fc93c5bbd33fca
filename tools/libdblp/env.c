// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Attributes of a communicator from the environment, where the program leaves
 * them unset.
 */

#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Read a number from variable @name unless *@value is set; @what is its unit,
 * for errors
 */
static int take_number(uint32_t *value, const char *name, const char *what)
{
	const char *text = getenv(name);
	char *end;
	unsigned long n;

	if (*value || !text || !*text)
		return 0;
	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n > UINT32_MAX)
		return dblp_why(-EINVAL, "%s=%s is not a number of %s", name, text, what);
	*value = (uint32_t)n;
	return 0;
}

static int take_ms(uint32_t *ms, const char *name)
{
	return take_number(ms, name, "milliseconds");
}

/*
 * With "env", torchrun's environment has the number of the attempt, as it has
 * the address of rank 0
 */
static int take_epoch(struct dblp_comm_attr *a)
{
	if (a->rendezvous && strcmp(a->rendezvous, "env"))
		return 0;
	return take_number(&a->epoch, "TORCHELASTIC_RESTART_COUNT", "restarts");
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
	return take_epoch(a) ?: take_ms(&a->join_ms, "DBLP_JOIN_MS") ?:
	       take_ms(&a->timeout_ms, "DBLP_TIMEOUT_MS") ?:
	       take_ms(&a->operation_ms, "DBLP_OPERATION_MS");
}
