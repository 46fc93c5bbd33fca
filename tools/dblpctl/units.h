/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers as people write them. Parsing is exact: what cannot be kept is
 * refused, never rounded.
 */
#ifndef DBLPCTL_UNITS_H
#define DBLPCTL_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* Room for any text that the functions below write */
#define UNITS_TEXT	40

/**
 * parse_share() - a share of loss
 * @text: "2%", "0.8%" or "8000ppm"
 * @ppm: filled; may be over a million, which the kernel refuses
 *
 * Return: NULL, or what is wrong with @text.
 */
const char *parse_share(const char *text, uint32_t *ppm);

/**
 * parse_id() - the number of a socket
 * @text: "31" or "0x1f"
 * @id: filled
 *
 * Return: NULL, or what is wrong with @text.
 */
const char *parse_id(const char *text, uint32_t *id);

/**
 * parse_ms() - a time
 * @text: "10ms", "1.5s", "2min" or "1h"
 * @ms: filled
 *
 * Return: NULL, or what is wrong with @text.
 */
const char *parse_ms(const char *text, uint32_t *ms);

/**
 * parse_ratio() - a ratio
 * @text: "0.5" or "2"
 * @ppm: filled
 *
 * Return: NULL, or what is wrong with @text.
 */
const char *parse_ratio(const char *text, uint32_t *ppm);

/** format_ratio() - as parse_ratio() takes it */
void format_ratio(char buf[UNITS_TEXT], uint32_t ppm);

/** format_norm() - a number in units of 2^-32, to six digits behind the point */
void format_norm(char buf[UNITS_TEXT], uint64_t n);

/** format_share() - as parse_share() takes it, in percent */
void format_share(char buf[UNITS_TEXT], uint32_t ppm);

/** format_count() - with three or four digits and one of kMGTPE */
void format_count(char buf[UNITS_TEXT], uint64_t n);

/** format_ms() - as parse_ms() takes it, exactly */
void format_ms(char buf[UNITS_TEXT], uint32_t ms);

/** format_us() - microseconds, as us, ms or s */
void format_us(char buf[UNITS_TEXT], uint32_t us);

#endif /* DBLPCTL_UNITS_H */
