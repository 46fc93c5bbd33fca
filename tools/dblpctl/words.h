/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What follows a verb: "loss 2% close early", in any order.
 */
#ifndef DBLPCTL_WORDS_H
#define DBLPCTL_WORDS_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stdint.h>

#include "dblpctl.h"
#include "field.h"

/* More than any verb has */
#define WORDS_MAX	12

/**
 * struct value - what was given for a keyword
 * @given: whether it was
 * @n: number
 * @text: not NULL if it is a string
 */
struct value {
	bool		given;
	uint32_t	n;
	const char	*text;
};

/**
 * struct keyword - something that can be set
 * @name: any beginning of it will do; the first that fits is taken
 * @attr: attribute
 * @needs: kind of value, with an example
 * @read: makes a value of a word, or complains
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
enum status read_phase(const struct keyword *k, const char *word,
		       struct value *v);

/** read_prefix() - checks a prefix for parse_prefix(), keeps the text */
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
 * A value may be looked up in the kernel, so no request may be begun yet.
 */
enum status read_words(const struct keyword *keywords, int argc, char **argv,
		       struct value values[WORDS_MAX]);

/** put_words() - add what was given to a request */
void put_words(struct nlmsghdr *nlh, const struct keyword *keywords,
	       const struct value values[WORDS_MAX]);

/**
 * write_words() - print what read_words() would read, as text
 * @keywords: the last has no name
 * @v: attributes; what is absent or an empty name is left out
 *
 * Whatever an operator can set has to be known to this function: see
 * dblpctl save.
 */
void write_words(const struct keyword *keywords, const struct values *v);

#endif /* DBLPCTL_WORDS_H */
