// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options of level SOL_SOCKET: each one works, or is refused and changes nothing. The
 * table has all options of Linux. An option of a newer kernel fails here until its meaning
 * for AF_DBLP is decided. The same table for users is in Documentation/dblp.rst.
 */
#define _GNU_SOURCE
#include <string.h>

#include "lib/conn.h"

#define NUMBERS		256
#define VALUE_MAX	128

enum kind {
	/* Can be set, and reads as the same value */
	WORKS,
	/* Can be set; reading returns another option's value, or fails */
	ACTS,
	/* Needs a memory cgroup: tested in charged.c */
	CHARGED,
	READ_ONLY,
	REFUSED,
};

/**
 * struct generic - an option
 * @own: an accepted socket does not inherit it
 * @len: size of @value, bytes
 * @value: value to set
 */
struct generic {
	const char	*name;
	enum kind	kind;
	bool		own;
	socklen_t	len;
	union {
		int		number;
		int		pair[2];
		long long	time[2];
		char		text[16];
	} value;
};

#define INT(n)		.len = sizeof(int), .value = { .number = (n) }
#define TIME(s)		.len = 2 * sizeof(long long), .value = { .time = { s } }

/* By number, because not all headers have all names */
static struct generic generic[NUMBERS] = {
	[1] = { "SO_DEBUG", REFUSED },
	[2] = { "SO_REUSEADDR", WORKS, INT(1) },
	[3] = { "SO_TYPE", READ_ONLY },
	[4] = { "SO_ERROR", READ_ONLY },
	[5] = { "SO_DONTROUTE", REFUSED },
	[6] = { "SO_BROADCAST", REFUSED },
	[7] = { "SO_SNDBUF", ACTS, INT(30000) },
	[8] = { "SO_RCVBUF", ACTS, INT(40000) },
	[9] = { "SO_KEEPALIVE", WORKS, INT(1) },
	[10] = { "SO_OOBINLINE", REFUSED },
	[11] = { "SO_NO_CHECK", REFUSED },
	[12] = { "SO_PRIORITY", WORKS, INT(5) },
	[13] = { "SO_LINGER", WORKS, .len = 8, .value = { .pair = { 1, 7 } } },
	[14] = { "SO_BSDCOMPAT", REFUSED },
	[15] = { "SO_REUSEPORT", REFUSED },
	[16] = { "SO_PASSCRED", REFUSED },
	[17] = { "SO_PEERCRED", READ_ONLY },
	[18] = { "SO_RCVLOWAT", REFUSED },
	[19] = { "SO_SNDLOWAT", READ_ONLY },
	[20] = { "SO_RCVTIMEO_OLD", WORKS, TIME(20) },
	[21] = { "SO_SNDTIMEO_OLD", WORKS, TIME(21) },
	[25] = { "SO_BINDTODEVICE", WORKS, .len = 3, .value = { .text = "lo" } },
	[26] = { "SO_ATTACH_FILTER", REFUSED },
	[27] = { "SO_DETACH_FILTER", REFUSED },
	[28] = { "SO_PEERNAME", READ_ONLY, .own = true },
	[29] = { "SO_TIMESTAMP_OLD", REFUSED },
	[30] = { "SO_ACCEPTCONN", READ_ONLY, .own = true },
	[31] = { "SO_PEERSEC", READ_ONLY },
	[32] = { "SO_SNDBUFFORCE", ACTS, INT(50000) },
	[33] = { "SO_RCVBUFFORCE", ACTS, INT(60000) },
	[34] = { "SO_PASSSEC", REFUSED },
	[35] = { "SO_TIMESTAMPNS_OLD", REFUSED },
	[36] = { "SO_MARK", WORKS, INT(36) },
	[37] = { "SO_TIMESTAMPING_OLD", REFUSED },
	[38] = { "SO_PROTOCOL", READ_ONLY },
	[39] = { "SO_DOMAIN", READ_ONLY },
	[40] = { "SO_RXQ_OVFL", REFUSED },
	[41] = { "SO_WIFI_STATUS", REFUSED },
	[42] = { "SO_PEEK_OFF", REFUSED },
	[43] = { "SO_NOFCS", REFUSED },
	[44] = { "SO_LOCK_FILTER", REFUSED },
	[45] = { "SO_SELECT_ERR_QUEUE", REFUSED },
	[46] = { "SO_BUSY_POLL", REFUSED },
	[47] = { "SO_MAX_PACING_RATE", WORKS, INT(100000000) },
	[48] = { "SO_BPF_EXTENSIONS", READ_ONLY },
	[49] = { "SO_INCOMING_CPU", REFUSED, .own = true },
	[50] = { "SO_ATTACH_BPF", REFUSED },
	[51] = { "SO_ATTACH_REUSEPORT_CBPF", REFUSED },
	[52] = { "SO_ATTACH_REUSEPORT_EBPF", REFUSED },
	[53] = { "SO_CNX_ADVICE", ACTS, INT(1) },
	[55] = { "SO_MEMINFO", READ_ONLY, .own = true },
	[56] = { "SO_INCOMING_NAPI_ID", READ_ONLY },
	[57] = { "SO_COOKIE", READ_ONLY, .own = true },
	[59] = { "SO_PEERGROUPS", READ_ONLY },
	[60] = { "SO_ZEROCOPY", REFUSED },
	[61] = { "SO_TXTIME", REFUSED },
	[62] = { "SO_BINDTOIFINDEX", WORKS, INT(1) },
	[63] = { "SO_TIMESTAMP_NEW", REFUSED },
	[64] = { "SO_TIMESTAMPNS_NEW", REFUSED },
	[65] = { "SO_TIMESTAMPING_NEW", REFUSED },
	[66] = { "SO_RCVTIMEO_NEW", WORKS, TIME(66) },
	[67] = { "SO_SNDTIMEO_NEW", WORKS, TIME(67) },
	[68] = { "SO_DETACH_REUSEPORT_BPF", REFUSED },
	[69] = { "SO_PREFER_BUSY_POLL", REFUSED },
	[70] = { "SO_BUSY_POLL_BUDGET", REFUSED },
	[71] = { "SO_NETNS_COOKIE", READ_ONLY },
	[72] = { "SO_BUF_LOCK", WORKS, INT(3) },
	[73] = { "SO_RESERVE_MEM", CHARGED, .own = true },
	[74] = { "SO_TXREHASH", WORKS, INT(0) },
	[75] = { "SO_RCVMARK", REFUSED },
	[76] = { "SO_PASSPIDFD", REFUSED },
	[77] = { "SO_PEERPIDFD", READ_ONLY },
	[78] = { "SO_DEVMEM_LINEAR", REFUSED },
	[79] = { "SO_DEVMEM_DMABUF", REFUSED },
	[80] = { "SO_DEVMEM_DONTNEED", REFUSED },
	[82] = { "SO_RCVPRIORITY", REFUSED },
	[83] = { "SO_PASSRIGHTS", REFUSED },
	[84] = { "SO_INQ", REFUSED },
};

/* Result, length and bytes of getsockopt() */
struct reading {
	long		ret;
	socklen_t	len;
	char		bytes[VALUE_MAX];
};

static struct reading read_option(int fd, int opt)
{
	struct reading r = { .len = sizeof(r.bytes) };

	r.ret = RESULT(getsockopt(fd, SOL_SOCKET, opt, r.bytes, &r.len));
	return r;
}

static bool same_reading(const struct reading *a, const struct reading *b)
{
	return a->ret == b->ret && a->len == b->len &&
	       !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static long set_option(int fd, int opt)
{
	const struct generic *g = &generic[opt];

	return RESULT(setsockopt(fd, SOL_SOCKET, opt, &g->value, g->len));
}

/* Later kernels have SO_TXREHASH for TCP only, and do not call the family */
static void __attribute__((constructor)) ask_the_kernel(void)
{
	int udp = socket(AF_INET, SOCK_DGRAM, 0);

	if (set_option(udp, SO_TXREHASH) == -EOPNOTSUPP)
		generic[SO_TXREHASH].kind = REFUSED;
	close(udp);
}

static bool can_be_set(int opt)
{
	return opt >= 0 && generic[opt].name && generic[opt].kind <= CHARGED;
}

/* May a family refuse an option that the kernel knows? */
static bool family_is_asked(void)
{
	int fd = plain_socket();
	bool asked = set_option(fd, SO_BROADCAST) == -EOPNOTSUPP;

	close(fd);
	return asked;
}

static void try_works(struct __test_metadata *_metadata, int fd, int opt)
{
	const struct generic *g = &generic[opt];
	struct reading r;

	EXPECT_EQ(0, set_option(fd, opt)) TH_LOG("%s", g->name);
	if (g->kind == ACTS)
		return;
	r = read_option(fd, opt);
	EXPECT_EQ(0, r.ret) TH_LOG("%s", g->name);
	/* The length of a number is the reader's, or that of an int */
	EXPECT_EQ(0, memcmp(&g->value, r.bytes, g->len)) TH_LOG("%s", g->name);
}

static void try_all_that_work(struct __test_metadata *_metadata, int fd)
{
	int opt;

	for (opt = 0; opt < NUMBERS; opt++)
		if (generic[opt].name && generic[opt].kind <= ACTS)
			try_works(_metadata, fd, opt);
	/* Values of the options that were set last */
	EXPECT_EQ(100000, get_int(fd, SO_SNDBUF));
	EXPECT_EQ(120000, get_int(fd, SO_RCVBUF));
}

TEST_F(conn, supported_options_work)
{
	try_all_that_work(_metadata, self->listener);
	try_all_that_work(_metadata, self->client);
	try_all_that_work(_metadata, self->server);
}

static void try_refused(struct __test_metadata *_metadata, int fd, int opt,
			int value)
{
	struct reading before = read_option(fd, opt), after;
	long got = RESULT(setsockopt(fd, SOL_SOCKET, opt, &value,
				     sizeof(value)));

	EXPECT_EQ(-EOPNOTSUPP, got) TH_LOG("option %d", opt);
	after = read_option(fd, opt);
	/* Reading them all takes memory of its own */
	if (opt != SO_MEMINFO && opt != SO_INCOMING_CPU)
		EXPECT_TRUE(same_reading(&before, &after))
			TH_LOG("option %d", opt);
}

/* Including options that no kernel has yet */
TEST_F(conn, unsupported_options_are_refused)
{
	int opt;

	if (!family_is_asked())
		SKIP(return, "before Linux 6.2 a family cannot refuse them");
	for (opt = -1; opt < NUMBERS; opt++) {
		if (can_be_set(opt))
			continue;
		try_refused(_metadata, self->listener, opt, 1);
		try_refused(_metadata, self->client, opt, 1);
		try_refused(_metadata, self->client, opt, 0);
		try_refused(_metadata, self->server, opt, 1);
	}
}

/* An older kernel accepts more options; messages must still arrive */
TEST_F(conn, ineffective_options_do_no_harm)
{
	uint64_t value[4] = { 1 };
	char buf[8];
	int opt;

	for (opt = 0; opt < NUMBERS; opt++) {
		if (can_be_set(opt))
			continue;
		setsockopt(self->client, SOL_SOCKET, opt, value, 4);
		setsockopt(self->server, SOL_SOCKET, opt, value, 8);
		setsockopt(self->server, SOL_SOCKET, opt, value, 16);
	}
	errno = 0;
	EXPECT_EQ(5, send(self->client, "there", 5, 0));
	EXPECT_EQ(5, recv(self->server, buf, sizeof(buf), 0));
	EXPECT_EQ(4, send(self->server, "back", 4, 0));
	EXPECT_EQ(4, recv(self->client, buf, sizeof(buf), 0));
}

TEST_F(conn, the_table_has_all_options)
{
	struct reading r;
	int opt;

	for (opt = 0; opt < NUMBERS; opt++) {
		if (generic[opt].name)
			continue;
		r = read_option(self->client, opt);
		EXPECT_EQ(-ENOPROTOOPT, r.ret)
			TH_LOG("option %d: what does it mean here?", opt);
	}
}

TEST_F(conn, accepted_sockets_inherit_options)
{
	struct reading of_listener, of_server;
	int client, server, opt;

	try_all_that_work(_metadata, self->listener);
	connect_pair(&self->addr, self->listener, &client, &server);
	for (opt = 0; opt < NUMBERS; opt++) {
		if (generic[opt].own)
			continue;
		of_listener = read_option(self->listener, opt);
		of_server = read_option(server, opt);
		EXPECT_TRUE(same_reading(&of_listener, &of_server))
			TH_LOG("%s", generic[opt].name ?: "unknown");
	}
	/* Later changes are independent */
	set_int(server, SO_MARK, 1);
	EXPECT_EQ(36, get_int(self->listener, SO_MARK));
	set_linger(server, 0, 0);
}

TEST_F(conn, options_that_can_be_read)
{
	uint64_t cookie[2] = { };
	struct sockaddr_dblp name;
	socklen_t len = 8;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	EXPECT_EQ(SOCK_SEQPACKET, get_int(self->server, SO_TYPE));
	EXPECT_EQ(AF_DBLP, get_int(self->server, SO_DOMAIN));
	EXPECT_EQ(0, get_int(self->server, SO_PROTOCOL));
	EXPECT_EQ(1, get_int(self->listener, SO_ACCEPTCONN));
	EXPECT_EQ(0, get_int(self->client, SO_ACCEPTCONN));
	EXPECT_EQ(0, get_int(self->client, SO_ERROR));
	EXPECT_EQ(0, getsockopt(self->client, SOL_SOCKET, SO_COOKIE, &cookie[0],
				&len));
	EXPECT_EQ(0, getsockopt(self->server, SOL_SOCKET, SO_COOKIE, &cookie[1],
				&len));
	EXPECT_NE(0, cookie[0]);
	EXPECT_NE(cookie[0], cookie[1]);
	EXPECT_LE(0, get_int(self->client, SO_INCOMING_CPU));
	EXPECT_GT(cpus, get_int(self->client, SO_INCOMING_CPU));
	EXPECT_LE(0, get_int(self->server, SO_INCOMING_CPU));
	len = sizeof(name);
	EXPECT_EQ(0, getsockopt(self->client, SOL_SOCKET, SO_PEERNAME, &name,
				&len));
	EXPECT_EQ(0, memcmp(&self->addr, &name, sizeof(name)));
}

/* Time stamps are not supported, and requests for them do not turn them on globally */
TEST_F(conn, packets_have_no_time_stamps)
{
	struct timeval tv;

	EXPECT_ERR(ENOTTY, ioctl(self->client, SIOCGSTAMP_OLD, &tv));
}

/*
 * SO_MAX_PACING_RATE
 */

#define RATE		500000
#define SENT		(RATE / 2)

/* Returns the time to send SENT bytes, ms */
static uint64_t time_to_send(int from, int to)
{
	char *buf = noise_new(SENT);
	uint64_t start = now_ms();

	if (send(from, buf, SENT, 0) != SENT ||
	    recv(to, buf, SENT, 0) != SENT)
		die("sending %u bytes", SENT);
	free(buf);
	return now_ms() - start;
}

static uint64_t rate_of(int from, int to)
{
	time_to_send(from, to);
	return get_info(from).pacing_rate;
}

/* Sending takes the time of the rate, except for a tenth that precedes the pacer */
static void expect_slow(struct __test_metadata *_metadata, int from, int to)
{
	uint64_t ms = time_to_send(from, to);

	TH_LOG("%u bytes in %u ms", SENT, (unsigned int)ms);
	EXPECT_LE(SENT / (RATE / 1000) * 9 / 10, ms);
	EXPECT_GE(RATE, get_info(from).pacing_rate);
}

TEST_F(conn, nothing_is_sent_faster_than_the_maximum_pacing_rate)
{
	int client, server;

	netns_set_mtu(1500);
	/* Set and reduce the rate of a connection, then remove the limit */
	time_to_send(self->client, self->server);
	set_int(self->client, SO_MAX_PACING_RATE, RATE);
	expect_slow(_metadata, self->client, self->server);
	set_int(self->client, SO_MAX_PACING_RATE, -1);
	EXPECT_LT(4 * RATE, SOON(4 * RATE + 1,
				 rate_of(self->client, self->server)));

	/* A rate of the listener applies from the first packet on */
	set_int(self->listener, SO_MAX_PACING_RATE, RATE);
	connect_pair(&self->addr, self->listener, &client, &server);
	expect_slow(_metadata, server, client);
}

TEST_HARNESS_MAIN
