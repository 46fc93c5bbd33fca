// SPDX-License-Identifier: GPL-2.0-only
/*
 * Failing allocations: each system call and each netlink operation is repeated with its
 * first allocation failing, then its second, until none fails. A failing call returns a
 * proper errno, changes nothing, and succeeds when repeated. The debug kernel finds leaks.
 *
 * Needs a kernel with CONFIG_FAULT_INJECTION: /proc/thread-self/fail-nth.
 */
#define _GNU_SOURCE
#include "lib/nltest.h"
#include "lib/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kselftest_harness.h"

#define N(array)	(sizeof(array) / sizeof((array)[0]))
#define SMALL		100
#define LARGE		300000
#define CRITICAL	1
#define TOLERANT	2
#define PORTS		3

static int fail_fd;
static uint32_t socket_id;
static char out[LARGE], in[LARGE];

/* Enable all faults, also in allocations that may sleep, without kernel messages */
static void prepare_faults(void)
{
	static const char *const kinds[] = {
		"failslab", "fail_page_alloc", "fail_usercopy",
	};
	char name[100];
	size_t i;

	fail_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fail_fd < 0)
		die("/proc/thread-self/fail-nth");
	for (i = 0; i < N(kinds); i++) {
		snprintf(name, sizeof(name), "/sys/kernel/debug/%s/verbose",
			 kinds[i]);
		file_write(name, "0");
	}
	file_write("/sys/kernel/debug/failslab/ignore-gfp-wait", "N");
	file_write("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "N");
	file_write("/sys/kernel/debug/fail_page_alloc/ignore-gfp-highmem", "N");
	file_write("/sys/kernel/debug/fail_page_alloc/min-order", "0");
}

/* Let the n-th possible fault of this thread occur */
static void fail_begin(unsigned int n)
{
	char text[12];
	int len = snprintf(text, sizeof(text), "%u", n);

	if (pwrite(fail_fd, text, len, 0) != len)
		die("fail-nth");
}

/* Did it occur? If not, reading the file may be the n-th fault */
static bool fail_end(void)
{
	char text[12] = "";
	int saved = errno;
	bool met;

	met = pread(fail_fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
	while (pwrite(fail_fd, "0", 1, 0) != 1)
		;
	errno = saved;
	return met;
}

/**
 * struct sockets - sockets of a call
 * @addr: address of @listener
 * @listener: nonblocking listener; drop_sockets() accepts its pending connections
 * @client: connected, unless the call connects it
 * @server: other end of @client
 * @fd: descriptor that the call creates
 */
struct sockets {
	struct sockaddr_dblp	addr;
	int			listener, client, server, fd;
};

#define NOT_CONNECTED	0x1	/* only the client exists */
#define NOT_ACCEPTED	0x2	/* the connection is not accepted yet */
#define SENT		0x4	/* a message has arrived at the server */
#define REPORTED	0x8	/* its report has arrived at the client */
#define PLACED		0x10	/* the server is in placement mode */
#define PIECES		0x20	/* the client's buffer is small */
#define LOSSY		0x40	/* half of the message is missing */
#define READ		0x80	/* the message was read */
#define WHOLE		0x100	/* without DBLP_PARTIAL_SEND */
#define SPRAYED		0x200	/* with the maximum of DBLP_SPRAY */

static void make_sockets(struct sockets *s, int how)
{
	struct msghdr none = { 0 };

	s->fd = -1;
	s->server = -1;
	s->client = new_socket();
	if (how & (PIECES | WHOLE))
		set_int(s->client, SO_SNDBUF, LARGE / 8);
	set_u32(s->client, DBLP_PARTIAL_SEND, !!(how & PIECES));
	set_u32(s->client, DBLP_NOTIFY, 1);
	set_u32(s->client, DBLP_BUDGET, how & LOSSY ? DBLP_PPM / 2 : 0);
	if (how & SPRAYED)
		set_u32(s->client, DBLP_SPRAY, PORTS);
	if (how & NOT_CONNECTED)
		return;
	if (connect_to(s->client, &s->addr))
		die("connect()");
	if (!wait_for(s->listener, POLLIN, 10 * SECONDS))
		die("no connection");
	if (how & NOT_ACCEPTED)
		return;
	s->server = accept(s->listener, NULL, NULL);
	if (s->server < 0)
		die("accept()");
	if (how & PLACED)
		set_u32(s->server, DBLP_PLACEMENT, 1);
	if (!(how & SENT))
		return;
	if (send(s->client, out, LARGE, 0) != LARGE ||
	    !wait_for(s->server, POLLIN, 10 * SECONDS))
		die("send()");
	if (how & REPORTED && !wait_for(s->client, POLLERR, 10 * SECONDS))
		die("no report");
	if (how & READ && recv(s->server, in, LARGE, 0) != LARGE)
		die("recv()");
	if (how & READ && how & REPORTED &&
	    recvmsg(s->client, &none, MSG_ERRQUEUE) < 0)
		die("recvmsg(MSG_ERRQUEUE)");
}

static void drop_sockets(struct sockets *s)
{
	int fds[] = { s->fd, s->client, s->server };
	size_t i;

	for (i = 0; i < N(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	while ((s->fd = accept(s->listener, NULL, NULL)) >= 0)
		close(s->fd);
}

/* The calls. Each returns the result of the system call. */

static ssize_t do_socket(struct sockets *s)
{
	s->fd = socket(AF_DBLP, SOCK_SEQPACKET, 0);
	return s->fd;
}

static ssize_t do_bind(struct sockets *s)
{
	struct sockaddr_dblp any = s->addr;

	any.sdblp_port = 0;
	return bind_to(s->client, &any);
}

static ssize_t do_listen(struct sockets *s)
{
	return listen(s->client, 4);
}

static ssize_t do_connect(struct sockets *s)
{
	return connect_to(s->client, &s->addr);
}

static ssize_t do_accept(struct sockets *s)
{
	s->server = accept(s->listener, NULL, NULL);
	return s->server;
}

static ssize_t do_send(struct sockets *s)
{
	return send(s->client, out, SMALL, 0);
}

static ssize_t do_send_large(struct sockets *s)
{
	return send(s->client, out, LARGE, MSG_NOSIGNAL);
}

static ssize_t do_sendmsg(struct sockets *s)
{
	struct dblp_sndinfo info = {
		.flags = DBLP_SND_PHASE, .phase = CRITICAL, .tag = 7,
		.critical = 8,
	};

	return sndinfo_send(s->client, out, LARGE, 0, &info);
}

static ssize_t recv_with(int fd, int flags)
{
	static _Alignas(8) char control[4096];
	struct iovec iov = { in, sizeof(in) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};

	return recvmsg(fd, &msg, flags);
}

static ssize_t do_recv(struct sockets *s)
{
	return recv_with(s->server, 0);
}

static ssize_t do_recv_placed(struct sockets *s)
{
	return recv_with(s->server, MSG_WAITALL);
}

static ssize_t do_peek(struct sockets *s)
{
	return recv_with(s->server, MSG_PEEK);
}

static ssize_t do_errqueue(struct sockets *s)
{
	return recv_with(s->client, MSG_ERRQUEUE);
}

static ssize_t do_poll(struct sockets *s)
{
	struct pollfd p = { .fd = s->server, .events = POLLIN };

	return poll(&p, 1, 0);
}

static ssize_t do_shutdown(struct sockets *s)
{
	return shutdown(s->client, SHUT_WR);
}

/* close() frees the descriptor even if it fails */
static ssize_t do_close(struct sockets *s)
{
	int fd = s->client;

	s->client = -1;
	return fd < 0 ? 0 : close(fd);
}

static ssize_t do_ioctl(struct sockets *s)
{
	int n;

	return ioctl(s->server, SIOCINQ, &n) ?: ioctl(s->client, SIOCOUTQ, &n);
}

static ssize_t do_names(struct sockets *s)
{
	struct sockaddr_dblp a;
	socklen_t len = sizeof(a);

	return getsockname(s->client, (void *)&a, &len) ?:
	       getpeername(s->client, (void *)&a, &len);
}

/* Options: set each to its present value; read the read-only ones */
static const struct {
	int		option;
	socklen_t	len;
	bool		set;
} options[] = {
	{ DBLP_BUDGET, 4, true }, { DBLP_BUDGET_CAP, 4, true },
	{ DBLP_CLOSE_POLICY, 4, true }, { DBLP_DEADLINE, 4, true },
	{ DBLP_ORDER, 4, true }, { DBLP_ELEMENT, 4, true },
	{ DBLP_FILL, 4, true }, { DBLP_CONGESTION, 16, true },
	{ DBLP_NOTIFY, 4, true }, { DBLP_USER_TIMEOUT, 4, true },
	{ DBLP_KEEPALIVE, 4, true }, { DBLP_ELIDE, 4, true },
	{ DBLP_TOS, 4, true }, { DBLP_PLACEMENT, 4, true },
	{ DBLP_PHASE, 4, true }, { DBLP_JOB, 4, true },
	{ DBLP_ECT, 4, true },
	{ DBLP_INFO, sizeof(struct dblp_info), false },
};

static size_t option;

static ssize_t do_option(struct sockets *s)
{
	_Alignas(8) char value[512];
	socklen_t len = options[option].len;

	if (getsockopt(s->client, SOL_DBLP, options[option].option, value,
		       &len))
		return -1;
	if (!options[option].set)
		return 0;
	return setsockopt(s->client, SOL_DBLP, options[option].option, value,
			  len);
}

static ssize_t do_phase(struct sockets *s)
{
	return try_u32(s->client, DBLP_PHASE, TOLERANT);
}

static ssize_t do_job(struct sockets *s)
{
	return try_u32(s->client, DBLP_JOB, 7);
}

static ssize_t do_norm(struct sockets *s)
{
	return try_u64(s->client, DBLP_NORM, 1);
}

static ssize_t lossmap_of(int fd, int which)
{
	socklen_t len = sizeof(in);

	return getsockopt(fd, SOL_DBLP, which, in, &len);
}

static ssize_t do_lossmap(struct sockets *s)
{
	return lossmap_of(s->server, DBLP_LOSSMAP);
}

static ssize_t do_sent_lossmap(struct sockets *s)
{
	return lossmap_of(s->client, DBLP_SENT_LOSSMAP);
}

static const struct call {
	const char	*name;
	int		how;
	ssize_t		(*make)(struct sockets *s);
	ssize_t		result;
} calls[] = {
	{ "socket", NOT_CONNECTED, do_socket, -1 },
	{ "bind", NOT_CONNECTED, do_bind, 0 },
	{ "listen", NOT_CONNECTED, do_listen, 0 },
	{ "listen, several ports", NOT_CONNECTED | SPRAYED, do_listen, 0 },
	{ "connect", NOT_CONNECTED, do_connect, 0 },
	{ "connect, several ports", NOT_CONNECTED | SPRAYED, do_connect, 0 },
	{ "accept", NOT_ACCEPTED, do_accept, -1 },
	{ "send", 0, do_send, SMALL },
	{ "send, large", 0, do_send_large, LARGE },
	{ "send, in pieces", PIECES, do_send_large, LARGE },
	{ "send, in pieces, all or nothing", WHOLE, do_send_large, LARGE },
	{ "sendmsg", 0, do_sendmsg, LARGE },
	{ "recvmsg", SENT, do_recv, LARGE },
	{ "recvmsg with a loss map", SENT | LOSSY, do_recv, LARGE },
	{ "recvmsg, placed", SENT | PLACED, do_recv_placed, LARGE },
	{ "recvmsg, peek", SENT, do_peek, LARGE },
	{ "recvmsg, errqueue", SENT | LOSSY | REPORTED, do_errqueue, 0 },
	{ "loss map", SENT | LOSSY | READ, do_lossmap, 0 },
	{ "sent loss map", SENT | LOSSY | REPORTED | READ, do_sent_lossmap, 0 },
	{ "poll", SENT, do_poll, 1 },
	{ "shutdown", 0, do_shutdown, 0 },
	{ "close", SENT, do_close, 0 },
	{ "ioctl", SENT, do_ioctl, 0 },
	{ "names", 0, do_names, 0 },
	{ "phase", 0, do_phase, 0 },
	{ "job", 0, do_job, 0 },
};

/* The kernel returns ENFILE if it cannot create a file */
static bool is_proper(int error)
{
	return error == ENOMEM || error == ENOBUFS || error == EFAULT ||
	       error == ENFILE || error == EAGAIN;
}

/* A call that did a part before the fault returns this part */
static bool is_right(const struct call *c, ssize_t got, bool met)
{
	if (c->result < 0 || (met && got > 0 && c->how & (PIECES | PLACED)))
		return got >= 0 && (c->result < 0 || got <= c->result);
	return got == c->result;
}

/* Try a call with the n-th fault; false if it has fewer allocations */
static bool try_call(struct __test_metadata *_metadata, struct sockets *s,
		     const struct call *c, unsigned int n, unsigned int *failed)
{
	bool met, ended = false;
	ssize_t got;

	make_sockets(s, c->how);
	errno = 0;
	fail_begin(n);
	got = c->make(s);
	met = fail_end();
	if (got < 0) {
		++*failed;
		EXPECT_TRUE(met && is_proper(errno))
			TH_LOG("%s: fault %u: %s", c->name, n,
			       strerror(errno));
		/* Without memory for the rest of the message, the connection ended */
		ended = c->how & WHOLE && errno == EFAULT;
		got = c->make(s);
	}
	ended = ended && got < 0 && (errno == EPIPE || errno == ECONNRESET);
	EXPECT_TRUE(ended || is_right(c, got, met))
		TH_LOG("%s: after fault %u: %zd: %s", c->name, n, got,
		       strerror(errno));
	drop_sockets(s);
	return met;
}

static void all_faults(struct __test_metadata *_metadata, struct sockets *s,
		       const struct call *c)
{
	unsigned int n = 1, failed = 0;

	while (try_call(_metadata, s, c, n, &failed) && n < 500)
		n++;
	EXPECT_GT(500, n);
	TH_LOG("%s: %u faults, of which %u made it fail", c->name, n - 1,
	       failed);
}

static struct nlmsghdr *about(uint8_t cmd, uint16_t attr, uint32_t id)
{
	struct nlmsghdr *nlh = begin(family, cmd, NLM_F_ACK);

	if (attr)
		mnl_attr_put_u32(nlh, attr, id);
	return nlh;
}

FIXTURE(failnth)
{
	struct sockets s;
};

FIXTURE_SETUP(failnth)
{
	netns_new();
	open_netlink();
	prepare_faults();
	pattern_fill(out, sizeof(out), 0, 1, 1);
	self->s.listener = new_socket();
	set_u32(self->s.listener, DBLP_SPRAY, PORTS);
	listen_at(self->s.listener, "::1", 4, &self->s.addr);
	if (fcntl(self->s.listener, F_SETFL, O_NONBLOCK))
		die("fcntl()");
	ASSERT_EQ(0, result(about(DBLP_CMD_JOB_ADD, DBLP_A_JOB_ID, 7)));
}

FIXTURE_ENDS_BY_EXIT(failnth);

TEST_F_TIMEOUT(failnth, system_calls, 240)
{
	size_t i;

	for (i = 0; i < N(calls); i++)
		all_faults(_metadata, &self->s, &calls[i]);
}

TEST_F_TIMEOUT(failnth, options, 120)
{
	char name[20];
	struct call c = { name, 0, do_option, 0 };

	for (option = 0; option < N(options); option++) {
		snprintf(name, sizeof(name), "option %d",
			 options[option].option);
		all_faults(_metadata, &self->s, &c);
	}
}

TEST_F(failnth, norms)
{
	static const struct call c = { "norm", NOT_CONNECTED, do_norm, 0 };
	unsigned int n = 0, failed = 0;
	bool met = true;

	struct nlmsghdr *nlh = about(DBLP_CMD_JOB_SET, DBLP_A_JOB_ID, 7);

	mnl_attr_put_u32(nlh, DBLP_A_JOB_CLR, DBLP_CLR_ON);
	ASSERT_EQ(0, result(nlh));
	while (met && n < 100) {
		make_sockets(&self->s, c.how);
		set_u32(self->s.client, DBLP_JOB, 7);
		fail_begin(++n);
		failed += do_norm(&self->s) < 0;
		met = fail_end();
		EXPECT_EQ(0, do_norm(&self->s));
		drop_sockets(&self->s);
	}
	TH_LOG("norm: %u faults, of which %u made it fail", n - 1, failed);
}

/*
 * Netlink operations, which run while the request is sent. @undo lets them be repeated.
 */
static const struct operation {
	uint8_t		cmd, undo;
	bool		dump;
	uint16_t	id_attr;
	uint32_t	id;
	uint16_t	attr;
	const char	*text;
} operations[] = {
	{ DBLP_CMD_SOCKET_GET, 0, false, DBLP_A_SOCKET_ID, 0, 0, NULL },
	{ DBLP_CMD_SOCKET_GET, 0, true, 0, 0, 0, NULL },
	{ DBLP_CMD_SOCKET_SET, DBLP_CMD_SOCKET_SET, false, DBLP_A_SOCKET_ID, 0,
	  DBLP_A_SOCKET_BUDGET, NULL },
	{ DBLP_CMD_SOCKET_SET, DBLP_CMD_SOCKET_SET, false, DBLP_A_SOCKET_ID, 0,
	  DBLP_A_SOCKET_PHASE, NULL },
	{ DBLP_CMD_STATS_GET, 0, false, 0, 0, 0, NULL },
	{ DBLP_CMD_PHASE_GET, 0, false, DBLP_A_PHASE_ID, TOLERANT, 0, NULL },
	{ DBLP_CMD_PHASE_GET, 0, true, 0, 0, 0, NULL },
	{ DBLP_CMD_PHASE_SET, DBLP_CMD_PHASE_DEL, false, DBLP_A_PHASE_ID, 5,
	  DBLP_A_PHASE_NAME, "five" },
	{ DBLP_CMD_PHASE_DEL, DBLP_CMD_PHASE_SET, false, DBLP_A_PHASE_ID, 6,
	  DBLP_A_PHASE_NAME, "six" },
	{ DBLP_CMD_JOB_GET, 0, false, DBLP_A_JOB_ID, 7, 0, NULL },
	{ DBLP_CMD_JOB_GET, 0, true, 0, 0, 0, NULL },
	{ DBLP_CMD_JOB_ADD, DBLP_CMD_JOB_DEL, false, DBLP_A_JOB_ID, 8, 0,
	  NULL },
	{ DBLP_CMD_JOB_SET, DBLP_CMD_JOB_SET, false, DBLP_A_JOB_ID, 7,
	  DBLP_A_JOB_PHASE, NULL },
	{ DBLP_CMD_JOB_REPLACE, DBLP_CMD_JOB_DEL, false, DBLP_A_JOB_ID, 8, 0,
	  NULL },
	{ DBLP_CMD_JOB_DEL, DBLP_CMD_JOB_ADD, false, DBLP_A_JOB_ID, 9, 0,
	  NULL },
	{ DBLP_CMD_PARAM_GET, 0, false, 0, 0, 0, NULL },
	{ DBLP_CMD_PARAM_SET, DBLP_CMD_PARAM_SET, false, 0, 0,
	  DBLP_A_PARAM_BUDGET_CAP, NULL },
	{ DBLP_CMD_CC_GET, 0, false, 0, 0, DBLP_A_CC_NAME, "lossy" },
	{ DBLP_CMD_CC_GET, 0, true, 0, 0, 0, NULL },
};

static struct nlmsghdr *build(const struct operation *o, uint8_t cmd,
			      uint32_t value)
{
	struct nlmsghdr *nlh = begin(family, cmd, NLM_F_ACK);

	if (o->dump)
		nlh->nlmsg_flags |= NLM_F_DUMP;
	if (o->id_attr)
		mnl_attr_put_u32(nlh, o->id_attr, o->id ?: socket_id);
	if (cmd == DBLP_CMD_PHASE_DEL)
		return nlh;
	if (o->text)
		mnl_attr_put_strz(nlh, o->attr, o->text);
	else if (o->attr)
		mnl_attr_put_u32(nlh, o->attr, value);
	return nlh;
}

/*
 * Send a request with the n-th fault. Return: 0, or the errno; -1 if the request was
 * processed and the reply lost, which the kernel reports by ENOBUFS.
 */
static int send_failing(struct nlmsghdr *nlh, unsigned int n, bool *met)
{
	static _Alignas(8) char answer[65536];
	int fd = mnl_socket_get_fd(nl), err = -1, len;
	struct nlmsghdr *part;

	fail_begin(n);
	len = send(fd, nlh, nlh->nlmsg_len, 0);
	*met = fail_end();
	if (len < 0)
		return errno;
	/* Read the reply, which is complete by now, except later parts of a dump */
	while ((len = recv(fd, answer, sizeof(answer), MSG_DONTWAIT)) > 0) {
		part = (void *)answer;
		for (; mnl_nlmsg_ok(part, len);
		     part = mnl_nlmsg_next(part, &len)) {
			if (part->nlmsg_type == NLMSG_ERROR ||
			    part->nlmsg_type == NLMSG_DONE)
				err = -*(int *)mnl_nlmsg_get_payload(part);
		}
	}
	return len < 0 && errno == ENOBUFS ? -1 : err;
}

/* A different value each time, to detect whether it was set */
static uint32_t value_of(const struct operation *o, unsigned int n)
{
	return o->attr == DBLP_A_SOCKET_PHASE || o->attr == DBLP_A_JOB_PHASE ?
	       n % 3 : n;
}

static bool try_operation(struct __test_metadata *_metadata,
			  const struct operation *o, unsigned int n,
			  unsigned int *failed)
{
	static struct nl_state before, after;
	struct nlmsghdr *nlh;
	bool met;
	int err;

	nl_state_take(&before);
	nlh = build(o, o->cmd, value_of(o, n));
	err = send_failing(nlh, n, &met);
	nl_state_take(&after);
	if (err > 0) {
		++*failed;
		EXPECT_TRUE(met && is_proper(err))
			TH_LOG("command %u: fault %u: %s", o->cmd, n,
			       strerror(err));
		EXPECT_TRUE(before.len == after.len &&
			    !memcmp(before.bytes, after.bytes, after.len))
			TH_LOG("command %u: fault %u changed something",
			       o->cmd, n);
		EXPECT_EQ(0, result(build(o, o->cmd, value_of(o, n))))
			TH_LOG("command %u: after fault %u", o->cmd, n);
	} else {
		EXPECT_TRUE(met || !err)
			TH_LOG("command %u: %u: no answer", o->cmd, n);
	}
	/* Undo a creation or deletion whose reply was lost */
	if (o->undo && o->undo != o->cmd)
		EXPECT_EQ(0, result(build(o, o->undo, 0)))
			TH_LOG("command %u: undo after fault %u", o->cmd, n);
	return met;
}

TEST_F_TIMEOUT(failnth, netlink_operations, 120)
{
	unsigned int n, failed;
	size_t i;

	socket_id = get_info(self->s.listener).id;
	ASSERT_EQ(0, result(about(DBLP_CMD_JOB_ADD, DBLP_A_JOB_ID, 9)));
	ASSERT_EQ(0, result(build(&operations[8], DBLP_CMD_PHASE_SET, 0)));
	for (i = 0; i < N(operations); i++) {
		failed = 0;
		n = 1;
		while (try_operation(_metadata, &operations[i], n, &failed) &&
		       n < 500)
			n++;
		EXPECT_GT(500, n);
		TH_LOG("command %u%s: %u faults, of which %u made it fail",
		       operations[i].cmd, operations[i].dump ? ", dump" : "",
		       n - 1, failed);
	}
}

TEST_HARNESS_MAIN
