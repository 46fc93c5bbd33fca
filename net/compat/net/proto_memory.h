/* SPDX-License-Identifier: GPL-2.0-only */
/* Before Linux 6.10, what it has is in net/sock.h */
#ifndef _NET_DBLP_COMPAT_NET_PROTO_MEMORY_H
#define _NET_DBLP_COMPAT_NET_PROTO_MEMORY_H

#if __has_include_next(<net/proto_memory.h>)
#include_next <net/proto_memory.h>
#else
#include <net/sock.h>
#endif

#endif
