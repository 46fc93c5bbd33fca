/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in */
#ifndef _DBLP_USER_STRING_H
#define _DBLP_USER_STRING_H

#include <string.h>

static inline void *memchr_inv(const void *p, int c, size_t n)
{
	const unsigned char *byte = p;

	for (; n; byte++, n--)
		if (*byte != (unsigned char)c)
			return (void *)byte;
	return NULL;
}

#endif /* _DBLP_USER_STRING_H */
