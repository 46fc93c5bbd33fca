// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options of level SOL_DBLP: ranges, defaults, inheritance, errors of invalid input, and
 * DBLP_INFO. Options of SOL_SOCKET are in generic.c.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/conn.h"

struct option {
	const char *name;
	int opt;
	uint32_t min;
	uint32_t max;
	uint32_t initial;
	bool of_phase;
};

static const struct option options[] = {
	{ "budget", DBLP_BUDGET, 0, DBLP_PPM, 0, true },
	{ "budget cap", DBLP_BUDGET_CAP, 0, DBLP_PPM, 0, true },
	{ "policy", DBLP_CLOSE_POLICY, 0, 2, DBLP_POLICY_EAGER,
	  true },
	{ "deadline", DBLP_DEADLINE, 0, 3600000000, 0, false },
	{ "order", DBLP_ORDER, 0, 2, DBLP_ORDER_AUTO, true },
	{ "element", DBLP_ELEMENT, 1, 256, 8, false },
	{ "fill", DBLP_FILL, 0, 1, DBLP_FILL_ZERO, true },
	{ "notify", DBLP_NOTIFY, 0, 1, 0, false },
	{ "user timeout", DBLP_USER_TIMEOUT, 1, 3600000, 30000, false },
	{ "partial send", DBLP_PARTIAL_SEND, 0, 1, 0, false },
	{ "elide", DBLP_ELIDE, 0, 1, 1, false },
	{ "tos", DBLP_TOS, 0, 0xfc, 0, false },
	{ "ect", DBLP_ECT, 0, 1, 1, false },
	{ "spray", DBLP_SPRAY, 1, 16, 1, false },
};

static void try_option(struct __test_metadata *_metadata, int fd,
		       const struct option *o)
{
	uint32_t value[2] = { o->max, 0 };
	socklen_t len;

	EXPECT_EQ(o->initial, get_u32(fd, o->opt)) TH_LOG("%s", o->name);
	set_u32(fd, o->opt, o->min);
	EXPECT_EQ(o->min, get_u32(fd, o->opt)) TH_LOG("%s", o->name);
	set_u32(fd, o->opt, o->max);
	EXPECT_EQ(o->max, get_u32(fd, o->opt)) TH_LOG("%s", o->name);

	/* Each is refused, and the option does not change */
	for (len = 0; len < sizeof(value[0]); len++)
		EXPECT_ERR(EINVAL, setsockopt(fd, SOL_DBLP, o->opt, value, len));
	EXPECT_ERR(EINVAL, setsockopt(fd, SOL_DBLP, o->opt, value, 8));
	EXPECT_ERR(EFAULT, setsockopt(fd, SOL_DBLP, o->opt, (void *)8, 4));
	value[0] = o->max + 1;
	EXPECT_ERR(EINVAL, setsockopt(fd, SOL_DBLP, o->opt, value, 4));
	value[0] = o->min - 2;
	EXPECT_ERR(EINVAL, setsockopt(fd, SOL_DBLP, o->opt, value, 4));
	EXPECT_EQ(o->max, get_u32(fd, o->opt)) TH_LOG("%s", o->name);
	value[0] = o->min - 1;
	if (o->of_phase) {
		EXPECT_EQ(DBLP_INHERIT, value[0]);
		set_u32(fd, o->opt, value[0]);
		EXPECT_EQ(o->initial, get_u32(fd, o->opt))
			TH_LOG("%s", o->name);
	} else {
		EXPECT_ERR(EINVAL, setsockopt(fd, SOL_DBLP, o->opt, value, 4));
		EXPECT_EQ(o->max, get_u32(fd, o->opt)) TH_LOG("%s", o->name);
	}

	for (len = 0; len < sizeof(value[0]); len++) {
		socklen_t l = len;

		EXPECT_ERR(EINVAL, getsockopt(fd, SOL_DBLP, o->opt, value, &l));
	}
	len = 4;
	EXPECT_ERR(EFAULT, getsockopt(fd, SOL_DBLP, o->opt, (void *)8, &len));
	len = 8;
	EXPECT_EQ(0, getsockopt(fd, SOL_DBLP, o->opt, value, &len));
	EXPECT_EQ(4, len);
}

TEST(every_option)
{
	int fd = plain_socket();
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		try_option(_metadata, fd, &options[i]);
}

TEST(unknown_options)
{
	static const int unknown[] = { 0, -1, DBLP_SPRAY + 1, 200, 1000 };
	static const int levels[] = {
		SOL_IP, SOL_IPV6, IPPROTO_TCP, IPPROTO_UDP, SOL_DBLP + 1,
	};
	static const int only_read[] = {
		DBLP_INFO, DBLP_LOSSMAP, DBLP_SENT_LOSSMAP,
	};
	uint32_t value = 1;
	int fd = new_socket();
	socklen_t len;
	size_t i;

	for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		len = sizeof(value);
		EXPECT_ERR(ENOPROTOOPT, setsockopt(fd, SOL_DBLP, unknown[i],
						   &value, len));
		EXPECT_ERR(ENOPROTOOPT, getsockopt(fd, SOL_DBLP, unknown[i],
						   &value, &len));
	}
	for (i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		len = sizeof(value);
		EXPECT_ERR(ENOPROTOOPT, setsockopt(fd, levels[i], DBLP_BUDGET,
						   &value, len));
		EXPECT_ERR(ENOPROTOOPT, getsockopt(fd, levels[i], DBLP_BUDGET,
						   &value, &len));
	}
	/* Read-only options */
	for (i = 0; i < sizeof(only_read) / sizeof(only_read[0]); i++)
		EXPECT_ERR(ENOPROTOOPT, setsockopt(fd, SOL_DBLP, only_read[i],
						   &value, sizeof(value)));
	EXPECT_EQ(0, get_u32(fd, DBLP_BUDGET));
}

TEST(congestion_controls)
{
	char name[64] = "", first[64];
	int fd = new_socket();
	socklen_t len = sizeof(name);

	ASSERT_EQ(0, getsockopt(fd, SOL_DBLP, DBLP_CONGESTION, name, &len));
	EXPECT_GE(DBLP_CC_NAME_MAX, len);
	EXPECT_LT(1, strnlen(name, sizeof(name)));
	strcpy(first, name);
	EXPECT_EQ(0, setsockopt(fd, SOL_DBLP, DBLP_CONGESTION, first,
				strlen(first)));
	EXPECT_EQ(0, setsockopt(fd, SOL_DBLP, DBLP_CONGESTION, first,
				strlen(first) + 1));
	EXPECT_ERR(ENOENT, setsockopt(fd, SOL_DBLP, DBLP_CONGESTION, "nosuch",
				      7));
	EXPECT_ERR(EINVAL, setsockopt(fd, SOL_DBLP, DBLP_CONGESTION, "", 0));
	memset(name, 'x', sizeof(name));
	EXPECT_ERR(EINVAL, setsockopt(fd, SOL_DBLP, DBLP_CONGESTION, name,
				      sizeof(name)));
	memset(name, 0, sizeof(name));
	len = sizeof(name);
	EXPECT_EQ(0, getsockopt(fd, SOL_DBLP, DBLP_CONGESTION, name, &len));
	EXPECT_STREQ(first, name);
}

static const char *const controls[] = { "lossy", "sqrt" };

/* Change it and change it back with messages in flight, which are not lost */
TEST_F(conn, congestion_control_changes_during_a_connection)
{
	static char buf[100000], got[sizeof(buf)];
	char name[DBLP_CC_NAME_MAX] = "";
	socklen_t len;
	int i, k;

	for (i = 0; i < 8; i++) {
		memset(buf, 'a' + i, sizeof(buf));
		for (k = 0; k < 4; k++)
			ASSERT_EQ(sizeof(buf), send(self->client, buf,
						    sizeof(buf), 0));
		ASSERT_EQ(0, setsockopt(self->client, SOL_DBLP, DBLP_CONGESTION,
					controls[i % 2],
					strlen(controls[i % 2])));
		len = sizeof(name);
		ASSERT_EQ(0, getsockopt(self->client, SOL_DBLP, DBLP_CONGESTION,
					name, &len));
		EXPECT_STREQ(controls[i % 2], name);
		for (k = 0; k < 4; k++) {
			ASSERT_EQ(sizeof(got), recv(self->server, got,
						    sizeof(got), 0));
			EXPECT_EQ(0, memcmp(buf, got, sizeof(got)));
		}
	}
}

#define FLIP_MSGS	40
#define FLIP_SIZE	100000

static int flip_msgs;

/**
 * struct flipper - a thread that changes the congestion control of a socket repeatedly
 * @fd: the socket
 * @stop: set to stop the thread
 * @flips: number of changes
 */
struct flipper {
	int		fd;
	atomic_bool	stop;
	unsigned int	flips;
};

static void *flip(void *arg)
{
	struct flipper *f = arg;
	const char *name;

	for (; !f->stop; sleep_ms(40)) {
		name = controls[++f->flips % 2];
		if (setsockopt(f->fd, SOL_DBLP, DBLP_CONGESTION, name,
			       strlen(name)))
			die("changing to %s", name);
	}
	return NULL;
}

static void *send_patterns(void *arg)
{
	static char buf[FLIP_SIZE];
	int i;

	for (i = 0; i < flip_msgs; i++) {
		pattern_fill(buf, sizeof(buf), 0, 1, i);
		if (send(*(int *)arg, buf, sizeof(buf), 0) != sizeof(buf))
			die("send()");
	}
	return NULL;
}

/* Returns the time of a transfer in ms, 0 if it fails */
static uint64_t transfer(int client, int server)
{
	static char got[FLIP_SIZE];
	uint64_t start = now_ms();
	pthread_t sender;
	int i;

	if (pthread_create(&sender, NULL, send_patterns, &client))
		die("pthread_create()");
	for (i = 0; i < flip_msgs; i++) {
		if (recv(server, got, sizeof(got), 0) != sizeof(got) ||
		    pattern_check(got, sizeof(got), 0, 1, i) >= 0)
			break;
	}
	pthread_join(sender, NULL);
	return i == flip_msgs ? now_ms() - start + 1 : 0;
}

/* With packets in flight, some of which are lost */
TEST_F_TIMEOUT(conn, congestion_control_changes_under_loss, 60)
{
	struct flipper f = { .fd = self->client };
	char name[DBLP_CC_NAME_MAX] = "";
	socklen_t len = sizeof(name);
	unsigned int mbit = less_if_slow(100, 20, "Mbit/s");
	uint64_t without, with, after, rate = mbit * 1000000 / 8;
	char network[64];
	struct dblp_info info;
	pthread_t thread;

	flip_msgs = less_if_slow(FLIP_MSGS, 4, "messages");
	netns_set_mtu(1500);
	snprintf(network, sizeof(network), "delay 2ms loss 3%% rate %umbit",
		 mbit);
	netem(network);
	/* Without a minimum RTT, a control would mistake the round trip for queueing delay */
	close(self->client);
	close(self->server);
	connect_pair(&self->addr, self->listener, &self->client,
		     &self->server);
	set_timeout(self->server, SO_RCVTIMEO, 20000);
	without = transfer(self->client, self->server);
	ASSERT_EQ(0, pthread_create(&thread, NULL, flip, &f));
	/* Repeat if a busy machine delayed the thread for most of the transfer */
	do {
		with = transfer(self->client, self->server);
	} while (with && f.flips < 6);
	f.stop = true;
	pthread_join(thread, NULL);
	after = transfer(self->client, self->server);
	info = get_info(self->client);
	ASSERT_EQ(0, getsockopt(self->client, SOL_DBLP, DBLP_CONGESTION, name,
				&len));
	TH_LOG("%u ms without, %u ms with %u changes, %u ms after them with %s",
	       (unsigned int)without, (unsigned int)with, f.flips,
	       (unsigned int)after, name);
	ASSERT_NE(0, without);
	ASSERT_NE(0, with);
	ASSERT_NE(0, after);
	EXPECT_LE(6, f.flips);
	EXPECT_STREQ(controls[f.flips % 2], name);
	EXPECT_LE(2 * info.seg_size, info.cwnd);
	EXPECT_GT(10 * rate, info.cwnd);
	if (!virtual_time())
		return;
	/* The transfer neither stalls nor restarts slow start at each change */
	EXPECT_GE(3 * without + 1000, with);
	EXPECT_GE(3 * without + 1000, after);
	EXPECT_LT(rate / 10, info.pacing_rate);
	EXPECT_GT(10 * rate, info.pacing_rate);
}

TEST_F(conn, options_are_inherited_from_the_listener)
{
	int client = new_socket(), server;

	set_u32(self->listener, DBLP_BUDGET, 12345);
	set_u32(self->listener, DBLP_BUDGET_CAP, 54321);
	set_u32(self->listener, DBLP_FILL, DBLP_FILL_KEEP);
	set_u32(self->listener, DBLP_ELEMENT, 24);
	set_u32(self->listener, DBLP_NOTIFY, 1);
	set_u32(self->listener, DBLP_USER_TIMEOUT, 7777);
	set_u32(self->listener, DBLP_TOS, 0x28);
	set_u32(self->listener, DBLP_ECT, 0);
	ASSERT_EQ(0, connect_to(client, &self->addr));
	server = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, server);
	EXPECT_EQ(12345, get_u32(server, DBLP_BUDGET));
	EXPECT_EQ(54321, get_u32(server, DBLP_BUDGET_CAP));
	EXPECT_EQ(DBLP_FILL_KEEP, get_u32(server, DBLP_FILL));
	EXPECT_EQ(24, get_u32(server, DBLP_ELEMENT));
	EXPECT_EQ(1, get_u32(server, DBLP_NOTIFY));
	EXPECT_EQ(7777, get_u32(server, DBLP_USER_TIMEOUT));
	EXPECT_EQ(0x28, get_u32(server, DBLP_TOS));
	EXPECT_EQ(0, get_u32(server, DBLP_ECT));
	/* The client knows the cap from the first message on */
	EXPECT_EQ(54321, get_info(client).peer_budget_cap);
}

/* With the smallest MTU, and META in each packet */
TEST_F(conn, elements_of_any_size_fit)
{
	char sent[2000] = "what was sent", got[sizeof(sent)];
	uint32_t element;

	/* The minimum MTU of IP */
	netns_set_mtu(strchr(variant->address, '.') ? 576 : 1280);
	for (element = 225; element <= 256; element++) {
		close(self->client);
		close(self->server);
		connect_pair(&self->addr, self->listener, &self->client,
			     &self->server);
		set_timeout(self->server, SO_RCVTIMEO, 5000);
		set_u32(self->client, DBLP_ELEMENT, element);
		set_u32(self->client, DBLP_DEADLINE, 3600000000);
		ASSERT_EQ(sizeof(sent), send(self->client, sent, sizeof(sent), 0));
		ASSERT_EQ(sizeof(got), recv(self->server, got, sizeof(got), 0))
			TH_LOG("elements of %u bytes", element);
		ASSERT_EQ(0, memcmp(sent, got, sizeof(got)));
	}
}

TEST(loss_maps_before_the_first_message)
{
	struct dblp_lossmap map = { .ranges = 99 };
	socklen_t len = sizeof(map);
	int fd = new_socket();

	EXPECT_ERR(ENODATA, getsockopt(fd, SOL_DBLP, DBLP_LOSSMAP, &map, &len));
	EXPECT_ERR(ENODATA, getsockopt(fd, SOL_DBLP, DBLP_SENT_LOSSMAP, &map,
				       &len));
}

TEST_F(conn, info_counts)
{
	struct dblp_info c, s;
	char buf[3000];
	int i;

	pattern_fill(buf, sizeof(buf), 0, 0, 0);
	EXPECT_EQ(3000, send(self->client, buf, 3000, 0));
	EXPECT_EQ(3000, recv(self->server, buf, 3000, 0));
	s = get_info(self->server);
	EXPECT_EQ(1, s.msgs_received);
	EXPECT_EQ(3000, s.bytes_received);
	EXPECT_EQ(0, s.bytes_missing);
	EXPECT_EQ(0, s.msgs_sent);
	EXPECT_EQ(0, shutdown(self->client, SHUT_WR));
	EXPECT_EQ(0, recv(self->server, buf, 3000, 0));
	for (i = 0; i < 100 && !get_info(self->client).msgs_sent; i++)
		usleep(50000);
	c = get_info(self->client);
	EXPECT_EQ(1, c.msgs_sent);
	EXPECT_EQ(3000, c.bytes_delivered);
	EXPECT_LE(3000, c.bytes_first);
	EXPECT_LT(0, c.srtt_us);
	EXPECT_LT(0, c.cwnd);
	EXPECT_NE(c.id, s.id);
	EXPECT_LE(get_u32(self->client, DBLP_BUDGET_CAP), c.peer_budget_cap);
}

TEST_F(conn, info_in_a_short_buffer)
{
	struct dblp_info info;
	socklen_t len = 8;

	memset(&info, 0x55, sizeof(info));
	EXPECT_EQ(0, getsockopt(self->client, SOL_DBLP, DBLP_INFO, &info,
				&len));
	EXPECT_EQ(8, len);
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, info.state);
	EXPECT_EQ(0x55555555, info.budget);
}

TEST_HARNESS_MAIN
