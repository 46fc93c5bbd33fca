/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by server, replica and joining hosts: the scheduler, and a listening socket
 * for data.
 */
#ifndef FABRIC_MEMBER_H
#define FABRIC_MEMBER_H

#include <pthread.h>

#include "process.h"

/**
 * struct door - listening socket for updates and models
 * @o: the options
 * @secret: random number of the fabric, which each message must have
 * @answer: handles one message; false: close the connection
 * @of: first argument of @answer
 * @listener: the socket
 * @lock: protects @guests
 * @guests: connections that have not shown that they know @secret, newest first
 * @open: number of connections
 * @strangers: connections closed for a wrong secret, a timeout, an invalid message, or a
 *	lack of room
 * @refused: messages answered with an error
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

/** door_ack() - acknowledge a message, with 0 or a negative errno; true if sent */
bool door_ack(struct door *d, const struct dblp_fab_conn *c, uint64_t version, int error);
/** door_update() - receive an update, which the caller frees; NULL on error */
float *door_update(struct door *d, const struct dblp_fab_conn *c);

/**
 * struct member - connection to the scheduler
 * @ctl: the connection
 * @lock: serialises messages sent
 */
struct member {
	struct dblp_fab_conn	ctl;
	pthread_mutex_t		lock;
};

/**
 * member_join() - join the scheduler and listen for data; ends the program on failure
 * @m: filled
 * @d: the socket for data; bound to the address by which we reach the scheduler
 * @role: role to join with
 */
void member_join(struct member *m, struct door *d, enum dblp_fab_role role);
/** member_tell() - send a message; only member_hear() reports a failure */
void member_tell(struct member *m, const struct dblp_fab_msg *msg);
/** member_fail() - report that an update of a run did not arrive */
void member_fail(struct member *m, uint64_t run);
/** member_tell_rate() - report the rate of the last message on @c */
void member_tell_rate(struct member *m, const struct dblp_fab_conn *c);
/**
 * member_hear() - wait for the scheduler's next message
 *
 * Return: true; false if the scheduler was stopped. Ends the program if the scheduler
 * failed.
 */
bool member_hear(struct member *m, struct dblp_fab_msg *msg);

#endif /* FABRIC_MEMBER_H */
