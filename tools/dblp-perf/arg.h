/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Values of options. Every error in them ends the program with EXIT_USAGE.
 */
#ifndef DBLP_PERF_ARG_H
#define DBLP_PERF_ARG_H

#include <stdint.h>

/** wrong() - print an error in the command line, and exit */
void wrong(const char *fmt, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

/** share() - parse @text, a share, as the value of option @name; returns ppm */
uint32_t share(const char *name, const char *text);

/** number() - parse @text, from @min to @max, as the value of option @name */
uint64_t number(const char *name, const char *text, uint64_t min, uint64_t max);

/** size() - parse @text, bytes from @min to @max, as the value of option @name */
uint64_t size(const char *name, const char *text, uint64_t min, uint64_t max);

/** duration() - parse @text, a time up to @max_ms, as the value of option @name; returns ms */
uint32_t duration(const char *name, const char *text, uint32_t max_ms);

/** choice() - find the value @text of option @name in @names; returns its index */
int choice(const char *name, const char *text, const char *const *names);

/**
 * numbers() - parse the value of an option, a list separated by commas
 * @name: the option
 * @text: its value; modified
 * @max: maximum of each number; the minimum is 1
 * @list: filled
 * @room: number of entries in @list
 *
 * Return: number of values.
 */
unsigned int numbers(const char *name, char *text, uint32_t max, uint32_t *list,
		     unsigned int room);

/** sizes() - as numbers(), for a list of sizes */
unsigned int sizes(const char *name, char *text, uint32_t max, uint32_t *list,
		   unsigned int room);

/** set_hosts() - set cfg.from to the namespaces in @text, which is modified */
void set_hosts(const char *name, char *text);

#endif /* DBLP_PERF_ARG_H */
