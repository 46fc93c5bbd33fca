// SPDX-License-Identifier: GPL-2.0-only
/*
 * Simulates paths, one for each line of KEY=NUMBER on standard input, and prints the
 * results of each as a line of JSON. The senders use the module's own net/dblp/core and
 * net/dblp/cc. 'run' defines the paths and the limits of the results.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/minmax.h>

#include <linux/dblp.h>

#include "prng.h"
#include "sim.h"

/* Keys of a line; times in ns, loss in ppm */
struct cell {
	char	mode[16];	/* steady, burst, step, dead, rounds */
	char	ours[16];	/* names of congestion controls */
	char	theirs[16];
	u64	kbit;
	u64	rtt;
	u64	queue;		/* packets */
	u64	n;		/* flows with @ours, which are the first ones */
	u64	m;		/* flows with @theirs */
	u64	loss;
	u64	ack_loss;
	u64	jitter;
	u64	ack_every;
	u64	warm;
	u64	time;
	u64	seed;
	u64	hit;		/* loss of a burst after the link */
	u64	acks_too;	/* the burst loses ACKs, too */
	u64	kbit_after;	/* rate after a step, and round-trip time */
	u64	rtt_after;
	u64	bytes;		/* of a message */
	u64	budget;		/* ppm of a message */
	u64	rounds;
};

static const struct {
	const char	*name;
	size_t		at;
} keys[] = {
#define KEY(name) { #name, offsetof(struct cell, name) }
	KEY(kbit), KEY(rtt), KEY(queue), KEY(n), KEY(m), KEY(loss),
	KEY(ack_loss), KEY(jitter), KEY(ack_every), KEY(warm), KEY(time),
	KEY(seed), KEY(hit), KEY(acks_too), KEY(kbit_after), KEY(rtt_after),
	KEY(bytes), KEY(budget), KEY(rounds),
};

static void die(const char *what, const char *which)
{
	fprintf(stderr, "cell: %s: '%s'\n", what, which);
	exit(2);
}

static void set_number(struct cell *c, const char *name, const char *value)
{
	size_t i;
	char *end;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(keys[i].name, name))
			continue;
		*(u64 *)((char *)c + keys[i].at) = strtoull(value, &end, 10);
		if (*end || !*value)
			die("no number", value);
		return;
	}
	die("unknown key", name);
}

static void set_word(char *to, const char *value)
{
	if (strlen(value) > 15)
		die("too long", value);
	strcpy(to, value);
}

static void parse(struct cell *c, char *line)
{
	char *word, *save = NULL;

	memset(c, 0, sizeof(*c));
	for (word = strtok_r(line, " \n", &save); word;
	     word = strtok_r(NULL, " \n", &save)) {
		char *value = strchr(word, '=');

		if (!value)
			die("no value", word);
		*value++ = '\0';
		if (!strcmp(word, "mode"))
			set_word(c->mode, value);
		else if (!strcmp(word, "ours"))
			set_word(c->ours, value);
		else if (!strcmp(word, "theirs"))
			set_word(c->theirs, value);
		else
			set_number(c, word, value);
	}
}

/* The congestion control of this name; no fallback to another one */
static const struct dblp_cc_ops *find(const char *name)
{
	static const struct dblp_cc_ops *const tcp[] = {
		&sim_cubic, &sim_bbr, &sim_dctcp,
	};
	const struct dblp_cc_ops *ops = dblp_cc_find(name);
	size_t i;

	for (i = 0; i < sizeof(tcp) / sizeof(tcp[0]) && !ops; i++) {
		if (!strcmp(tcp[i]->name, name))
			ops = tcp[i];
	}
	if (!ops)
		die("no such congestion control", name);
	return ops;
}

static u64 next_random(struct prng *r, u64 below)
{
	return below ? prng_below(r, below) : 0;
}

static void begin(struct sim *s, const struct cell *c)
{
	struct prng r = { c->seed };
	u64 spread, i;

	sim_init(s, c->n + c->m);
	s->mss = 1472;
	s->overhead = 42;
	s->payload = 1440;
	s->rate = c->kbit * 125;
	s->rtt = c->rtt;
	s->queue_max = c->queue;
	s->loss = c->loss;
	s->ack_loss = c->ack_loss;
	s->jitter = c->jitter;
	s->ack_every = c->ack_every;
	s->phase = true;
	s->skips = true;
	s->rng = prng_u64(&r) | 1;
	spread = c->rtt + s->n * sim_packet_time(s);
	for (i = 0; i < s->n; i++) {
		struct sim_flow *f = &s->flow[i];

		f->ops = find(i < c->n ? c->ours : c->theirs);
		f->start = next_random(&r, spread);
		/* Handshake: a small packet, with both delays of timers */
		f->handshake_rtt = c->rtt + sim_packet_time(s) / 10;
		f->goal = c->bytes ? 1 : 0;
	}
}

/* Sums over flows */
struct sums {
	u64	received;
	u64	sent;
	u64	dropped;
	u64	window;		/* current windows */
	double	squares;	/* squares of the bytes received */
};

static struct sums sum_up(const struct sim *s, u32 first, u32 n,
			  const u64 *before)
{
	struct sums sums = { 0 };
	u32 i;

	for (i = first; i < first + n; i++) {
		const struct sim_flow *f = &s->flow[i];
		u64 got = f->received - (before ? before[i] : 0);

		sums.received += got;
		sums.sent += f->sent_pkts;
		sums.dropped += f->dropped_pkts;
		sums.window += f->cc.cwnd / s->mss;
		sums.squares += (double)got * got;
	}
	return sums;
}

static double ratio(double a, double b)
{
	return b ? a / b : 0;
}

/* Share of the link that @received bytes of messages in @time use */
static double used(const struct sim *s, u64 received, u64 time)
{
	return ratio((double)received / s->payload * sim_packet_time(s), time);
}

static void print_part(const char *name, const struct sim *s, u64 time,
		       const struct sums *was, const struct sums *is, u32 n)
{
	printf(", \"%s\": {\"used\": %.4f, \"dropped\": %.5f, \"jain\": %.4f}",
	       name, used(s, is->received, time),
	       ratio(is->dropped - was->dropped, is->sent - was->sent),
	       ratio((double)is->received * is->received, n * is->squares));
}

/* Shares of the link in the steady state */
static void steady(struct sim *s, const struct cell *c)
{
	struct sums ours, theirs, now, all, all_now;
	u64 *before = calloc(s->n, sizeof(*before));
	u32 i;

	sim_run(s, c->warm);
	for (i = 0; i < s->n; i++)
		before[i] = s->flow[i].received;
	ours = sum_up(s, 0, c->n, NULL);
	theirs = sum_up(s, c->n, c->m, NULL);
	all = sum_up(s, 0, s->n, NULL);
	s->queue_area = 0;
	sim_run(s, c->warm + c->time);
	now = sum_up(s, 0, c->n, before);
	print_part("ours", s, c->time, &ours, &now, c->n);
	now = sum_up(s, c->n, c->m, before);
	if (c->m)
		print_part("theirs", s, c->time, &theirs, &now, c->m);
	all_now = sum_up(s, 0, s->n, before);
	printf(", \"used\": %.4f, \"dropped\": %.5f, \"queue\": %.2f",
	       used(s, all_now.received, c->time),
	       ratio(all_now.dropped - all.dropped, all_now.sent - all.sent),
	       ratio(s->queue_area, c->time));
	free(before);
}

static u64 sent_in(struct sim *s, u64 time)
{
	u64 before = sum_up(s, 0, s->n, NULL).sent;

	sim_run(s, s->now + time);
	return sum_up(s, 0, s->n, NULL).sent - before;
}

/* Packets sent during losses of @time, and time until the state before is restored, of
 * which @rounds are allowed
 */
static void burst(struct sim *s, const struct cell *c)
{
	u64 after = max(c->rounds, 10 * sim_packet_time(s) * s->n);
	double before, amid;

	sim_run(s, c->warm - 2 * after);
	before = ratio(sent_in(s, 2 * after), 2 * after);
	s->loss_behind = c->hit;
	s->ack_loss = c->acks_too ? c->hit : c->ack_loss;
	amid = ratio(sent_in(s, c->time), c->time);
	s->loss_behind = 0;
	s->ack_loss = c->ack_loss;
	sim_run(s, s->now + c->rounds);
	printf(", \"before\": %.4f, \"amid\": %.4f, \"after\": %.4f",
	       before * sim_packet_time(s), ratio(amid, before),
	       ratio(ratio(sent_in(s, 3 * after), 3 * after), before));
}

/* The link or the path changes: drops of the queue, and from @time on the use of the
 * link and the length of the queue
 */
static void step(struct sim *s, const struct cell *c)
{
	struct sums was, now;
	u64 received;

	sim_run(s, c->warm);
	s->rate = (c->kbit_after ?: c->kbit) * 125;
	s->rtt = c->rtt_after ?: c->rtt;
	was = sum_up(s, 0, s->n, NULL);
	sim_run(s, s->now + c->time);
	received = sum_up(s, 0, s->n, NULL).received;
	s->queue_area = 0;
	sim_run(s, s->now + c->time);
	now = sum_up(s, 0, s->n, NULL);
	printf(", \"dropped\": %.5f, \"used\": %.4f, \"queue\": %.4f",
	       ratio(now.dropped - was.dropped, now.sent - was.sent),
	       used(s, now.received - received, c->time),
	       ratio(s->queue_area, c->time) / s->queue_max);
}

/* The path delivers nothing for @time: packets sent in excess of the window */
static void dead(struct sim *s, const struct cell *c)
{
	struct sums was, now;

	sim_run(s, c->warm);
	was = sum_up(s, 0, s->n, NULL);
	s->loss = DBLP_PPM;
	s->ack_loss = DBLP_PPM;
	sim_run(s, s->now + c->time);
	now = sum_up(s, 0, s->n, NULL);
	printf(", \"extra\": %.1f", ratio((double)now.sent - was.sent -
					  was.window, s->n));
}

static int compare(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : 1;
}

/* A message of each flow at the same time; returns the duration of all */
static double one_round(struct sim *s, const struct cell *c, struct prng *r)
{
	u64 at = s->now + 2 * c->rtt + SIM_MS, last = 0;
	u32 i;

	for (i = 0; i < s->n; i++) {
		u64 segs = (c->bytes + s->payload - 1) / s->payload;

		s->flow[i].spare = segs * c->budget / DBLP_PPM;
		sim_message(s, i, c->bytes, at + next_random(r, c->rtt));
	}
	sim_run(s, at + c->time);
	for (i = 0; i < s->n; i++) {
		if (!s->flow[i].finished)
			return -1.0;
		last = max(last, s->flow[i].finished);
	}
	return last - at;
}

/* Rounds of messages with losses, each after rounds without */
static void rounds(struct sim *s, const struct cell *c)
{
	double limit = (double)c->bytes / s->payload * sim_packet_time(s) * s->n *
		       (DBLP_PPM - c->budget) / (DBLP_PPM - c->hit);
	double *took = calloc(c->rounds, sizeof(*took));
	struct prng r = { c->seed + 1 };
	u32 i, k, failed = 0;

	sim_run(s, SIM_S);
	for (i = 0; i < c->rounds; i++) {
		for (k = 0; k < 5; k++)
			one_round(s, c, &r);
		s->loss_behind = c->hit;
		s->ack_loss = c->acks_too ? c->hit : c->ack_loss;
		took[i] = one_round(s, c, &r) / limit;
		if (took[i] < 0) {
			failed++;
			took[i] = c->time / limit;
		}
		s->loss_behind = 0;
		s->ack_loss = c->ack_loss;
		/* Packets that remain from this round */
		for (k = 0; k < 100 && failed; k++)
			if (one_round(s, c, &r) > 0)
				break;
	}
	qsort(took, c->rounds, sizeof(took[0]), compare);
	printf(", \"median\": %.3f, \"p99\": %.3f, \"failed\": %u",
	       took[c->rounds / 2], took[(c->rounds * 99 - 1) / 100], failed);
	free(took);
}

static void run(const struct cell *c)
{
	struct sim s;

	begin(&s, c);
	printf("{\"law\": \"%s\"", s.flow[0].ops->name);
	if (!strcmp(c->mode, "steady"))
		steady(&s, c);
	else if (!strcmp(c->mode, "burst"))
		burst(&s, c);
	else if (!strcmp(c->mode, "step"))
		step(&s, c);
	else if (!strcmp(c->mode, "dead"))
		dead(&s, c);
	else if (!strcmp(c->mode, "rounds"))
		rounds(&s, c);
	else
		die("unknown mode", c->mode);
	printf("}\n");
	fflush(stdout);
	sim_free(&s);
}

int main(void)
{
	char line[1024];
	struct cell c;

	while (fgets(line, sizeof(line), stdin)) {
		parse(&c, line);
		run(&c);
	}
	return 0;
}
