// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "traffic.h"

#include "sock.h"

#include <string.h>

#define MESSAGE_MAX	200000

static unsigned char out[MESSAGE_MAX], in[MESSAGE_MAX];

unsigned int traffic_below(struct traffic *t, unsigned int n)
{
	return rand_r(&t->seed) % n;
}

static void set_patience(int fd, bool may_fail)
{
	struct timeval tv = { .tv_sec = may_fail ? 1 : 20 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

void traffic_start(struct traffic *t, const char *address, unsigned int seed)
{
	memset(t, 0, sizeof(*t));
	t->listener = new_listener(address, 64, &t->addr);
	t->seed = seed;
	/* Touch the pages now, because memory may be short later */
	memset(in, 1, sizeof(in));
	memset(out, 1, sizeof(out));
}

/* Check that the bytes from @from to @to are as sent */
static void check_part(const struct message *m, uint32_t from, uint32_t to)
{
	ssize_t wrong;

	if (from >= to)
		return;
	wrong = pattern_check(in + from, to - from, from, m->info.tag, 0);
	errno = 0;
	if (wrong >= 0)
		die("byte %zd of a message of %u is wrong", from + wrong,
		    m->info.length);
}

static void check_message(const struct message *m)
{
	uint32_t i, at = 0, missing = 0;

	errno = 0;
	if (m->info.missing > budget_bytes(m->info.budget, m->info.length))
		die("a message of %u bytes misses %u, with a budget of %u ppm",
		    m->info.length, m->info.missing, m->info.budget);
	for (i = 0; i < m->n; i++) {
		check_part(m, at, m->range[i].offset);
		at = m->range[i].offset + m->range[i].length;
		missing += m->range[i].length;
	}
	check_part(m, at, m->info.length);
	if (missing != m->info.missing)
		die("%u bytes are missing, %u in the loss map", m->info.missing,
		    missing);
}

static bool failed(const struct traffic *t, const char *what)
{
	if (!t->may_fail)
		die("%s", what);
	return false;
}

static bool pass_on(struct traffic *t, int from, int to)
{
	unsigned int n = 1 + traffic_below(t, 8), i;

	for (i = 0; i < n; i++) {
		struct dblp_sndinfo info = {
			.tag = rand_r(&t->seed),
			.flags = DBLP_SND_BUDGET,
			.budget = traffic_below(t, 2) ? 0 : 50000,
		};
		size_t len = 1 + traffic_below(t, traffic_below(t, 4) ?
						  3000 : MESSAGE_MAX);

		pattern_fill(out, len, 0, info.tag, 0);
		if (sndinfo_send(from, out, len, 0, &info) != (ssize_t)len)
			return failed(t, "sendmsg() beside");
	}
	for (i = 0; i < n; i++) {
		struct message m = { 0 };

		if (message_recv(to, in, sizeof(in), 0, &m) <= 0)
			return failed(t, "recvmsg() beside");
		check_message(&m);
		message_free(&m);
		t->messages++;
	}
	return true;
}

/* End both sockets in any order, with or without shutdown() */
static void end_both(struct traffic *t, int client, int server)
{
	int fd[2] = { client, server }, first = traffic_below(t, 2);

	if (traffic_below(t, 2))
		shutdown(fd[first], SHUT_WR);
	close(fd[first]);
	close(fd[!first]);
}

/* Drop connections whose clients have failed */
static void forget_others(struct traffic *t)
{
	int fd;

	fcntl(t->listener, F_SETFL, O_NONBLOCK);
	while ((fd = accept(t->listener, NULL, NULL)) >= 0)
		close(fd);
	fcntl(t->listener, F_SETFL, 0);
}

bool traffic_one(struct traffic *t)
{
	int client = socket(AF_DBLP, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), server;
	bool good = false;

	if (client < 0)
		return failed(t, "socket() beside");
	if (t->may_fail)
		forget_others(t);
	set_patience(t->listener, t->may_fail);
	set_patience(client, t->may_fail);
	set_u32(client, DBLP_BUDGET_CAP, DBLP_PPM);
	if (connect_to(client, &t->addr)) {
		close(client);
		return failed(t, "connect() beside");
	}
	server = accept(t->listener, NULL, NULL);
	if (server >= 0) {
		set_patience(server, t->may_fail);
		good = pass_on(t, client, server) && pass_on(t, server, client);
	} else {
		failed(t, "accept() beside");
	}
	end_both(t, client, server);
	t->connections += good;
	return good;
}
