/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in */
#ifndef _UNIT_LINUX_BUILD_BUG_H
#define _UNIT_LINUX_BUILD_BUG_H

#define BUILD_BUG_ON(cond)	_Static_assert(!(cond), #cond)

#endif /* _UNIT_LINUX_BUILD_BUG_H */
