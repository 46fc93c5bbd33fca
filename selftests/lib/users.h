/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A thread that makes all calls on a connection, in random order, and checks that the
 * results are consistent.
 */
#ifndef DBLP_TEST_USERS_H
#define DBLP_TEST_USERS_H

#include <linux/dblp.h>
#include <linux/types.h>
#include <pthread.h>
#include <stdbool.h>

/**
 * struct user - a thread that uses a socket
 * @fd: its socket
 * @random: state of random_next()
 * @fill: value of all received bytes, except missing ones, which are 0
 * @zeros: bytes may also be 0 by a zero map
 * @placement: read messages while they arrive
 * @keep: missing bytes keep their old values
 * @stop: set to stop the thread
 * @err: errno of the connection's end, 0 if it has not ended
 * @received: number of received messages
 * @early: number of received messages with bytes missing
 * @reported: number of reports about sent messages
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

/** user_begin() - start the thread; all other fields are set */
void user_begin(struct user *u);

/** user_end() - stop the thread; the socket stays open */
void user_end(struct user *u);

#endif /* DBLP_TEST_USERS_H */
