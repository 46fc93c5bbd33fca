/* SPDX-License-Identifier: GPL-2.0-only */
/* Linux 6.9 moved these declarations here from net/sock.h */
#ifndef _NET_DBLP_COMPAT_NET_RPS_H
#define _NET_DBLP_COMPAT_NET_RPS_H

#if __has_include_next(<net/rps.h>)
#include_next <net/rps.h>
#else
#include <net/sock.h>
#endif

#endif
