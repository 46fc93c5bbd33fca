/* SPDX-License-Identifier: GPL-2.0-only */
/* How fast hosts send and receive, by what their sockets have measured. Pure. */
#ifndef FABRIC_RATES_H
#define FABRIC_RATES_H

#include <stdint.h>

/* RATE_UNKNOWN - bytes a second, if nothing was measured anywhere */
#define RATE_UNKNOWN	1.25e9

/* Messages that are remembered: older ones were sent by the network of another time */
#define RATE_SAMPLES	4

enum rate_way {
	RATE_TX,
	RATE_RX,
	RATE_WAYS,
};

/**
 * struct rate - one direction of a host's network device
 * @n: messages so far
 * @peer: the other hosts of the last ones
 * @rate: and how fast they were, bytes a second
 * @used: bytes a second of updates that are on their way
 */
struct rate {
	uint32_t	n;
	uint32_t	peer[RATE_SAMPLES];
	double		rate[RATE_SAMPLES];
	double		used;
};

/**
 * struct rates - all devices
 * @hosts: number of hosts
 * @host: both directions of each
 * @fastest: of them all, 0: nothing was measured
 */
struct rates {
	uint32_t	hosts;
	struct rate	(*host)[RATE_WAYS];
	double		fastest;
};

/** rates_sample() - a message went from one host to another so fast, above 0 */
void rates_sample(struct rates *r, uint32_t from, uint32_t to, double rate);

/**
 * rates_of() - how fast a device is thought to be
 *
 * As fast as its fastest message lately, if one of them was slower than its other end can
 * do. If all may have been held up by their other ends, it could do more: as much as the
 * fastest device of all.
 */
double rates_of(const struct rates *r, uint32_t host, enum rate_way way);

/** rates_left() - what is left of that for one more; never 0, as estimates are wrong */
double rates_left(const struct rates *r, uint32_t host, enum rate_way way);

/** rates_use() - begin to use what is left on both ends; how much that is */
double rates_use(struct rates *r, uint32_t from, uint32_t to);

#endif /* FABRIC_RATES_H */
