// SPDX-License-Identifier: GPL-2.0-only
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* The text has TEXT_BLOCKS blocks, and one in TEXT_HELD of them is held out */
#define TEXT_BLOCKS	64
#define TEXT_HELD	16
#define TEXT_MIN	1024

uint64_t rng_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

uint64_t rng_mix(uint64_t seed, uint64_t a, uint64_t b)
{
	uint64_t state = seed;

	state = rng_next(&state) ^ a;
	state = rng_next(&state) ^ b;
	return rng_next(&state);
}

/* FNV-1a */
uint64_t digest(const void *bytes, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325ULL;
	size_t i;

	for (i = 0; i < len; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3ULL;
	return hash;
}

static void text_number(struct text *t)
{
	bool seen[256] = { false };
	uint8_t symbol[256];
	unsigned int i;
	size_t pos;

	for (pos = 0; pos < t->len; pos++)
		seen[t->symbol[pos]] = true;
	for (i = 0; i < 256; i++) {
		if (!seen[i])
			continue;
		t->byte[t->vocab] = i;
		symbol[i] = t->vocab++;
	}

	t->hash = digest(t->symbol, t->len);
	for (pos = 0; pos < t->len; pos++)
		t->symbol[pos] = symbol[t->symbol[pos]];
}

static void text_append(struct text *t, const char *file)
{
	FILE *f = fopen(file, "r");
	size_t room = t->len;
	size_t n;

	if (!f)
		err(1, "%s", file);
	do {
		if (room - t->len < 4096) {
			room = t->len + 65536;
			t->symbol = realloc(t->symbol, room);
			if (!t->symbol)
				err(1, NULL);
		}
		n = fread(t->symbol + t->len, 1, room - t->len, f);
		t->len += n;
	} while (n);
	if (ferror(f))
		err(1, "%s", file);
	fclose(f);
}

void text_load(struct text *t, char *const *files, unsigned int n)
{
	unsigned int i;

	*t = (struct text){ 0 };
	for (i = 0; i < n; i++)
		text_append(t, files[i]);
	if (t->len < TEXT_MIN)
		errx(1, "the text has %zu bytes, but training needs %d",
		     t->len, TEXT_MIN);
	text_number(t);
}

void text_from(struct text *t, const void *bytes, size_t len)
{
	*t = (struct text){ .symbol = malloc(len), .len = len };
	if (!t->symbol)
		err(1, NULL);
	memcpy(t->symbol, bytes, len);
	text_number(t);
}

void text_free(struct text *t)
{
	free(t->symbol);
	*t = (struct text){ 0 };
}

static bool text_is_held(const struct text *t, size_t pos)
{
	size_t block = pos / (t->len / TEXT_BLOCKS + 1);

	return block % TEXT_HELD == TEXT_HELD / 2;
}

static void draw(const struct text *t, size_t *pos, unsigned int n,
		 unsigned int context, uint64_t seed, bool held)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		do {
			pos[i] = context + rng_next(&seed) % (t->len - context);
		} while (text_is_held(t, pos[i]) != held);
	}
}

void text_draw(const struct text *t, size_t *pos, unsigned int n,
	       unsigned int context, uint64_t seed)
{
	draw(t, pos, n, context, seed, false);
}

void text_draw_held(const struct text *t, size_t *pos, unsigned int n,
		    unsigned int context, uint64_t seed)
{
	draw(t, pos, n, context, seed, true);
}
