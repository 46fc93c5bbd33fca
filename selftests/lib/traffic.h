/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections with checked contents, one after the other, to run beside something
 * that must not harm them.
 */
#ifndef DBLP_TRAFFIC_H
#define DBLP_TRAFFIC_H

#include <linux/dblp.h>
#include <stdbool.h>

/**
 * struct traffic - a listener, and counts of connections to it
 * @listener: in this namespace
 * @addr: its address
 * @seed: state of the random numbers
 * @may_fail: calls may fail, as where memory is short; contents may not differ
 * @connections: number that carried all their messages
 * @messages: number that arrived correctly
 */
struct traffic {
	int listener;
	struct sockaddr_dblp addr;
	unsigned int seed;
	bool may_fail;
	unsigned long connections;
	unsigned long messages;
};

/** traffic_start() - a listener at @address (IPv4 or IPv6) */
void traffic_start(struct traffic *t, const char *address, unsigned int seed);

/**
 * traffic_one() - connect, send some messages each way, close
 *
 * Dies if a byte is wrong, a message misses more than it may, or, unless
 * @may_fail, a call fails or nothing comes for 20 s.
 *
 * Return: true if all went well.
 */
bool traffic_one(struct traffic *t);

/** traffic_below() - a random number smaller than @n */
unsigned int traffic_below(struct traffic *t, unsigned int n);

#endif /* DBLP_TRAFFIC_H */
