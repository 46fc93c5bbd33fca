// SPDX-License-Identifier: GPL-2.0-only
/*
 * Zero elision: segments of zero bytes are described instead of sent. Delivered bytes are
 * exact, missing bytes are within the budget, and elided bytes are not on the wire.
 */
#define _GNU_SOURCE
#include "lib/sock.h"

#include <linux/sockios.h>
#include <string.h>

#include "kselftest_harness.h"

#define WAIT_MS		60000
#define GREY		0xa5	/* initial contents of buffers */
#define SEG		1440	/* bytes of a segment, of Ethernet's MTU */
#define META		32	/* bytes less with a META frame */
#define SMALL		480	/* largest message without elision, bytes */

/* Patterns of zero segments */
enum zeros {
	NONE,
	ALL,
	EVERY_OTHER,
	NINE_OF_TEN,
	ALL_BUT_FIRST,
	LAST,
	RUNS,
	__ZEROS_MAX
};

static bool is_zero_seg(enum zeros zeros, u_int seg, u_int n)
{
	switch (zeros) {
	case ALL:
		return true;
	case EVERY_OTHER:
		return seg % 2;
	case NINE_OF_TEN:
		return seg % 10 != 3;
	case ALL_BUT_FIRST:
		return seg;
	case LAST:
		return seg == n - 1;
	case RUNS:
		return seg * seg / 97 % 3 == 1;
	default:
		return false;
	}
}

/**
 * struct contents - a message
 * @buf: its bytes
 * @len: length in bytes
 * @elided: bytes in zero segments
 * @segs: number of other segments
 */
struct contents {
	unsigned char	*buf;
	uint32_t	len;
	uint32_t	elided;
	uint32_t	segs;
};

static void make(struct contents *c, uint32_t len, enum zeros zeros,
		 uint32_t seg_size)
{
	uint32_t at, n = (len + seg_size - 1) / seg_size, part;

	*c = (struct contents) { .buf = malloc(len), .len = len };
	if (!c->buf)
		die("malloc()");
	pattern_fill(c->buf, len, 0, 1, zeros);
	for (at = 0; at < len; at += part) {
		part = len - at < seg_size ? len - at : seg_size;
		if (!is_zero_seg(zeros, at / seg_size, n)) {
			/* One nonzero byte at any place prevents elision */
			memset(c->buf + at, 0, part - 1);
			c->buf[at + part - 1] = 1 + at % 255;
			c->segs++;
			continue;
		}
		memset(c->buf + at, 0, part);
		c->elided += part;
	}
	if (len <= SMALL) {
		c->elided = 0;
		c->segs = 1;
	}
}

/**
 * struct ends - both ends of a connection over lo, whose MTU is Ethernet's
 * @listener: listening socket
 * @tx: sending socket, which gets reports
 * @rx: receiving socket
 */
struct ends {
	int	listener;
	int	tx;
	int	rx;
};

/* Connect; the receiver has the listener's options */
static void ends_connect(struct ends *e)
{
	struct sockaddr_dblp a;

	local_name(e->listener, &a);
	e->tx = new_socket();
	set_u32(e->tx, DBLP_NOTIFY, 1);
	if (connect_to(e->tx, &a))
		die("connect()");
	e->rx = accept(e->listener, NULL, NULL);
	if (e->rx < 0)
		die("accept()");
	set_timeout(e->rx, SO_RCVTIMEO, WAIT_MS);
}

static void ends_open(struct ends *e, bool placement, uint32_t fill,
		      const char *network)
{
	struct sockaddr_dblp a;

	netns_new();
	netns_set_mtu(1500);
	e->listener = new_listener("127.0.0.1", 1, &a);
	set_u32(e->listener, DBLP_PLACEMENT, placement);
	set_u32(e->listener, DBLP_FILL, fill);
	ends_connect(e);
	if (network)
		netem(network);
}

static void ends_disconnect(struct ends *e)
{
	close(e->tx);
	close(e->rx);
}

static uint64_t on_the_wire(void)
{
	FILE *f = fopen("/proc/net/dev", "r");
	unsigned long long bytes = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " lo: %llu", &bytes) == 1)
			break;
	if (!f)
		die("/proc/net/dev");
	fclose(f);
	return bytes;
}

/* Read the next report of @fd */
static struct message report(int fd)
{
	struct message m;

	if (!wait_for(fd, POLLERR, WAIT_MS) ||
	    message_recv(fd, NULL, 0, MSG_ERRQUEUE | MSG_DONTWAIT, &m) < 0)
		die("no report of a message");
	return m;
}

static void send_all(int fd, const struct contents *c,
		     const struct dblp_sndinfo *info)
{
	if (sndinfo_send(fd, c->buf, c->len, 0, info) != c->len)
		die("sendmsg() of %u bytes", c->len);
}

/*
 * Compare @got with the sent bytes; missing bytes by @m must be @fill. Returns -1 or the
 * index of the first wrong byte.
 */
static ssize_t differs(const struct contents *c, const unsigned char *got,
		       const struct message *m, unsigned char fill)
{
	uint32_t i, at, r = 0;

	for (i = 0; i < c->len; i++) {
		while (r < m->n && i >= m->range[r].offset + m->range[r].length)
			r++;
		at = r < m->n ? m->range[r].offset : c->len;
		if (got[i] != (i >= at ? fill : c->buf[i]))
			return i;
	}
	return -1;
}

/* Send and receive a message, and check contents and counters */
static void send_exactly(struct __test_metadata *_metadata, struct ends *e,
			 const struct contents *c)
{
	struct dblp_info before = get_info(e->tx), after;
	uint64_t segs = mib("SegFirst"), elided = mib("BytesElided");
	unsigned char *got = malloc(c->len + 1);
	struct message rcvd, sent;

	memset(got, GREY, c->len + 1);
	send_all(e->tx, c, NULL);
	ASSERT_EQ(c->len, message_recv(e->rx, got, c->len + 1, 0, &rcvd));
	sent = report(e->tx);
	EXPECT_EQ(0, rcvd.info.missing);
	EXPECT_EQ(0, sent.info.missing);
	EXPECT_EQ(-1, differs(c, got, &rcvd, GREY));
	EXPECT_EQ(GREY, got[c->len]);
	after = get_info(e->tx);
	EXPECT_EQ(c->elided, after.bytes_elided - before.bytes_elided);
	EXPECT_EQ(c->len - c->elided, after.bytes_first - before.bytes_first);
	EXPECT_EQ(c->len, after.bytes_delivered - before.bytes_delivered);
	EXPECT_EQ(c->elided, mib("BytesElided") - elided);
	EXPECT_EQ(c->segs, mib("SegFirst") - segs);
	message_free(&rcvd);
	message_free(&sent);
	free(got);
}

/* Fixture by properties of the network */
FIXTURE(network) {
	struct ends e;
};

FIXTURE_VARIANT(network) {
	const char *what;
};

FIXTURE_VARIANT_ADD(network, clean) { .what = NULL };
FIXTURE_VARIANT_ADD(network, loss_1) { .what = "delay 1ms loss 1%" };
FIXTURE_VARIANT_ADD(network, loss_10) { .what = "delay 1ms loss 10%" };
FIXTURE_VARIANT_ADD(network, loss_30) { .what = "delay 1ms loss 30%" };
FIXTURE_VARIANT_ADD(network, reorder) { .what = "delay 3ms 2ms" };
FIXTURE_VARIANT_ADD(network, duplicate) { .what = "delay 1ms duplicate 30%" };

FIXTURE_SETUP(network)
{
	ends_open(&self->e, false, DBLP_FILL_KEEP, variant->what);
}

FIXTURE_ENDS_BY_EXIT(network);

static const uint32_t sizes[] = {
	100, SMALL, SMALL + 1, SEG, SEG + 1, 33 * SEG - 7, 100 * SEG,
	300 * SEG + 1,
};

TEST_F(network, every_byte_without_a_budget)
{
	struct contents c;
	enum zeros zeros;
	u_int i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (zeros = 0; zeros < __ZEROS_MAX; zeros++) {
			make(&c, sizes[i], zeros, SEG);
			send_exactly(_metadata, &self->e, &c);
			free(c.buf);
		}
}

/* The critical prefix has zeroes and is never missing */
TEST_F(network, within_the_budget)
{
	static unsigned char got[200 * SEG];
	struct dblp_sndinfo info = {
		.flags = DBLP_SND_BUDGET | DBLP_SND_POLICY,
		.budget = 200000,
	};
	struct message rcvd, sent;
	struct contents c;
	enum zeros zeros;

	for (zeros = 0; zeros < __ZEROS_MAX; zeros++)
		for (info.policy = DBLP_POLICY_EAGER;
		     info.policy <= DBLP_POLICY_EARLY; info.policy++) {
			info.critical = zeros % 2 ? 50 * SEG : 0;
			make(&c, sizeof(got), zeros,
			     SEG - (info.critical ? META : 0));
			memset(got, GREY, sizeof(got));
			send_all(self->e.tx, &c, &info);
			ASSERT_EQ(c.len, message_recv(self->e.rx, got,
						      sizeof(got), 0, &rcvd));
			sent = report(self->e.tx);
			EXPECT_GE((c.len - info.critical) / 5,
				  rcvd.info.missing);
			EXPECT_EQ(rcvd.info.missing, sent.info.missing);
			ASSERT_EQ(rcvd.n, sent.n);
			EXPECT_EQ(0, memcmp(rcvd.range, sent.range,
					    rcvd.n * sizeof(*rcvd.range)));
			EXPECT_TRUE(!rcvd.n ||
				    rcvd.range[0].offset >= info.critical);
			EXPECT_EQ(-1, differs(&c, got, &rcvd, GREY));
			message_free(&rcvd);
			message_free(&sent);
			free(c.buf);
		}
}

/* A budget set for a message in flight, which shuffles the rest of it */
TEST_F(network, a_budget_that_changes)
{
	static unsigned char got[300 * SEG];
	struct message rcvd, sent;
	struct contents c;
	enum zeros zeros;

	for (zeros = 0; zeros < __ZEROS_MAX; zeros++) {
		set_u32(self->e.tx, DBLP_CLOSE_POLICY, DBLP_POLICY_EARLY);
		set_u32(self->e.tx, DBLP_BUDGET, 0);
		make(&c, sizeof(got), zeros, SEG);
		memset(got, GREY, sizeof(got));
		send_all(self->e.tx, &c, NULL);
		set_u32(self->e.tx, DBLP_BUDGET, 300000);
		ASSERT_EQ(c.len, message_recv(self->e.rx, got, sizeof(got), 0,
					      &rcvd));
		sent = report(self->e.tx);
		EXPECT_GE(c.len * 3ULL / 10, rcvd.info.missing);
		EXPECT_EQ(rcvd.info.missing, sent.info.missing);
		EXPECT_EQ(-1, differs(&c, got, &rcvd, GREY));
		message_free(&rcvd);
		message_free(&sent);
		free(c.buf);
	}
}

FIXTURE(elide) {
	struct ends e;
};

FIXTURE_SETUP(elide)
{
	ends_open(&self->e, false, DBLP_FILL_ZERO, NULL);
}

FIXTURE_ENDS_BY_EXIT(elide);

TEST_F(elide, off_everything_is_sent)
{
	struct contents c;

	set_u32(self->e.tx, DBLP_ELIDE, 0);
	make(&c, 100 * SEG, NINE_OF_TEN, SEG);
	c.elided = 0;
	c.segs = 100;
	send_exactly(_metadata, &self->e, &c);
	free(c.buf);
	set_u32(self->e.tx, DBLP_ELIDE, 1);
	make(&c, 100 * SEG, NINE_OF_TEN, SEG);
	send_exactly(_metadata, &self->e, &c);
}

TEST_F(elide, the_option)
{
	uint32_t two = 2;
	int fd;

	EXPECT_EQ(1, get_u32(self->e.tx, DBLP_ELIDE));
	EXPECT_EQ(1, get_u32(self->e.rx, DBLP_ELIDE));
	EXPECT_ERR(EINVAL, setsockopt(self->e.tx, SOL_DBLP, DBLP_ELIDE, &two,
				      sizeof(two)));
	EXPECT_EQ(1, get_u32(self->e.tx, DBLP_ELIDE));

	/* Accepted sockets inherit the option */
	set_u32(self->e.listener, DBLP_ELIDE, 0);
	ends_disconnect(&self->e);
	ends_connect(&self->e);
	EXPECT_EQ(0, get_u32(self->e.rx, DBLP_ELIDE));
	EXPECT_EQ(1, get_u32(self->e.tx, DBLP_ELIDE));
	fd = new_socket();
	EXPECT_EQ(1, get_u32(fd, DBLP_ELIDE));
}

/* Count bytes on the wire, including headers and ACKs */
TEST_F(elide, elided_bytes_are_not_on_the_wire)
{
	uint64_t before;
	struct contents c;

	make(&c, 700 * SEG, NINE_OF_TEN, SEG);
	before = on_the_wire();
	send_exactly(_metadata, &self->e, &c);
	EXPECT_GE(c.len * 12 / 100, on_the_wire() - before);
	EXPECT_LE(c.len / 10, on_the_wire() - before);
	free(c.buf);

	make(&c, 700 * SEG, ALL, SEG);
	before = on_the_wire();
	send_exactly(_metadata, &self->e, &c);
	EXPECT_GE(2000, on_the_wire() - before);
}

/* Neither end uses memory for zero segments */
TEST_F(elide, memory)
{
	struct contents c;
	u_int i;

	make(&c, 700 * SEG, ALL, SEG);
	netem("delay 100ms");
	for (i = 0; i < 4; i++)
		send_all(self->e.tx, &c, NULL);
	EXPECT_GE(4 * 8192, get_meminfo(self->e.tx, SK_MEMINFO_WMEM_QUEUED));
	for (i = 0; i < 4; i++)
		report(self->e.tx);
	EXPECT_GE(4 * 8192, get_meminfo(self->e.rx, SK_MEMINFO_RMEM_ALLOC));
}

/*
 * With eager, elided segments count as sent, so that the first pass needs few other
 * segments; these include the critical ones.
 */
TEST_F(elide, eager_sends_what_is_critical_and_no_more)
{
	struct dblp_sndinfo info = {
		.flags = DBLP_SND_BUDGET | DBLP_SND_POLICY,
		.budget = 500000, .policy = DBLP_POLICY_EAGER,
		.critical = 20 * (SEG - META),
	};
	static unsigned char got[200 * SEG];
	struct message m;
	struct contents c;

	netem("delay 20ms");
	make(&c, sizeof(got), NINE_OF_TEN, SEG - META);
	send_all(self->e.tx, &c, &info);
	ASSERT_EQ(c.len, message_recv(self->e.rx, got, sizeof(got), 0, &m));
	EXPECT_EQ(-1, differs(&c, got, &m, 0));
	EXPECT_LE(1, m.n);
	EXPECT_EQ(DBLP_REASON_BUDGET, m.info.reason);
	message_free(&m);
	m = report(self->e.tx);
	EXPECT_EQ(2 * (SEG - META), get_info(self->e.tx).bytes_first);
	EXPECT_EQ(c.len - c.elided - 2 * (SEG - META), m.info.missing);
	EXPECT_EQ(m.info.missing, get_info(self->e.tx).bytes_forgiven_unsent);
}

/* A message with more segments than a zero map has bits */
TEST_F(elide, a_message_of_several_maps)
{
	uint32_t len = 12 << 20, seg_size;
	struct contents c;

	/* A new connection with small packets */
	ends_disconnect(&self->e);
	netns_set_mtu(576);
	ends_connect(&self->e);
	set_int(self->e.tx, SO_SNDBUFFORCE, 4 * len);
	netem("delay 1ms loss 20%");
	seg_size = get_info(self->e.tx).seg_size;
	ASSERT_GT(len / 5, 8 * seg_size * seg_size);
	make(&c, len, ALL, seg_size);
	send_exactly(_metadata, &self->e, &c);
	free(c.buf);
	make(&c, len, NINE_OF_TEN, seg_size);
	send_exactly(_metadata, &self->e, &c);
}

/* Placement mode: zeroes are placed and listed, in several calls if necessary */
FIXTURE(place) {
	struct ends e;
};

FIXTURE_SETUP(place)
{
	ends_open(&self->e, true, DBLP_FILL_KEEP, NULL);
}

FIXTURE_ENDS_BY_EXIT(place);

/* Mark the ranges that a call has placed in @seen; returns its flags */
static int place_once(int fd, unsigned char *buf, uint32_t len, u_int ranges,
		      unsigned char *seen, uint32_t *sum)
{
	char control[4096] __attribute__((aligned(8)));
	struct iovec iov = { buf, len };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = CMSG_SPACE(sizeof(struct dblp_rcvinfo)) +
				  CMSG_SPACE(ranges * sizeof(struct dblp_range)),
	};
	struct dblp_range r[64];
	struct cmsghdr *c;
	u_int i, n = 0, bytes = 0;
	ssize_t ret = recvmsg(fd, &m, 0);

	if (ret < 0)
		die("recvmsg()");
	errno = 0;
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_type == DBLP_PLACED) {
			n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(r[0]);
			if (n > ranges)
				die("%u ranges", n);
			memcpy(r, CMSG_DATA(c), n * sizeof(r[0]));
		}
	if (m.msg_flags & MSG_CTRUNC)
		die("ranges do not fit");
	for (i = 0; i < n; i++) {
		bytes += r[i].length;
		memset(seen + r[i].offset, 1, r[i].length);
	}
	if (n && bytes != ret)
		die("%u bytes in ranges, %zd placed", bytes, ret);
	if (!n)
		memset(seen, 1, len);
	*sum += ret;
	return m.msg_flags;
}

TEST_F(place, in_several_calls)
{
	static unsigned char got[200 * SEG + 5], seen[200 * SEG + 5];
	struct contents c;
	enum zeros zeros;
	uint32_t sum;

	for (zeros = 0; zeros < __ZEROS_MAX; zeros++) {
		make(&c, sizeof(got), zeros, SEG);
		memset(got, GREY, sizeof(got));
		memset(seen, 0, sizeof(seen));
		send_all(self->e.tx, &c, NULL);
		report(self->e.tx);
		sum = 0;
		while (!(place_once(self->e.rx, got, sizeof(got), 10, seen,
				    &sum) & MSG_EOR))
			;
		EXPECT_EQ(c.len, sum);
		EXPECT_EQ(-1, bytes_check(seen, sizeof(seen), 1));
		EXPECT_EQ(0, memcmp(c.buf, got, sizeof(got)));
		free(c.buf);
	}
}

TEST_F(place, siocinq_counts_zeroes)
{
	static unsigned char got[200 * SEG], seen[200 * SEG];
	struct contents c;
	uint32_t sum = 0;
	int n = 0;

	make(&c, sizeof(got), EVERY_OTHER, SEG);
	memset(got, GREY, sizeof(got));
	send_all(self->e.tx, &c, NULL);
	report(self->e.tx);
	EXPECT_EQ(0, ioctl(self->e.rx, SIOCINQ, &n));
	EXPECT_EQ(c.len, n);
	EXPECT_FALSE(MSG_EOR & place_once(self->e.rx, got, sizeof(got), 10,
					  seen, &sum));
	EXPECT_EQ(0, ioctl(self->e.rx, SIOCINQ, &n));
	EXPECT_EQ(c.len - sum, n);
	EXPECT_EQ(0, sum % SEG);
}

/* An unwritable buffer loses no bytes */
TEST_F(place, an_unwritable_buffer_loses_nothing)
{
	static unsigned char got[200 * SEG], seen[200 * SEG];
	struct contents c;
	uint32_t sum = 0;

	make(&c, sizeof(got), NINE_OF_TEN, SEG);
	send_all(self->e.tx, &c, NULL);
	report(self->e.tx);
	EXPECT_ERR(EFAULT, recv(self->e.rx, (void *)8, sizeof(got), 0));
	while (!(place_once(self->e.rx, got, sizeof(got), 10, seen, &sum) &
		 MSG_EOR))
		;
	EXPECT_EQ(c.len, sum);
	EXPECT_EQ(0, memcmp(c.buf, got, sizeof(got)));
}

/* A message much larger than the buffers is sent in pieces with META */
TEST_F(place, pieces)
{
	uint32_t len = (4 << 20) + 11, sum = 0;
	unsigned char *got = malloc(len), *seen = malloc(len);
	struct contents c;
	enum zeros zeros;
	pid_t child;

	set_int(self->e.tx, SO_SNDBUF, 1 << 20);
	netem("delay 1ms loss 1%");
	for (zeros = ALL; zeros < __ZEROS_MAX; zeros += 2) {
		make(&c, len, zeros, SEG - META);
		memset(got, GREY, len);
		memset(seen, 0, len);
		sum = 0;
		child = fork();
		if (!child) {
			send_all(self->e.tx, &c, NULL);
			_exit(0);
		}
		while (!(place_once(self->e.rx, got, len, 50, seen, &sum) &
			 MSG_EOR))
			;
		EXPECT_EQ(len, sum);
		EXPECT_EQ(-1, bytes_check(seen, len, 1));
		EXPECT_EQ(0, memcmp(c.buf, got, len));
		report(self->e.tx);
		free(c.buf);
	}
	EXPECT_LT(len, get_info(self->e.tx).bytes_elided);
}

TEST_HARNESS_MAIN
