// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two hundred clients connect repeatedly while the key of their listener changes and the link
 * goes down, is deleted and recreated. Each echoed message is exact, no client connects
 * without a valid key, clients with a key connect after each change, and at the end each
 * one connects at once.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "lib/sock.h"

#include "kselftest_harness.h"

#define CLIENTS		200
/* Number of echo servers; some wait for clients that have ended */
#define ECHOES		CLIENTS
#define ECHO_MS		5000
#define CHANGES		6
/* Number of attempts between two changes */
#define ATTEMPTS	30
/* ms; more than the second after which a refusal without a tag is believed */
#define AMID_MS		2000
#define QUIET_MS	60000
#define GONE_MS		4000
#define MESSAGE		5000

static const char *const keys[] = {
	"the key of the first week", "the key of the second week",
	"a key that was never set",
};

#define WRONG		2

static struct sockaddr_dblp addr;
static int listener, there;
static atomic_uint attempts, connected, surprises;
static atomic_bool quiet;

/* Is this an expected error while links vanish? */
static int known(int error)
{
	switch (error) {
	case EKEYREJECTED:
	case ETIMEDOUT:
	case EINPROGRESS:
	case EAGAIN:
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
	case EADDRNOTAVAIL:
	case ECONNREFUSED:
	case ECONNRESET:
	case EPIPE:
		return error;
	}
	errno = error;
	die("a client");
}

/* Connect and have a message echoed; returns 0 or a positive errno */
static int attempt(unsigned int key, unsigned int seed, bool patient)
{
	unsigned int timeout = patient ? QUIET_MS : AMID_MS;
	char out[MESSAGE], in[MESSAGE];
	int fd = new_socket(), error = 0;
	ssize_t n = 0;

	set_timeout(fd, SO_SNDTIMEO, timeout);
	set_timeout(fd, SO_RCVTIMEO, timeout);
	if (!patient)
		set_u32(fd, DBLP_USER_TIMEOUT, GONE_MS);
	set_key(fd, keys[key]);
	pattern_fill(out, sizeof(out), 0, seed, 0);
	if (connect_to(fd, &addr) || send(fd, out, sizeof(out), MSG_NOSIGNAL) < 0)
		error = errno;
	else if (key == WRONG)
		die("a client with a key that nobody has given is connected");
	else
		n = recv(fd, in, sizeof(in), 0);
	if (n < 0)
		error = errno;
	else if (n && (n != sizeof(in) || memcmp(in, out, sizeof(in))))
		die("another message came back");
	close(fd);
	attempts++;
	errno = 0;
	return n > 0 ? 0 : known(error ?: EPIPE);
}

static void *client(void *arg)
{
	unsigned int seed = (uintptr_t)arg, key = seed % 20 ? seed % 2 : WRONG;
	int error;
	bool last;

	netns_set(there);
	do {
		usleep(rand_r(&seed) % 500000);
		last = quiet;
		error = attempt(key, seed, last);
		connected += !error;
	} while (!last);
	if (error != (key == WRONG ? EKEYREJECTED : 0)) {
		printf("# %s with key %u\n", strerror(error), key);
		surprises++;
	}
	return NULL;
}

static void *echo(void *arg)
{
	char buf[MESSAGE];
	ssize_t n;
	int fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		set_timeout(fd, SO_RCVTIMEO, ECHO_MS);
		set_timeout(fd, SO_SNDTIMEO, ECHO_MS);
		n = recv(fd, buf, sizeof(buf), 0);
		if (n > 0)
			send(fd, buf, n, MSG_NOSIGNAL);
		/* Until the whole message has arrived */
		if (n > 0)
			recv(fd, buf, sizeof(buf), 0);
		close(fd);
	}
	return NULL;
}

static void make_link(void)
{
	run("ip link add eth0 type veth peer name eth0 netns /proc/%d/fd/%d",
	    getpid(), there);
	run("ip addr add 10.9.0.2/24 dev eth0 && ip link set eth0 up");
	run("nsenter --net=/proc/%d/fd/%d sh -c 'ip addr add 10.9.0.1/24 dev eth0 && ip link set eth0 up'",
	    getpid(), there);
}

static void change_link(unsigned int how)
{
	switch (how % 3) {
	case 0:
		run("ip link set eth0 down && ip link set eth0 up");
		break;
	case 1:
		run("ip link del eth0");
		make_link();
		break;
	case 2:
		run("ip addr del 10.9.0.2/24 dev eth0 && ip addr add 10.9.0.2/24 dev eth0");
		break;
	}
}

/* Wait for ATTEMPTS more of @count, all attempts or the successful ones */
static void await(atomic_uint *count)
{
	unsigned int goal = *count + ATTEMPTS;

	while ((int)(*count - goal) < 0)
		sleep_ms(1);
}

static void await_no_sockets(struct __test_metadata *_metadata)
{
	int ms;

	for (ms = 0; socket_count() && ms < 60 * SECONDS; ms += 50)
		sleep_ms(50);
	EXPECT_EQ(0, socket_count());
}

TEST(clients_connect_while_keys_change_and_links_vanish)
{
	pthread_t clients[CLIENTS], echoes[ECHOES];
	unsigned int i;
	int here;

	netns_new();
	here = netns_this();
	netns_new();
	there = netns_this();
	netns_set(here);
	make_link();
	listener = new_listener("::", CLIENTS, &addr);
	addr_parse(&addr, "10.9.0.2", ntohs(addr.sdblp_port));
	set_key(listener, keys[0]);
	set_u32(listener, DBLP_USER_TIMEOUT, GONE_MS);
	for (i = 0; i < ECHOES; i++)
		ASSERT_EQ(0, pthread_create(&echoes[i], NULL, echo, NULL));
	for (i = 0; i < CLIENTS; i++)
		ASSERT_EQ(0, pthread_create(&clients[i], NULL, client,
					    (void *)(uintptr_t)(i + 1)));

	for (i = 1; i <= CHANGES; i++) {
		await(&connected);
		set_key(listener, keys[i % 2]);
		await(&attempts);
		change_link(i);
		await(&attempts);
		if (try_key(listener, keys[i % 2], DBLP_AUTH_ONLY))
			die("setsockopt(DBLP_AUTH_KEY)");
	}
	await(&connected);
	/* Both keys are valid */
	set_key(listener, keys[i % 2]);
	set_u32(listener, DBLP_USER_TIMEOUT, QUIET_MS);
	quiet = true;
	for (i = 0; i < CLIENTS; i++)
		ASSERT_EQ(0, pthread_join(clients[i], NULL));
	TH_LOG("%u of %u attempts were successful", connected, attempts);
	EXPECT_EQ(0, surprises);

	shutdown(listener, SHUT_RDWR);
	for (i = 0; i < ECHOES; i++)
		ASSERT_EQ(0, pthread_join(echoes[i], NULL));
	close(listener);
	await_no_sockets(_metadata);
	netns_set(there);
	await_no_sockets(_metadata);
}

TEST_HARNESS_MAIN
