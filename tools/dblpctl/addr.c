// SPDX-License-Identifier: GPL-2.0-only
/*
 * Numbers and addresses of sockets, as netlink has them.
 */

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "addr.h"
#include "units.h"

void print_id(const struct field *f, const struct values *v)
{
	uint32_t id = get_u32(v, f->attr);
	char text[UNITS_TEXT];

	snprintf(text, sizeof(text), "%#x", id);
	print_uint(heading(f, v), id, text);
}

uint16_t get_port(const struct values *v, uint16_t attr)
{
	if (!v->tb[attr] || mnl_attr_validate(v->tb[attr], MNL_TYPE_U16))
		return 0;
	return ntohs(mnl_attr_get_u16(v->tb[attr]));
}

struct in6_addr get_addr(const struct values *v, uint16_t attr)
{
	struct in6_addr in6 = IN6ADDR_ANY_INIT;

	if (v->tb[attr] && mnl_attr_get_payload_len(v->tb[attr]) == sizeof(in6))
		memcpy(&in6, mnl_attr_get_payload(v->tb[attr]), sizeof(in6));
	return in6;
}

static void format_addr(char *text, size_t len, const struct in6_addr *addr)
{
	if (IN6_IS_ADDR_V4MAPPED(addr))
		inet_ntop(AF_INET, &addr->s6_addr[12], text, (socklen_t)len);
	else
		inet_ntop(AF_INET6, addr, text, (socklen_t)len);
}

/* Address and port together, as ss does; in JSON they are apart */
void print_addr(const struct field *f, const struct values *v)
{
	char addr[INET6_ADDRSTRLEN], scope[IF_NAMESIZE + 1] = "";
	char text[sizeof(addr) + sizeof(scope) + sizeof("[]:65535")];
	struct in6_addr in6;
	uint16_t port;
	uint32_t ifindex;

	in6 = get_addr(v, f->attr);
	port = get_port(v, f->attr + 1);
	ifindex = get_u32(v, f->attr + 2);
	format_addr(addr, sizeof(addr), &in6);

	if (ifindex) {
		scope[0] = '%';
		if (!if_indextoname(ifindex, scope + 1))
			snprintf(scope + 1, sizeof(scope) - 1, "%u", ifindex);
	}
	if (!port)
		strcpy(text, "-");
	else if (IN6_IS_ADDR_UNSPECIFIED(&in6))
		snprintf(text, sizeof(text), "*:%u", port);
	else if (IN6_IS_ADDR_V4MAPPED(&in6))
		snprintf(text, sizeof(text), "%s:%u", addr, port);
	else
		snprintf(text, sizeof(text), "[%s%s]:%u", addr, scope, port);
	print_string(heading(f, v), addr, text);
}

void print_port(const struct field *f, const struct values *v)
{
	print_uint(heading(f, v), get_port(v, f->attr), NULL);
}
