// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows of segments from and to the user.
 *
 * Segments that follow each other in a message lie one behind the other with
 * the user, and at equal distances here. _copy_from_iter() and _copy_to_iter()
 * look at each of them what kind of memory it is for, and whether that is the
 * user's, which costs a third of what the copying does. Here that is asked once.
 */
#include <linux/fault-inject-usercopy.h>
#include <linux/instrumented.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "dblp.h"

/* Where the next @len bytes are, if that is one stretch of the user's memory */
static void __user *dblp_iter_user(const struct iov_iter *i, size_t len)
{
	void __user *p;

	if (!iter_is_ubuf(i) || i->nofault || iov_iter_count(i) < len)
		return NULL;
	p = i->ubuf + i->iov_offset;
	if (!access_ok(p, len))
		return NULL;
	/* As in copy_from_user(): nothing is copied on a guess that it is */
	barrier_nospec();
	return p;
}

/**
 * dblp_row_from_iter() - take a row of segments from the user
 * @to: where the first goes; kernel memory that needs no second look
 * @stride: bytes from one to the next
 * @len: bytes of each
 * @n: their number
 * @from: where they are; behind them afterwards, or anywhere on failure
 *
 * Context: process, may fault.
 * Return: true, or false if the memory is not there.
 */
bool dblp_row_from_iter(void *to, u32 stride, u32 len, u32 n,
			struct iov_iter *from)
{
	const void __user *p = dblp_iter_user(from, (size_t)n * len);
	unsigned long left;
	u32 i;

	might_fault();
	for (i = 0; !p && i < n; i++, to += stride)
		if (_copy_from_iter(to, len, from) != len)
			return false;
	if (!p)
		return true;
	if (should_fail_usercopy())
		return false;
	for (i = 0; i < n; i++, to += stride, p += len) {
		instrument_copy_from_user_before(to, p, len);
		left = raw_copy_from_user(to, p, len);
		instrument_copy_from_user_after(to, p, len, left);
		if (left)
			return false;
	}
	iov_iter_advance(from, (size_t)n * len);
	return true;
}

/**
 * dblp_row_to_iter() - give a row of segments to the user
 * @from: where the first is; kernel memory that needs no second look
 * @stride: bytes from one to the next
 * @len: bytes of each
 * @n: their number
 * @to: where they go; behind them afterwards, or anywhere on failure
 *
 * Context: process, may fault.
 * Return: true, or false if the memory is not there.
 */
bool dblp_row_to_iter(const void *from, u32 stride, u32 len, u32 n,
		      struct iov_iter *to)
{
	void __user *p = dblp_iter_user(to, (size_t)n * len);
	u32 i;

	might_fault();
	for (i = 0; !p && i < n; i++, from += stride)
		if (_copy_to_iter(from, len, to) != len)
			return false;
	if (!p)
		return true;
	if (should_fail_usercopy())
		return false;
	for (i = 0; i < n; i++, from += stride, p += len) {
		instrument_copy_to_user(p, from, len);
		if (raw_copy_to_user(p, from, len))
			return false;
	}
	iov_iter_advance(to, (size_t)n * len);
	return true;
}
