// SPDX-License-Identifier: GPL-2.0-only
/* All connections of the listening end. */
#include <errno.h>
#include <sys/epoll.h>

#include "conn.h"

void watch_all(struct watched *w)
{
	struct epoll_event event = { .events = EPOLLIN };
	unsigned int i;

	w->conn = conn_accept_all();
	w->n = total_connections();
	w->buf = xcalloc(w->n, sizeof(*w->buf));
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll < 0)
		fail("epoll_create1()");
	for (i = 0; i < w->n; i++) {
		event.data.u32 = i;
		w->buf[i] = contents_new();
		if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->conn[i].fd, &event))
			fail("epoll_ctl()");
	}
}

unsigned int watch_wait(const struct watched *w, unsigned int which[WATCH_MAX])
{
	struct epoll_event event[WATCH_MAX];
	int n = epoll_wait(w->epoll, event, WATCH_MAX, -1), i;

	if (n < 0 && errno != EINTR)
		fail("epoll_wait()");
	for (i = 0; i < n; i++)
		which[i] = event[i].data.u32;
	return n < 0 ? 0 : (unsigned int)n;
}

void watch_end(const struct watched *w, unsigned int i)
{
	if (epoll_ctl(w->epoll, EPOLL_CTL_DEL, w->conn[i].fd, NULL))
		fail("epoll_ctl()");
}
