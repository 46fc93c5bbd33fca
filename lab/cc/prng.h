/* SPDX-License-Identifier: GPL-2.0-only */
/* Reproducible pseudo-random numbers */
#ifndef DBLP_LAB_PRNG_H
#define DBLP_LAB_PRNG_H

#include <linux/types.h>

/* splitmix64; each test has its own seed */
struct prng {
	u64 state;
};

static inline u64 prng_u64(struct prng *r)
{
	u64 x = r->state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* 0 ... @n - 1 */
static inline u64 prng_below(struct prng *r, u64 n)
{
	return prng_u64(r) % n;
}

/* A number of random size: small ones are as likely as large ones */
static inline u64 prng_any(struct prng *r)
{
	return prng_u64(r) >> prng_below(r, 64);
}

#endif /* DBLP_LAB_PRNG_H */
