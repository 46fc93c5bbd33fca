// SPDX-License-Identifier: GPL-2.0-only
/*
 * Those who come when somebody else has a socket: packets for a listener that a
 * call has locked, and the closing of a listener of whose connections netlink
 * has one. What is wrong then hangs or corrupts the kernel, which ends the VM.
 */
#define _GNU_SOURCE
#include "lib/nltest.h"
#include "lib/scripted.h"
#include "lib/sock.h"

#include <pthread.h>

#include "kselftest_harness.h"

#define WAIT_MS		10000

FIXTURE(locks) {
	struct sockaddr_dblp addr;
	struct peer peer;
	struct packet p;
	pthread_t thread;
	volatile bool stop;
	uint32_t id;
	int listener;
};

FIXTURE_SETUP(locks)
{
	netns_new();
	open_netlink();
	self->listener = new_listener("127.0.0.1", 4096, &self->addr);
}

FIXTURE_TEARDOWN(locks)
{
	close(self->listener);
	mnl_socket_close(nl);
}

static void *lock_listener(void *arg)
{
	FIXTURE_DATA(locks) *self = arg;

	while (!self->stop)
		get_info(self->listener);
	return NULL;
}

/*
 * Who asked has gone by the time his COOKIE-ACK comes, if that had to wait. Then
 * an error comes back for the new connection, on the CPU that is making it.
 */
#define CONNECTIONS	1000

TEST_F(locks, a_connection_begins_while_calls_lock_the_listener)
{
	struct dblp_params ours = params_default();
	u64 end = now_ms() + WAIT_MS;
	u32 i;

	ASSERT_EQ(0, pthread_create(&self->thread, NULL, lock_listener, self));
	for (i = 0; i < CONNECTIONS && now_ms() < end; i++) {
		peer_connect(&self->peer, &self->addr);
		peer_get_cookie(&self->peer);
		make_echo(&self->p, &self->peer, &ours);
		send_packet(&self->peer, &self->p);
		peer_close(&self->peer);
	}
	end += WAIT_MS;
	while (mib("ConnPassive") < i && now_ms() < end)
		sleep_ms(20);
	self->stop = true;
	pthread_join(self->thread, NULL);
	EXPECT_EQ(i, mib("ConnPassive"));
	TH_LOG("%u errors came back", (u32)mib("ConnReset"));
}

/*
 * Half of each message has come, and as soon as that may be missing all of them
 * are closed at once, which takes a while.
 */
#define ROUNDS		20
#define MESSAGES	500

static void open_messages(struct __test_metadata *_metadata,
			  FIXTURE_DATA(locks) *self)
{
	struct dblp_data d = {
		.msg_len = 512, .budget = 500000, .policy = DBLP_POLICY_EAGER,
	};

	for (d.msg_id = 1; d.msg_id <= MESSAGES; d.msg_id++) {
		make_data(&self->p, &self->peer, &d, 256, NULL);
		send_packet(&self->peer, &self->p);
	}
	ASSERT_TRUE(peer_sync(&self->peer));
}

static int set_cap(uint32_t id, uint32_t ppm)
{
	struct nlmsghdr *nlh = begin(family, DBLP_CMD_SOCKET_SET, 0);

	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_ID, id);
	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_BUDGET_CAP, ppm);
	return result(nlh);
}

static void *raise_cap(void *arg)
{
	FIXTURE_DATA(locks) *self = arg;

	/* The other thread waits for this */
	self->stop = true;
	/* The connection may be over already */
	if (set_cap(self->id, 1000000) && got.err != ENOENT)
		die("socket set: %s", got.msg);
	return NULL;
}

TEST_F(locks, a_listener_is_closed_while_netlink_has_its_connections)
{
	u64 end = now_ms() + WAIT_MS;
	struct timespec wait = { 0 };
	u32 i;

	close(self->listener);
	for (i = 0; i < ROUNDS && now_ms() < end; i++) {
		self->listener = new_listener("127.0.0.1", 8, &self->addr);
		set_u32(self->listener, DBLP_BUDGET_CAP, 0);
		peer_connect(&self->peer, &self->addr);
		peer_handshake(&self->peer);
		/* Sockets of a namespace are numbered one by one */
		self->id = get_info(self->listener).id + 1;
		ASSERT_EQ(0, set_cap(self->id, 0));
		open_messages(_metadata, self);
		self->stop = false;
		ASSERT_EQ(0, pthread_create(&self->thread, NULL, raise_cap,
					    self));
		while (!self->stop)
			;
		wait.tv_nsec = i * 50000;
		nanosleep(&wait, NULL);
		close(self->listener);
		pthread_join(self->thread, NULL);
		peer_close(&self->peer);
	}
	self->listener = -1;
	EXPECT_EQ(0, socket_count());
}

TEST_HARNESS_MAIN
