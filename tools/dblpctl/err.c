// SPDX-License-Identifier: GPL-2.0-only
/*
 * Error messages.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
	/* Keep the order if stdout and stderr are the same file */
	fflush(stdout);
	fputs("dblpctl: ", stderr);
	if (at.file)
		fprintf(stderr, "%s:%u: ", at.file, at.line);
}

void vcomplain(const char *fmt, va_list ap)
{
	char *text, *at;

	error_begin();
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	for (at = text ?: ""; *at; at++) {
		/* Escape unprintable bytes, which words of a file may have */
		if (*at >= ' ' && *at <= '~')
			fputc(*at, stderr);
		else
			fprintf(stderr, "\\x%02x", (unsigned char)*at);
	}
	fputc('\n', stderr);
	free(text);
}

void complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vcomplain(fmt, ap);
	va_end(ap);
}

void *checked(void *p)
{
	if (!p) {
		complain("out of memory");
		exit(1);
	}
	return p;
}
