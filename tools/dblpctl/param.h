/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parameters of the namespace.
 */
#ifndef DBLPCTL_PARAM_H
#define DBLPCTL_PARAM_H

#include "dblpctl.h"
#include "nl.h"
#include "words.h"

extern const struct keyword param_keywords[];

/** param_talk() - ask for all of them */
enum status param_talk(struct nl_reply *reply);

#endif /* DBLPCTL_PARAM_H */
