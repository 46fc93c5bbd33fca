/* SPDX-License-Identifier: GPL-2.0-only */
/* Arguments of the command line. Each function ends the program if one is wrong. */
#ifndef TRAIN_ARG_H
#define TRAIN_ARG_H

#include <stdint.h>

/** arg_number() - an integer; @name is that of the option, for the message */
unsigned long arg_number(const char *name, const char *text, unsigned long min,
			 unsigned long max);
/** arg_real() - a number with a fraction */
double arg_real(const char *name, const char *text, double min, double max);
/** arg_percent() - a percentage, with or without its sign, as ppm */
uint32_t arg_percent(const char *name, const char *text);
/** arg_name() - one of @names, which end with NULL, as its number */
uint32_t arg_name(const char *name, const char *text, const char *const *names);

#endif /* TRAIN_ARG_H */
