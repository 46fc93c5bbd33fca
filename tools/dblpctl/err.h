/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Error messages: one line each, which says where the words came from.
 */
#ifndef DBLPCTL_ERR_H
#define DBLPCTL_ERR_H

/** error_at() - what follows is said of a line of @file; NULL: of no file */
void error_at(const char *file, unsigned int line);

/** error_begin() - begin a message that the caller writes and ends */
void error_begin(void);

/** complain() - print a message */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* DBLPCTL_ERR_H */
