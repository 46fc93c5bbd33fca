/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Phases by name.
 */
#ifndef DBLPCTL_PHASE_H
#define DBLPCTL_PHASE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "dblpctl.h"
#include "field.h"

/**
 * find_phase() - the number of a phase
 * @word: its number or its name
 * @id: filled
 *
 * Looking up a name sends a request, so no other request may have been begun. The
 * phase need not exist if @word is a number.
 */
enum status find_phase(const char *word, uint32_t *id);

/** read_phase_names() - look up the names of all phases, for phase_name() */
enum status read_phase_names(void);

/** phase_name() - the name of a phase at the last read_phase_names(), "" for none */
const char *phase_name(uint32_t id);

/** print_phase_id() - the number of a phase, for people with its name: "2 (tolerant)" */
void print_phase_id(struct heading h, uint32_t id);

/** print_phase() - print_phase_id() of an attribute */
void print_phase(const struct field *f, const struct values *v);

/** phases_free_names() - object_free_names() of phases */
enum status phases_free_names(void);

/** phases_flush() - object_flush() of phases */
enum status phases_flush(void);

/** save_phases() - write the commands that restore all phases */
enum status save_phases(FILE *to);

/** phase_is_saved() - was there a phase with this number at the last save_phases()? */
bool phase_is_saved(uint32_t id);

#endif /* DBLPCTL_PHASE_H */
