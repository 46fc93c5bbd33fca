/* SPDX-License-Identifier: GPL-2.0-only */
/* The messages between the server and its workers, and the parts of the program. */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model.h"
#include "transport.h"

/*
 * Everything is in the byte order of the machine: server and workers are the
 * same program. TRAIN_MAGIC changes with the messages.
 *
 *	worker			server
 *	hello		-->
 *			<--	config
 *			<--	params		a round
 *	gradient	-->
 *			...
 *			<--	params, stop
 *	gradient	-->			its header only
 *	close
 */
#define TRAIN_MAGIC		0x64747231

struct train_hello {
	uint32_t	magic;
	uint32_t	worker;
	uint64_t	text_hash;
};

/**
 * struct train_config - the server's answer to hello
 * @magic: TRAIN_MAGIC
 * @budget: ppm: budget of the workers' sockets
 * @seed: of all draws
 * @batch: samples in a gradient
 * @context: shape of the model
 * @hidden: shape of the model
 * @feedback: add missing elements of a gradient to the next one
 */
struct train_config {
	uint32_t	magic;
	uint32_t	budget;
	uint32_t	seed;
	uint32_t	batch;
	uint32_t	context;
	uint32_t	hidden;
	uint32_t	feedback;
};

/**
 * struct params_head - head of the message with the parameters
 * @round: from 1
 * @stop: training is over, no parameters follow
 * @budget: ppm, or TP_SOCKET_BUDGET: of the gradient of this round
 * @phase: label of that gradient
 */
struct params_head {
	uint32_t	round;
	uint32_t	stop;
	uint32_t	budget;
	uint32_t	phase;
	uint8_t		reserved[48];
};

/**
 * struct grad_head - head of the message with a gradient, never missing
 * @round: round of its parameters
 * @worker: number of the worker
 * @loss: of the batch
 * @closed_round: the latest round with a report about the gradient, 0 if none
 * @closed_hash: tp_msg_hash() of that report
 */
struct grad_head {
	uint32_t	round;
	uint32_t	worker;
	float		loss;
	uint32_t	closed_round;
	uint32_t	closed_hash;
	uint8_t		reserved[44];
};

_Static_assert(sizeof(struct params_head) == 64, "elements stay aligned");
_Static_assert(sizeof(struct grad_head) == 64, "elements stay aligned");

/* The phases of a new namespace, by number. */
enum train_phase {
	TRAIN_RELIABLE,
	TRAIN_CRITICAL,
	TRAIN_TOLERANT,
};

/* Each runs a verb with the words behind it. */
int server_main(int argc, char **argv);
int worker_main(int argc, char **argv);
int report_main(int argc, char **argv);

/**
 * arg_number() - parse an integer; ends the program with a message on failure
 * @name: name of the option, for the message
 */
unsigned long arg_number(const char *name, const char *text, unsigned long min,
			 unsigned long max);
/** arg_real() - the same for a number with a fraction */
double arg_real(const char *name, const char *text, double min, double max);
/** arg_percent() - the same for a percentage, with or without its sign, to ppm */
uint32_t arg_percent(const char *name, const char *text);
const struct transport *arg_transport(const char *text);

#endif /* TRAIN_TRAIN_H */
