/* SPDX-License-Identifier: GPL-2.0-only */
/* All that a run needs to go on, as it is in a file. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "detector.h"

#define CHECKPOINT_MAGIC	"dblp-train ckpt 1"

/* CHECKPOINT_REASON - room for what checkpoint_read() writes */
#define CHECKPOINT_REASON	256

/**
 * struct checkpoint - the state of a run after a round; all replicas have the same
 * @magic: %CHECKPOINT_MAGIC, changes with this structure
 * @bytes: of all of it
 * @digest: of what is behind this
 * @config: config_saved() of the run
 * @detector: see there
 * @round: rounds done
 * @reserved: 0
 * @state: parameters, then the optimiser's two means of as many elements
 *
 * In the byte order of the machine.
 */
struct checkpoint {
	char		magic[24];
	uint64_t	bytes;
	uint64_t	digest;
	struct config	config;
	struct detector	detector;
	uint32_t	round;
	uint32_t	reserved;
	float		state[];
};

/** checkpoint_new() - room for so many parameters, zero; NULL without memory */
struct checkpoint *checkpoint_new(const struct config *config, size_t size);

/** checkpoint_digest() - of all that is behind @digest */
uint64_t checkpoint_digest(const struct checkpoint *c);

/**
 * checkpoint_write() - replace a file
 * @c: the checkpoint; its @digest is set
 * @file: has either its old contents or the new ones, whatever happens
 *
 * Return: 0 or a negative errno.
 */
int checkpoint_write(struct checkpoint *c, const char *file);

/**
 * checkpoint_read() - read a file
 * @c: from checkpoint_new(); filled, or not changed on failure
 * @file: its name
 * @why: set to a reason on failure, which begins with @file
 *
 * Return: 0, or a negative errno: -EINVAL if the file is damaged or of another
 * configuration.
 */
int checkpoint_read(struct checkpoint *c, const char *file,
		    char why[CHECKPOINT_REASON]);

#endif /* TRAIN_CHECKPOINT_H */
