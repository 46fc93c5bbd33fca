/* SPDX-License-Identifier: GPL-2.0-only */
/* Linux 6.7 added this header. Before, only lib/iov_iter.c walked iterators */
#ifndef _NET_DBLP_COMPAT_LINUX_IOV_ITER_H
#define _NET_DBLP_COMPAT_LINUX_IOV_ITER_H

#if __has_include_next(<linux/iov_iter.h>)
#include_next <linux/iov_iter.h>
#else
#include <linux/uio.h>

typedef size_t (*iov_step_f)(void *iter_base, size_t progress, size_t len,
			     void *priv, void *priv2);
typedef size_t (*iov_ustep_f)(void __user *iter_base, size_t progress,
			      size_t len, void *priv, void *priv2);

/* Next contiguous user memory; lowers @len to its length */
static inline void __user *dblp_compat_iter_user(const struct iov_iter *i,
						 size_t *len)
{
	struct iovec iov;

	if (iter_is_ubuf(i))
		return i->ubuf + i->iov_offset;
#ifdef iter_iov_addr
	iov.iov_base = iter_iov_addr(i);
	iov.iov_len = iter_iov_len(i);
#else
	iov = iov_iter_iovec(i);
#endif
	*len = min(*len, iov.iov_len);
	return iov.iov_base;
}

/* Copy kernel memory, as registered by io_uring, through a buffer */
static inline size_t dblp_compat_iterate_kernel(struct iov_iter *i, size_t len,
						void *priv, void *priv2,
						iov_step_f step)
{
	bool source = iov_iter_rw(i) == WRITE;
	size_t progress = 0, part;
	u8 buf[256];

	for (; progress < len; progress += part) {
		part = min(len - progress, sizeof(buf));
		if (source && !copy_from_iter_full(buf, part, i))
			break;
		if (step(buf, progress, part, priv, priv2))
			break;
		if (!source && copy_to_iter(buf, part, i) != part)
			break;
	}
	return progress;
}

static __always_inline size_t
iterate_and_advance2(struct iov_iter *i, size_t len, void *priv, void *priv2,
		     iov_ustep_f ustep, iov_step_f step)
{
	size_t progress = 0, part, left = 0;
	void __user *p;

	len = min(len, iov_iter_count(i));
	if (!user_backed_iter(i))
		return dblp_compat_iterate_kernel(i, len, priv, priv2, step);
	for (; progress < len && !left; progress += part - left) {
		part = len - progress;
		p = dblp_compat_iter_user(i, &part);
		left = ustep(p, progress, part, priv, priv2);
		iov_iter_advance(i, part - left);
	}
	return progress;
}
#endif

#endif
