// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Names of hosts.
 */

#include "join.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>

#define HOST_MAX	256

int dblp_resolve(const char *host, const char *port, struct dblp_where *where)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	size_t len = strlen(host);
	char bare[HOST_MAX] = "";
	struct addrinfo *list, *at;
	int err;

	/* An IPv6 address may be in brackets */
	if (len > 2 && len < sizeof(bare) && host[0] == '[' && host[len - 1] == ']') {
		memcpy(bare, host + 1, len - 2);
		host = bare;
	}
	err = getaddrinfo(host, port, &hints, &list);
	if (err)
		return dblp_why(-EAGAIN, "cannot resolve %s on this host: %s", host, gai_strerror(err));
	for (at = list; at && where->n < DBLP_WHERE_MAX; at = at->ai_next)
		where->n += dblp_addr_from(&where->addr[where->n], at->ai_addr);
	freeaddrinfo(list);
	return where->n ? 0 : -EAGAIN;
}
