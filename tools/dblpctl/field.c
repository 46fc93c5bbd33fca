// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes of netlink messages, printed as values of an object.
 */

#include <stdio.h>

#include "field.h"
#include "units.h"

void print_fields(const struct field *fields, size_t n,
		  const struct values *v)
{
	size_t i;

	print_object();
	for (i = 0; i < n; i++)
		fields[i].print(&fields[i], v);
	print_object_end();
}

struct heading heading(const struct field *f, const struct values *v)
{
	return (struct heading){ v->names[f->attr], f->column };
}

uint32_t get_u32(const struct values *v, uint16_t attr)
{
	if (!v->tb[attr] || mnl_attr_validate(v->tb[attr], MNL_TYPE_U32))
		return 0;
	return mnl_attr_get_u32(v->tb[attr]);
}

uint64_t get_u64(const struct values *v, uint16_t attr)
{
	if (!v->tb[attr] || mnl_attr_validate(v->tb[attr], MNL_TYPE_U64))
		return 0;
	return mnl_attr_get_u64(v->tb[attr]);
}

const char *get_string(const struct values *v, uint16_t attr)
{
	const struct nlattr *a = v->tb[attr];

	if (!a || mnl_attr_validate(a, MNL_TYPE_NUL_STRING))
		return "";
	return mnl_attr_get_str(a);
}

void print_u32(const struct field *f, const struct values *v)
{
	print_uint(heading(f, v), get_u32(v, f->attr), NULL);
}

void print_u64(const struct field *f, const struct values *v)
{
	print_uint(heading(f, v), get_u64(v, f->attr), NULL);
}

static void print_formatted(const struct field *f, const struct values *v,
			    void (*format)(uint32_t n, char buf[DBLP_VALUE_TEXT]))
{
	uint32_t n = get_u32(v, f->attr);
	char text[DBLP_VALUE_TEXT];

	format(n, text);
	print_uint(heading(f, v), n, text);
}

void print_share(const struct field *f, const struct values *v)
{
	print_formatted(f, v, dblp_share_format);
}

void print_ms(const struct field *f, const struct values *v)
{
	print_formatted(f, v, dblp_time_format);
}

void print_own_share(const struct field *f, const struct values *v)
{
	if (v->tb[f->attr])
		print_share(f, v);
	else
		print_string(heading(f, v), "inherit", NULL);
}

void print_ratio(const struct field *f, const struct values *v)
{
	print_formatted(f, v, dblp_ratio_format);
}

void print_norm(const struct field *f, const struct values *v)
{
	uint64_t norm = get_u64(v, f->attr);
	char text[DBLP_VALUE_TEXT];

	dblp_norm_format(norm, text);
	print_bits(heading(f, v), norm, text);
}

void print_us(const struct field *f, const struct values *v)
{
	print_formatted(f, v, dblp_us_format);
}

const char *enum_name(const char *const *names, uint32_t n)
{
	uint32_t i;

	for (i = 0; names[i] && i < n; i++)
		;
	return names[i];
}

void print_enum(const struct field *f, const struct values *v)
{
	uint32_t value = get_u32(v, f->attr);
	const char *name = enum_name(f->enum_names, value);
	char digits[DBLP_VALUE_TEXT];

	snprintf(digits, sizeof(digits), "%u", value);
	print_string(heading(f, v), name ? name : digits, NULL);
}

void print_name(const struct field *f, const struct values *v)
{
	print_string(heading(f, v), get_string(v, f->attr), NULL);
}

void print_count(const struct field *f, const struct values *v)
{
	uint64_t n = get_u64(v, f->attr);
	char text[DBLP_VALUE_TEXT];

	dblp_count_format(n, text);
	print_uint(heading(f, v), n, print_is_table() ? text : NULL);
}
