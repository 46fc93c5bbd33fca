/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs by name.
 */
#ifndef DBLPCTL_JOB_H
#define DBLPCTL_JOB_H

#include <stdint.h>

#include "dblpctl.h"

/**
 * find_job() - the number of a job
 * @word: its number or its name
 * @id: filled
 *
 * As find_phase() in phase.h.
 */
enum status find_job(const char *word, uint32_t *id);

/** save_jobs() - print the commands that restore all jobs */
enum status save_jobs(void);

#endif /* DBLPCTL_JOB_H */
