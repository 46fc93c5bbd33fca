/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What jobs did between two looks at their sockets. Pure: nothing is read or printed.
 */
#ifndef DBLPCTL_RATES_H
#define DBLPCTL_RATES_H

#include <linux/dblp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is counted of a socket */
enum count {
	COUNT_DELIVERED,
	COUNT_FORGIVEN,
	COUNT_RECEIVED,
	COUNT_MISSING,
	COUNT_PKTS_SENT,
	COUNT_PKTS_LOST,
	N_COUNTS,
};

/**
 * struct row - a socket, or all sockets of a job
 * @socket: number of the socket; not of a job
 * @job: number of the job, 0 for sockets without one
 * @is_known: the job is visible, and @name and @phase are its
 * @name: of the job, "" for none
 * @phase: number of the phase that the job is in
 * @sockets: how many sockets
 * @srtt_us: smoothed round-trip time; of many, and of what was done between two looks, the
 *	largest of those that sent packets, 0 for none
 * @n: what has been counted, or what was added to that between two looks
 */
struct row {
	uint32_t	socket;
	uint32_t	job;
	bool		is_known;
	char		name[DBLP_NAME_MAX];
	uint32_t	phase;
	uint32_t	sockets;
	uint32_t	srtt_us;
	uint64_t	n[N_COUNTS];
};

/** row_asked() - bytes of messages that were settled: delivered or forgiven */
uint64_t row_asked(const struct row *r);

/** row_loss() - lost of the packets sent, ppm, at most a million */
uint32_t row_loss(const struct row *r);

/** rows_by_socket() - sort sockets for rows_since() */
void rows_by_socket(struct row *rows, size_t n);

/**
 * rows_since() - subtract what had been counted at a look before
 * @rows: sockets as they are now
 * @n: how many
 * @before: sockets at that look, sorted by rows_by_socket()
 * @n_before: how many
 *
 * A socket that was not there has done all that it has counted since. So has one
 * that had counted more: it is another that got the number. Of one that is gone, nothing
 * is left to say what it did since.
 */
void rows_since(struct row *rows, size_t n, const struct row *before,
		size_t n_before);

/**
 * rows_by_job() - add up what is of the same job
 * @rows: jobs and sockets in any order; then jobs in that of their numbers
 * @n: how many
 *
 * Return: how many are left.
 */
size_t rows_by_job(struct row *rows, size_t n);

/**
 * rows_order() - sort jobs: who asked most, then who received most, is first
 *
 * Sockets without a job are last.
 */
void rows_order(struct row *rows, size_t n);

/** per_second() - @n in @seconds, rounded */
uint64_t per_second(uint64_t n, double seconds);

#endif /* DBLPCTL_RATES_H */
