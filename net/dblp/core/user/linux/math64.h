/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in */
#ifndef _DBLP_USER_MATH64_H
#define _DBLP_USER_MATH64_H

#include <linux/types.h>

static inline u64 div_u64(u64 a, u32 b)
{
	return a / b;
}

static inline u64 div64_u64(u64 a, u64 b)
{
	return a / b;
}

static inline u64 div64_u64_rem(u64 a, u64 b, u64 *rest)
{
	*rest = a % b;
	return a / b;
}

static inline s64 div64_s64(s64 a, s64 b)
{
	return a / b;
}

/* On x86 the kernel's traps if the quotient needs more bits */
static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 c)
{
	unsigned __int128 q = (unsigned __int128)a * b / c;

	if (q >> 64)
		__builtin_trap();
	return q;
}

#endif /* _DBLP_USER_MATH64_H */
