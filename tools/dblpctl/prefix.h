/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Address prefixes in text.
 */
#ifndef DBLPCTL_PREFIX_H
#define DBLPCTL_PREFIX_H

#include <netinet/in.h>
#include <stdbool.h>

/**
 * struct prefix - an address prefix
 * @addr: IPv6, or IPv4-mapped
 * @bits: prefix length in bits of the IPv6 address
 */
struct prefix {
	struct in6_addr	addr;
	unsigned int	bits;
};

/**
 * parse_prefix() - parse an address or a prefix
 * @text: "10.0.0.0/24", "fd00::/8", "10.0.0.1" or "::1"
 * @p: filled
 *
 * Return: NULL, or an error message to follow @text.
 */
const char *parse_prefix(const char *text, struct prefix *p);

/** prefix_has() - is @addr in prefix @p? */
bool prefix_has(const struct prefix *p, const struct in6_addr *addr);

#endif /* DBLPCTL_PREFIX_H */
