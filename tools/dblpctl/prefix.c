// SPDX-License-Identifier: GPL-2.0-only
/*
 * Address prefixes in text.
 */

#include <libdblp.h>
#include <stdio.h>
#include <string.h>

#include "prefix.h"

#define IPV4_AT	96	/* bits before the IPv4 address in an IPv4-mapped one */

static const char no_prefix[] =
	"is not an address or a prefix, such as 10.0.0.0/24 or fd00::/8";

/* Parse an address without port and scope */
static bool parse_addr(const char *text, struct in6_addr *addr)
{
	struct sockaddr_dblp a;

	if (dblp_addr_parse(text, &a) || a.sdblp_port || a.sdblp_scope_id)
		return false;
	*addr = a.sdblp_addr;
	return true;
}

/* Parse a prefix length; the maximum, 128, has three digits */
static bool parse_bits(const char *text, unsigned int *bits)
{
	size_t n = strspn(text, "0123456789");

	return n && n <= 3 && !text[n] && sscanf(text, "%u", bits) == 1;
}

const char *parse_prefix(const char *text, struct prefix *p)
{
	char addr[INET6_ADDRSTRLEN];
	size_t len = strcspn(text, "/");
	struct prefix new = { .bits = 0 };
	bool ipv4;

	if (len >= sizeof(addr))
		return no_prefix;
	memcpy(addr, text, len);
	addr[len] = '\0';
	if (!parse_addr(addr, &new.addr))
		return no_prefix;
	ipv4 = !strchr(addr, ':');
	new.bits = ipv4 ? 128 - IPV4_AT : 128;
	if (text[len]) {
		unsigned int most = new.bits;

		if (!parse_bits(text + len + 1, &new.bits))
			return no_prefix;
		if (new.bits > most)
			return "has more bits than an address";
	}
	if (ipv4)
		new.bits += IPV4_AT;
	*p = new;
	return NULL;
}

bool prefix_has(const struct prefix *p, const struct in6_addr *addr)
{
	unsigned int bytes = p->bits / 8, bits = p->bits % 8;

	if (memcmp(&p->addr, addr, bytes))
		return false;
	return !bits ||
	       !((p->addr.s6_addr[bytes] ^ addr->s6_addr[bytes]) >> (8 - bits));
}
