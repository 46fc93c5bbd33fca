// SPDX-License-Identifier: GPL-2.0-only
/*
 * The examples of Documentation/dblp.rst, which selftests/Makefile extracts: they compile
 * and do what the document says.
 */
#define _GNU_SOURCE
#include <err.h>
#include <string.h>
#include <sys/wait.h>

#include "lib/sock.h"
#include "lib/traffic.h"
#include "libdblp.h"

#include "kselftest_harness.h"

static char gradient[300000], received[300000];
static const size_t size = sizeof(gradient);
#define round	7

/* The first two examples: a client sends and gets a report of each message */
static int send_both(void)
{
#include "example-1.h"
	{
#include "example-2.h"
	}
	return fd;
}

static void ask(int fd)
{
#include "example-3.h"
}

/* The last two examples: read a message from @fd, and its report from @sender */
static void receive(int fd, int sender, struct dblp_rcvinfo *got,
		    struct dblp_rcvinfo *told, struct dblp_range *first)
{
#include "example-4.h"
	if (!info || msg.msg_flags & MSG_CTRUNC)
		die("no DBLP_RCVINFO, or a part of what belongs to it");
	*got = *info;
	*first = missing ? missing[0] : (struct dblp_range){};

	if (!wait_for(sender, POLLERR, 10 * SECONDS))
		die("no POLLERR");
	fd = sender;
#include "example-5.h"
	if (CMSG_FIRSTHDR(&msg)->cmsg_type != DBLP_CLOSEINFO || msg.msg_flags & MSG_CTRUNC)
		die("no DBLP_CLOSEINFO, or a part of what belongs to it");
	*told = *(struct dblp_rcvinfo *)CMSG_DATA(CMSG_FIRSTHDR(&msg));
}

/* The example of libdblp(3) */
static int print_loss_maps(void)
{
#include "example-libdblp.h"
	return 0;
}

TEST(examples_do_what_they_say)
{
	struct dblp_rcvinfo got, told;
	struct sockaddr_dblp addr;
	struct dblp_range first;
	int listener, server, client;

	netns_new();
	run("ip address add 10.0.0.1/32 dev lo");
	pattern_fill(gradient, sizeof(gradient), 0, 0, 0);
	addr_parse(&addr, "10.0.0.1", 4000);
	listener = new_socket();
	ASSERT_EQ(0, bind_to(listener, &addr));
	ask(listener);
	ASSERT_EQ(0, listen(listener, 1));

	client = send_both();
	server = accept(listener, NULL, NULL);
	ASSERT_LE(0, server);

	receive(server, client, &got, &told, &first);
	EXPECT_EQ(8000, got.budget);
	EXPECT_LE(got.missing, size * 8 / 1000);
	EXPECT_EQ(0, memcmp(&got, &told, sizeof(got)));

	receive(server, client, &got, &told, &first);
	EXPECT_EQ(round, got.tag);
	EXPECT_EQ(408000, got.budget);
	EXPECT_LE(got.missing, size * 408 / 1000);
	EXPECT_LT(size / 100, got.missing);
	EXPECT_LE(64, first.offset);
	EXPECT_EQ(0, memcmp(received, gradient, first.offset));
	EXPECT_EQ(0, received[first.offset]);
	EXPECT_EQ(0, memcmp(&got, &told, sizeof(got)));
}

TEST(the_example_of_libdblp_prints_a_loss_map)
{
	unsigned int length = 0, offset = 0;
	struct sockaddr_dblp addr;
	int listener, server, out[2], status;
	FILE *said;
	pid_t pid;

	netns_new();
	run("ip address add 192.0.2.1/32 dev lo");
	pattern_fill(gradient, sizeof(gradient), 0, 0, 0);
	addr_parse(&addr, "192.0.2.1", 7018);
	listener = new_socket();
	ASSERT_EQ(0, bind_to(listener, &addr));
	ASSERT_EQ(0, listen(listener, 1));
	ASSERT_EQ(0, pipe(out));
	fflush(stdout);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		dup2(out[1], STDOUT_FILENO);
		exit(print_loss_maps());
	}
	close(out[1]);
	server = accept(listener, NULL, NULL);
	ASSERT_LE(0, server);
	set_u32(server, DBLP_BUDGET, 408000);
	ASSERT_EQ(size, send(server, gradient, size, 0));
	ASSERT_EQ(0, shutdown(server, SHUT_WR));

	said = fdopen(out[0], "r");
	EXPECT_EQ(2, fscanf(said, "%u bytes at %u", &length, &offset));
	EXPECT_LT(0, length);
	EXPECT_GT(size, offset);
	while (fgetc(said) != EOF)
		;
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_HARNESS_MAIN
