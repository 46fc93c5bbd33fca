/* SPDX-License-Identifier: GPL-2.0-only */
/* Copies without room after their end */
#ifndef _UNIT_EXACT_H
#define _UNIT_EXACT_H

#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

/* Copy to memory of exactly @len bytes, so that ASan detects reads beyond it */
static inline u8 *exact(const void *from, u32 len)
{
	u8 *p = malloc(len ?: 1);

	memcpy(p, from, len);
	return len ? p : p + 1;
}

static inline void free_exact(u8 *p, u32 len)
{
	free(len ? p : p - 1);
}

#endif /* _UNIT_EXACT_H */
