/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Phases by name.
 */
#ifndef DBLPCTL_PHASE_H
#define DBLPCTL_PHASE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cmd.h"
#include "field.h"
#include "words.h"

/** read_phase() - parse a phase, by object_find() */
enum status read_phase(const struct keyword *k, const char *word,
		       struct value *v);

/** read_own_phase() - read_phase(); "inherit" is DBLP_INHERIT */
enum status read_own_phase(const struct keyword *k, const char *word,
			   struct value *v);

/** read_phase_names() - read the names of all phases, for phase_name() */
enum status read_phase_names(void);

/** phase_name() - name of a phase at the last read_phase_names(), or "" */
const char *phase_name(uint32_t id);

/** print_phase_id() - print the number of a phase, in text with its name: "2 (tolerant)" */
void print_phase_id(struct heading h, uint32_t id);

/** print_phase() - print_phase_id() of an attribute */
void print_phase(const struct field *f, const struct values *v);

/** phases_free_names() - object_free_names() of phases */
enum status phases_free_names(void);

/** phases_flush() - object_flush() of phases */
enum status phases_flush(void);

/** save_phases() - write the commands that restore all phases */
enum status save_phases(FILE *to);

/** phase_is_saved() - did the last save_phases() write this phase? */
bool phase_is_saved(uint32_t id);

#endif /* DBLPCTL_PHASE_H */
