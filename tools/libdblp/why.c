// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Reasons of failures, as text. It adds to the errno what helps the user, such
 * as the address that did not answer.
 */

#include "engine.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char opening[DBLP_WHY_TEXT];

int dblp_why(int error, const char *format, ...)
{
	va_list args;

	if (opening[0])
		return error;
	va_start(args, format);
	vsnprintf(opening, sizeof(opening), format, args);
	va_end(args);
	return error;
}

void dblp_why_clear(void)
{
	opening[0] = '\0';
}

void dblp_comm_explain(struct dblp_comm *comm, const char *format, ...)
{
	va_list args;

	pthread_mutex_lock(&comm->lock);
	if (!comm->why[0] && !comm->error) {
		va_start(args, format);
		vsnprintf(comm->why, sizeof(comm->why), format, args);
		va_end(args);
	}
	pthread_mutex_unlock(&comm->lock);
}

const char *dblp_comm_why(struct dblp_comm *comm)
{
	const char *why = "";

	if (!comm)
		return opening;
	pthread_mutex_lock(&comm->lock);
	if (comm->error)
		why = comm->why;
	pthread_mutex_unlock(&comm->lock);
	return why;
}
