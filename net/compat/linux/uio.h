/* SPDX-License-Identifier: GPL-2.0-only */
/* Before 6.4, user memory in one piece comes as an array of one iovec */
#ifndef _NET_DBLP_COMPAT_LINUX_UIO_H
#define _NET_DBLP_COMPAT_LINUX_UIO_H

#include_next <linux/uio.h>

#ifndef iter_iov_addr
/* Each copy from or to a plain buffer costs less */
static inline void dblp_iter_plain(struct iov_iter *i)
{
	struct iovec iov;

	if (!iter_is_iovec(i) || i->nr_segs != 1 || !iov_iter_count(i))
		return;
	iov = iov_iter_iovec(i);
	iov_iter_ubuf(i, iov_iter_rw(i), iov.iov_base, iov.iov_len);
}
#else
static inline void dblp_iter_plain(struct iov_iter *i)
{
}
#endif

#endif
