// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Messages of joining, see join.h: sent and received with a timeout.
 */

#include "join.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

int dblp_transfer(int fd, void *buf, size_t len, bool out, uint64_t until)
{
	size_t done = 0;

	while (done < len) {
		struct pollfd p = { fd, out ? POLLOUT : POLLIN, 0 };
		char *at = (char *)buf + done;
		ssize_t n = out ?
			send(fd, at, len - done, MSG_DONTWAIT | MSG_NOSIGNAL) :
			recv(fd, at, len - done, MSG_DONTWAIT);

		if (n > 0)
			done += (size_t)n;
		else if (!n)
			return -ECONNRESET;
		else if (errno != EAGAIN && errno != EINTR)
			return -errno;
		else if (!dblp_ms_left(until))
			return -ETIMEDOUT;
		else
			poll(&p, 1, dblp_ms_left(until));
	}
	return 0;
}

/* Hash of the lanes, on which ranks must agree; 0: defaults */
static uint64_t lanes_digest(const struct dblp_comm *comm)
{
	return comm->attr.lanes ? dblp_hash(DBLP_HASH, comm->lane,
					    comm->n_lanes * sizeof(*comm->lane)) :
				  0;
}

void dblp_hello_make(const struct dblp_comm *comm, struct dblp_hello *h)
{
	uint32_t i;

	memset(h, 0, sizeof(*h));
	h->ctl = dblp_ctl_make(comm, DBLP_CTL_JOIN);
	h->ctl.nranks = comm->nranks;
	h->ctl.nics = comm->n_nics;
	h->ctl.message_bytes = comm->attr.message_bytes;
	h->ctl.authenticate = comm->attr.authenticate;
	h->ctl.digest = lanes_digest(comm);
	snprintf(h->ctl.transport, sizeof(h->ctl.transport), "%s%s%s",
		 comm->transport->name, comm->cc[0] ? ":" : "", comm->cc);
	for (i = 0; i < comm->n_nics; i++) {
		const struct dblp_nic *nic = &comm->nic[i];

		h->addr[i] = nic->addr;
		if (!nic->name[0] && !nic->is_listed)
			h->addr[i].sdblp_addr = in6addr_any;
	}
}
