/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in: the few bitmap functions the pure parts use */
#ifndef _DBLP_USER_BITMAP_H
#define _DBLP_USER_BITMAP_H

#include <linux/math.h>
#include <linux/types.h>

#ifndef BITS_PER_LONG
#define BITS_PER_LONG	(8 * (int)sizeof(long))
#endif
#define BITS_TO_LONGS(n)	DIV_ROUND_UP(n, BITS_PER_LONG)

static inline bool test_bit(unsigned long i, const unsigned long *bits)
{
	return bits[i / BITS_PER_LONG] >> (i % BITS_PER_LONG) & 1;
}

static inline unsigned long __ffs(unsigned long word)
{
	return __builtin_ctzl(word);
}

static inline void __set_bit(unsigned long i, unsigned long *bits)
{
	bits[i / BITS_PER_LONG] |= 1UL << (i % BITS_PER_LONG);
}

static inline void __clear_bit(unsigned long i, unsigned long *bits)
{
	bits[i / BITS_PER_LONG] &= ~(1UL << (i % BITS_PER_LONG));
}

static inline void bitmap_set(unsigned long *bits, unsigned int from,
			      unsigned int n)
{
	while (n--)
		__set_bit(from++, bits);
}

static inline void bitmap_clear(unsigned long *bits, unsigned int from,
				unsigned int n)
{
	while (n--)
		__clear_bit(from++, bits);
}

static inline unsigned long __user_find(const unsigned long *bits,
					unsigned long n, unsigned long from,
					unsigned long invert)
{
	while (from < n) {
		unsigned long w = bits[from / BITS_PER_LONG] ^ invert;

		w >>= from % BITS_PER_LONG;
		if (w) {
			from += __builtin_ctzl(w);
			return from < n ? from : n;
		}
		from += BITS_PER_LONG - from % BITS_PER_LONG;
	}
	return n;
}

static inline unsigned long find_next_bit(const unsigned long *bits,
					  unsigned long n, unsigned long from)
{
	return __user_find(bits, n, from, 0);
}

static inline unsigned long find_next_zero_bit(const unsigned long *bits,
					       unsigned long n,
					       unsigned long from)
{
	return __user_find(bits, n, from, ~0UL);
}

#endif /* _DBLP_USER_BITMAP_H */
