/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keywords and values after a verb, in any order: "loss 2% close early".
 */
#ifndef DBLPCTL_WORDS_H
#define DBLPCTL_WORDS_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cmd.h"
#include "field.h"

/* Exceeds the number of keywords of every verb */
#define WORDS_MAX	12

/**
 * struct value - value of a keyword
 * @given: the command line has the keyword
 * @n: value, if it is a number
 * @text: value, if it is a string; else NULL
 */
struct value {
	bool		given;
	uint32_t	n;
	const char	*text;
};

/**
 * struct keyword - a setting
 * @name: name; a word that is a prefix of several names means the first of them
 * @attr: netlink attribute
 * @needs: kind of value, with an example, for messages
 * @read: parses a word into a value, or prints an error message
 * @names: names of an enumeration, by value; ends with NULL
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
/** read_user() - parse a user, by name or number */
enum status read_user(const struct keyword *k, const char *word,
		      struct value *v);
enum status read_name(const struct keyword *k, const char *word,
		      struct value *v);

/** read_name_or_none() - parse a name; "-" is no name */
enum status read_name_or_none(const struct keyword *k, const char *word,
			      struct value *v);

/** read_prefix() - check a prefix by parse_prefix(), and store its text */
enum status read_prefix(const struct keyword *k, const char *word,
			struct value *v);

/** is_inherit() - is the word "inherit"? Sets the value to DBLP_INHERIT */
bool is_inherit(const char *word, struct value *v);

/** read_own_share() - parse a share; "inherit" is DBLP_INHERIT */
enum status read_own_share(const struct keyword *k, const char *word,
			   struct value *v);

/**
 * read_words() - parse keywords and their values
 * @keywords: ends with an entry without a name
 * @argc: number of words
 * @argv: words
 * @values: filled, by keyword
 *
 * The lookup of a value may send a request and overwrite the buffer of nl_request().
 */
enum status read_words(const struct keyword *keywords, int argc, char **argv,
		       struct value values[WORDS_MAX]);

/** put_words() - add values to a request */
void put_words(struct nlmsghdr *nlh, const struct keyword *keywords,
	       const struct value values[WORDS_MAX]);

/**
 * write_words() - write attributes as words for read_words()
 * @to: output
 * @keywords: ends with an entry without a name
 * @v: attributes; an absent one is omitted, except that an absent share of
 *	read_own_share() is written as "inherit"
 *
 * For dblpctl save.
 *
 * Return: STATUS_FAILED after an error message if a value has no name.
 */
enum status write_words(FILE *to, const struct keyword *keywords,
			const struct values *v);

#endif /* DBLPCTL_WORDS_H */
