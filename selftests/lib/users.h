/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A user who does all that can be done with a connection, one thing after the
 * other, and sees to it that what he gets is consistent.
 */
#ifndef DBLP_TEST_USERS_H
#define DBLP_TEST_USERS_H

#include <linux/dblp.h>
#include <linux/types.h>
#include <pthread.h>
#include <stdbool.h>

/**
 * struct user - one of them
 * @fd: his socket
 * @random: state of random_next()
 * @fill: all bytes that he may get are this, or 0 where something is missing,
 * @zeros: or was described as zero
 * @placement: messages are read as they come
 * @keep: what is missing stays as it was
 * @stop: he is to stop
 * @err: for which the connection has ended, 0 if it has not
 * @received: messages he got, in whole; @early of them with bytes missing
 * @reported: closed messages that he had sent
 */
struct user {
	int			fd;
	u64			random;
	u8			fill;
	volatile bool		*zeros;
	bool			placement;
	bool			keep;
	volatile bool		stop;
	volatile int		err;
	unsigned long		received;
	unsigned long		early;
	unsigned long		reported;
	pthread_t		thread;
};

/** user_begin() - have @u->fd used by a thread of its own; the rest is set */
void user_begin(struct user *u);

/** user_end() - and no more; the socket stays */
void user_end(struct user *u);

#endif /* DBLP_TEST_USERS_H */
