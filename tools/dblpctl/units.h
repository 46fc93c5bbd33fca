/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers with units in text. Parsing is exact: a value that cannot be represented is
 * refused, not rounded.
 */
#ifndef DBLPCTL_UNITS_H
#define DBLPCTL_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* Size of the buffers of the format functions below, bytes */
#define UNITS_TEXT	40

/**
 * parse_share() - parse a share
 * @text: "2%", "0.8%" or "8000ppm"
 * @ppm: filled; may exceed a million, which the kernel refuses
 *
 * Return: NULL, or an error message to follow @text.
 */
const char *parse_share(const char *text, uint32_t *ppm);

/**
 * parse_id() - parse the number of a socket
 * @text: "31" or "0x1f"
 * @id: filled
 *
 * Return: NULL, or an error message to follow @text.
 */
const char *parse_id(const char *text, uint32_t *id);

/**
 * parse_ms() - parse a time
 * @text: "10ms", "1.5s", "2min" or "1h"
 * @ms: filled
 *
 * Return: NULL, or an error message to follow @text.
 */
const char *parse_ms(const char *text, uint32_t *ms);

/**
 * parse_ratio() - parse a ratio
 * @text: "0.5" or "2"
 * @ppm: filled
 *
 * Return: NULL, or an error message to follow @text.
 */
const char *parse_ratio(const char *text, uint32_t *ppm);

/** format_ratio() - format a ratio for parse_ratio() */
void format_ratio(char buf[UNITS_TEXT], uint32_t ppm);

/** format_norm() - format a number in units of 2^-32, with at most six decimals */
void format_norm(char buf[UNITS_TEXT], uint64_t n);

/** format_share() - format a share for parse_share(), in percent */
void format_share(char buf[UNITS_TEXT], uint32_t ppm);

/** format_count() - format a count with up to four digits and one of kMGTPE */
void format_count(char buf[UNITS_TEXT], uint64_t n);

/** format_ms() - format a time for parse_ms(), exactly */
void format_ms(char buf[UNITS_TEXT], uint32_t ms);

/** format_us() - format microseconds as us, ms or s */
void format_us(char buf[UNITS_TEXT], uint32_t us);

#endif /* DBLPCTL_UNITS_H */
