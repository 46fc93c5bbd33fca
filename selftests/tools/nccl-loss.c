// SPDX-License-Identifier: GPL-2.0-only
/*
 * The network plugin for NCCL: traffic classes that may lose data.
 */
#define _GNU_SOURCE
#include "lib/nccl_fixtures.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

/* Version 10 has traffic classes, but the plugin cannot see the protocol */
FIXTURE(unseen) { };
FIXTURE_SETUP(unseen)
{
	nccl_set_up(10);
}

FIXTURE_TEARDOWN(unseen) { }

/* Environment that lossy classes need before version 11 */
static void allow(const char *classes)
{
	setenv("DBLP_NCCL_LOSSY", classes, 1);
	setenv("NCCL_PROTO", "Simple", 1);
	setenv("NCCL_P2P_LL_THRESHOLD", "0", 1);
}

/* Returns the missing bytes of some messages; other bytes must be right */
static size_t lose(struct __test_metadata *_metadata)
{
	size_t missing = 0, i;
	int round, size;

	netem("loss 5%");
	memset(out, 0x77, MANY);
	for (round = 0; round < 5; round++) {
		memset(in, 0x5a, MANY);
		ASSERT_EQ(0, transfer(MANY, MANY, NCCL_TAG, &size));
		EXPECT_EQ(MANY, size);
		for (i = 0; i < MANY; i++) {
			ASSERT_TRUE(in[i] == 0x77 || !in[i]);
			missing += !in[i];
		}
	}
	return missing;
}

TEST_F(nccl, a_lossy_class_loses_within_its_budget)
{
	size_t missing;
	char text[80];

	if (plugin.v11 || plugin.v12)
		setenv("DBLP_NCCL_LOSSY", "3:1%,7:2.5%", 1);
	else
		allow("3:1%,7:2.5%");
	run("dblpctl phase set reliable fill keep");
	ASSERT_EQ(0, nccl_init());
	ASSERT_TRUE(open_class(7));
	if (plugin.v11 || plugin.v12)
		nccl_attr(NCCL_OP_REDUCE_SCATTER, NCCL_PROTO_SIMPLE);
	missing = lose(_metadata);
	/* Version 8 has no traffic classes */
	if (plugin.v8) {
		EXPECT_EQ(0, missing);
	} else {
		EXPECT_LT(0, missing);
		EXPECT_GE(5 * MANY / 40, missing);
		EXPECT_TRUE(is_said("are missing, and zero"));
	}
	close_all();
	snprintf(text, sizeof(text), "%zu of %d bytes from", missing, 5 * MANY);
	EXPECT_TRUE(plugin.v8 || is_said(text));
}

TEST_F(nccl, other_classes_lose_nothing_despite_operators)
{
	static const int classes[] = { NCCL_NO_CLASS, 0, 6 };
	int i;

	allow("7:2.5%");
	run("dblpctl phase set reliable loss 20%% close eager cap 20%%");
	ASSERT_EQ(0, nccl_init());
	for (i = 0; i < 3; i++) {
		ASSERT_TRUE(open_class(classes[i]));
		if (plugin.v11 || plugin.v12)
			nccl_attr(NCCL_OP_REDUCE_SCATTER, NCCL_PROTO_SIMPLE);
		run("dblpctl -j socket list state established | "
		    "jq -e 'map(select(.own == \"budget,policy\")) | length == 1 and "
		    ".[0].budget == 0 and .[0].policy == \"full\"' > /dev/null");
		EXPECT_EQ(0, lose(_metadata));
		close_all();
	}
}

/* Connect as the plugin does, with any budget */
static int connect_by_hand(int traffic_class)
{
	int hello[6] = { 0 }, fd = plain_socket();
	struct sockaddr_dblp addr;

	memcpy(&hello[2], handle + 8, 8);
	hello[4] = traffic_class;
	memcpy(&addr, handle + 24, sizeof(addr));
	set_u32(fd, DBLP_BUDGET, 200000);
	set_u32(fd, DBLP_CLOSE_POLICY, DBLP_POLICY_EAGER);
	if (connect_to(fd, &addr) ||
	    send(fd, hello, sizeof(hello), 0) != sizeof(hello))
		die("connecting by hand");
	return fd;
}

TEST_F(newest, this_end_limits_losses)
{
	void *request;
	int fd, size;

	allow("7:2.5%");
	ASSERT_EQ(0, nccl_init());
	ASSERT_EQ(0, do_listen(0, handle, &listener));
	fd = connect_by_hand(6);
	memset(out, 0x77, MANY);
	memset(out, 0, 8);
	ASSERT_EQ(MANY, send(fd, out, MANY, 0));
	while (!receiver)
		ASSERT_EQ(0, do_accept(listener, &receiver));
	ASSERT_EQ(0, do_recv(receiver, in, MANY, 0, &request));
	ASSERT_EQ(0, await(&request, 1, &size));
	EXPECT_EQ(MANY - 8, size);
	EXPECT_EQ(-1, bytes_check(in, size, 0x77));
	close(fd);
	CALL(close_recv, receiver);
	CALL(close_listen, listener);
}

TEST_F(newest, a_foreign_message_is_an_error)
{
	void *request;
	int fd, size;

	ASSERT_EQ(0, nccl_init());
	ASSERT_EQ(0, do_listen(0, handle, &listener));
	fd = connect_by_hand(NCCL_NO_CLASS);
	ASSERT_EQ(7, send(fd, out, 7, 0));
	while (!receiver)
		ASSERT_EQ(0, do_accept(listener, &receiver));
	ASSERT_EQ(0, do_recv(receiver, in, MANY, 0, &request));
	EXPECT_EQ(ncclRemoteError, await(&request, 1, &size));
	EXPECT_TRUE(is_said("sent an invalid message"));
	close(fd);
}

/* The other end has a larger budget than this one */
static void send_until_killed(void)
{
	void *request;
	int size;

	setenv("DBLP_NCCL_LOSSY", "7:20%", 1);
	if (nccl_init_class(7) || nccl_attr(NCCL_OP_ALL_REDUCE, NCCL_PROTO_SIMPLE))
		_exit(1);
	while (!sender)
		if (do_connect(7, handle, &sender))
			_exit(1);
	memset(out, 0x77, MANY);
	while (!do_send(sender, out, MANY, NCCL_TAG, &request) &&
	       !await(&request, 1, &size))
		;
	_exit(1);
}

TEST_F(newest, the_smaller_budget_of_both_ends_applies)
{
	size_t missing = 0, i;
	void *request;
	int size, n;
	pid_t pid;

	allow("7:5%");
	netem("loss 10%");
	ASSERT_EQ(0, nccl_init());
	ASSERT_EQ(0, do_listen(0, handle, &listener));
	pid = fork();
	if (!pid)
		send_until_killed();
	while (!receiver)
		ASSERT_EQ(0, do_accept(listener, &receiver));
	EXPECT_TRUE(is_said("traffic class 7 has a loss budget of 50000 ppm"));
	for (n = 0; n < 5; n++) {
		ASSERT_EQ(0, do_recv(receiver, in, MANY, NCCL_TAG, &request));
		ASSERT_EQ(0, await(&request, 1, &size));
		for (i = 0; i < MANY; i++)
			missing += !in[i];
	}
	EXPECT_LT(0, missing);
	EXPECT_GE(5 * MANY / 20, missing);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CALL(close_recv, receiver);
	CALL(close_listen, listener);
}

TEST_F(unseen, only_the_simple_protocol_may_lose)
{
	static const struct {
		const char *proto, *threshold;
	} wrong[] = {
		{ NULL, "0" }, { "Simple", NULL }, { "LL128", "0" },
		{ "LL,Simple", "0" }, { "^Simple", "0" }, { "simple", "16384" },
	};
	int i;

	allow("7:2.5%");
	ASSERT_EQ(0, nccl_init());
	for (i = 0; i < 6; i++) {
		unsetenv("NCCL_PROTO");
		unsetenv("NCCL_P2P_LL_THRESHOLD");
		if (wrong[i].proto)
			setenv("NCCL_PROTO", wrong[i].proto, 1);
		if (wrong[i].threshold)
			setenv("NCCL_P2P_LL_THRESHOLD", wrong[i].threshold, 1);
		said[0] = '\0';
		EXPECT_FALSE(open_class(7));
		EXPECT_EQ(ncclInvalidUsage, connect_result);
		EXPECT_TRUE(is_said("set NCCL_PROTO=Simple and NCCL_P2P_LL_THRESHOLD=0"));
		CALL(close_listen, listener);
		/* All other classes accept any protocol */
		ASSERT_TRUE(open_class(6));
		close_all();
	}
}

TEST_F(unseen, the_accepting_end_requires_the_simple_protocol_too)
{
	allow("7:2.5%");
	ASSERT_EQ(0, nccl_init());
	ASSERT_EQ(0, do_listen(0, handle, &listener));
	sender = NULL;
	while (!sender)
		ASSERT_EQ(0, do_connect(7, handle, &sender));
	unsetenv("NCCL_PROTO");
	while (!accept_result && !receiver)
		accept_result = do_accept(listener, &receiver);
	EXPECT_EQ(NULL, receiver);
	EXPECT_EQ(ncclInvalidUsage, accept_result);
	EXPECT_TRUE(is_said("set NCCL_PROTO=Simple"));
}

TEST_F(unseen, protocols_with_flags_in_the_data_are_not_lossy)
{
	void *data = in, *request = NCCL_FLAGS_IN_DATA, *none = NULL;
	size_t size = 8;
	int tag = NCCL_TAG;

	allow("7:2.5%");
	ASSERT_EQ(0, nccl_init());
	ASSERT_TRUE(open_class(7));
	EXPECT_EQ(ncclInvalidUsage, CALL_V10(irecv, receiver, 1, &data, &size, &tag,
					     &none, &none, &request));
	close_all();
	ASSERT_TRUE(open_class(6));
	request = NCCL_FLAGS_IN_DATA;
	EXPECT_EQ(0, CALL_V10(irecv, receiver, 1, &data, &size, &tag, &none, &none,
			      &request));
	EXPECT_NE(NCCL_FLAGS_IN_DATA, request);
	close_all();
}

TEST_F(newest, only_reductions_with_the_protocol_simple_lose)
{
	static const struct {
		uint32_t op, proto;
		bool loses;
	} step[] = {
		/* What new connections get */
		{ NCCL_UNKNOWN, NCCL_UNKNOWN, false },
		{ NCCL_OP_ALL_REDUCE, NCCL_PROTO_SIMPLE, true },
		{ NCCL_OP_ALL_REDUCE, NCCL_PROTO_LL, false },
		{ NCCL_OP_REDUCE_SCATTER, NCCL_PROTO_SIMPLE, true },
		{ NCCL_OP_REDUCE_SCATTER, NCCL_PROTO_LL128, false },
		{ NCCL_OP_REDUCE, NCCL_PROTO_SIMPLE, true },
		{ NCCL_OP_REDUCE, NCCL_PROTO_SIMPLE | NCCL_PROTO_LL, false },
		{ NCCL_OP_ALL_GATHER, NCCL_PROTO_SIMPLE, false },
		{ NCCL_OP_BROADCAST, NCCL_PROTO_SIMPLE, false },
		/* The protocol of the last collective operation */
		{ NCCL_OP_SEND, NCCL_PROTO_SIMPLE, false },
		{ NCCL_OP_REDUCE | NCCL_OP_SEND, NCCL_PROTO_SIMPLE, false },
	};
	size_t i;

	setenv("DBLP_NCCL_LOSSY", "7:2.5%", 1);
	/* Operators do not raise the budget of a message that must be exact */
	run("dblpctl phase set reliable loss 20%% close eager cap 20%%");
	ASSERT_EQ(0, nccl_init());
	ASSERT_TRUE(open_class(7));
	EXPECT_TRUE(is_said("of 25000 ppm, for reductions with the protocol Simple"));
	EXPECT_EQ(0, lose(_metadata));
	for (i = 0; i < sizeof(step) / sizeof(*step); i++) {
		ASSERT_EQ(0, nccl_attr(step[i].op, step[i].proto));
		EXPECT_EQ(step[i].loses, !!lose(_metadata))
			TH_LOG("step %zu", i);
	}
	close_all();
}

TEST_F(newest, the_operation_is_that_of_the_communicator)
{
	void *data = in, *request = NCCL_FLAGS_IN_DATA, *none = NULL, *first;
	size_t size = MANY;
	int tag = NCCL_TAG, n;

	setenv("DBLP_NCCL_LOSSY", "7:2.5%", 1);
	ASSERT_EQ(0, nccl_init());
	ASSERT_TRUE(open_class(7));
	first = nccl_context;
	ASSERT_EQ(0, nccl_init_class(7));
	ASSERT_EQ(0, nccl_attr(NCCL_OP_REDUCE, NCCL_PROTO_SIMPLE));
	EXPECT_EQ(0, lose(_metadata));
	nccl_finalize();
	nccl_context = first;
	/* A receive with LL or LL128 is accepted, because the sender loses nothing */
	ASSERT_EQ(0, CALL_V10(irecv, receiver, 1, &data, &size, &tag, &none, &none, &request));
	ASSERT_EQ(0, nccl_attr(NCCL_OP_REDUCE, NCCL_PROTO_LL));
	ASSERT_EQ(0, do_send(sender, out, MANY, NCCL_TAG, &none));
	/* The message keeps the operation for which it was posted */
	ASSERT_EQ(0, nccl_attr(NCCL_OP_REDUCE, NCCL_PROTO_SIMPLE));
	ASSERT_EQ(0, await(&none, 1, &n));
	ASSERT_EQ(0, await(&request, 1, &n));
	EXPECT_EQ(-1, bytes_check(in, MANY, 0x77));
	close_all();
}

TEST_F(newest, a_sender_of_an_older_version_needs_the_simple_protocol)
{
	int fd;

	setenv("DBLP_NCCL_LOSSY", "7:2.5%", 1);
	ASSERT_EQ(0, nccl_init());
	ASSERT_EQ(0, do_listen(0, handle, &listener));
	fd = connect_by_hand(7);
	while (!accept_result && !receiver)
		accept_result = do_accept(listener, &receiver);
	EXPECT_EQ(ncclInvalidUsage, accept_result);
	EXPECT_TRUE(is_said("set NCCL_PROTO=Simple"));
	close(fd);
	CALL(close_listen, listener);
}

/* Other threads may have opened communicators, and be opening their connections */
TEST_F(unseen, a_communicator_that_is_refused_leaves_classes_as_they_are)
{
	allow("7:2.5%");
	ASSERT_EQ(0, nccl_init());
	setenv("DBLP_NCCL_LOSSY", "8:2%,7", 1);
	EXPECT_EQ(ncclInvalidUsage, nccl_init());
	ASSERT_TRUE(open_class(7));
	EXPECT_TRUE(is_said("traffic class 7 has a loss budget of 25000 ppm"));
	close_all();
}

TEST_F(newest, invalid_classes_are_refused)
{
	static const char *const wrong[] = {
		"7", "7:", "7:2", "7:0%", "7:101%", "7:2%,", ",7:2%", "7:2%x",
		"7:2%,7:3%", "-1:2%", "7:-2%", "7:0.00001%", "7:1000001ppm",
		"99999999999:2%", "7 :2%", "7:100.5%", "7:2%;8:2%",
	};
	static const char *const right[] = { "", "7:2%", "0:100%,8:1ppm", "7:0.0001%,8:2.50%" };
	int i;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		setenv("DBLP_NCCL_LOSSY", wrong[i], 1);
		said[0] = '\0';
		EXPECT_EQ(ncclInvalidUsage, nccl_init())
			TH_LOG("%s", wrong[i]);
		EXPECT_TRUE(is_said(wrong[i]));
	}
	for (i = 0; i < sizeof(right) / sizeof(*right); i++) {
		setenv("DBLP_NCCL_LOSSY", right[i], 1);
		EXPECT_EQ(0, nccl_init());
	}
}

TEST_HARNESS_MAIN
