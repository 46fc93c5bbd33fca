/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Output: the one way for text and JSON, so that they cannot come to differ.
 *
 * What is printed is an object, or an array of objects. As text, an object
 * alone is a line for each value, or all on one line, and an array a table with
 * a line for each object.
 */
#ifndef DBLPCTL_PRINT_H
#define DBLPCTL_PRINT_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct heading - name of a value
 * @key: in JSON, and with spaces for _ beside a single object; NULL if the value
 *	repeats others and is only for tables
 * @column: above a table or before the value on a line, NULL if it is not in one
 */
struct heading {
	const char	*key;
	const char	*column;
};

void print_begin(bool json, bool pretty, bool timestamps);

/**
 * print_end() - write the output; another object or array may follow
 *
 * Return: 0, or 1 after an error message.
 */
int print_end(void);

/** print_gap() - in text, an empty line between two objects */
void print_gap(void);

/** print_is_json() - is the output JSON? */
bool print_is_json(void);

/** print_is_table() - is the next value in a table or on a line? */
bool print_is_table(void);

void print_array(void);
void print_array_end(void);
void print_object(void);
void print_object_end(void);

/** print_width() - cut the lines of tables after so many characters; 0: do not */
void print_width(int columns);

/**
 * print_list() - in JSON, begin an array that is a value of an object
 * @key: of the value
 *
 * Text has a string instead.
 */
void print_list(const char *key);
void print_list_end(void);

/** print_line() - in text, print the next objects on one line each */
void print_line(void);

/** print_uint() - a number; @text is for people, NULL for the digits */
void print_uint(struct heading h, uint64_t n, const char *text);

/**
 * print_bits() - a number of which each of the 64 bits counts
 *
 * In JSON it is a string of digits, as jq and others keep 53 bits of a number.
 */
void print_bits(struct heading h, uint64_t n, const char *text);

/** print_bool() - true or false in JSON, yes or no in text */
void print_bool(struct heading h, bool b);

/** print_real() - a number with one digit behind the point */
void print_real(struct heading h, double x);

/** print_timestamp() - the time of day, with --timestamp */
void print_timestamp(void);

/** print_string() - a string; @text is for people, NULL for @s */
void print_string(struct heading h, const char *s, const char *text);

#endif /* DBLPCTL_PRINT_H */
