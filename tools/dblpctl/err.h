/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Error messages of one line, with file and line number of the command in a batch.
 */
#ifndef DBLPCTL_ERR_H
#define DBLPCTL_ERR_H

#include <stdarg.h>

/** error_at() - set file and line of the next messages; @file NULL: none */
void error_at(const char *file, unsigned int line);

/** error_begin() - print the start of a message; the caller prints the rest */
void error_begin(void);

/** vcomplain() - print a message */
void vcomplain(const char *fmt, va_list ap);
/** complain() - print a message */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** checked() - return @p; if it is NULL, exit with an out-of-memory message */
void *checked(void *p);

#endif /* DBLPCTL_ERR_H */
