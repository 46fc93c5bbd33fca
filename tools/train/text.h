/* SPDX-License-Identifier: GPL-2.0-only */
/* The training text, as numbers, and the draws from it. */
#ifndef TRAIN_TEXT_H
#define TRAIN_TEXT_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct text - the training text
 * @symbol: the text, each byte replaced by its symbol
 * @len: number of symbols
 * @vocab: number of different symbols
 * @hash: digest of the text: all ranks must have the same
 * @byte: the byte that a symbol stands for
 */
struct text {
	uint8_t		*symbol;
	size_t		len;
	unsigned int	vocab;
	uint64_t	hash;
	uint8_t		byte[256];
};

/**
 * text_load() - read files one after the other
 *
 * Ends the program with a message if a file cannot be read or the text is too short.
 */
void text_load(struct text *t, char *const *files, unsigned int n);
/** text_from() - the same from memory, for tests */
void text_from(struct text *t, const void *bytes, size_t len);
void text_free(struct text *t);

/**
 * text_draw() - positions to predict, from the training part of the text
 * @t: the text
 * @pos: filled with positions that have @context symbols before them
 * @n: how many
 * @context: see @pos
 * @seed: the same seed draws the same positions
 */
void text_draw(const struct text *t, size_t *pos, unsigned int n,
	       unsigned int context, uint64_t seed);
/** text_draw_held() - the same from the part that is never trained on */
void text_draw_held(const struct text *t, size_t *pos, unsigned int n,
		    unsigned int context, uint64_t seed);

/** digest() - 64 bits that differ if the bytes do, unless somebody wants them not to */
uint64_t digest(const void *bytes, size_t len);

/** rng_next() - next of a sequence of 64-bit random numbers (splitmix64) */
uint64_t rng_next(uint64_t *state);
/** rng_mix() - seed of a separate sequence for (@seed, @a, @b) */
uint64_t rng_mix(uint64_t seed, uint64_t a, uint64_t b);

#endif /* TRAIN_TEXT_H */
