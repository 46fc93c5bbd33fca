/* SPDX-License-Identifier: GPL-2.0-only */
/* Parses option values. Each function ends the program if a value is invalid. */
#ifndef LAB_ARG_H
#define LAB_ARG_H

#include <stdint.h>

#include <libdblp.h>

/** arg_number() - parse an integer; messages name the option @name */
uint64_t arg_number(const char *name, const char *text, uint64_t min, uint64_t max);
/** arg_time() - parse a time; returns ms */
uint64_t arg_time(const char *name, const char *text, uint64_t min_ms, uint64_t max_ms);
/** arg_size() - parse a size; returns bytes */
uint64_t arg_size(const char *name, const char *text, uint64_t min, uint64_t max);
/** arg_real() - parse a decimal fraction */
double arg_real(const char *name, const char *text, double min, double max);
/** arg_share() - parse a share; returns ppm */
uint32_t arg_share(const char *name, const char *text);
/** arg_address() - parse an address and a port */
struct sockaddr_dblp arg_address(const char *name, const char *text);
/** arg_name() - index of @text in @names, a list that ends with NULL */
uint32_t arg_name(const char *name, const char *text, const char *const *names);

#endif /* LAB_ARG_H */
