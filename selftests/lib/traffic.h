/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections with checked contents, one at a time, as background traffic that a test must
 * not harm.
 */
#ifndef DBLP_TRAFFIC_H
#define DBLP_TRAFFIC_H

#include <linux/dblp.h>
#include <stdbool.h>

/**
 * struct traffic - a listener, and counts of connections to it
 * @listener: listening socket in this namespace
 * @addr: address of @listener
 * @seed: state of the random numbers
 * @may_fail: calls may fail, for tests of memory pressure; contents must be right
 * @connections: number of connections that carried all their messages
 * @messages: number of messages received correctly
 */
struct traffic {
	int listener;
	struct sockaddr_dblp addr;
	unsigned int seed;
	bool may_fail;
	unsigned long connections;
	unsigned long messages;
};

/** traffic_start() - open a listener at @address (IPv4 or IPv6) */
void traffic_start(struct traffic *t, const char *address, unsigned int seed);

/**
 * traffic_one() - connect, send some messages each way, close
 *
 * Dies if a byte is wrong or a message misses more than its budget. Unless @may_fail, it
 * also dies if a call fails or nothing arrives for 20 s.
 *
 * Return: true if all messages arrived.
 */
bool traffic_one(struct traffic *t);

/** traffic_below() - a random number smaller than @n */
unsigned int traffic_below(struct traffic *t, unsigned int n);

#endif /* DBLP_TRAFFIC_H */
