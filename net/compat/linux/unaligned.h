/* SPDX-License-Identifier: GPL-2.0-only */
/* Linux 6.12 moved asm/unaligned.h here */
#ifndef _NET_DBLP_COMPAT_LINUX_UNALIGNED_H
#define _NET_DBLP_COMPAT_LINUX_UNALIGNED_H

#if __has_include_next(<linux/unaligned.h>)
#include_next <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#endif
