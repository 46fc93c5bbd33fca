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
 * Looking up a name sends a request, so no other request may have been begun. The
 * phase need not exist if @word is a number.
 */
enum status find_phase(const char *word, uint32_t *id);

/** phase_exists() - is there a phase with this number? */
bool phase_exists(uint32_t id);

/** save_phases() - print the commands that restore all phases */
enum status save_phases(void);

#endif /* DBLPCTL_PHASE_H */
