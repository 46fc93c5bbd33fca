/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Attributes of netlink messages, printed as values of an object.
 */
#ifndef DBLPCTL_FIELD_H
#define DBLPCTL_FIELD_H

#include <libmnl/libmnl.h>
#include <stddef.h>
#include <stdint.h>

#include "print.h"

/**
 * struct values - attributes of one message
 * @names: names of attributes, by attribute
 * @tb: attributes, by attribute, from nl_attrs()
 */
struct values {
	const char *const	*names;
	const struct nlattr	**tb;
};

/**
 * struct field - a value to show of an object
 * @attr: netlink attribute of the value
 * @column: heading in a table, NULL if tables do not show the value
 * @print: prints the value, such as one of the functions below
 * @enum_names: for print_enum(): names by value, ends with NULL
 */
struct field {
	uint16_t		attr;
	const char		*column;
	void			(*print)(const struct field *f,
					 const struct values *v);
	const char *const	*enum_names;
};

#define N_FIELDS(fields)	(sizeof(fields) / sizeof((fields)[0]))

/** print_fields() - print an object with @n @fields, in their order */
void print_fields(const struct field *fields, size_t n,
		  const struct values *v);

struct heading heading(const struct field *f, const struct values *v);

/* Each returns 0 or "" for an absent attribute, which an older kernel does not send */
uint32_t get_u32(const struct values *v, uint16_t attr);
uint64_t get_u64(const struct values *v, uint16_t attr);
const char *get_string(const struct values *v, uint16_t attr);

void print_u32(const struct field *f, const struct values *v);
void print_u64(const struct field *f, const struct values *v);
void print_share(const struct field *f, const struct values *v);
void print_ms(const struct field *f, const struct values *v);
/** print_own_share() - print a share, or "inherit" if it is absent */
void print_own_share(const struct field *f, const struct values *v);

/** print_ratio() - print ppm as a ratio, such as 0.5 */
void print_ratio(const struct field *f, const struct values *v);

/** print_norm() - print units of 2^-32 as a number, such as 1.5 */
void print_norm(const struct field *f, const struct values *v);
void print_us(const struct field *f, const struct values *v);
/** enum_name() - name of a value, NULL if it is unknown, as from a newer kernel */
const char *enum_name(const char *const *names, uint32_t n);
void print_enum(const struct field *f, const struct values *v);
void print_name(const struct field *f, const struct values *v);

/** print_count() - print a count, rounded in a table */
void print_count(const struct field *f, const struct values *v);

#endif /* DBLPCTL_FIELD_H */
