/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parameters of the namespace.
 */
#ifndef DBLPCTL_PARAM_H
#define DBLPCTL_PARAM_H

#include <stdio.h>

#include "cmd.h"

/** save_params() - write the command that restores all parameters */
enum status save_params(FILE *to);

#endif /* DBLPCTL_PARAM_H */
