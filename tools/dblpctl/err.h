/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Error messages: one line each, which says where the words came from.
 */
#ifndef DBLPCTL_ERR_H
#define DBLPCTL_ERR_H

#include <stdarg.h>

/** error_at() - messages that follow are about a line of @file; NULL: of no file */
void error_at(const char *file, unsigned int line);

/** error_begin() - begin a message that the caller writes and ends */
void error_begin(void);

/** vcomplain() - print a message */
void vcomplain(const char *fmt, va_list ap);
/** complain() - print a message */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** checked() - @p; without memory, where it is NULL, the program ends */
void *checked(void *p);

#endif /* DBLPCTL_ERR_H */
