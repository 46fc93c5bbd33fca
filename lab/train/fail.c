// SPDX-License-Identifier: GPL-2.0-only
/* Failures of a rank. Each ends the program. */
#include <err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

void run_fail(struct run *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vwarnx(format, args);
	va_end(args);
	dblp_comm_abort(r->comm, ECANCELED);
	dblp_comm_close(r->comm);
	exit(1);
}

void run_fail_all(struct run *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vwarnx(format, args);
	va_end(args);
	dblp_comm_close(r->comm);
	exit(1);
}

void run_broken(struct run *r, int error)
{
	int32_t rank = -1;

	dblp_comm_error(r->comm, &rank);
	if (rank < 0)
		warnx("the exchange between ranks has failed: %s", strerror(-error));
	else if (error == -ECANCELED)
		warnx("rank %d gave up: its message says why", rank);
	else
		warnx("rank %d has failed: %s", rank, strerror(-error));
	dblp_comm_close(r->comm);
	exit(1);
}
