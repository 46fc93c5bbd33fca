/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-space stand-in for the kernel's <linux/limits.h>. The C library
 * includes the uapi header of the same name by way of <limits.h>.
 */
#ifndef _DBLP_USER_LIMITS_H
#define _DBLP_USER_LIMITS_H

#include_next <linux/limits.h>

#define U8_MAX		0xffU
#define U16_MAX		0xffffU
#define U32_MAX		0xffffffffU
#define S32_MAX		0x7fffffff
#define U64_MAX		0xffffffffffffffffULL
#define S64_MAX		0x7fffffffffffffffLL

#endif /* _DBLP_USER_LIMITS_H */
