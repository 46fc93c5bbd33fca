/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in: each argument is evaluated once, types must match */
#ifndef _DBLP_USER_MINMAX_H
#define _DBLP_USER_MINMAX_H

#define __user_cmp(a, op, b) ({			\
	__typeof__(a) __a = (a);		\
	__typeof__(b) __b = (b);		\
	(void)(&__a == &__b);			\
	__a op __b ? __a : __b; })

#define min(a, b)		__user_cmp(a, <, b)
#define max(a, b)		__user_cmp(a, >, b)
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define max_t(type, a, b)	max((type)(a), (type)(b))
#define clamp_t(type, v, lo, hi) min_t(type, max_t(type, v, lo), hi)

#endif /* _DBLP_USER_MINMAX_H */
