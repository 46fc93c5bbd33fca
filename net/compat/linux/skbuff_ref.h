/* SPDX-License-Identifier: GPL-2.0-only */
/* Before Linux 6.10, what it has is in linux/skbuff.h */
#ifndef _NET_DBLP_COMPAT_LINUX_SKBUFF_REF_H
#define _NET_DBLP_COMPAT_LINUX_SKBUFF_REF_H

#if __has_include_next(<linux/skbuff_ref.h>)
#include_next <linux/skbuff_ref.h>
#else
#include <linux/skbuff.h>
#endif

#endif
