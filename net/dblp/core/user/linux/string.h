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

/* Set all members of @obj that lie after @member */
#define memset_after(obj, v, member) \
	memset(&(obj)->member + 1, v, \
	       (size_t)((char *)((obj) + 1) - (char *)(&(obj)->member + 1)))

#endif /* _DBLP_USER_STRING_H */
