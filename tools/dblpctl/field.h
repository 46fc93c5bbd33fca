/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Attributes of netlink messages, as values of an object.
 */
#ifndef DBLPCTL_FIELD_H
#define DBLPCTL_FIELD_H

#include <libmnl/libmnl.h>
#include <stddef.h>
#include <stdint.h>

#include "print.h"

/**
 * struct values - attributes of one message
 * @names: by attribute
 * @tb: by attribute, from nl_attrs()
 */
struct values {
	const char *const	*names;
	const struct nlattr	**tb;
};

/**
 * struct field - what is shown of an object
 * @attr: its attribute
 * @column: heading in a table, NULL if it is not in the table
 * @print: one of the functions below, or a similar one
 * @enum_names: by value, for print_enum()
 */
struct field {
	uint16_t		attr;
	const char		*column;
	void			(*print)(const struct field *f,
					 const struct values *v);
	const char *const	*enum_names;
};

#define N_FIELDS(fields)	(sizeof(fields) / sizeof((fields)[0]))

/** print_fields() - print an object with all of @fields, in their order */
void print_fields(const struct field *fields, size_t n,
		  const struct values *v);

struct heading heading(const struct field *f, const struct values *v);

/* Each returns a default for an attribute that this kernel does not send */
uint32_t get_u32(const struct values *v, uint16_t attr);
uint64_t get_u64(const struct values *v, uint16_t attr);
const char *get_string(const struct values *v, uint16_t attr);

void print_u32(const struct field *f, const struct values *v);
void print_u64(const struct field *f, const struct values *v);
void print_share(const struct field *f, const struct values *v);
void print_ms(const struct field *f, const struct values *v);
/** print_own_share() - a share, or "inherit" if there is none */
void print_own_share(const struct field *f, const struct values *v);

/** print_ratio() - ppm, as 0.5 */
void print_ratio(const struct field *f, const struct values *v);

/** print_norm() - units of 2^-32, as 1.5 */
void print_norm(const struct field *f, const struct values *v);
void print_us(const struct field *f, const struct values *v);
/** enum_name() - name of a value, NULL if only a newer dblpctl knows it */
const char *enum_name(const char *const *names, uint32_t n);
void print_enum(const struct field *f, const struct values *v);
void print_name(const struct field *f, const struct values *v);

/** print_count() - an exact count, short in a table */
void print_count(const struct field *f, const struct values *v);

#endif /* DBLPCTL_FIELD_H */
