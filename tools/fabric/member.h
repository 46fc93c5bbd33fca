/* SPDX-License-Identifier: GPL-2.0-only */
/* What all but workers have: a connection to the scheduler, and a door for data. */
#ifndef FABRIC_MEMBER_H
#define FABRIC_MEMBER_H

#include <pthread.h>

#include "process.h"

/**
 * struct door - a listening socket
 * @o: the command line
 * @secret: of the fabric: who does not know it is turned away
 * @answer: serves one message; false: the connection is to be closed
 * @of: first argument of @answer
 * @listener: the socket
 * @lock: protects @guests
 * @guests: connections that have not shown that they know @secret, newest first
 * @open: connections
 * @strangers: who was turned away: by a wrong secret, silence, no message at all, or as
 *	there were too many
 * @refused: messages that were answered with an error
 */
struct door {
	const struct options	*o;
	uint64_t		secret;
	bool			(*answer)(void *of, const struct dblp_fab_conn *c,
					  const struct dblp_fab_msg *m);
	void			*of;
	int			listener;
	pthread_mutex_t		lock;
	struct guest		*guests;
	_Atomic uint32_t	open;
	_Atomic uint64_t	strangers;
	_Atomic uint64_t	refused;
};

/** door_ack() - answer a message: @error is 0 or a negative errno; true if it was sent */
bool door_ack(struct door *d, const struct dblp_fab_conn *c, uint64_t version, int error);
/** door_update() - receive an update, @count elements to be freed; NULL: hang up */
float *door_update(struct door *d, const struct dblp_fab_conn *c);

/**
 * struct member - the connection
 * @ctl: the connection
 * @lock: of sending
 */
struct member {
	struct dblp_fab_conn	ctl;
	pthread_mutex_t		lock;
};

/**
 * member_join() - join, and open a door; ends the program on failure
 * @m: filled
 * @d: the door, at the address that the scheduler sees
 * @role: as what
 */
void member_join(struct member *m, struct door *d, enum dblp_fab_role role);
/** member_tell() - tell the scheduler; that it has ended will be found by who listens */
void member_tell(struct member *m, const struct dblp_fab_msg *msg);
/** member_fail() - tell it that a run cannot go on, as one of its updates does not come */
void member_fail(struct member *m, uint64_t run);
/** member_tell_rate() - tell it how fast the last message to a host was */
void member_tell_rate(struct member *m, const struct dblp_fab_conn *c);
/**
 * member_hear() - wait for its next message
 *
 * Return: true; false at the end, which it has announced. Ends the program if it ended
 * without.
 */
bool member_hear(struct member *m, struct dblp_fab_msg *msg);

#endif /* FABRIC_MEMBER_H */
