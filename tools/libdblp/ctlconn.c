// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Sending control messages.
 */

#include "engine.h"

#include <string.h>
#include <sys/socket.h>

/* Room reserved in @out for ABORT or SUSPECT and for BYE, each sent once */
#define FINAL_MESSAGES	2

struct dblp_ctl dblp_ctl_make(const struct dblp_comm *comm, uint16_t type)
{
	return (struct dblp_ctl) {
		.magic = DBLP_CTL_MAGIC,
		.version = DBLP_COMM_VERSION,
		.type = type,
		.rank = comm->rank,
		.epoch = comm->attr.epoch,
	};
}

bool dblp_ctl_put(struct dblp_ctlconn *c, const struct dblp_ctl *ctl, uint32_t more)
{
	if (c->fd < 0 || c->n_out + (1 + more) * sizeof(*ctl) > sizeof(c->out))
		return false;
	memcpy(c->out + c->n_out, ctl, sizeof(*ctl));
	c->n_out += sizeof(*ctl);
	return true;
}

/*
 * Rank 0: forward BYEs to a rank that has not left itself, as far as @out has
 * room
 */
static void put_left(const struct dblp_comm *comm, struct dblp_ctlconn *c)
{
	struct dblp_ctl ctl = dblp_ctl_make(comm, DBLP_CTL_BYE);

	while (!comm->rank && !c->bye && c->n_left < comm->n_left) {
		ctl.rank = comm->left[c->n_left];
		if (!dblp_ctl_put(c, &ctl, FINAL_MESSAGES))
			break;
		c->n_left++;
	}
}

void dblp_ctl_flush(const struct dblp_comm *comm, struct dblp_ctlconn *c)
{
	ssize_t n;

	while (put_left(comm, c), c->fd >= 0 && c->n_out) {
		n = send(c->fd, c->out, c->n_out, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n <= 0)
			break;
		c->n_out -= (size_t)n;
		memmove(c->out, c->out + n, c->n_out);
	}
}

/*
 * Reports may be dropped: a peer that does not read has other messages waiting
 */
void dblp_ctl_send(const struct dblp_comm *comm, struct dblp_ctlconn *c,
		   const struct dblp_ctl *ctl)
{
	if (dblp_ctl_put(c, ctl, ctl->type == DBLP_CTL_REPORT ? FINAL_MESSAGES : 0))
		dblp_ctl_flush(comm, c);
}
