/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keywords and values behind a verb, in any order: "loss 2% close early".
 */
#ifndef DBLPCTL_WORDS_H
#define DBLPCTL_WORDS_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "dblpctl.h"
#include "field.h"

/* More keywords than any verb has */
#define WORDS_MAX	12

/**
 * struct value - value of a keyword
 * @given: the keyword was given
 * @n: number
 * @text: not NULL if it is a string
 */
struct value {
	bool		given;
	uint32_t	n;
	const char	*text;
};

/**
 * struct keyword - a setting
 * @name: may be abbreviated; the first keyword that fits is taken
 * @attr: attribute
 * @needs: kind of value, with an example
 * @read: reads a value from a word, or prints an error message
 * @names: of an enumeration, by value; NULL behind the last
 */
struct keyword {
	const char	*name;
	uint16_t	attr;
	const char	*needs;
	enum status	(*read)(const struct keyword *k, const char *word,
				struct value *v);
	const char *const *names;
};

enum status read_share(const struct keyword *k, const char *word,
		       struct value *v);
enum status read_enum(const struct keyword *k, const char *word,
		      struct value *v);
enum status read_ms(const struct keyword *k, const char *word,
		    struct value *v);
enum status read_ratio(const struct keyword *k, const char *word,
		       struct value *v);
enum status read_number(const struct keyword *k, const char *word,
			struct value *v);
/** read_user() - a user by name or number */
enum status read_user(const struct keyword *k, const char *word,
		      struct value *v);
enum status read_name(const struct keyword *k, const char *word,
		      struct value *v);

/** read_name_or_none() - a name, or "-", which is none */
enum status read_name_or_none(const struct keyword *k, const char *word,
			      struct value *v);
enum status read_phase(const struct keyword *k, const char *word,
		       struct value *v);

/** read_prefix() - checks a prefix by parse_prefix(), keeps the text */
enum status read_prefix(const struct keyword *k, const char *word,
			struct value *v);

/** read_job_or_none() - a job, or "none", which is 0 */
enum status read_job_or_none(const struct keyword *k, const char *word,
			     struct value *v);

/* The same, and "inherit" */
enum status read_own_share(const struct keyword *k, const char *word,
			   struct value *v);
enum status read_own_phase(const struct keyword *k, const char *word,
			   struct value *v);

/**
 * read_words() - keywords and their values
 * @keywords: the last has no name
 * @argc: words, at least one
 * @argv: words
 * @values: filled, by keyword
 *
 * Looking up a value may send a request, so no other request may have been begun.
 */
enum status read_words(const struct keyword *keywords, int argc, char **argv,
		       struct value values[WORDS_MAX]);

/** put_words() - add the given values to a request */
void put_words(struct nlmsghdr *nlh, const struct keyword *keywords,
	       const struct value values[WORDS_MAX]);

/**
 * write_words() - write attributes as words for read_words()
 * @to: where
 * @keywords: the last has no name
 * @v: attributes; absent ones are left out, but for shares of read_own_share(),
 *	which are inherited then
 *
 * dblpctl save needs this for every setting of an operator.
 *
 * Return: STATUS_FAILED after an error message if there are no words for a value.
 */
enum status write_words(FILE *to, const struct keyword *keywords,
			const struct values *v);

#endif /* DBLPCTL_WORDS_H */
