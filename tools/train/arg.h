/* SPDX-License-Identifier: GPL-2.0-only */
/* Parses option values. Each function ends the program if a value is invalid. */
#ifndef TRAIN_ARG_H
#define TRAIN_ARG_H

#include <stdint.h>

/** arg_number() - parse an integer; messages name the option @name */
unsigned long arg_number(const char *name, const char *text, unsigned long min,
			 unsigned long max);
/** arg_real() - parse a decimal fraction */
double arg_real(const char *name, const char *text, double min, double max);
/** arg_percent() - parse a percentage, with or without a % sign; returns ppm */
uint32_t arg_percent(const char *name, const char *text);
/** arg_name() - index of @text in @names, a list that ends with NULL */
uint32_t arg_name(const char *name, const char *text, const char *const *names);

#endif /* TRAIN_ARG_H */
