/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in */
#ifndef _DBLP_USER_KERNEL_H
#define _DBLP_USER_KERNEL_H

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))

#endif /* _DBLP_USER_KERNEL_H */
