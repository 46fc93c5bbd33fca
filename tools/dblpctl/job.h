/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs by name.
 */
#ifndef DBLPCTL_JOB_H
#define DBLPCTL_JOB_H

#include <stdio.h>

#include "cmd.h"
#include "field.h"
#include "words.h"

/** read_job_or_none() - parse a job, by object_find(); "none" is 0 */
enum status read_job_or_none(const struct keyword *k, const char *word,
			     struct value *v);

/** jobs_each() - object_each() of jobs */
enum status jobs_each(enum status (*each)(const struct values *v, void *arg),
		      void *arg);

/** read_job_names() - read the names of all jobs that this user may see, for job_name() */
enum status read_job_names(void);

/** job_name() - name of a job at the last read_job_names(), or "" */
const char *job_name(uint32_t id);

/** save_jobs() - write the commands that restore all jobs; call save_phases() first */
enum status save_jobs(FILE *to);

/** jobs_free_names() - object_free_names() of jobs */
enum status jobs_free_names(void);

/** jobs_flush() - object_flush() of jobs */
enum status jobs_flush(void);

#endif /* DBLPCTL_JOB_H */
