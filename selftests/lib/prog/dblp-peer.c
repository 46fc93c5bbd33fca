// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the calls that its arguments name on one socket, for scripts: see usage().
 */
#define _GNU_SOURCE
#include "lib/testlib.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fd = -1;
static char **args;
static char *buffer;
/* Tag of messages to send */
static uint64_t tag;
static unsigned int label;
#define BUFFER_SIZE	(1 << 20)

static char *next(const char *what)
{
	errno = 0;
	if (!*args)
		die("%s needs another argument", what);
	return *args++;
}

static int open_socket(void)
{
	if (fd < 0)
		fd = socket(AF_DBLP, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	return fd;
}

static int name_socket(const char *verb)
{
	const char *address = next(verb);
	const int one = 1;
	struct sockaddr_dblp a;

	addr_parse(&a, address, atoi(next(verb)));
	a.sdblp_flowinfo = htonl(label);
	if (open_socket() < 0)
		return -1;
	if (!strcmp(verb, "connect"))
		return connect(fd, (struct sockaddr *)&a, sizeof(a));
	if (!strcmp(verb, "bind"))
		return bind(fd, (struct sockaddr *)&a, sizeof(a));
	/* Connections of an earlier listener may still use the address */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)))
		return -1;
	return listen(fd, 16);
}

static int accept_one(void)
{
	int child = accept(fd, NULL, NULL);

	if (child < 0)
		return -1;
	close(fd);
	fd = child;
	return 0;
}

static int set_option(void)
{
	static const struct {
		const char *name;
		int opt;
		int level;
	} options[] = {
		{ "budget", DBLP_BUDGET, SOL_DBLP },
		{ "cap", DBLP_BUDGET_CAP, SOL_DBLP },
		{ "deadline", DBLP_DEADLINE, SOL_DBLP },
		{ "job", DBLP_JOB, SOL_DBLP },
		{ "placement", DBLP_PLACEMENT, SOL_DBLP },
		{ "spray", DBLP_SPRAY, SOL_DBLP },
		{ "user-timeout", DBLP_USER_TIMEOUT, SOL_DBLP },
		{ "keepalive", DBLP_KEEPALIVE, SOL_DBLP },
		{ "sndbuf", SO_SNDBUF, SOL_SOCKET },
		{ "rcvbuf", SO_RCVBUF, SOL_SOCKET },
		{ "tos", DBLP_TOS, SOL_DBLP },
		{ "ect", DBLP_ECT, SOL_DBLP },
		{ "priority", SO_PRIORITY, SOL_SOCKET },
		{ "mark", SO_MARK, SOL_SOCKET },
	};
	const char *name = next("set");
	uint32_t value = atoi(next("set")), on = 1;
	size_t i;

	if (open_socket() < 0)
		return -1;
	if (!strcmp(name, "keepalive") &&
	    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)))
		return -1;
	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (!strcmp(name, options[i].name))
			return setsockopt(fd, options[i].level, options[i].opt,
					  &value, sizeof(value));
	die("no option '%s'", name);
}

static int report_norm(void)
{
	uint64_t norm = strtoull(next("norm"), NULL, 0);

	return setsockopt(fd, SOL_DBLP, DBLP_NORM, &norm, sizeof(norm));
}

static int cancel_messages(void)
{
	uint64_t which = strtoull(next("cancel"), NULL, 0);

	return setsockopt(fd, SOL_DBLP, DBLP_CANCEL, &which, sizeof(which));
}

static int bind_device(void)
{
	const char *name = next("device");

	if (open_socket() < 0)
		return -1;
	return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, strlen(name));
}

static int set_congestion(void)
{
	const char *name = next("congestion");

	if (open_socket() < 0)
		return -1;
	return setsockopt(fd, SOL_DBLP, DBLP_CONGESTION, name,
			  strlen(name) + 1);
}

static int send_messages(void)
{
	unsigned int i, n = atoi(next("send"));
	unsigned int size = atoi(next("send"));
	struct dblp_sndinfo info = { .tag = tag };

	for (i = 0; i < n; i++)
		if (sndinfo_send(fd, buffer, size, MSG_NOSIGNAL, tag ? &info : NULL) !=
		    (ssize_t)size)
			return -1;
	return 0;
}

static int receive_messages(void)
{
	unsigned int i, n = atoi(next("recv"));

	for (i = 0; i < n; i++) {
		ssize_t ret = recv(fd, buffer, BUFFER_SIZE, 0);

		if (ret < 0)
			return -1;
		errno = 0;
		if (!ret)
			die("end of file after %u messages", i);
	}
	return 0;
}

static int receive_until_eof(void)
{
	ssize_t ret;

	do {
		ret = recv(fd, buffer, BUFFER_SIZE, 0);
	} while (ret > 0);
	return ret;
}

static int expect_eof(void)
{
	ssize_t ret = recv(fd, buffer, BUFFER_SIZE, 0);

	errno = ret > 0 ? 0 : errno;
	if (ret > 0)
		die("a message of %zd bytes instead of the end of file", ret);
	return ret;
}

static int wait_for_hangup(void)
{
	struct pollfd p = { .fd = fd, .events = 0 };
	int err = 0;
	socklen_t len = sizeof(err);

	do {
		if (poll(&p, 1, -1) < 0)
			return -1;
	} while (!(p.revents & (POLLHUP | POLLERR)));
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -1;
	errno = err;
	return err ? -1 : 0;
}

static int wait_for_file(void)
{
	const char *path = next("await");

	while (access(path, F_OK))
		usleep(20000);
	return 0;
}

static int run(const char *verb)
{
	if (!strcmp(verb, "bind") || !strcmp(verb, "listen") ||
	    !strcmp(verb, "connect"))
		return name_socket(verb);
	if (!strcmp(verb, "socket"))
		return open_socket() < 0 ? -1 : 0;
	if (!strcmp(verb, "fork"))
		return fork() < 0 ? -1 : 0;
	if (!strcmp(verb, "accept"))
		return accept_one();
	if (!strcmp(verb, "set"))
		return set_option();
	if (!strcmp(verb, "tag"))
		return tag = strtoull(next("tag"), NULL, 0), 0;
	if (!strcmp(verb, "cancel"))
		return cancel_messages();
	if (!strcmp(verb, "norm"))
		return report_norm();
	if (!strcmp(verb, "device"))
		return bind_device();
	if (!strcmp(verb, "congestion"))
		return set_congestion();
	if (!strcmp(verb, "label"))
		return label = strtoul(next("label"), NULL, 0), 0;
	if (!strcmp(verb, "sleep"))
		return usleep(1000 * atoi(next("sleep")));
	if (!strcmp(verb, "send"))
		return send_messages();
	if (!strcmp(verb, "recv"))
		return receive_messages();
	if (!strcmp(verb, "drain"))
		return receive_until_eof();
	if (!strcmp(verb, "eof"))
		return expect_eof();
	if (!strcmp(verb, "hangup"))
		return wait_for_hangup();
	if (!strcmp(verb, "close"))
		return close(fd);
	if (!strcmp(verb, "shutdown"))
		return shutdown(fd, SHUT_WR);
	if (!strcmp(verb, "leave"))
		return netns_new(), 0;
	if (!strcmp(verb, "say"))
		return puts(next("say")) < 0 || fflush(stdout);
	if (!strcmp(verb, "await"))
		return wait_for_file();
	if (!strcmp(verb, "pause"))
		return pause();
	errno = 0;
	die("unknown word '%s'", verb);
}

static void usage(void)
{
	fputs("Usage: dblp-peer WORD...\n"
	      "  socket | bind A PORT | listen A PORT | connect A PORT\n"
	      "  accept               accept a connection, close the listener\n"
	      "  fork                 fork; both processes run the following words\n"
	      "  set budget|cap|deadline|job|placement|spray|user-timeout|keepalive|sndbuf|rcvbuf|\n"
	      "      tos|priority|mark|ect N  (keepalive: also SO_KEEPALIVE)\n"
	      "  tag N                set the tag of later messages\n"
	      "  cancel N             DBLP_CANCEL of messages with this tag\n"
	      "  norm N               DBLP_NORM\n"
	      "  device NAME          SO_BINDTODEVICE\n"
	      "  congestion NAME\n"
	      "  label N              set the flow label of later addresses\n"
	      "  send COUNT SIZE | recv COUNT | shutdown | close\n"
	      "  eof                  expect the end of file, nothing before it\n"
	      "  drain                receive until the end of file\n"
	      "  hangup               wait for the connection's end\n"
	      "  leave                move to a new network namespace\n"
	      "  say TEXT             print a line\n"
	      "  await FILE           wait until FILE exists\n"
	      "  sleep MS\n"
	      "  pause                wait forever\n"
	      "  fails ERRNO WORD...  the next word must fail with this error (ETIMEDOUT ...)\n",
	      stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		usage();
	buffer = noise_new(BUFFER_SIZE);
	args = argv + 1;
	while (*args) {
		const char *verb = next(""), *want = NULL, *got;

		if (!strcmp(verb, "fails")) {
			want = next("fails");
			verb = next("fails");
		}
		got = run(verb) ? strerrorname_np(errno) : NULL;
		errno = 0;
		if (got && !want)
			die("%s: %s", verb, got);
		if (want && (!got || strcmp(got, want)))
			die("%s: %s instead of %s", verb, got ?: "success", want);
	}
	return 0;
}
