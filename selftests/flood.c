// SPDX-License-Identifier: GPL-2.0-only
/*
 * Strangers in great numbers: what they send takes no memory, keeps nobody else
 * out, and brings nobody more bytes than were sent.
 */
#define _GNU_SOURCE
#include "lib/hostile.h"
#include "lib/trap.h"

#include <pthread.h>
#include <sys/mman.h>

/*
 * A process that has a listener locked, for as long as it takes to get at the
 * second half of an option's value.
 */
struct locker {
	int		fd;
	struct trap	trap;
	char		*value;
	pthread_t	thread;
};

static void *set_linger_slowly(void *arg)
{
	struct locker *l = arg;

	if (setsockopt(l->fd, SOL_SOCKET, SO_LINGER, l->value,
		       sizeof(struct linger)))
		die("setsockopt(SO_LINGER)");
	return NULL;
}

static void lock_begin(struct locker *l, int fd)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		die("mmap()");
	memset(at, 0, page);
	l->fd = fd;
	l->trap = trap_set(at + page, page);
	l->value = at + page - sizeof(struct linger) / 2;
	if (pthread_create(&l->thread, NULL, set_linger_slowly, l))
		die("pthread_create()");
	errno = 0;
	if (!wait_for(l->trap.fd, POLLIN, WAIT_MS))
		die("nobody locks the listener");
}

static void lock_end(struct locker *l)
{
	trap_fill(&l->trap);
	pthread_join(l->thread, NULL);
	close(l->trap.fd);
}

static bool mib_reaches(const char *name, u64 value)
{
	u64 end = now_ms() + WAIT_MS;

	while (mib(name) < value && now_ms() < end)
		sleep_ms(10);
	return mib(name) == value;
}

#define FORGED	500

TEST_F(peer, forged_cookies_do_not_wait_for_a_listener)
{
	struct dblp_params ours = params_default();
	u64 bad = mib("CookieBad");
	struct locker locker;
	struct peer other;
	u32 i;

	peer_connect(&other, &self->addr);
	lock_begin(&locker, self->listener);
	for (i = 0; i < FORGED; i++) {
		other.cookie.scid = 1 + i;
		make_echo(&self->p, &other, &ours);
		send_packet(&other, &self->p);
	}
	/* Judged though nobody has the lock, and none of them kept */
	EXPECT_TRUE(mib_reaches("CookieBad", bad + FORGED));
	EXPECT_EQ(0, get_meminfo(self->listener, SK_MEMINFO_BACKLOG));
	lock_end(&locker);
	EXPECT_EQ(bad + FORGED, mib("CookieBad"));
	EXPECT_EQ(2, socket_count());
	peer_close(&other);
}

#define CALLERS	600

/* As many good ones as may become connections, roughly */
TEST_F(peer, no_more_wait_for_a_listener_than_it_may_accept)
{
	u64 passive = mib("ConnPassive"), lost = mib("DropMemory");
	u32 backlog = 32, waiting, i;
	struct dblp_params ours = params_default();
	struct peer other, last;
	struct locker locker;

	peer_connect(&other, &self->addr);
	lock_begin(&locker, self->listener);
	for (i = 0; i < CALLERS; i++) {
		other.cid = 1 + i;
		peer_get_cookie(&other);
		make_echo(&self->p, &other, &ours);
		send_packet(&other, &self->p);
	}
	waiting = get_meminfo(self->listener, SK_MEMINFO_BACKLOG);
	EXPECT_LT(0, waiting);
	EXPECT_GE((backlog + 1) * 4096, waiting);
	EXPECT_LT(lost, mib("DropMemory"));
	lock_end(&locker);
	/* One more than it says, as always */
	EXPECT_GE(passive + backlog + 1, mib("ConnPassive"));
	EXPECT_EQ(0, get_meminfo(self->listener, SK_MEMINFO_BACKLOG));

	while (accept4(self->listener, NULL, NULL, SOCK_CLOEXEC) >= 0 &&
	       wait_for(self->listener, POLLIN, 0))
		;
	peer_connect(&last, &self->addr);
	peer_handshake(&last);
	EXPECT_TRUE(wait_for(self->listener, POLLIN, WAIT_MS));
	peer_close(&last);
	peer_close(&other);
}

TEST_HARNESS_MAIN
