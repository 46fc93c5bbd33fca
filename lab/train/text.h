/* SPDX-License-Identifier: GPL-2.0-only */
/* The training text as numbers, and random positions in it. */
#ifndef TRAIN_TEXT_H
#define TRAIN_TEXT_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct text - the training text
 * @symbol: the text, as one symbol for each byte
 * @len: number of symbols in the text
 * @vocab: number of different symbols
 * @hash: digest of the text, which must be equal on all ranks
 * @byte: byte of each symbol
 */
struct text {
	uint8_t		*symbol;
	size_t		len;
	unsigned int	vocab;
	uint64_t	hash;
	uint8_t		byte[256];
};

/**
 * text_load() - read and join files
 *
 * Ends the program with a message if a file cannot be read or the text is too short.
 */
void text_load(struct text *t, char *const *files, unsigned int n);
/** text_from() - text from memory, for tests */
void text_from(struct text *t, const void *bytes, size_t len);
void text_free(struct text *t);

/**
 * text_draw() - random positions to predict, in the training part of the text
 * @t: the text
 * @pos: filled with positions after at least @context symbols
 * @n: number of positions
 * @context: symbols needed before a position
 * @seed: the same seed gives the same positions
 */
void text_draw(const struct text *t, size_t *pos, unsigned int n,
	       unsigned int context, uint64_t seed);
/** text_draw_held() - the same, in the held-out part of the text */
void text_draw_held(const struct text *t, size_t *pos, unsigned int n,
		    unsigned int context, uint64_t seed);

/** digest() - 64-bit FNV-1a hash; not safe against deliberate collisions */
uint64_t digest(const void *bytes, size_t len);

/** rng_next() - next number of a 64-bit random sequence (splitmix64) */
uint64_t rng_next(uint64_t *state);
/** rng_mix() - seed of an independent sequence for (@seed, @a, @b) */
uint64_t rng_mix(uint64_t seed, uint64_t a, uint64_t b);

#endif /* TRAIN_TEXT_H */
