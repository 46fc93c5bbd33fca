/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in */
#ifndef _DBLP_USER_MATH_H
#define _DBLP_USER_MATH_H

#include <linux/types.h>

#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))

static inline u32 int_sqrt64(u64 x)
{
	u64 root = 0, bit;

	for (bit = 1ULL << 31; bit; bit >>= 1)
		if ((root | bit) * (root | bit) <= x)
			root |= bit;
	return root;
}

#endif /* _DBLP_USER_MATH_H */
