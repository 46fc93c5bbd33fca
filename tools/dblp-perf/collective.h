/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mode collective: rounds of one collective operation of libdblp. Each process is a
 * rank; rank 0 prints.
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
 * struct spawned - shared memory of the ranks of --spawn
 * @barrier: barrier of all ranks
 * @where: address of rank 0, in libdblp's format
 * @where_len: length of @where, 0: not set yet
 */
struct spawned {
	pthread_barrier_t	barrier;
	char			where[128];
	size_t			where_len;
};

/**
 * struct collective - the command line
 * @what: enum what
 * @attr: rendezvous and connections of the ranks
 * @op: parameters of the operation
 * @radices: number of @op.radix given by --radix
 * @size: sizes of vectors to measure, bytes
 * @n_sizes: number of entries in @size
 * @density: share of elements that are not zero, ppm
 * @cluster: number of adjacent nonzero elements
 * @vectors: descriptor of the file of --vectors, or -1
 * @gap_ms: time between two rounds, ms
 * @spawned: shared memory of --spawn, NULL without it
 * @spawn: start all ranks on this machine
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

/* coll.c */

extern struct collective coll;

/** what_names - enum what by value; ends with NULL */
extern const char *const what_names[];

/** dtype_names - element types by value; ends with NULL */
extern const char *const dtype_names[];

/** collective_check_ranks() - check the command line for @nranks ranks */
void collective_check_ranks(uint32_t nranks);

/* collective.c */

/** collective_option() - set option @opt to @text */
void collective_option(int opt, char *text);

/** collective_check() - check the command line, and complete it */
void collective_check(void);

/* collective_report.c */

/**
 * struct lane_record - results of one rank for one lane, over measured rounds
 * @asked: bytes of contributions that the rank was to receive
 * @missing: missing bytes of these
 */
struct lane_record {
	uint64_t	asked;
	uint64_t	missing;
};

/**
 * collective_report() - print the results for vectors of @size bytes, on rank 0
 * @size: bytes
 * @nranks: number of ranks
 * @lane: results of each lane, summed over ranks
 * @ns: for each lane and round, time until the lane finished, ns
 */
void collective_report(uint32_t size, uint32_t nranks, const struct lane_record *lane,
		       const uint64_t *ns);

/* lanes.c */

/** lanes_option() - add a lane, with the words of --lane */
void lanes_option(char *text);

/** lanes_check() - check that the lanes are consistent */
void lanes_check(void);

/** lanes_divide() - set coll.op.part for vectors of @count elements */
void lanes_divide(uint64_t count);

/** lanes_report() - print the results of lanes for collective_report() */
void lanes_report(const struct lane_record *record, const uint64_t *ns);

/* vector.c */

/**
 * struct vector - contribution of a rank, and its result
 * @count: number of elements
 * @bytes: size of the vector in bytes
 * @rank: number of the rank
 * @nranks: number of ranks
 * @givers: number of ranks that contribute
 * @given: number of rounds in coll.vectors
 * @own: the contribution
 * @buf: buffer of the operation: input, then result
 * @part: parts of @buf that this rank owns
 * @parts: number of entries in @part
 * @most: largest base number of an element, see number_of()
 * @differing: elements of all rounds that were not the full sum
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

/** vector_dtype_size() - size of an element, bytes */
uint32_t vector_dtype_size(void);

/** vector_init() - initialize a vector of @size bytes */
void vector_init(struct vector *v, uint32_t size, uint32_t rank, uint32_t nranks);

/** vector_begin() - write the contribution to round @round; coll.op.turn is set */
void vector_begin(struct vector *v, struct dblp_comm *comm, uint32_t round);

/** vector_check() - check the sums of round @round, if the type is int32 */
void vector_check(struct vector *v, uint32_t round);

/** vector_free() - free the buffers of a vector */
void vector_free(struct vector *v);

#endif /* DBLP_PERF_COLLECTIVE_H */
