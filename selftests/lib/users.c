// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "users.h"

#include "scripted.h"
#include "sock.h"

#include <linux/sockios.h>
#include <string.h>

#define BYTES		(1 << 18)
/* A byte value that no peer sends */
#define UNTOUCHED	0xee

static u32 below(struct user *u, u32 n)
{
	return random_next(&u->random) % n;
}

static bool once_in(struct user *u, u32 n)
{
	return !below(u, n);
}

/* Is the information about a message consistent? */
static void check_info(const struct message *m, const char *what)
{
	u32 missing = 0, end = 0, i;

	errno = 0;
	for (i = 0; i < m->n; i++) {
		const struct dblp_range *r = &m->range[i];

		if (!r->length || (i && r->offset <= end) ||
		    r->offset >= m->info.length ||
		    r->length > m->info.length - r->offset)
			die("%s of %u bytes: range %u of %u is %u + %u", what,
			    m->info.length, i, m->n, r->offset, r->length);
		end = r->offset + r->length;
		missing += r->length;
	}
	if (missing != m->info.missing || m->n != m->info.ranges)
		die("%s of %u bytes: %u missing, in %u ranges %u", what,
		    m->info.length, m->info.missing, m->n, missing);
	if (m->info.flags & DBLP_RCV_OVER_BUDGET ?
	    m->info.reason != DBLP_REASON_DEADLINE :
	    m->info.reason != DBLP_REASON_CANCELLED &&
	    m->info.missing > budget_bytes(m->info.budget, m->info.length))
		die("%s of %u bytes: %u missing with a budget of %u ppm, reason %u",
		    what, m->info.length, m->info.missing, m->info.budget,
		    m->info.reason);
	if (!m->info.missing != (m->info.reason == DBLP_REASON_COMPLETE))
		die("%s: %u missing, reason %u", what, m->info.missing,
		    m->info.reason);
}

/* Check that each byte is as sent or missing */
static void check_bytes(const struct user *u, const u8 *buf, u32 len,
			const struct message *m)
{
	u8 hole = u->keep ? UNTOUCHED : 0;
	u32 holes = 0, i, k;

	errno = 0;
	for (i = 0; i < len; i++) {
		holes += buf[i] == hole;
		if (buf[i] != u->fill && buf[i] != hole && buf[i])
			die("byte %u of %u is %#x, not %#x (%u of %u bytes missing)",
			    i, len, buf[i], u->fill, m->info.missing,
			    m->info.length);
	}
	if (len < m->info.length)
		return;
	if (*u->zeros ? holes < m->info.missing && !u->keep :
			holes != m->info.missing)
		die("%u of %u bytes are not there, but %u are missing", holes,
		    len, m->info.missing);
	for (i = 0; i < m->n; i++)
		for (k = 0; k < m->range[i].length; k++)
			if (buf[m->range[i].offset + k] != hole)
				die("byte %u of %u is missing, and there",
				    m->range[i].offset + k, len);
}

static void failed(struct user *u)
{
	if (errno == EPROTO || errno == ECONNRESET || errno == ETIMEDOUT ||
	    errno == ECONNABORTED || errno == ENOTCONN ||
	    errno == EHOSTUNREACH || errno == ECONNREFUSED)
		u->err = errno;
}

static void receive(struct user *u, u8 *buf)
{
	u32 size = once_in(u, 6) ? 1 + below(u, 3000) : BYTES;
	bool peek = once_in(u, 8);
	struct message m;
	ssize_t len;

	memset(buf, UNTOUCHED, size);
	len = message_recv(u->fd, buf, size,
			   MSG_DONTWAIT | (peek ? MSG_PEEK : 0), &m);
	if (len < 0)
		return failed(u);
	if (!len)
		return;
	check_info(&m, "a message");
	check_bytes(u, buf, len, &m);
	if (!peek) {
		u->received++;
		u->early += !!m.info.missing;
	}
	message_free(&m);
}

/* With placement: receive the segments that have arrived */
static void place(struct user *u, u8 *buf)
{
	char control[4096] __attribute__((aligned(8)));
	struct iovec iov = { buf, once_in(u, 6) ? 1 + below(u, 3000) : BYTES };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	static const int flags[] = { 0, MSG_PEEK, MSG_TRUNC, 0 };
	ssize_t len;
	u32 i;

	memset(buf, UNTOUCHED, iov.iov_len);
	len = recvmsg(u->fd, &msg, MSG_DONTWAIT | flags[below(u, 4)]);
	if (len < 0)
		return failed(u);
	for (i = 0; i < iov.iov_len; i++)
		if (buf[i] != UNTOUCHED && buf[i] != u->fill && buf[i])
			die("byte %u was placed, and is %#x", i, buf[i]);
	if (len && msg.msg_flags & MSG_EOR)
		u->received++;
}

static void report(struct user *u, u8 *buf)
{
	struct message m;

	if (message_recv(u->fd, buf, BYTES, MSG_ERRQUEUE | MSG_DONTWAIT, &m) < 0)
		return failed(u);
	check_info(&m, "a message sent");
	u->reported++;
	message_free(&m);
}

static void transmit(struct user *u, u8 *buf)
{
	struct dblp_sndinfo info = {
		.tag = below(u, 1000),
		.flags = DBLP_SND_BUDGET | DBLP_SND_POLICY,
		.budget = once_in(u, 3) ? 0 : below(u, DBLP_PPM + 1),
		.policy = below(u, 3),
	};
	u32 len = 1 + below(u, once_in(u, 6) ? 30000 : 4000);

	if (once_in(u, 4))
		info.critical = below(u, len + 1);
	if (once_in(u, 8)) {
		info.flags |= DBLP_SND_DEADLINE;
		info.deadline = 1 + below(u, 50000);
	}
	if (once_in(u, 4))
		info.flags &= ~DBLP_SND_BUDGET;
	memset(buf, 1, len);
	/* Sometimes with zeroes, which can be elided */
	if (once_in(u, 3))
		memset(buf + below(u, len), 0, len - below(u, len) > 0 ?
		       below(u, len) / 2 : 0);
	if (sndinfo_send(u->fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL,
			 once_in(u, 4) ? NULL : &info) < 0)
		failed(u);
	/* Sometimes cancel a message, perhaps a closed one */
	if (once_in(u, 16))
		setsockopt(u->fd, SOL_DBLP, DBLP_CANCEL, &info.tag,
			   sizeof(info.tag));
}

static void ask(struct user *u, u8 *buf)
{
	socklen_t len = BYTES;
	int n;

	switch (below(u, 5)) {
	case 0:
		get_info(u->fd);
		break;
	case 1:
		getsockopt(u->fd, SOL_DBLP, DBLP_LOSSMAP, buf, &len);
		break;
	case 2:
		getsockopt(u->fd, SOL_DBLP, DBLP_SENT_LOSSMAP, buf, &len);
		break;
	case 3:
		ioctl(u->fd, SIOCINQ, &n);
		break;
	case 4:
		ioctl(u->fd, SIOCOUTQ, &n);
		break;
	}
}

static void change(struct user *u)
{
	switch (below(u, 6)) {
	case 0:
		try_u32(u->fd, DBLP_BUDGET, below(u, DBLP_PPM + 1));
		break;
	case 1:
		try_u32(u->fd, DBLP_BUDGET_CAP, once_in(u, 2) ? DBLP_PPM :
			below(u, DBLP_PPM + 1));
		break;
	case 2:
		try_u32(u->fd, DBLP_PHASE, below(u, 3));
		break;
	case 3:
		try_u32(u->fd, DBLP_CLOSE_POLICY, below(u, 3));
		break;
	case 4:
		try_u32(u->fd, DBLP_ORDER, below(u, 3));
		break;
	case 5:
		try_u32(u->fd, DBLP_ELEMENT, 1 + below(u, 256));
		break;
	}
}

static void *use(void *arg)
{
	struct user *u = arg;
	u8 *buf = malloc(BYTES);

	if (!buf)
		die("malloc()");
	while (!u->stop) {
		wait_for(u->fd, POLLIN | POLLERR, 2);
		/* Let other threads run */
		usleep(500);
		switch (u->err ? 15 : below(u, 16)) {
		case 0:
		case 1:
		case 2:
		case 3:
		case 4:
			transmit(u, buf);
			break;
		case 5:
		case 6:
			report(u, buf);
			break;
		case 7:
			ask(u, buf);
			break;
		case 8:
			if (once_in(u, 8))
				change(u);
			break;
		case 9:
			/* Do not read for a while */
			if (once_in(u, 8))
				sleep_ms(below(u, 10));
			if (once_in(u, 400))
				shutdown(u->fd, below(u, 2) ? SHUT_WR : SHUT_RD);
			break;
		case 15:
			if (u->err)
				sleep_ms(1);
			break;
		default:
			if (u->placement)
				place(u, buf);
			else
				receive(u, buf);
		}
	}
	free(buf);
	return NULL;
}

void user_begin(struct user *u)
{
	try_u32(u->fd, DBLP_NOTIFY, below(u, 2));
	try_u32(u->fd, DBLP_BUDGET_CAP, once_in(u, 4) ? 0 : DBLP_PPM);
	try_u32(u->fd, DBLP_ELIDE, below(u, 2));
	try_u32(u->fd, DBLP_USER_TIMEOUT, 10000);
	u->keep = !u->placement && once_in(u, 3);
	if (u->keep)
		try_u32(u->fd, DBLP_FILL, DBLP_FILL_KEEP);
	if (u->placement)
		try_u32(u->fd, DBLP_PLACEMENT, 1);
	errno = 0;
	if (pthread_create(&u->thread, NULL, use, u))
		die("pthread_create()");
}

void user_end(struct user *u)
{
	u->stop = true;
	pthread_join(u->thread, NULL);
}
