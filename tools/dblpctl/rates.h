/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Traffic of jobs between two samples of their sockets. No input and output.
 */
#ifndef DBLPCTL_RATES_H
#define DBLPCTL_RATES_H

#include <linux/dblp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counters of a socket */
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
 * @socket: number of the socket; unused for a job
 * @job: number of the job, 0 for sockets without a job
 * @is_known: the job is visible; @name and @phase are valid
 * @name: name of the job, or ""
 * @phase: number of the phase of the job
 * @sockets: number of sockets
 * @srtt_us: smoothed round-trip time, us; after rows_since(), 0 if no packet was sent;
 *	of a job, the largest of its sockets
 * @n: counters; after rows_since(), their increase
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

/** row_asked() - bytes of settled messages: delivered or forgiven */
uint64_t row_asked(const struct row *r);

/** row_loss() - share of the sent packets that were lost, ppm, at most DBLP_PPM */
uint32_t row_loss(const struct row *r);

/** rows_by_socket() - sort sockets for rows_since() */
void rows_by_socket(struct row *rows, size_t n);

/**
 * rows_since() - subtract the counters of an earlier sample
 * @rows: sockets now
 * @n: number of @rows
 * @before: sockets of the earlier sample, sorted by rows_by_socket()
 * @n_before: number of @before
 *
 * A socket that is not in @before keeps its counters. So does a socket whose counters
 * were larger before: it is a new socket with a reused number. A socket that has ended
 * is not in @rows, so its last traffic is not counted.
 */
void rows_since(struct row *rows, size_t n, const struct row *before,
		size_t n_before);

/**
 * rows_by_job() - merge the rows of each job
 * @rows: jobs and sockets in any order; on return, jobs by number
 * @n: number of @rows
 *
 * Return: number of rows left.
 */
size_t rows_by_job(struct row *rows, size_t n);

/**
 * rows_order() - sort jobs by row_asked(), then by received bytes, largest first
 *
 * The row of sockets without a job is last.
 */
void rows_order(struct row *rows, size_t n);

/** per_second() - @n in @seconds, rounded */
uint64_t per_second(uint64_t n, double seconds);

#endif /* DBLPCTL_RATES_H */
