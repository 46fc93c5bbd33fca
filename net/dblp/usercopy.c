// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copying rows of segments from and to the user, and structures from the user.
 *
 * Consecutive segments of a message are contiguous in user memory, and at equal
 * distances in kernel memory. copy_from_iter() or copy_to_iter() for each
 * segment would check iterator type and access each time, at a third of the
 * cost of copying. So the functions here are steps of iterate_and_advance2(),
 * like those of lib/iov_iter.c: these check contiguous user memory once.
 */
#include <linux/fault-inject-usercopy.h>
#include <linux/instrumented.h>
#include <linux/iov_iter.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "dblp.h"

/**
 * dblp_copy_struct() - copy an extensible structure from the user
 * @to: structure as this kernel knows it
 * @size: size of @to in bytes
 * @first: size of the first version of the structure, see Documentation/abi.rst
 * @from: structure as the program knows it
 * @len: size of @from in bytes
 *
 * Fields that an older program lacks are set to zero. Fields that only a newer
 * program knows must be zero.
 *
 * copy_struct_from_sockptr() has this purpose, but Linux 6.1 lacks it. As of
 * Linux 6.12 it does not check the additional bytes: it passes the smaller size
 * to copy_struct_from_user(), and in kernel memory it checks the start of the
 * structure instead of the bytes after it.
 *
 * Context: process, may fault.
 * Return: 0, -EINVAL if @len is less than @first, -E2BIG if an unknown field is
 * not zero or @len exceeds a page, or -EFAULT.
 */
int dblp_copy_struct(void *to, u32 size, u32 first, sockptr_t from, u32 len)
{
	u32 at, n;
	u8 more[32];

	if (len < first)
		return -EINVAL;
	if (len > PAGE_SIZE)
		return -E2BIG;
	memset(to, 0, size);
	if (copy_from_sockptr(to, from, min(size, len)))
		return -EFAULT;
	for (at = size; at < len; at += n) {
		n = min_t(u32, len - at, sizeof(more));
		if (copy_from_sockptr_offset(more, from, at, n))
			return -EFAULT;
		if (memchr_inv(more, 0, n))
			return -E2BIG;
	}
	return 0;
}

/**
 * struct dblp_row - segments in kernel memory, whose bounds are trusted
 * @p: first segment
 * @stride: bytes from the start of a segment to that of the next
 * @len: bytes of each segment
 */
struct dblp_row {
	void	*p;
	u32	stride;
	u32	len;
};

/* Address of byte @at of the row; @n is set to the rest of its segment */
static __always_inline void *dblp_row_seek(const struct dblp_row *row, u32 at,
					   size_t *n)
{
	u32 done = at % row->len;

	*n = row->len - done;
	return row->p + (size_t)(at / row->len) * row->stride + done;
}

/* Copy @n bytes from user memory to @p, or if @to_user, from @p to the user */
static __always_inline bool dblp_copy_user(void __user *user, void *p, size_t n,
					   bool to_user)
{
	size_t left;

	if (to_user) {
		instrument_copy_to_user(user, p, n);
		return !raw_copy_to_user(user, p, n);
	}
	instrument_copy_from_user_before(p, user, n);
	left = raw_copy_from_user(p, user, n);
	instrument_copy_from_user_after(p, user, n, left);
	return !left;
}

/*
 * Steps of iterate_and_advance2(): each returns the number of bytes, of @len,
 * not copied. The last segment of a step may continue in the next step. They
 * copy to the user if @to_user is not NULL, which is constant after inlining.
 */
static __always_inline size_t
dblp_row_user(void __user *user, size_t progress, size_t len, void *priv,
	      void *to_user)
{
	const struct dblp_row *row = priv;
	u32 gap = row->stride - row->len;
	size_t n;
	void *p;

	if (should_fail_usercopy() || !access_ok(user, len))
		return len;
	/* As in copy_from_user(): no speculation past access_ok() */
	if (!to_user)
		barrier_nospec();
	p = dblp_row_seek(row, progress, &n);
	for (; n < len; n = row->len) {
		if (!dblp_copy_user(user, p, n, to_user))
			return len;
		user += n;
		len -= n;
		p += n + gap;
	}
	return dblp_copy_user(user, p, len, to_user) ? 0 : len;
}

static __always_inline size_t
dblp_row_kernel(void *mem, size_t progress, size_t len, void *priv,
		void *to_user)
{
	size_t n, done;
	void *p;

	for (done = 0; done < len; done += n) {
		p = dblp_row_seek(priv, progress + done, &n);
		n = min(n, len - done);
		if (to_user)
			memcpy(mem + done, p, n);
		else
			memcpy(p, mem + done, n);
	}
	return 0;
}

static __always_inline bool dblp_row_iter(struct dblp_row *row, u32 n,
					  struct iov_iter *i, bool to_user)
{
	size_t all = (size_t)n * row->len;

	might_fault();
	return iterate_and_advance2(i, all, row, to_user ? row : NULL,
				    dblp_row_user, dblp_row_kernel) == all;
}

/**
 * dblp_row_from_iter() - copy a row of segments from the user
 * @to: kernel memory of the first segment, whose bounds are trusted
 * @stride: bytes from the start of a segment to that of the next
 * @len: bytes of each segment
 * @n: number of segments
 * @from: user memory; advanced past the row, or by less on failure
 *
 * Context: process, may fault.
 * Return: true, or false on a fault.
 */
bool dblp_row_from_iter(void *to, u32 stride, u32 len, u32 n,
			struct iov_iter *from)
{
	struct dblp_row row = { .p = to, .stride = stride, .len = len };

	return dblp_row_iter(&row, n, from, false);
}

/**
 * dblp_row_to_iter() - copy a row of segments to the user
 * @from: kernel memory of the first segment, whose bounds are trusted
 * @stride: bytes from the start of a segment to that of the next
 * @len: bytes of each segment
 * @n: number of segments
 * @to: user memory; advanced past the row, or by less on failure
 *
 * Context: process, may fault.
 * Return: true, or false on a fault.
 */
bool dblp_row_to_iter(const void *from, u32 stride, u32 len, u32 n,
		      struct iov_iter *to)
{
	struct dblp_row row = {
		.p = (void *)from, .stride = stride, .len = len,
	};

	return dblp_row_iter(&row, n, to, true);
}
