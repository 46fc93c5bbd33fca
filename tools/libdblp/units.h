/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Numbers and addresses as text, for options of programs. libdblp.h has shares and
 * times, because other programs use them, too.
 *
 * The functions that parse are exact: a value that cannot be represented is refused, not
 * rounded. Each returns NULL, or the reason, which follows the text in a message; on
 * failure the result is unchanged. The reason is valid until this thread parses again.
 */
#ifndef DBLP_UNITS_H
#define DBLP_UNITS_H

#include "libdblp.h"

/** dblp_number_parse() - parse a count, decimal or with 0x, from @min to @max */
const char *dblp_number_parse(const char *text, uint64_t min, uint64_t max,
			      uint64_t *n);

/**
 * dblp_size_parse() - parse a size
 * @text: "1000000" or "1000000B", "1MB", "64KiB": kB, MB, GB, KiB, MiB, GiB
 * @min: smallest size, bytes
 * @max: largest size, bytes
 * @bytes: filled
 *
 * Return: NULL, or the reason why @text is wrong.
 */
const char *dblp_size_parse(const char *text, uint64_t min, uint64_t max,
			    uint64_t *bytes);

/** dblp_ratio_parse() - parse a ratio, "0.5" or "2", which has no unit */
const char *dblp_ratio_parse(const char *text, uint32_t *ppm);

/** dblp_addr_alone() - parse an address that has no port */
const char *dblp_addr_alone(const char *text, struct sockaddr_dblp *addr);

/** dblp_addr_port() - parse an address and a port */
const char *dblp_addr_port(const char *text, struct sockaddr_dblp *addr);

/**
 * dblp_words() - split a list separated by commas
 * @list: the list; modified. An empty word is a word
 * @word: filled
 * @room: number of entries in @word
 *
 * Return: the number of words; 0 if there are more than @room.
 */
size_t dblp_words(char *list, const char **word, size_t room);

/** dblp_ratio_format() - format a ratio for dblp_ratio_parse() */
void dblp_ratio_format(uint32_t ppm, char text[DBLP_VALUE_TEXT]);

/** dblp_norm_format() - format a number in units of 2^-32, with at most six decimals */
void dblp_norm_format(uint64_t n, char text[DBLP_VALUE_TEXT]);

/** dblp_count_format() - format a count with up to four digits and one of kMGTPE */
void dblp_count_format(uint64_t n, char text[DBLP_VALUE_TEXT]);

/** dblp_us_format() - format microseconds as us, ms or s, rounded down */
void dblp_us_format(uint32_t us, char text[DBLP_VALUE_TEXT]);

#endif /* DBLP_UNITS_H */
