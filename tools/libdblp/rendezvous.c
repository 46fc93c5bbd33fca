// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Rendezvous: the address of rank 0. Rank 0 itself uses only the port, because
 * on its own host its name may be unknown or stand for another address.
 */

#include "join.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX		64
#define HOST_MAX	256
/* Room for an address and the number of a communicator */
#define VALUE_MAX	(DBLP_ADDR_TEXT + 20)

/* A port, 1 ... 65535, or 0 if @text is none */
static long port_number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && n <= 65535 ? n : 0;
}

static int resolve_at(const char *host, long port, struct dblp_where *where)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", port);
	where->port = htons((uint16_t)port);
	return dblp_resolve(host, text, where);
}

/* "ADDRESS:PORT" or "NAME:PORT" */
static int parse_tcp(const char *text, struct dblp_where *where)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	int err = dblp_addr_parse(text, &where->addr[0]);
	char host[HOST_MAX];

	if (err == -ENODEV)
		return dblp_why(err, "%s: this host has no such device", text);
	where->port = where->addr[0].sdblp_port;
	if (!err) {
		where->n = 1;
		return where->port ? 0 : dblp_why(-EINVAL, "%s has no port", text);
	}
	if (!len || len >= sizeof(host) || !port_number(colon + 1))
		return dblp_why(-EINVAL, "%s is not HOST:PORT", text);
	memcpy(host, text, len);
	host[len] = '\0';
	return resolve_at(host, port_number(colon + 1), where);
}

static int parse_env(struct dblp_where *where)
{
	const char *host = getenv("MASTER_ADDR"), *own = getenv("DBLP_PORT");
	const char *master = getenv("MASTER_PORT");
	long n;

	if (!host || !(own || master))
		return dblp_why(-EINVAL, "the environment has no MASTER_ADDR, or neither DBLP_PORT nor MASTER_PORT");
	n = port_number(own ?: master);
	if (!n || (!own && ++n > 65535))
		return dblp_why(-EINVAL, own ? "DBLP_PORT=%s is not a port" :
				"MASTER_PORT=%s is not a port below 65535", own ?: master);
	return resolve_at(host, n, where);
}

/* The address in line @rank of the list */
static int parse_file(const char *path, uint32_t rank, uint32_t nranks,
		      struct dblp_where *where)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	int err = -EINVAL;
	uint32_t i = 0;

	if (!file)
		return dblp_why(-errno, "%s: %m", path);
	while (getline(&line, &room, file) >= 0) {
		line[strcspn(line, " \t\r\n#")] = '\0';
		if (!line[0])
			continue;
		if (i == rank)
			err = parse_tcp(line, where);
		i++;
	}
	free(line);
	fclose(file);
	return i == nranks ? err : dblp_why(-EINVAL, "%s has %u addresses for %u ranks",
					    path, i, nranks);
}

bool dblp_uses_kv(const struct dblp_comm *comm)
{
	return comm->attr.rendezvous && !strcmp(comm->attr.rendezvous, "kv");
}

static void kv_key(const struct dblp_comm *comm, char key[KEY_MAX])
{
	snprintf(key, KEY_MAX, "dblp/%u/0", comm->attr.epoch);
}

int dblp_rendezvous_store(struct dblp_comm *comm, const struct sockaddr_dblp *addr)
{
	char key[KEY_MAX], value[VALUE_MAX], text[DBLP_ADDR_TEXT];

	kv_key(comm, key);
	dblp_addr_format(addr, text);
	snprintf(value, sizeof(value), "%s %" PRIx64, text, comm->id);
	return comm->attr.kv_set(comm->attr.kv, key, value, strlen(value));
}

/*
 * Read the address from the store. The store may still hold a value of an
 * earlier attempt. Then nothing, or another communicator, answers there, and
 * the caller retries.
 */
static int kv_ask(struct dblp_comm *comm, struct dblp_where *where)
{
	char key[KEY_MAX], value[VALUE_MAX], *id;
	size_t n = sizeof(value) - 1;
	int err;

	kv_key(comm, key);
	err = comm->attr.kv_get(comm->attr.kv, key, value, &n);
	if (err == -EAGAIN)
		return dblp_why(err, "rank 0 has not stored its address under key %s", key);
	if (err || n >= sizeof(value))
		return err ?: -EINVAL;
	value[n] = '\0';
	id = strchr(value, ' ');
	if (!id)
		return dblp_why(-EINVAL, "the store has an invalid address under key %s", key);
	*id++ = '\0';
	where->n = 1;
	where->id = strtoull(id, NULL, 16);
	return dblp_addr_parse(value, &where->addr[0]);
}

/* Rank 0 with "kv": the address that it stores for the others */
static int kv_own(const struct dblp_comm *comm, struct dblp_where *where)
{
	where->n = 1;
	if (comm->attr.bind)
		return dblp_addr_parse(comm->attr.bind, &where->addr[0]);
	if (comm->nic[0].name[0])
		return dblp_device_address(comm->nic[0].name, &where->addr[0]);
	return dblp_device_pick(&where->addr[0]);
}

static int find(struct dblp_comm *comm, struct dblp_where *where)
{
	const char *at = comm->attr.rendezvous;

	if (!at || !strcmp(at, "env"))
		return parse_env(where);
	if (!strncmp(at, "tcp://", 6))
		return parse_tcp(at + 6, where);
	if (!strncmp(at, "file:", 5))
		return parse_file(at + 5, 0, comm->nranks, where);
	if (!strcmp(at, "kv") && comm->attr.kv_set && comm->attr.kv_get)
		return comm->rank ? kv_ask(comm, where) : kv_own(comm, where);
	return dblp_why(-EINVAL, "rendezvous %s is not known", at);
}

int dblp_rendezvous(struct dblp_comm *comm, struct dblp_where *where)
{
	int err;
	uint32_t i;

	memset(where, 0, sizeof(*where));
	err = find(comm, where);
	if (!comm->rank && err == -EAGAIN) {
		/* Only the other ranks must resolve the name */
		dblp_why_clear();
		return 0;
	}
	for (i = 0; !err && i < where->n; i++)
		if (IN6_IS_ADDR_LINKLOCAL(&where->addr[i].sdblp_addr) &&
		    !where->addr[i].sdblp_scope_id)
			err = dblp_why(-EINVAL, "a link-local address of rank 0 needs a device, as in fe80::1%%eth0");
	return err;
}

int dblp_rendezvous_own(const struct dblp_comm *comm, struct sockaddr_dblp *addr)
{
	const char *at = comm->attr.rendezvous;
	struct dblp_where where = { 0 };
	int err;

	if (!at || strncmp(at, "file:", 5))
		return 1;
	err = parse_file(at + 5, comm->rank, comm->nranks, &where);
	*addr = where.addr[0];
	return err;
}
