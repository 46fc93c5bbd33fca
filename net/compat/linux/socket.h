/* SPDX-License-Identifier: GPL-2.0-only */
/* Linux 6.19 added a type for addresses with a separate length */
#ifndef _NET_DBLP_COMPAT_LINUX_SOCKET_H
#define _NET_DBLP_COMPAT_LINUX_SOCKET_H

#include_next <linux/socket.h>

#ifdef DBLP_LACKS_SOCKADDR_UNSIZED
#define sockaddr_unsized	sockaddr
#endif

#endif
