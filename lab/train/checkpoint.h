/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of a run in a file, from which the run can continue. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include <tune.h>

#include "config.h"
#include "detector.h"

#define CHECKPOINT_MAGIC	"dblp-train ckpt 3"

/* CHECKPOINT_REASON - room for what checkpoint_read() writes */
#define CHECKPOINT_REASON	256

/**
 * struct checkpoint - the state of a run after a round; all replicas have the same
 * @magic: %CHECKPOINT_MAGIC, changes with this structure
 * @bytes: size of the checkpoint
 * @digest: checkpoint_digest()
 * @config: config_saved() of the run
 * @detector: the detector of phases
 * @tune: the controller of --budget auto
 * @round: rounds done
 * @reserved: 0
 * @state: the parameters, then both means of &struct adam, each of as many elements
 *
 * Numbers are in the byte order of the machine.
 */
struct checkpoint {
	char		magic[24];
	uint64_t	bytes;
	uint64_t	digest;
	struct config	config;
	struct detector	detector;
	struct dblp_tune tune;
	uint32_t	round;
	uint32_t	reserved;
	float		state[];
};

/** checkpoint_new() - allocate for @size parameters, all 0; NULL if out of memory */
struct checkpoint *checkpoint_new(const struct config *config, size_t size);

/** checkpoint_digest() - digest of all fields from @config on */
uint64_t checkpoint_digest(const struct checkpoint *c);

/**
 * checkpoint_write() - replace a file
 * @c: the checkpoint; its @digest is set
 * @file: its name; rename() replaces it, so after a crash it is the old or the new one
 *
 * Return: 0 or a negative errno.
 */
int checkpoint_write(struct checkpoint *c, const char *file);

/**
 * checkpoint_read() - read a file
 * @c: from checkpoint_new(); unchanged on failure
 * @file: its name
 * @why: on failure: the reason, which begins with @file
 *
 * Return: 0 or a negative errno. -EINVAL: the file is damaged, or its configuration
 * differs from that of @c.
 */
int checkpoint_read(struct checkpoint *c, const char *file,
		    char why[CHECKPOINT_REASON]);

#endif /* TRAIN_CHECKPOINT_H */
