// SPDX-License-Identifier: GPL-2.0-only
/*
 * Error messages.
 */

#include <stdarg.h>
#include <stdio.h>

#include "err.h"

static struct {
	const char	*file;
	unsigned int	line;
} at;

void error_at(const char *file, unsigned int line)
{
	at.file = file;
	at.line = line;
}

void error_begin(void)
{
	/* Keep the order if both go to the same place */
	fflush(stdout);
	fputs("dblpctl: ", stderr);
	if (at.file)
		fprintf(stderr, "%s:%u: ", at.file, at.line);
}

void vcomplain(const char *fmt, va_list ap)
{
	error_begin();
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vcomplain(fmt, ap);
	va_end(ap);
}
