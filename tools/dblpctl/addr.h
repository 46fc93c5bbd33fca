/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers and addresses of sockets in netlink attributes.
 */
#ifndef DBLPCTL_ADDR_H
#define DBLPCTL_ADDR_H

#include <netinet/in.h>

#include "field.h"

/* Port in host byte order, 0 if the attribute is absent */
uint16_t get_port(const struct values *v, uint16_t attr);

/* Address, :: if the attribute is absent */
struct in6_addr get_addr(const struct values *v, uint16_t attr);

/* Print the number of a socket */
void print_id(const struct field *f, const struct values *v);

/**
 * print_addr() - print an address, in text with its port, as ss does
 *
 * The attributes of port and scope have the next two numbers.
 */
void print_addr(const struct field *f, const struct values *v);

/* Print a port; for JSON and single objects only */
void print_port(const struct field *f, const struct values *v);

#endif /* DBLPCTL_ADDR_H */
