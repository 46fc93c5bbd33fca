/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of the server: its rounds and its connections. */
#ifndef TRAIN_SERVER_H
#define TRAIN_SERVER_H

#include <pthread.h>

#include "clr.h"
#include "log.h"
#include "reduce.h"
#include "text.h"
#include "train.h"

/**
 * struct hook - a command to start during training
 * @name: marks the round in the log
 * @rounds: "a,b,c"
 * @command: for the shell
 */
struct hook {
	char		name[LOG_WORD];
	const char	*rounds;
	const char	*command;
};

#define SERVER_HOOKS	16

/**
 * struct params_msg - the message that begins a round
 * @head: its header
 * @param: the parameters
 */
struct params_msg {
	struct params_head	head;
	float			param[];
};

/**
 * struct grad_msg - the message that ends a round
 * @head: its header
 * @grad: the gradient
 */
struct grad_msg {
	struct grad_head	head;
	float			grad[];
};

struct server;

/**
 * struct peer - one worker
 * @server: back pointer
 * @fd: connection
 * @thread: sends and receives
 * @grad: the last gradient
 * @msg: its loss map
 * @hash: digest of @msg in the round before
 * @maps: see &struct log_maps
 */
struct peer {
	struct server	*server;
	int		fd;
	pthread_t	thread;
	struct grad_msg	*grad;
	struct dblp_msg	msg;
	uint32_t	hash;
	struct log_maps	maps;
};

/**
 * struct server - the server
 * @tp: transport
 * @addr: address and port to listen at
 * @config: sent to the workers
 * @rounds: number of rounds
 * @workers: number of workers
 * @rate: learning rate
 * @low: ppm: budget of critical phases
 * @high: ppm: budget of tolerant phases
 * @phases: whether the budget follows the phase
 * @clr: detector of the phase
 * @hook: commands to start
 * @hooks: number of commands
 * @progress: rounds between two lines
 * @log_file: or NULL
 * @log: of the run
 * @text: for evaluating the model
 * @model: shape of the model
 * @size: number of parameters
 * @params: message that begins the next round
 * @avg: the average gradient
 * @adam: the optimiser
 * @barrier: at which the peers' threads wait for the begin of a round, and the
 *	server for its end
 * @peer: the workers by number
 */
struct server {
	const struct transport	*tp;
	struct tp_addr		addr;
	struct train_config	config;
	unsigned int		rounds;
	unsigned int		workers;
	double			rate;
	uint32_t		low;
	uint32_t		high;
	bool			phases;
	struct clr		clr;
	struct hook		hook[SERVER_HOOKS];
	unsigned int		hooks;
	unsigned int		progress;
	FILE			*log_file;
	struct log		log;
	struct text		text;
	struct model		model;
	size_t			size;
	struct params_msg	*params;
	float			*avg;
	struct adam		adam;
	pthread_barrier_t	barrier;
	struct peer		*peer;
};

/** hook_parse() - parse NAME:ROUNDS:COMMAND; ends the program on failure */
void hook_parse(struct hook *h, char *text);
/** hook_due() - is @round among the rounds of a hook? */
bool hook_due(const struct hook *h, unsigned int round);

/**
 * hooks_start() - start the commands of a round
 *
 * Return: the name of the last command started, or "-".
 */
const char *hooks_start(const struct server *s, unsigned int round);
/** hooks_wait() - wait for the commands; ends the program if one failed */
void hooks_wait(void);

/** peers_accept() - accept all workers and start their threads */
void peers_accept(struct server *s);
/** peers_round() - send parameters, receive gradients */
void peers_round(struct server *s);
/** peers_finish() - stop the workers and wait until they have closed */
void peers_finish(struct server *s);

/** server_set_up() - make the model, after options and text are read */
void server_set_up(struct server *s);
/** server_run() - run all rounds with the connected workers, and write the log */
void server_run(struct server *s);
void server_free(struct server *s);

#endif /* TRAIN_SERVER_H */
