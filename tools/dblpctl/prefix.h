/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prefixes of addresses, as people write them.
 */
#ifndef DBLPCTL_PREFIX_H
#define DBLPCTL_PREFIX_H

#include <netinet/in.h>
#include <stdbool.h>

/**
 * struct prefix - an address prefix
 * @addr: IPv6, or IPv4-mapped
 * @bits: prefix length
 */
struct prefix {
	struct in6_addr	addr;
	unsigned int	bits;
};

/**
 * parse_prefix() - an address, or a prefix
 * @text: "10.0.0.0/24", "fd00::/8", "10.0.0.1" or "::1"
 * @p: filled
 *
 * Return: NULL, or what is wrong with @text.
 */
const char *parse_prefix(const char *text, struct prefix *p);

/** prefix_has() - is @addr in a prefix? */
bool prefix_has(const struct prefix *p, const struct in6_addr *addr);

#endif /* DBLPCTL_PREFIX_H */
