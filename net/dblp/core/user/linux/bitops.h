/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in */
#ifndef _DBLP_USER_BITOPS_H
#define _DBLP_USER_BITOPS_H

static inline unsigned long hweight_long(unsigned long word)
{
	return __builtin_popcountl(word);
}

#endif /* _DBLP_USER_BITOPS_H */
