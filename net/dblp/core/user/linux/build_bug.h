/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in */
#ifndef _DBLP_USER_BUILD_BUG_H
#define _DBLP_USER_BUILD_BUG_H

#define BUILD_BUG_ON(cond)	_Static_assert(!(cond), #cond)

#endif /* _DBLP_USER_BUILD_BUG_H */
