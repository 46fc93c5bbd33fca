/* SPDX-License-Identifier: GPL-2.0-only */
/* 6.10 put the arguments of accept() into a structure */
#ifndef _NET_DBLP_COMPAT_NET_SOCK_H
#define _NET_DBLP_COMPAT_NET_SOCK_H

#include_next <net/sock.h>

#ifdef DBLP_LACKS_ACCEPT_ARG
struct proto_accept_arg {
	int	flags;
	int	err;
	int	is_empty;
	bool	kern;
};

int dblp_accept(struct socket *sock, struct socket *newsock,
		struct proto_accept_arg *arg);

static inline int dblp_accept_op(struct socket *sock, struct socket *newsock,
				 int flags, bool kern)
{
	struct proto_accept_arg arg = {
		.flags = flags,
		.kern = kern,
	};

	return dblp_accept(sock, newsock, &arg);
}
#else
#define dblp_accept_op dblp_accept
#endif

#endif
