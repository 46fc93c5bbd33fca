// SPDX-License-Identifier: GPL-2.0-only
/*
 * User memory of messages: in one piece or in a thousand, unaligned, registered with
 * io_uring, or unmapped. Every byte arrives at its place, no other byte is touched, and
 * unmapped memory only fails the call.
 */
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "lib/sock.h"
#include "values.h"

#include "kselftest_harness.h"

#define LEN_MAX		300000
#define PIECES_MAX	1024	/* IOV_MAX */
#define GAP_MAX		17	/* bytes between pieces */
#define AREA		(LEN_MAX + (PIECES_MAX + 1) * GAP_MAX)
#define GREY		0xa5	/* initial contents of memory */
#define ROUNDS		200

/* Calls that make different kinds of iov_iter */
enum way {
	PLAIN,			/* read(), write() */
	ONE,			/* recv(), send() */
	MANY,			/* recvmsg(), sendmsg() */
	REGISTERED,		/* io_uring */
	__WAY_MAX
};

/**
 * struct place - memory of a message to send or receive
 * @area: AREA bytes
 * @way: call to use
 * @iov: pieces of @area
 * @n: number of pieces; 1 except with MANY
 */
struct place {
	unsigned char	*area;
	enum way	way;
	struct iovec	iov[PIECES_MAX];
	unsigned int	n;
};

/**
 * struct ring - io_uring for one request at a time
 * @fd: descriptor of the ring
 * @p: parameters of the ring
 * @queues: memory of both queues
 * @sqe: the only request
 */
struct ring {
	int			fd;
	struct io_uring_params	p;
	char			*queues;
	struct io_uring_sqe	*sqe;
};

/* Set up a ring with the areas of two places as registered buffers 0 and 1 */
static void ring_begin(struct ring *r, const struct place *p)
{
	struct iovec iov[2] = { { p[0].area, AREA }, { p[1].area, AREA } };

	memset(r, 0, sizeof(*r));
	r->fd = syscall(__NR_io_uring_setup, 1, &r->p);
	if (r->fd < 0)
		die("io_uring_setup()");
	r->queues = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
			 IORING_OFF_SQ_RING);
	r->sqe = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
		      IORING_OFF_SQES);
	if (r->queues == MAP_FAILED || r->sqe == MAP_FAILED ||
	    syscall(__NR_io_uring_register, r->fd, IORING_REGISTER_BUFFERS, iov,
		    2))
		die("the memory of io_uring");
}

static unsigned int *ring_word(const struct ring *r, unsigned int offset)
{
	return (unsigned int *)(r->queues + offset);
}

/* Do a request; returns what read() or write() would, or -errno */
static long ring_do(struct ring *r, unsigned int op, int fd, unsigned int index,
		    const struct iovec *iov)
{
	struct io_uring_cqe *cqe = (void *)(r->queues + r->p.cq_off.cqes);
	unsigned int head = *ring_word(r, r->p.cq_off.head);

	*r->sqe = (struct io_uring_sqe) {
		.opcode = op, .fd = fd, .buf_index = index,
		.addr = (uintptr_t)iov->iov_base, .len = iov->iov_len,
	};
	*ring_word(r, r->p.sq_off.array) = 0;
	__atomic_add_fetch(ring_word(r, r->p.sq_off.tail), 1, __ATOMIC_RELEASE);
	if (syscall(__NR_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS,
		    NULL, 0) != 1)
		die("io_uring_enter()");
	cqe += head & *ring_word(r, r->p.cq_off.ring_mask);
	__atomic_store_n(ring_word(r, r->p.cq_off.head), head + 1,
			 __ATOMIC_RELEASE);
	return cqe->res;
}

static long send_from(int fd, struct ring *r, struct place *p)
{
	struct msghdr msg = { .msg_iov = p->iov, .msg_iovlen = p->n };

	switch (p->way) {
	case PLAIN:
		return RESULT(write(fd, p->iov->iov_base, p->iov->iov_len));
	case ONE:
		return RESULT(send(fd, p->iov->iov_base, p->iov->iov_len, 0));
	case REGISTERED:
		return ring_do(r, IORING_OP_WRITE_FIXED, fd, 0, p->iov);
	default:
		return RESULT(sendmsg(fd, &msg, 0));
	}
}

static long recv_into(int fd, struct ring *r, struct place *p)
{
	struct msghdr msg = { .msg_iov = p->iov, .msg_iovlen = p->n };

	switch (p->way) {
	case PLAIN:
		return RESULT(read(fd, p->iov->iov_base, p->iov->iov_len));
	case ONE:
		return RESULT(recv(fd, p->iov->iov_base, p->iov->iov_len, 0));
	case REGISTERED:
		return ring_do(r, IORING_OP_READ_FIXED, fd, 1, p->iov);
	default:
		return RESULT(recvmsg(fd, &msg, 0));
	}
}

static unsigned int below(unsigned int *seed, unsigned int n)
{
	return rand_r(seed) % n;
}

/* Divide @len bytes into random pieces, of which many may be empty */
static void lay_out(struct place *p, size_t len, unsigned int *seed)
{
	static const unsigned int usual[] = { 2, 100, 1440, 5000, 40000 };
	unsigned int most = 2 * usual[below(seed, 5)];
	unsigned char *at = p->area;
	size_t part;

	p->way = below(seed, __WAY_MAX);
	p->n = 0;
	do {
		part = len;
		if (p->way == MANY && p->n < PIECES_MAX - 1)
			part = below(seed, most);
		if (part > len)
			part = len;
		at += below(seed, GAP_MAX);
		p->iov[p->n++] = (struct iovec) { at, part };
		at += part;
		len -= part;
	} while (len);
}

/* Write @msg to @area in the layout of @p */
static void fill(const struct place *p, unsigned char *area,
		 const unsigned char *msg)
{
	unsigned int i;

	memset(area, GREY, AREA);
	for (i = 0; i < p->n; msg += p->iov[i++].iov_len)
		memcpy(area + ((unsigned char *)p->iov[i].iov_base - p->area),
		       msg, p->iov[i].iov_len);
}

/* A random length: of any magnitude, or near the size of a page, a segment or a copied
 * piece
 */
static size_t any_length(unsigned int *seed)
{
	static const unsigned int near[] = { 512, 1440, 2880, 4096, 32768, 65536 };

	if (below(seed, 2))
		return near[below(seed, 6)] - 2 + below(seed, 5);
	return 1 + below(seed, LEN_MAX >> below(seed, 18));
}

static void make(unsigned char *msg, size_t len, unsigned int number,
		 unsigned int *seed)
{
	size_t from = below(seed, len), to = from + below(seed, len - from + 1);

	pattern_fill(msg, len, 0, 1, number);
	if (below(seed, 2))
		memset(msg + from, 0, to - from);
}

/* Pick a page of the place; a call fails there if it is unmapped */
static void *any_page(const struct place *p, unsigned int *seed)
{
	const struct iovec *iov;

	do
		iov = &p->iov[below(seed, p->n)];
	while (!iov->iov_len);
	return (void *)(((uintptr_t)iov->iov_base + below(seed, iov->iov_len)) &
			-4096UL);
}

static void set_page(void *page, int prot)
{
	if (mprotect(page, 4096, prot))
		die("mprotect()");
}

FIXTURE(usermem) {
	struct place place[2];
	struct ring ring;
	int listener;
	int client;
	int server;
	unsigned char *msg;
	unsigned char *expected;
};

FIXTURE_VARIANT(usermem) {
	const char *address;
	/* Without offloads the stack segments and checksums each packet */
	const char *offloads;
};

FIXTURE_VARIANT_ADD(usermem, ipv4) { .address = "127.0.0.1" };
FIXTURE_VARIANT_ADD(usermem, ipv6) { .address = "::1" };
FIXTURE_VARIANT_ADD(usermem, no_offloads) {
	.address = "10.9.0.2",
	.offloads = "tx off rx off tso off gso off gro off tx-udp-segmentation off",
};

FIXTURE_SETUP(usermem)
{
	struct sockaddr_dblp addr;
	int here, there;

	netns_new();
	here = netns_this();
	there = here;
	if (variant->offloads)
		there = netns_cable(variant->offloads, variant->offloads);
	else
		netns_set_mtu(1500);
	self->listener = new_listener(variant->address, 1, &addr);
	netns_set(there);
	connect_pair(&addr, self->listener, &self->client, &self->server);
	netns_set(here);
	self->place[0].area = new_pages(AREA);
	self->place[1].area = new_pages(AREA);
	self->msg = malloc(LEN_MAX);
	self->expected = malloc(AREA);
	if (!self->msg || !self->expected)
		die("malloc()");
	ring_begin(&self->ring, self->place);
}

FIXTURE_ENDS_BY_EXIT(usermem);

/* From any kind of memory to any other, which may be too small */
TEST_F(usermem, every_byte_arrives_at_its_place)
{
	unsigned int rounds = less_if_slow(ROUNDS, 4, "messages"), seed = 1, i;
	struct place *from = &self->place[0], *to = &self->place[1];
	size_t len, room;

	for (i = 0; i < rounds; i++) {
		len = any_length(&seed);
		room = below(&seed, 4) ? len : 1 + below(&seed, len);
		make(self->msg, len, i, &seed);
		lay_out(from, len, &seed);
		fill(from, from->area, self->msg);
		lay_out(to, room, &seed);
		fill(to, self->expected, self->msg);
		memset(to->area, GREY, AREA);
		set_u32(self->client, DBLP_ORDER, below(&seed, __DBLP_ORDER_MAX));
		set_u32(self->client, DBLP_ELIDE, below(&seed, 2));
		EXPECT_EQ(len, send_from(self->client, &self->ring, from));
		EXPECT_EQ(room, recv_into(self->server, &self->ring, to));
		ASSERT_EQ(0, memcmp(self->expected, to->area, AREA)) {
			TH_LOG("message %u: %zu bytes from %u pieces (%u) to %zu in %u (%u)",
			       i, len, from->n, from->way, room, to->n, to->way);
		}
	}
}

/* With an unmapped page no message is sent, and no received message is lost */
TEST_F(usermem, unmapped_memory)
{
	unsigned int rounds = less_if_slow(ROUNDS, 4, "messages"), seed = 2, i;
	struct place *from = &self->place[0], *to = &self->place[1];
	struct message m;
	void *page;
	size_t len;

	for (i = 0; i < rounds; i++) {
		len = any_length(&seed);
		make(self->msg, len, i, &seed);
		/* Registered memory stays pinned */
		do
			lay_out(from, len, &seed);
		while (from->way == REGISTERED);
		do
			lay_out(to, len, &seed);
		while (to->way == REGISTERED);
		fill(from, from->area, self->msg);
		fill(to, self->expected, self->msg);

		page = any_page(from, &seed);
		set_page(page, PROT_NONE);
		ASSERT_EQ(-EFAULT, send_from(self->client, &self->ring, from)) {
			TH_LOG("message %u: %zu bytes from %u pieces (%u)", i,
			       len, from->n, from->way);
		}
		set_page(page, PROT_READ | PROT_WRITE);
		ASSERT_EQ(len, send_from(self->client, &self->ring, from));

		page = any_page(to, &seed);
		set_page(page, PROT_NONE);
		ASSERT_EQ(-EFAULT, recv_into(self->server, &self->ring, to)) {
			TH_LOG("message %u: %zu bytes to %u pieces (%u)", i,
			       len, to->n, to->way);
		}
		set_page(page, PROT_READ | PROT_WRITE);
		memset(to->area, GREY, AREA);
		ASSERT_EQ(len, recv_into(self->server, &self->ring, to));
		ASSERT_EQ(0, memcmp(self->expected, to->area, AREA));
	}
	/* Failed calls have left nothing in the socket */
	ASSERT_EQ(1, send(self->client, "x", 1, 0));
	ASSERT_EQ(1, message_recv(self->server, self->msg, 1, 0, &m));
	EXPECT_EQ(rounds, m.info.msg_id);
}

TEST_HARNESS_MAIN
