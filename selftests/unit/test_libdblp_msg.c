// SPDX-License-Identifier: GPL-2.0-only
/* libdblp: messages, with a fake kernel that returns what the test sets */
#define _GNU_SOURCE
#include <errno.h>
#include <libdblp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "test.h"

static struct {
	/* Results to return */
	ssize_t			ret;		/* or a negative errno */
	int			flags;
	u32			info_len;	/* 0: none */
	struct dblp_rcvinfo	info;
	bool			cut;		/* ranges do not fit the control buffer */
	bool			lies;		/* the loss map is of another message */
	int			map_err;
	u32			map_offset;	/* 0: that of the header */
	/* Arguments of the last call */
	int			asked_flags;
	int			asked_option;	/* 0: no call */
	size_t			sent_control;
	struct dblp_sndinfo	sent;
	u64			cancelled;
} kernel;

static struct dblp_range range_at(u32 i)
{
	return (struct dblp_range){ 1000 * i, 1 + i };
}

static void put(struct msghdr *msg, size_t *used, int type, const void *data,
		size_t len)
{
	struct cmsghdr *c = (void *)((char *)msg->msg_control + *used);

	if (*used + CMSG_LEN(len) > msg->msg_controllen) {
		msg->msg_flags |= MSG_CTRUNC;
		return;
	}
	c->cmsg_level = SOL_DBLP;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	*used += CMSG_SPACE(len);
}

static ssize_t kernel_recvmsg(int fd, struct msghdr *msg, int flags)
{
	int type = flags & MSG_ERRQUEUE ? DBLP_CLOSEINFO : DBLP_RCVINFO;
	size_t used = 0, n = kernel.info.ranges;
	char info[2 * sizeof(struct dblp_rcvinfo)];
	struct dblp_range *range;
	u32 i;

	kernel.asked_flags = flags;
	if (kernel.ret < 0) {
		errno = -kernel.ret;
		return -1;
	}
	msg->msg_flags = kernel.flags;
	memset(info, 0xff, sizeof(info));
	memcpy(info, &kernel.info, sizeof(kernel.info));
	if (kernel.info_len)
		put(msg, &used, type, info, kernel.info_len);
	range = malloc(n * sizeof(*range) + 1);
	for (i = 0; i < n; i++)
		range[i] = range_at(i);
	if (n && !kernel.cut)
		put(msg, &used, DBLP_RANGES, range, n * sizeof(*range));
	free(range);
	msg->msg_controllen = used;
	return kernel.ret;
}

static int kernel_getsockopt(int fd, int level, int option, void *val,
			     socklen_t *len)
{
	u32 offset = kernel.map_offset ?: sizeof(struct dblp_lossmap);
	struct dblp_range *range = (void *)((char *)val + offset);
	struct dblp_lossmap *map = val;
	u32 i;

	kernel.asked_option = option;
	if (kernel.map_err) {
		errno = kernel.map_err;
		return -1;
	}
	map->tag = kernel.info.tag;
	map->msg_id = kernel.info.msg_id + kernel.lies;
	map->ranges = kernel.info.ranges;
	map->offset = offset;
	for (i = 0; i < map->ranges; i++) {
		if ((char *)&range[i + 1] > (char *)val + *len)
			break;
		range[i] = range_at(i);
	}
	*len = (char *)&range[i] - (char *)val;
	return 0;
}

static ssize_t kernel_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);

	kernel.asked_flags = flags;
	kernel.sent_control = msg->msg_controllen;
	if (c && c->cmsg_level == SOL_DBLP && c->cmsg_type == DBLP_SNDINFO &&
	    c->cmsg_len == CMSG_LEN(sizeof(kernel.sent)))
		memcpy(&kernel.sent, CMSG_DATA(c), sizeof(kernel.sent));
	if (kernel.ret >= 0)
		return kernel.ret;
	errno = -kernel.ret;
	return -1;
}

static int kernel_setsockopt(int fd, int level, int option, const void *val,
			     socklen_t len)
{
	if (level != SOL_DBLP || option != DBLP_CANCEL || len != sizeof(u64))
		abort();
	memcpy(&kernel.cancelled, val, len);
	errno = -kernel.ret;
	return kernel.ret ? -1 : 0;
}

#define recvmsg		kernel_recvmsg
#define sendmsg		kernel_sendmsg
#define getsockopt	kernel_getsockopt
#define setsockopt	kernel_setsockopt
#include "../../tools/libdblp/msg.c"

#define INFO_LEN	sizeof(struct dblp_rcvinfo)

FIXTURE(messages) {
	struct dblp_msg	m;
	char		buf[64];
};

FIXTURE_SETUP(messages)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.info.tag = 7;
	kernel.info.msg_id = 3;
	kernel.info.length = 60;
	kernel.info.reserved[32] = 0x5a;
	kernel.info_len = INFO_LEN;
	kernel.ret = 60;
}

FIXTURE_TEARDOWN(messages)
{
	dblp_msg_free(&self->m);
	EXPECT_EQ(0, self->m.room);
	EXPECT_EQ(NULL, self->m.range);
}

static bool has_ranges(const struct dblp_msg *m, u32 n)
{
	struct dblp_range want;
	u32 i;

	if (m->n != n)
		return false;
	for (i = 0; i < n; i++) {
		want = range_at(i);
		if (memcmp(&want, &m->range[i], sizeof(want)))
			return false;
	}
	return true;
}

TEST_F(messages, loss_maps_of_any_length)
{
	static const u32 n[] = { 0, 1, 511, 512, 513, 3, 20000, 0 };
	int i;

	for (i = 0; i < ARRAY_SIZE(n); i++) {
		kernel.info.ranges = n[i];
		kernel.asked_option = 0;
		ASSERT_EQ(60, dblp_recv(4, self->buf, 64, 0, &self->m));
		ASSERT_TRUE(has_ranges(&self->m, n[i])) TH_LOG("%u", n[i]);
		ASSERT_EQ(0, memcmp(&kernel.info, &self->m.info, INFO_LEN));
		ASSERT_EQ(n[i] > 512 ? DBLP_LOSSMAP : 0, kernel.asked_option);
		ASSERT_EQ(n[i] > 512, !!(self->m.flags & MSG_CTRUNC));
	}
}

TEST_F(messages, reports)
{
	kernel.ret = 0;
	kernel.flags = MSG_ERRQUEUE;
	kernel.info.ranges = 2;
	ASSERT_EQ(0, dblp_report(4, MSG_DONTWAIT, &self->m));
	ASSERT_TRUE(has_ranges(&self->m, 2));
	ASSERT_EQ(7, self->m.info.tag);
	ASSERT_EQ(MSG_ERRQUEUE | MSG_DONTWAIT, kernel.asked_flags);
	kernel.info.ranges = 600;
	ASSERT_EQ(0, dblp_report(4, 0, &self->m));
	ASSERT_EQ(DBLP_SENT_LOSSMAP, kernel.asked_option);
	ASSERT_TRUE(has_ranges(&self->m, 600));
	/* The last report stays if there is no new one */
	kernel.ret = -EAGAIN;
	kernel.info.tag = 8;
	ASSERT_EQ(-EAGAIN, dblp_report(4, 0, &self->m));
	ASSERT_TRUE(has_ranges(&self->m, 600));
	ASSERT_EQ(7, self->m.info.tag);
}

TEST_F(messages, cancelled)
{
	kernel.ret = 0;
	ASSERT_EQ(0, dblp_cancel(4, 0x123456789));
	ASSERT_EQ(0x123456789, kernel.cancelled);
	kernel.ret = -EALREADY;
	ASSERT_EQ(-EALREADY, dblp_cancel(4, 1));
	/* Data of an earlier message is in the buffer */
	kernel.ret = 60;
	kernel.info.ranges = 600;
	ASSERT_EQ(60, dblp_recv(4, self->buf, 64, 0, &self->m));
	kernel.ret = -ECANCELED;
	kernel.info.tag = 8;
	kernel.info.ranges = 1;
	ASSERT_EQ(-ECANCELED, dblp_recv(4, self->buf, 64, MSG_PEEK, &self->m));
	ASSERT_TRUE(has_ranges(&self->m, 600));
	ASSERT_EQ(-ECANCELED, dblp_recv(4, self->buf, 64, 0, &self->m));
	ASSERT_EQ(8, self->m.info.tag);
	ASSERT_EQ(3, self->m.info.msg_id);
	ASSERT_EQ(DBLP_REASON_CANCELLED, self->m.info.reason);
	ASSERT_EQ(1, self->m.info.length);
	ASSERT_EQ(1, self->m.info.missing);
	ASSERT_TRUE(has_ranges(&self->m, 1));
	/* Another thread has read the next message */
	kernel.info.tag = 9;
	kernel.info.ranges = 2;
	ASSERT_EQ(-ECANCELED, dblp_recv(4, self->buf, 64, 0, &self->m));
	ASSERT_EQ(8, self->m.info.tag);
	kernel.map_err = ENOMEM;
	ASSERT_EQ(-ECANCELED, dblp_recv(4, self->buf, 64, 0, &self->m));
	ASSERT_TRUE(has_ranges(&self->m, 1));
}

TEST_F(messages, end_of_the_connection)
{
	kernel.info.ranges = 2;
	ASSERT_EQ(60, dblp_recv(4, self->buf, 64, 0, &self->m));
	kernel.ret = 0;
	kernel.info_len = 0;
	kernel.info.ranges = 0;
	ASSERT_EQ(0, dblp_recv(4, self->buf, 64, 0, &self->m));
	ASSERT_EQ(0, self->m.n);
	ASSERT_EQ(0, self->m.info.length);
	kernel.ret = -ECONNRESET;
	ASSERT_EQ(-ECONNRESET, dblp_recv(4, self->buf, 64, 0, &self->m));
}

TEST_F(messages, kernels_with_shorter_or_longer_structures)
{
	kernel.info_len = 2 * INFO_LEN;
	ASSERT_EQ(60, dblp_recv(4, self->buf, 64, 0, &self->m));
	ASSERT_EQ(0, memcmp(&kernel.info, &self->m.info, INFO_LEN));
	kernel.info_len = INFO_LEN - 4;
	ASSERT_EQ(60, dblp_recv(4, self->buf, 64, 0, &self->m));
	ASSERT_EQ(7, self->m.info.tag);
	ASSERT_EQ(0, self->m.info.reserved[32]);
	kernel.info_len = 0;
	ASSERT_EQ(-EBADMSG, dblp_recv(4, self->buf, 64, 0, &self->m));
	/* The kernel omits ranges although they fit */
	kernel.info_len = INFO_LEN;
	kernel.info.ranges = 5;
	kernel.cut = true;
	ASSERT_EQ(60, dblp_recv(4, self->buf, 64, 0, &self->m));
	ASSERT_TRUE(has_ranges(&self->m, 5));
	/* More bytes before the ranges, so that they do not fit at first; then fewer */
	kernel.info.ranges = 600;
	kernel.map_offset = 2 * sizeof(struct dblp_lossmap);
	ASSERT_EQ(60, dblp_recv(4, self->buf, 64, 0, &self->m));
	ASSERT_TRUE(has_ranges(&self->m, 600));
	kernel.map_offset = 16;
	ASSERT_EQ(-EBADMSG, dblp_recv(4, self->buf, 64, 0, &self->m));
}

TEST_F(messages, loss_maps_of_another_message)
{
	kernel.info.ranges = 600;
	kernel.lies = true;
	ASSERT_EQ(-EBADMSG, dblp_recv(4, self->buf, 64, 0, &self->m));
	kernel.map_err = ENODATA;
	ASSERT_EQ(-ENODATA, dblp_recv(4, self->buf, 64, 0, &self->m));
}

TEST_F(messages, sent)
{
	const struct dblp_sndinfo info = { .tag = 9, .critical = 4 };

	ASSERT_EQ(60, dblp_send(4, self->buf, 60, MSG_DONTWAIT, &info));
	ASSERT_EQ(MSG_DONTWAIT | MSG_NOSIGNAL, kernel.asked_flags);
	ASSERT_EQ(0, memcmp(&info, &kernel.sent, sizeof(info)));
	ASSERT_EQ(60, dblp_send(4, self->buf, 60, 0, NULL));
	ASSERT_EQ(0, kernel.sent_control);
	kernel.ret = -EINTR;
	ASSERT_EQ(-EINTR, dblp_send(4, self->buf, 60, 0, &info));
}

TEST_HARNESS_MAIN
