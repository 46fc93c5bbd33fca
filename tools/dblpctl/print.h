/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Output as text and JSON. Each value is printed by one call for both, so that they
 * cannot differ.
 *
 * The output is an object or an array of objects. In text, an object has a line for
 * each value, or all values on one line. An array is a table with a line for each
 * object.
 */
#ifndef DBLPCTL_PRINT_H
#define DBLPCTL_PRINT_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct heading - name of a value
 * @key: name in JSON, and, with spaces for _, in the text of a single object; NULL if
 *	the value is for tables only
 * @column: name above a table or within a line; NULL if these omit the value
 */
struct heading {
	const char	*key;
	const char	*column;
};

void print_begin(bool json, bool pretty, bool timestamps);

/**
 * print_end() - flush the output; another object or array may follow
 *
 * Return: 0, or 1 after an error message.
 */
int print_end(void);

/** print_gap() - in text, print an empty line between two objects */
void print_gap(void);

/** print_is_json() - is the output JSON? */
bool print_is_json(void);

/** print_is_table() - is the output a table in text? */
bool print_is_table(void);

void print_array(void);
void print_array_end(void);
void print_object(void);
void print_object_end(void);

/** print_width() - truncate lines of tables to @columns characters; 0: do not */
void print_width(int columns);

/**
 * print_list() - in JSON, begin an array that is a value of an object
 * @key: name of the value
 *
 * For text, print a string instead.
 */
void print_list(const char *key);
void print_list_end(void);

/** print_line() - in text, print the next objects on one line each */
void print_line(void);

/** print_uint() - print a number, in text as @text, or in digits if @text is NULL */
void print_uint(struct heading h, uint64_t n, const char *text);

/**
 * print_bits() - print a number whose 64 bits may all matter
 *
 * In JSON it is a string of digits, because jq and others keep only 53 bits of a
 * number.
 */
void print_bits(struct heading h, uint64_t n, const char *text);

/** print_bool() - print true or false in JSON, yes or no in text */
void print_bool(struct heading h, bool b);

/** print_real() - print a number with one decimal */
void print_real(struct heading h, double x);

/** print_timestamp() - with --timestamp, print the time of day */
void print_timestamp(void);

/** print_string() - print @s, in text as @text unless this is NULL */
void print_string(struct heading h, const char *s, const char *text);

#endif /* DBLPCTL_PRINT_H */
