/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers and addresses of sockets, as netlink has them.
 */
#ifndef DBLPCTL_ADDR_H
#define DBLPCTL_ADDR_H

#include <netinet/in.h>

#include "field.h"

/* In host byte order, 0 for none */
uint16_t get_port(const struct values *v, uint16_t attr);

/* :: for none */
struct in6_addr get_addr(const struct values *v, uint16_t attr);

/* Number of a socket */
void print_id(const struct field *f, const struct values *v);

/**
 * print_addr() - an address; as text with its port, as ss does
 *
 * The attributes of port and scope follow its own.
 */
void print_addr(const struct field *f, const struct values *v);

/* Port alone, not for tables */
void print_port(const struct field *f, const struct values *v);

#endif /* DBLPCTL_ADDR_H */
