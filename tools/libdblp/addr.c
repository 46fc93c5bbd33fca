// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Addresses as text.
 */

#include "units.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

/* Offset of the IPv4 address in an IPv4-mapped one */
#define IPV4_AT	12

/* The decimal number @text, 1 to @max; 0 if it is anything else */
static uint32_t parse_number(const char *text, uint32_t max)
{
	uint64_t n = 0;

	if (!text[strspn(text, "0123456789")])
		dblp_number_parse(text, 1, max, &n);
	return (uint32_t)n;
}

static int parse_ipv6(char *text, struct sockaddr_dblp *addr)
{
	char *scope = strchr(text, '%');

	if (scope)
		*scope++ = '\0';
	if (inet_pton(AF_INET6, text, &addr->sdblp_addr) != 1)
		return -EINVAL;
	if (!scope)
		return 0;
	if (!IN6_IS_ADDR_LINKLOCAL(&addr->sdblp_addr))
		return -EINVAL;
	/* if_nametoindex() would take an alias, eth0:1, for eth0 */
	if (!strchr(scope, ':'))
		addr->sdblp_scope_id = if_nametoindex(scope) ?:
				       parse_number(scope, INT32_MAX);
	return addr->sdblp_scope_id ? 0 : -ENODEV;
}

static int parse_ipv4(const char *text, struct sockaddr_dblp *addr)
{
	memset(&addr->sdblp_addr.s6_addr[IPV4_AT - 2], 0xff, 2);
	return inet_pton(AF_INET, text, &addr->sdblp_addr.s6_addr[IPV4_AT]) ==
	       1 ? 0 : -EINVAL;
}

/*
 * cut_port() - separate a port from its address
 *
 * Only an IPv6 address has more than one colon; it is in brackets if it has a
 * port. The name of an interface may have brackets.
 *
 * Return: the port, with @text cut to the address, or NULL if there is none.
 */
static char *cut_port(char **text)
{
	char *end;

	if (**text == '[') {
		end = strrchr(*text, ']');
		if (!end || end[1] != ':' || !memchr(*text, ':', end - *text))
			return NULL;
		++*text;
		*end++ = '\0';
	} else {
		end = strchr(*text, ':');
		if (!end || end != strrchr(*text, ':'))
			return NULL;
	}
	*end++ = '\0';
	return end;
}

int dblp_addr_parse(const char *text, struct sockaddr_dblp *addr)
{
	struct sockaddr_dblp new = { .sdblp_family = AF_DBLP };
	char copy[DBLP_ADDR_TEXT], *ip = copy, *port;
	size_t len = strlen(text);
	int err;

	if (len >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, len + 1);
	port = cut_port(&ip);
	if (port) {
		new.sdblp_port = htons((uint16_t)parse_number(port, UINT16_MAX));
		if (!new.sdblp_port)
			return -EINVAL;
	}
	err = strchr(ip, ':') ? parse_ipv6(ip, &new) : parse_ipv4(ip, &new);
	if (!err)
		*addr = new;
	return err;
}

static const char *parse_for(const char *text, bool port, const char *wrong,
			     struct sockaddr_dblp *addr)
{
	struct sockaddr_dblp new;
	int err = dblp_addr_parse(text, &new);

	if (err == -ENODEV)
		return "names a device that this host does not have";
	if (err || !new.sdblp_port == port)
		return wrong;
	*addr = new;
	return NULL;
}

const char *dblp_addr_alone(const char *text, struct sockaddr_dblp *addr)
{
	return parse_for(text, false,
			 "is not an address such as 192.0.2.1 or 2001:db8::1",
			 addr);
}

const char *dblp_addr_port(const char *text, struct sockaddr_dblp *addr)
{
	return parse_for(text, true,
			 "is not an address and a port such as 192.0.2.1:7018 or [2001:db8::1]:7018",
			 addr);
}

void dblp_addr_format(const struct sockaddr_dblp *addr,
		      char text[DBLP_ADDR_TEXT])
{
	const struct in6_addr *in6 = &addr->sdblp_addr;
	bool ipv4 = IN6_IS_ADDR_V4MAPPED(in6);
	char ip[INET6_ADDRSTRLEN], scope[1 + IF_NAMESIZE] = "";

	if (ipv4)
		inet_ntop(AF_INET, &in6->s6_addr[IPV4_AT], ip, sizeof(ip));
	else
		inet_ntop(AF_INET6, in6, ip, sizeof(ip));
	if (addr->sdblp_scope_id) {
		scope[0] = '%';
		if (!if_indextoname(addr->sdblp_scope_id, scope + 1))
			snprintf(scope + 1, sizeof(scope) - 1, "%u",
				 addr->sdblp_scope_id);
	}
	if (!addr->sdblp_port)
		snprintf(text, DBLP_ADDR_TEXT, "%s%s", ip, scope);
	else
		snprintf(text, DBLP_ADDR_TEXT, ipv4 ? "%s%s:%u" : "[%s%s]:%u",
			 ip, scope, ntohs(addr->sdblp_port));
}
