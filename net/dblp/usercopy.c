// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows of segments from and to the user.
 *
 * Consecutive segments of a message are contiguous in user memory, and at equal
 * distances here. A copy_from_iter() or copy_to_iter() for each of them would
 * test the type of the iterator and the access each time, which costs a third
 * of the copying. These are steps of iterate_and_advance() instead, as those of
 * lib/iov_iter.c: both are tested once for each contiguous part of user memory.
 */
#include <linux/fault-inject-usercopy.h>
#include <linux/instrumented.h>
#include <linux/iov_iter.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "dblp.h"

/**
 * struct dblp_row - segments in kernel memory, whose bounds are trusted
 * @p: the first
 * @stride: bytes from one to the next
 * @len: bytes of each
 */
struct dblp_row {
	void	*p;
	u32	stride;
	u32	len;
};

/* Address of byte @at of the segments; @n is set to the rest of its segment */
static __always_inline void *dblp_row_seek(const struct dblp_row *row, u32 at,
					   size_t *n)
{
	u32 done = at % row->len;

	*n = row->len - done;
	return row->p + (size_t)(at / row->len) * row->stride + done;
}

static __always_inline bool dblp_get_user(void *to, const void __user *from,
					  size_t n)
{
	size_t left;

	instrument_copy_from_user_before(to, from, n);
	left = raw_copy_from_user(to, from, n);
	instrument_copy_from_user_after(to, from, n, left);
	return !left;
}

static __always_inline bool dblp_put_user(void __user *to, const void *from,
					  size_t n)
{
	instrument_copy_to_user(to, from, n);
	return !raw_copy_to_user(to, from, n);
}

/*
 * Steps: each returns how many of @len bytes it has not copied. The last
 * segment of a step may continue in the next.
 */
static __always_inline size_t
dblp_row_from_user(void __user *from, size_t progress, size_t len, void *priv,
		   void *priv2)
{
	const struct dblp_row *row = priv;
	u32 gap = row->stride - row->len;
	size_t n;
	void *to;

	if (should_fail_usercopy() || !access_ok(from, len))
		return len;
	/* As in copy_from_user(): no speculation past access_ok() */
	barrier_nospec();
	to = dblp_row_seek(row, progress, &n);
	for (; n < len; n = row->len) {
		if (!dblp_get_user(to, from, n))
			return len;
		from += n;
		len -= n;
		to += n + gap;
	}
	return dblp_get_user(to, from, len) ? 0 : len;
}

static __always_inline size_t
dblp_row_to_user(void __user *to, size_t progress, size_t len, void *priv,
		 void *priv2)
{
	const struct dblp_row *row = priv;
	u32 gap = row->stride - row->len;
	void *from;
	size_t n;

	if (should_fail_usercopy() || !access_ok(to, len))
		return len;
	from = dblp_row_seek(row, progress, &n);
	for (; n < len; n = row->len) {
		if (!dblp_put_user(to, from, n))
			return len;
		to += n;
		len -= n;
		from += n + gap;
	}
	return dblp_put_user(to, from, len) ? 0 : len;
}

static __always_inline size_t
dblp_row_from_kernel(void *from, size_t progress, size_t len, void *priv,
		     void *priv2)
{
	size_t n, done;
	void *to;

	for (done = 0; done < len; done += n) {
		to = dblp_row_seek(priv, progress + done, &n);
		n = min(n, len - done);
		memcpy(to, from + done, n);
	}
	return 0;
}

static __always_inline size_t
dblp_row_to_kernel(void *to, size_t progress, size_t len, void *priv,
		   void *priv2)
{
	size_t n, done;
	void *from;

	for (done = 0; done < len; done += n) {
		from = dblp_row_seek(priv, progress + done, &n);
		n = min(n, len - done);
		memcpy(to + done, from, n);
	}
	return 0;
}

/**
 * dblp_row_from_iter() - copy a row of segments from the user
 * @to: kernel memory of the first, whose bounds are trusted
 * @stride: bytes from one to the next
 * @len: bytes of each
 * @n: their number
 * @from: user memory; advanced behind them, or anywhere on failure
 *
 * Context: process, may fault.
 * Return: true, or false if the memory is not there.
 */
bool dblp_row_from_iter(void *to, u32 stride, u32 len, u32 n,
			struct iov_iter *from)
{
	struct dblp_row row = { .p = to, .stride = stride, .len = len };
	size_t all = (size_t)n * len;

	might_fault();
	return iterate_and_advance(from, all, &row, dblp_row_from_user,
				   dblp_row_from_kernel) == all;
}

/**
 * dblp_row_to_iter() - copy a row of segments to the user
 * @from: kernel memory of the first, whose bounds are trusted
 * @stride: bytes from one to the next
 * @len: bytes of each
 * @n: their number
 * @to: user memory; advanced behind them, or anywhere on failure
 *
 * Context: process, may fault.
 * Return: true, or false if the memory is not there.
 */
bool dblp_row_to_iter(const void *from, u32 stride, u32 len, u32 n,
		      struct iov_iter *to)
{
	struct dblp_row row = {
		.p = (void *)from, .stride = stride, .len = len,
	};
	size_t all = (size_t)n * len;

	might_fault();
	return iterate_and_advance(to, all, &row, dblp_row_to_user,
				   dblp_row_to_kernel) == all;
}
