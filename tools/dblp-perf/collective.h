/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mode collective: rounds of one collective operation of libdblp. Each process is a
 * rank; the first one prints.
 */
#ifndef DBLP_PERF_COLLECTIVE_H
#define DBLP_PERF_COLLECTIVE_H

#include <comm.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIZES_MAX	64

/** enum what - the operations */
enum what {
	WHAT_ALLREDUCE,
	WHAT_REDUCE_SCATTER,
	WHAT_ALLGATHER,
};

/**
 * struct spawned - what ranks that were started together share
 * @barrier: for all of them
 * @where: where rank 0 is, as libdblp says
 * @where_len: its length, 0: not known yet
 */
struct spawned {
	pthread_barrier_t	barrier;
	char			where[128];
	size_t			where_len;
};

/**
 * struct collective - the command line
 * @what: enum what
 * @attr: how to find the other ranks
 * @op: how it is done
 * @radices: number of @op.radix that were given
 * @size: bytes of the vectors
 * @n_sizes: how many there are
 * @density: ppm: elements that are not zero
 * @cluster: so many of them are side by side
 * @vectors: file with what ranks contribute, round by round, or -1
 * @gap_ms: between two rounds
 * @spawned: ranks are started together, NULL: each by itself
 * @spawn: all ranks are to be started here
 */
struct collective {
	int			what;
	struct dblp_comm_attr	attr;
	struct dblp_op		op;
	unsigned int		radices;
	uint32_t		size[SIZES_MAX];
	unsigned int		n_sizes;
	uint32_t		density;
	uint32_t		cluster;
	int			vectors;
	unsigned int		gap_ms;
	struct spawned		*spawned;
	bool			spawn;
};

extern struct collective coll;

/** collective_option() - set what option @opt with the value @text says */
void collective_option(int opt, char *text);

/** collective_check() - check the command line, and complete it */
void collective_check(void);

/** collective_check_ranks() - does the command line suit @nranks ranks? */
void collective_check_ranks(uint32_t nranks);

/** rounds() - be a rank, in mode collective; @index tells those that were spawned apart */
void rounds(unsigned int index);

/**
 * struct lane_record - what a rank has measured of a lane
 * @asked: bytes, of the rounds that count
 * @missing: bytes, of those
 */
struct lane_record {
	uint64_t	asked;
	uint64_t	missing;
};

/**
 * collective_report() - print the results for vectors of @size bytes, on rank 0
 * @size: bytes
 * @nranks: number of ranks
 * @lane: what all ranks have measured of each lane
 * @ns: of each lane, when nothing of it was left to be done in each round
 */
void collective_report(uint32_t size, uint32_t nranks, const struct lane_record *lane,
		       const uint64_t *ns);

/* lanes.c */

/** lanes_option() - one more lane */
void lanes_option(char *text);

/** lanes_check() - do they contradict themselves? */
void lanes_check(void);

/** lanes_divide() - set coll.op.part for vectors of @count elements */
void lanes_divide(uint64_t count);

/** lanes_report() - print what collective_report() has of lanes, if there are any */
void lanes_report(const struct lane_record *record, const uint64_t *ns);

/* vector.c */

/**
 * struct vector - what a rank contributes, and what becomes of it
 * @count: elements
 * @bytes: the same in bytes
 * @rank: whose
 * @nranks: number of ranks
 * @givers: number of those that contribute
 * @given: rounds that coll.vectors has
 * @own: the contribution
 * @buf: to be given to the operation
 * @part: parts of it that the operation is about on this rank
 * @parts: their number
 * @most: the largest number of an element
 * @differing: elements that were not the full sum, of all rounds
 */
struct vector {
	uint64_t		count;
	size_t			bytes;
	uint32_t		rank;
	uint32_t		nranks;
	uint32_t		givers;
	uint64_t		given;
	void			*own;
	void			*buf;
	struct dblp_span	part[DBLP_LEVELS_MAX * DBLP_LANES_MAX];
	int			parts;
	uint64_t		most;
	uint64_t		differing;
};

/** vector_dtype_size() - bytes of an element */
uint32_t vector_dtype_size(void);

/** vector_init() - make one of @size bytes */
void vector_init(struct vector *v, uint32_t size, uint32_t rank, uint32_t nranks);

/** vector_begin() - contribute to round @round, of which coll.op.turn is set */
void vector_begin(struct vector *v, struct dblp_comm *comm, uint32_t round);

/** vector_check() - check the sums of round @round, if they can be */
void vector_check(struct vector *v, uint32_t round);

/** vector_free() - free it */
void vector_free(struct vector *v);

#endif /* DBLP_PERF_COLLECTIVE_H */
