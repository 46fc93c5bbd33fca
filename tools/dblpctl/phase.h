/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Phases by name.
 */
#ifndef DBLPCTL_PHASE_H
#define DBLPCTL_PHASE_H

#include <stdint.h>

#include "dblpctl.h"

/**
 * find_phase() - the number of a phase
 * @word: its number or its name
 * @id: filled
 *
 * The kernel is asked for names, so no request may be begun yet. A number may
 * be one that no phase has.
 */
enum status find_phase(const char *word, uint32_t *id);

#endif /* DBLPCTL_PHASE_H */
