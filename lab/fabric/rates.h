/* SPDX-License-Identifier: GPL-2.0-only */
/* Estimates rates of hosts from the rates of their messages. Pure. */
#ifndef FABRIC_RATES_H
#define FABRIC_RATES_H

#include <stdint.h>

/* RATE_UNKNOWN - bytes/s of a device before the first measurement */
#define RATE_UNKNOWN	1.25e9

/* RATE_SAMPLES - messages remembered in each direction: older ones may be outdated */
#define RATE_SAMPLES	4

enum rate_way {
	RATE_TX,
	RATE_RX,
	RATE_WAYS,
};

/**
 * struct rate - one direction of a host's network device
 * @n: number of messages so far
 * @peer: the other host of each remembered message
 * @rate: rate of each remembered message, bytes/s
 * @used: rate reserved for updates in flight, bytes/s
 */
struct rate {
	uint32_t	n;
	uint32_t	peer[RATE_SAMPLES];
	double		rate[RATE_SAMPLES];
	double		used;
};

/**
 * struct rates - the devices of all hosts
 * @hosts: number of hosts
 * @host: both directions of each host
 * @fastest: highest rate of all devices, bytes/s; 0: no measurement
 */
struct rates {
	uint32_t	hosts;
	struct rate	(*host)[RATE_WAYS];
	double		fastest;
};

/** rates_sample() - add the rate of a message between two hosts, bytes/s, above 0 */
void rates_sample(struct rates *r, uint32_t from, uint32_t to, double rate);

/**
 * rates_of() - estimate the rate of a device, bytes/s
 *
 * If a remembered message was slower than its other end can be, this device was the
 * bottleneck: the result is its highest remembered rate. Otherwise the other ends may
 * have been the bottleneck, and the result is the rate of the fastest device.
 */
double rates_of(const struct rates *r, uint32_t host, enum rate_way way);

/** rates_left() - residual rate, bytes/s; never 0, because rates_of() is an estimate */
double rates_left(const struct rates *r, uint32_t host, enum rate_way way);

/** rates_use() - reserve the residual rate of both ends; returns it, bytes/s */
double rates_use(struct rates *r, uint32_t from, uint32_t to);

#endif /* FABRIC_RATES_H */
