// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Attributes of a communicator, from the program and from the environment.
 */

#include "engine.h"
#include "units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Size in release 0.1, the first one: it never changes */
#define ATTR_LEAST	(offsetof(struct dblp_comm_attr, lanes) + 4)

/* Read a number from variable @name unless *@value is set */
static int take_number(uint32_t *value, const char *name)
{
	const char *text = getenv(name), *why;
	uint64_t n;

	if (*value || !text || !*text)
		return 0;
	why = dblp_number_parse(text, 0, UINT32_MAX, &n);
	if (why)
		return dblp_why(-EINVAL, "%s=%s %s", name, text, why);
	*value = (uint32_t)n;
	return 0;
}

/*
 * With "env", torchrun's environment has the number of the attempt, as it has
 * the address of rank 0
 */
static int take_epoch(struct dblp_comm_attr *a)
{
	if (a->rendezvous && strcmp(a->rendezvous, "env"))
		return 0;
	return take_number(&a->epoch, "TORCHELASTIC_RESTART_COUNT");
}

static void take_text(const char **text, const char *name)
{
	const char *value = getenv(name);

	if (!*text && value && *value)
		*text = value;
}

static int take_env(struct dblp_comm_attr *a)
{
	take_text(&a->ports, "DBLP_PORTS");
	take_text(&a->bind, "DBLP_BIND");
	return take_epoch(a) ?: take_number(&a->join_ms, "DBLP_JOIN_MS") ?:
	       take_number(&a->timeout_ms, "DBLP_TIMEOUT_MS") ?:
	       take_number(&a->operation_ms, "DBLP_OPERATION_MS") ?:
	       take_number(&a->authenticate, "DBLP_AUTHENTICATE");
}

/*
 * Number in the first variable that is set; -1 if there is none or it is
 * invalid
 */
static int32_t from_env(const char *const names[])
{
	int i;

	for (i = 0; names[i]; i++) {
		const char *text = getenv(names[i]);
		char *end;
		long n;

		if (!text)
			continue;
		n = strtol(text, &end, 10);
		return *text && !*end && n >= 0 && n <= DBLP_RANKS_MAX ?
		       (int32_t)n : -1;
	}
	return -1;
}

static int set_ranks(struct dblp_comm *comm)
{
	static const char *const ranks[] = {
		"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", NULL
	};
	static const char *const sizes[] = {
		"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
		"SLURM_NTASKS", NULL
	};
	int32_t rank = comm->attr.rank, nranks = comm->attr.nranks;

	if (rank == DBLP_COMM_RANK_ENV)
		rank = from_env(ranks);
	if (nranks == DBLP_COMM_RANK_ENV)
		nranks = from_env(sizes);
	if (rank < 0 || rank >= nranks || nranks > DBLP_RANKS_MAX)
		return -EINVAL;
	comm->rank = (uint32_t)rank;
	comm->nranks = (uint32_t)nranks;
	return 0;
}

static void set_defaults(struct dblp_comm_attr *a)
{
	a->join_ms = a->join_ms ?: 60000;
	a->timeout_ms = a->timeout_ms ?: 5000;
	a->keepalive_ms = a->keepalive_ms ?: 1000;
	a->message_bytes = a->message_bytes ?: DBLP_COMM_BYTES;
}

static int set_transport(struct dblp_comm *comm)
{
	const char *name = comm->attr.transport;

	comm->transport = &dblp_transport_dblp;
	if (!name || !strcmp(name, "dblp"))
		return 0;
	comm->transport = &dblp_transport_tcp;
	if (!strcmp(name, "tcp"))
		return 0;
	if (strncmp(name, "tcp:", 4) || !name[4] ||
	    strlen(name + 4) >= sizeof(comm->cc))
		return -EINVAL;
	strcpy(comm->cc, name + 4);
	return 0;
}

static int set_devices(struct dblp_comm *comm)
{
	const char *at = comm->attr.devices ?: "";

	do {
		struct dblp_nic *nic = &comm->nic[comm->n_nics];
		size_t len = strcspn(at, ",");

		if (comm->n_nics == DBLP_NICS_MAX || len >= IFNAMSIZ ||
		    (!len && comm->attr.devices))
			return -EINVAL;
		memcpy(nic->name, at, len);
		nic->source = DBLP_SOURCE_LISTENER;
		nic->index = comm->n_nics++;
		at += len;
	} while (*at++);
	return 0;
}

static int set_lanes(struct dblp_comm *comm)
{
	const struct dblp_comm_attr *a = &comm->attr;
	uint32_t n = a->lanes ?: 1;
	int err = !a->lane != !a->lanes ? -EINVAL :
		  dblp_lanes_check(a->lanes ? a->lane : comm->lane, n);

	if (err)
		return err;
	if (a->lanes)
		memcpy(comm->lane, a->lane, n * sizeof(*comm->lane));
	comm->n_lanes = n;
	/*
	 * One more link, for send and recv, keeps them out of the order of
	 * other operations
	 */
	comm->n_links = n * comm->n_nics + 1;
	return 0;
}

int dblp_attr_set(struct dblp_comm *comm, const struct dblp_comm_attr *attr)
{
	struct dblp_comm_attr *a = &comm->attr;
	int err = dblp_sized_take(a, sizeof(*a), attr, ATTR_LEAST);

	if (!err)
		err = take_env(a);
	if (err)
		return err;
	set_defaults(a);
	if (a->keepalive_ms < 1000 || a->keepalive_ms > a->timeout_ms / 2 ||
	    a->timeout_ms > 3600000 || a->message_bytes % 8 ||
	    a->message_bytes > DBLP_MSG_MAX / 2 || a->authenticate > 1)
		return -EINVAL;
	err = set_ranks(comm);
	if (!err)
		err = set_transport(comm);
	if (!err)
		err = set_devices(comm);
	if (!err)
		err = dblp_ports_parse(comm) ?: dblp_secret_take(comm);
	return err ?: set_lanes(comm);
}
