/* SPDX-License-Identifier: GPL-2.0-only */
/* Before Linux 6.9, what it has is in net/sock.h */
#ifndef _NET_DBLP_COMPAT_NET_RPS_H
#define _NET_DBLP_COMPAT_NET_RPS_H

#if __has_include_next(<net/rps.h>)
#include_next <net/rps.h>
#else
#include <net/sock.h>
#endif

#endif
