/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parameters of the namespace.
 */
#ifndef DBLPCTL_PARAM_H
#define DBLPCTL_PARAM_H

#include "dblpctl.h"

/** save_params() - print the command that restores all parameters */
enum status save_params(void);

#endif /* DBLPCTL_PARAM_H */
