// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Control connections: agreeing on the rank that has failed.
 *
 * Each rank has a connection to rank 0 with little traffic. A rank that finds
 * that a rank has failed, or that two operations differ, reports it to rank 0.
 * Rank 0 forwards the first failure that it finds or receives, so all ranks
 * report the same one.
 *
 * A process has ended when its connection is closed. A host has failed when it
 * is silent on its control connection and on all links: at 90 % packet loss TCP
 * may stay silent for seconds, but AF_DBLP does not.
 *
 * A rank that leaves sends BYE, and rank 0 forwards it: operations that wait
 * for that rank fail. Rank 0 should leave last, because it decides.
 */

#include "engine.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * DSCP EF, as control packets of AF_DBLP: a queue that drops lossy data must
 * not make a host look failed.
 */
#define CTL_TOS	0xb8
/* Interval of checks whether data is acknowledged, ms */
#define ACK_MS	1

int dblp_ctl_begin(struct dblp_comm *comm)
{
	uint32_t i;
	int err;

	for (i = 0; i < comm->n_ctl; i++) {
		struct dblp_ctlconn *c = &comm->ctl[i];
		struct epoll_event ev = {
			.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
			.data.ptr = c,
		};

		if (c->fd < 0)
			continue;
		err = dblp_tcp_tos(c->fd, CTL_TOS) ?: dblp_tcp_keep_alive(comm, c->fd);
		if (err)
			return err;
		c->alive_at = dblp_comm_now();
		if (epoll_ctl(comm->epoll, EPOLL_CTL_ADD, c->fd, &ev))
			return -errno;
	}
	return 0;
}

/* Does an unfinished operation need @rank? Every operation needs rank 0. */
static bool is_needed(const struct dblp_comm *comm, uint32_t rank)
{
	const struct dblp_req *req;
	uint32_t i;

	TAILQ_FOREACH(req, &comm->reqs, entry)
		if (!rank && !req->ended)
			return true;
	for (i = 0; i < comm->n_links; i++) {
		const struct dblp_link *l = dblp_link_of(comm, rank, i);

		if (l->state < DBLP_LINK_READY && (l->receives.first || l->sends.first))
			return true;
	}
	return false;
}

/*
 * A rank that has left fails operations only after @timeout_ms: its data, and
 * its connections, may arrive later than its BYE.
 */
static uint64_t left_timeout(struct dblp_comm *comm, uint64_t now)
{
	uint64_t next = UINT64_MAX, until;
	uint32_t i;

	for (i = 0; i < comm->n_left; i++) {
		if (!is_needed(comm, comm->left[i]))
			continue;
		until = comm->left_at[comm->left[i]] +
			comm->attr.timeout_ms * MS_NS;
		if (now >= until)
			dblp_suspect(comm, comm->left[i], -ECONNRESET, NULL);
		else if (until < next)
			next = until;
	}
	return next;
}

static bool is_alive(const struct dblp_comm *comm, struct dblp_ctlconn *c)
{
	uint64_t received = 0;
	bool found = dblp_transport_tcp.is_alive(c->fd, &received);
	uint32_t i;

	for (i = 0; i < comm->n_links; i++) {
		const struct dblp_link *l = dblp_link_of(comm, c->rank, i);

		if (l->state == DBLP_LINK_READY)
			found |= comm->transport->is_alive(l->fd, &received);
	}
	/*
	 * A closed link's count is missing here: then @received shrinks, which is
	 * no sign of life
	 */
	found |= received > c->received;
	c->received = received;
	return found;
}

/*
 * A control connection was closed. Without BYE its rank has failed. After BYE,
 * only a suspicion that rank 0 has not decided is left: report rank 0.
 */
static void ended(struct dblp_comm *comm, struct dblp_ctlconn *c, uint32_t error)
{
	epoll_ctl(comm->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	dblp_fd_close(&c->fd);
	if (!c->bye)
		dblp_decide(comm, c->rank, error, NULL);
	else if (comm->rank && comm->suspicion.is_set)
		dblp_decide(comm, 0, ECONNRESET, NULL);
}

/*
 * Check four times in each keepalive interval, to notice a failure in time. If
 * this process was stopped, assume that all answer: replies may still be
 * unread.
 */
static uint64_t check_peers(struct dblp_comm *comm, uint64_t now)
{
	const uint64_t asked = comm->attr.keepalive_ms * MS_NS;
	const uint64_t most = comm->attr.timeout_ms * MS_NS - asked + asked / 4;
	const bool stopped = now > comm->check_at + asked;
	uint32_t i;

	if (now < comm->check_at)
		return comm->check_at;
	comm->check_at = now + asked / 4;
	for (i = 0; i < comm->n_ctl; i++) {
		struct dblp_ctlconn *c = &comm->ctl[i];

		if (c->fd < 0)
			continue;
		if (stopped || is_alive(comm, c)) {
			c->alive_at = now;
		} else if (now - c->alive_at >= most) {
			ended(comm, c, ETIMEDOUT);
			/* Other silent ranks may still receive the decision */
			if (!c->bye)
				break;
		}
	}
	return comm->check_at;
}

uint64_t dblp_ctl_timeout(struct dblp_comm *comm, uint64_t now)
{
	const struct dblp_failure *f = &comm->suspicion;
	uint64_t next = check_peers(comm, now);

	/* A rank that has found a failure already looks for no other one */
	if (!f->is_set)
		return dblp_earlier(next, left_timeout(comm, now));
	if (now < comm->suspect_until)
		return dblp_earlier(comm->suspect_until, next);
	if (comm->suspect_until)
		dblp_decide(comm, f->rank, f->error, &f->unreached);
	return next;
}

/* Describe the decision: a failed connection, or what this rank has suspected */
static void explain(struct dblp_comm *comm, const struct dblp_failure *f)
{
	const struct dblp_unreached *u = &f->unreached;
	const struct sockaddr_dblp addr = {
		.sdblp_family = AF_DBLP, .sdblp_port = u->port, .sdblp_addr = u->addr,
	};
	char text[DBLP_ADDR_TEXT];

	if (comm->suspicion.cannot_accept && f->rank == comm->rank &&
	    f->error == comm->suspicion.error)
		dblp_comm_explain(comm, "rank %u cannot accept connections: it has no descriptors or memory left",
				  comm->rank);
	if (!u->port)
		return;
	dblp_addr_format(&addr, text);
	dblp_comm_explain(comm, "rank %u cannot connect to %s, where rank %u listens for data",
			  u->from, text, f->rank);
}

static struct dblp_ctl message_about(const struct dblp_comm *comm, uint16_t type,
				     const struct dblp_failure *f)
{
	struct dblp_ctl ctl = dblp_ctl_make(comm, type);

	ctl.rank = f->rank;
	ctl.error = f->error;
	ctl.unreached = f->unreached;
	return ctl;
}

/* Report the suspicion to rank 0, which decides */
static void report_suspicion(struct dblp_comm *comm)
{
	const struct dblp_failure *f = &comm->suspicion;
	struct dblp_ctl ctl = message_about(comm, DBLP_CTL_SUSPECT, f);

	if (!comm->rank || (comm->ctl[0].fd < 0 && f->rank == comm->rank)) {
		dblp_decide(comm, f->rank, f->error, &f->unreached);
	} else if (comm->ctl[0].fd < 0) {
		/*
		 * Rank 0 is unreachable: report it as failed, so that all ranks
		 * name the same one
		 */
		dblp_decide(comm, 0, ECONNRESET, NULL);
	} else {
		/* Give rank 0 time to decide: the end of its process shows at once */
		comm->suspect_until = dblp_comm_now() + comm->attr.timeout_ms * MS_NS;
		dblp_ctl_send(comm, &comm->ctl[0], &ctl);
	}
}

const struct dblp_failure *dblp_ctl_agree(struct dblp_comm *comm)
{
	const struct dblp_failure *f = &comm->decision;
	struct dblp_ctl ctl;
	uint32_t i;

	if (!f->is_set)
		report_suspicion(comm);
	if (!f->is_set)
		return NULL;
	explain(comm, f);
	ctl = message_about(comm, DBLP_CTL_ABORT, f);
	for (i = 0; !comm->rank && i < comm->n_ctl; i++)
		dblp_ctl_send(comm, &comm->ctl[i], &ctl);
	return f;
}

/* Do two ranks disagree on operation @seq? */
static void compare(struct dblp_comm *comm, uint32_t rank, uint32_t seq,
		    uint64_t digest)
{
	uint32_t i;

	if (seq < comm->begun && seq + DBLP_DIGESTS >= comm->begun) {
		if (comm->digest[seq % DBLP_DIGESTS] != digest)
			dblp_decide(comm, rank, EPROTO, NULL);
		return;
	}
	for (i = 1; i < comm->n_ctl; i++) {
		const struct dblp_ctlconn *c = &comm->ctl[i];

		if (i != rank && c->reported && c->reported_seq == seq &&
		    c->digest != digest)
			dblp_decide(comm, i > rank ? i : rank, EPROTO, NULL);
	}
}

void dblp_ctl_report(struct dblp_comm *comm, const struct dblp_req *req)
{
	struct dblp_ctl ctl = dblp_ctl_make(comm, DBLP_CTL_REPORT);

	if (!comm->rank)
		return;
	ctl.seq = req->seq;
	ctl.digest = req->digest;
	dblp_ctl_send(comm, &comm->ctl[0], &ctl);
}

void dblp_ctl_began(struct dblp_comm *comm, const struct dblp_req *req)
{
	uint32_t i;

	for (i = 1; !comm->rank && i < comm->n_ctl; i++) {
		const struct dblp_ctlconn *c = &comm->ctl[i];

		if (c->reported && c->reported_seq == req->seq &&
		    c->digest != req->digest)
			dblp_decide(comm, i, EPROTO, NULL);
	}
}

static void has_left(struct dblp_comm *comm, uint32_t rank)
{
	uint32_t i;

	if (comm->left_at[rank])
		return;
	comm->left_at[rank] = dblp_comm_now();
	comm->left[comm->n_left++] = rank;
	for (i = 0; !comm->rank && i < comm->n_ctl; i++)
		dblp_ctl_flush(comm, &comm->ctl[i]);
}

static void handle(struct dblp_comm *comm, struct dblp_ctlconn *c,
		   const struct dblp_ctl *ctl)
{
	if (ctl->magic != DBLP_CTL_MAGIC || ctl->version != DBLP_COMM_VERSION ||
	    ctl->rank >= comm->nranks) {
		dblp_decide(comm, c->rank, EPROTO, NULL);
		return;
	}
	switch (ctl->type) {
	case DBLP_CTL_BYE:
		if (ctl->rank == c->rank) {
			c->bye = true;
			c->answered = true;
			c->begun = ctl->seq;
		}
		has_left(comm, comm->rank ? ctl->rank : c->rank);
		break;
	case DBLP_CTL_ABORT:
		if (comm->rank)
			dblp_decide(comm, ctl->rank, ctl->error, &ctl->unreached);
		break;
	case DBLP_CTL_SUSPECT:
		if (!comm->rank)
			dblp_decide(comm, ctl->rank, ctl->error, &ctl->unreached);
		break;
	case DBLP_CTL_REPORT:
		c->reported = true;
		c->reported_seq = ctl->seq;
		c->digest = ctl->digest;
		if (!comm->rank)
			compare(comm, c->rank, ctl->seq, ctl->digest);
		break;
	default:
		if (!dblp_limit_message(comm, c, ctl))
			dblp_decide(comm, c->rank, EPROTO, NULL);
	}
}

void dblp_ctl_event(struct dblp_comm *comm, struct dblp_ctlconn *c)
{
	struct dblp_ctl ctl;
	ssize_t n;

	dblp_ctl_flush(comm, c);
	while (c->fd >= 0) {
		n = recv(c->fd, c->in + c->got, sizeof(c->in) - c->got,
			 MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			ended(comm, c, !n || errno == ECONNRESET ||
			      errno == EPIPE ? ECONNRESET : ETIMEDOUT);
			break;
		}
		c->got += (size_t)n;
		if (c->got < sizeof(c->in))
			continue;
		c->got = 0;
		memcpy(&ctl, c->in, sizeof(ctl));
		handle(comm, c, &ctl);
	}
}

/* Flush the queue, then shut down sending */
static void end_sending(const struct dblp_comm *comm, struct dblp_ctlconn *c)
{
	dblp_ctl_flush(comm, c);
	if (c->fd >= 0 && !c->n_out)
		shutdown(c->fd, SHUT_WR);
}

/* Discard received messages; close the connection at its end */
static void drain(struct dblp_ctlconn *c)
{
	char discarded[256];
	ssize_t n = recv(c->fd, discarded, sizeof(discarded), MSG_DONTWAIT);

	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
		dblp_fd_close(&c->fd);
}

/*
 * After a failure only rank 0 has to wait, until its decision is acknowledged:
 * received data outlives a reset. A host that has failed never acknowledges.
 */
static bool may_close(const struct dblp_comm *comm, const struct dblp_ctlconn *c)
{
	int unacknowledged = 0;

	if (!comm->error)
		return false;
	if (comm->rank || dblp_comm_now() - c->alive_at >= comm->attr.timeout_ms * MS_NS)
		return true;
	return ioctl(c->fd, SIOCOUTQ, &unacknowledged) || (!c->n_out && !unacknowledged);
}

/*
 * Wait until the peer has received BYE and closed the connection. Closing it
 * here first, with unread data or data still arriving, would reset it. Then a
 * lost BYE would not be retransmitted, and others would report this rank as
 * failed.
 */
static void leave(struct dblp_comm *comm, struct dblp_ctlconn *c, uint64_t end)
{
	struct pollfd p = { .fd = c->fd };
	uint64_t now;

	while (c->fd >= 0 && !may_close(comm, c) && (now = dblp_comm_now()) < end) {
		p.events = c->n_out ? POLLIN | POLLOUT : POLLIN;
		/* No event shows an acknowledgement */
		poll(&p, 1, comm->error ? ACK_MS : dblp_poll_ms(end - now));
		drain(c);
		end_sending(comm, c);
	}
}

void dblp_ctl_bye(struct dblp_comm *comm)
{
	struct dblp_ctl ctl = dblp_ctl_make(comm, DBLP_CTL_BYE);
	uint64_t end = dblp_comm_now() + comm->attr.timeout_ms * MS_NS;
	uint32_t i;

	pthread_mutex_lock(&comm->lock);
	ctl.seq = comm->seq;
	pthread_mutex_unlock(&comm->lock);
	for (i = 0; i < comm->n_ctl; i++) {
		dblp_ctl_put(&comm->ctl[i], &ctl, 0);
		end_sending(comm, &comm->ctl[i]);
	}
	for (i = 0; i < comm->n_ctl; i++)
		leave(comm, &comm->ctl[i], end);
}
