// SPDX-License-Identifier: GPL-2.0-only
/*
 * Numbers and addresses of sockets in netlink attributes.
 */

#include <arpa/inet.h>
#include <libdblp.h>
#include <stdio.h>
#include <string.h>

#include "addr.h"
#include "units.h"

void print_id(const struct field *f, const struct values *v)
{
	uint32_t id = get_u32(v, f->attr);
	char text[DBLP_VALUE_TEXT];

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

/* Text has address and port in one value, as ss does; JSON has two values */
void print_addr(const struct field *f, const struct values *v)
{
	struct sockaddr_dblp a = { .sdblp_addr = get_addr(v, f->attr) };
	char addr[DBLP_ADDR_TEXT], text[DBLP_ADDR_TEXT] = "-";
	uint16_t port = get_port(v, f->attr + 1);

	dblp_addr_format(&a, addr);
	a.sdblp_port = htons(port);
	a.sdblp_scope_id = get_u32(v, f->attr + 2);
	if (port && IN6_IS_ADDR_UNSPECIFIED(&a.sdblp_addr))
		snprintf(text, sizeof(text), "*:%u", port);
	else if (port)
		dblp_addr_format(&a, text);
	print_string(heading(f, v), addr, text);
}

void print_port(const struct field *f, const struct values *v)
{
	print_uint(heading(f, v), get_port(v, f->attr), NULL);
}
