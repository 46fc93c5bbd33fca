// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Transports: messages over AF_DBLP in placement mode, and over TCP.
 */

#include "engine.h"
#include "msg.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

void dblp_inbox_set(struct dblp_inbox *in, void *head, size_t head_len,
		    void *data, size_t data_len)
{
	in->iov[0] = (struct iovec) { head, head_len };
	in->iov[1] = (struct iovec) { data, data_len };
	in->len = head_len + data_len;
	in->is_most = false;
	in->got = 0;
	in->closed = false;
	in->n = 0;
	in->map.n = 0;
}

void dblp_iov_skip(struct iovec iov[2], size_t n)
{
	int i;

	for (i = 0; i < 2; i++) {
		size_t here = n < iov[i].iov_len ? n : iov[i].iov_len;

		iov[i].iov_base = (char *)iov[i].iov_base + here;
		iov[i].iov_len -= here;
		n -= here;
	}
}

static int set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

/* Keepalive probes before TCP itself ends a connection: Linux's maximum and default */
#define PROBES_MAX	127
#define PROBES		9

/* Interval of probes, s: the longest series of them lasts @timeout_ms or longer */
static int probe_interval(const struct dblp_comm *comm)
{
	/* Rounded down, because the last probe must precede @timeout_ms */
	const int asked = (int)comm->attr.keepalive_ms / 1000;
	const int least = (int)comm->attr.timeout_ms / (1000 * PROBES_MAX) + 1;

	return asked > least ? asked : least;
}

static int keep_alive(const struct dblp_comm *comm, int fd, int count)
{
	int err = set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);

	if (!err)
		err = set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)comm->attr.keepalive_ms / 1000);
	if (!err)
		err = set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, probe_interval(comm));
	return err ?: set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, count);
}

/* Probes that take @timeout_ms: at least 1, because the interval is half of it or less */
static int probes(const struct dblp_comm *comm)
{
	return (int)comm->attr.timeout_ms / 1000 / probe_interval(comm);
}

/* control.c detects failed hosts */
int dblp_tcp_keep_alive(const struct dblp_comm *comm, int fd)
{
	return keep_alive(comm, fd, PROBES_MAX);
}

int dblp_tcp_keep_joining(const struct dblp_comm *comm, int fd)
{
	return keep_alive(comm, fd, probes(comm));
}

static int no_wait(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

/*
 * No TCP_USER_TIMEOUT: a peer that is alive may leave data unread for any time.
 * Only probes detect that the path between two ranks other than 0 has failed.
 */
static int setup_tcp(const struct dblp_comm *comm, int fd)
{
	int err = no_wait(fd);

	if (!err && comm->cc[0] &&
	    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, comm->cc,
		       (socklen_t)strlen(comm->cc)))
		err = -errno;
	return err ?: keep_alive(comm, fd, probes(comm) > PROBES ? probes(comm) : PROBES);
}

/* Set the priority last, because setting the TOS changes it */
static int set_priority(int fd, const struct dblp_lane *lane)
{
	return lane->priority || lane->tos ?
	       set_int(fd, SOL_SOCKET, SO_PRIORITY, (int)lane->priority) : 0;
}

int dblp_tcp_tos(int fd, uint32_t tos)
{
	int family;
	socklen_t len = sizeof(family);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len))
		return -errno;
	/* An accepted IPv6 socket may be connected over IPv4 */
	return set_int(fd, IPPROTO_IP, IP_TOS, (int)tos) ?: family == AF_INET ? 0 :
	       set_int(fd, IPPROTO_IPV6, IPV6_TCLASS, (int)tos);
}

static int lane_tcp(int fd, const struct dblp_lane *lane)
{
	int err = lane->tos ? dblp_tcp_tos(fd, lane->tos) : 0;

	return err ?: set_priority(fd, lane);
}

static ssize_t send_tcp(int fd, const struct iovec *iov,
			const struct dblp_sndinfo *info)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = 2 };
	ssize_t n = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);

	(void)info;
	return n < 0 ? -errno : n;
}

static int recv_tcp(int fd, struct dblp_inbox *in)
{
	struct iovec iov[2] = { in->iov[0], in->iov[1] };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n;

	dblp_iov_skip(iov, in->got);
	n = recvmsg(fd, &msg, MSG_DONTWAIT);
	if (n <= 0)
		return n ? -errno : 0;
	in->range[0].offset = (uint32_t)in->got;
	in->range[0].length = (uint32_t)n;
	in->n = 1;
	in->got += (size_t)n;
	in->closed = in->got == in->len;
	return 1;
}

static bool is_alive_tcp(int fd, uint64_t *received)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	(void)received;
	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       info.tcpi_state != TCP_CLOSE && !info.tcpi_probes && !info.tcpi_retransmits;
}

const struct dblp_transport dblp_transport_tcp = {
	.name = "tcp",
	.protocol = IPPROTO_TCP,
	.setup = setup_tcp,
	.lane = lane_tcp,
	.send = send_tcp,
	.recv = recv_tcp,
	.is_alive = is_alive_tcp,
};

static int setup_dblp(const struct dblp_comm *comm, int fd)
{
	const struct {
		int	level;
		int	option;
		int	value;
	} options[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ SOL_DBLP, DBLP_PLACEMENT, 1 },
		{ SOL_DBLP, DBLP_PARTIAL_SEND, 1 },
		{ SOL_DBLP, DBLP_NOTIFY, 1 },
		{ SOL_DBLP, DBLP_FILL, DBLP_FILL_ZERO },
		{ SOL_DBLP, DBLP_KEEPALIVE, (int)comm->attr.keepalive_ms },
		{ SOL_DBLP, DBLP_USER_TIMEOUT, (int)(comm->attr.timeout_ms -
						     comm->attr.keepalive_ms) },
		{ SOL_DBLP, DBLP_JOB, (int)comm->attr.job },
	};
	int err = no_wait(fd);
	size_t i;

	for (i = 0; !err && i < sizeof(options) / sizeof(*options); i++)
		err = set_int(fd, options[i].level, options[i].option,
			      options[i].value);
	return err;
}

/* Leave defaults unset: older modules do not know the options */
static int lane_dblp(int fd, const struct dblp_lane *lane)
{
	int err = 0;

	if (lane->tos)
		err = set_int(fd, SOL_DBLP, DBLP_TOS, (int)lane->tos);
	if (!err && lane->flags & DBLP_LANE_NOT_ECT)
		err = set_int(fd, SOL_DBLP, DBLP_ECT, 0);
	return err ?: set_priority(fd, lane);
}

static ssize_t send_dblp(int fd, const struct iovec *iov,
			 const struct dblp_sndinfo *info)
{
	union {
		char		space[CMSG_SPACE(sizeof(*info))];
		struct cmsghdr	head;
	} control = { .head = {
		.cmsg_level = SOL_DBLP,
		.cmsg_type = DBLP_SNDINFO,
		.cmsg_len = CMSG_LEN(sizeof(*info)),
	} };
	struct msghdr msg = {
		.msg_iov = (struct iovec *)iov,
		.msg_iovlen = 2,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	memcpy(CMSG_DATA(&control.head), info, sizeof(*info));
	n = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

/*
 * Ranges placed by a call that has placed a complete message, and so does not
 * list them: the complement of the loss map. If there are more than fit, the
 * last range includes missing bytes, which are zero.
 */
static void placed_all(struct dblp_inbox *in)
{
	uint32_t at = 0, i;

	in->n = 0;
	for (i = 0; i < in->map.n && in->n < 127; i++) {
		const struct dblp_range *gap = &in->map.range[i];

		if (gap->offset > at)
			in->range[in->n++] = (struct dblp_range) {
				at, gap->offset - at
			};
		at = gap->offset + gap->length;
	}
	if (at < in->len)
		in->range[in->n++] = (struct dblp_range) {
			at, (uint32_t)in->len - at
		};
}

/* Read the placed ranges. Returns false if the call does not list them */
static bool read_placed(struct msghdr *msg, struct dblp_inbox *in)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t len = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_DBLP || c->cmsg_type != DBLP_PLACED)
			continue;
		in->n = (uint32_t)(len / sizeof(*in->range));
		memcpy(in->range, CMSG_DATA(c), in->n * sizeof(*in->range));
		return true;
	}
	return false;
}

static int recv_dblp(int fd, struct dblp_inbox *in)
{
	union {
		char		space[DBLP_INBOX_CONTROL];
		struct cmsghdr	head;
	} control;
	struct msghdr msg = {
		.msg_iov = in->iov,
		.msg_iovlen = 2,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);
	bool listed;
	int err;

	if (n < 0)
		return -errno;
	in->n = 0;
	if (!n && !(msg.msg_flags & MSG_EOR))
		return 0;
	in->got += (size_t)n;
	listed = read_placed(&msg, in);
	if (!(msg.msg_flags & MSG_EOR))
		return 1;
	in->closed = true;
	/* There is no loss map if nothing is missing */
	in->map.n = 0;
	err = dblp_msg_read(fd, &msg, false, &in->map);
	if (err)
		return err;
	if (in->is_most && in->map.info.length < in->len)
		in->len = in->map.info.length;
	if (in->map.info.length != in->len)
		return -EPROTO;
	if (!listed && n)
		placed_all(in);
	return 1;
}

static bool is_alive_dblp(int fd, uint64_t *received)
{
	struct dblp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, SOL_DBLP, DBLP_INFO, &info, &len))
		return false;
	/*
	 * Counters show life although probe timeouts are frequent at high loss
	 */
	*received += info.pkts_received + info.bytes_delivered;
	return info.state == DBLP_STATE_ESTABLISHED && !info.pto_count;
}

const struct dblp_transport dblp_transport_dblp = {
	.name = "dblp",
	.setup = setup_dblp,
	.lane = lane_dblp,
	.send = send_dblp,
	.recv = recv_dblp,
	.is_alive = is_alive_dblp,
};
