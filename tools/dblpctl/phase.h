/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Phases by name.
 */
#ifndef DBLPCTL_PHASE_H
#define DBLPCTL_PHASE_H

#include <stdbool.h>
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

/** phase_exists() - does the kernel know a phase of this number? */
bool phase_exists(uint32_t id);

/** save_phases() - print the commands that make all phases */
enum status save_phases(void);

#endif /* DBLPCTL_PHASE_H */
