/* SPDX-License-Identifier: GPL-2.0-only */
/* Linux 6.10 moved these declarations here from net/sock.h */
#ifndef _NET_DBLP_COMPAT_NET_PROTO_MEMORY_H
#define _NET_DBLP_COMPAT_NET_PROTO_MEMORY_H

#if __has_include_next(<net/proto_memory.h>)
#include_next <net/proto_memory.h>
#else
#include <net/sock.h>
#endif

#endif
