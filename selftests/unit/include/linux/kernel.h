/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in */
#ifndef _UNIT_LINUX_KERNEL_H
#define _UNIT_LINUX_KERNEL_H

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#endif /* _UNIT_LINUX_KERNEL_H */
