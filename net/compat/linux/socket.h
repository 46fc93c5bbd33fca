/* SPDX-License-Identifier: GPL-2.0-only */
/* 6.19 has a type of its own for addresses whose length is told beside them */
#ifndef _NET_DBLP_COMPAT_LINUX_SOCKET_H
#define _NET_DBLP_COMPAT_LINUX_SOCKET_H

#include_next <linux/socket.h>

#ifdef DBLP_LACKS_SOCKADDR_UNSIZED
#define sockaddr_unsized	sockaddr
#endif

#endif
