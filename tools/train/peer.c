// SPDX-License-Identifier: GPL-2.0-only
/* The server's connections: one thread for each worker. */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "server.h"

static size_t grad_size(const struct server *s)
{
	return sizeof(struct grad_msg) + s->size * sizeof(float);
}

static unsigned int number(const struct peer *p)
{
	return p - p->server->peer;
}

/* Compare the worker's report about its last message with our loss map */
static void compare_maps(struct peer *p)
{
	const struct grad_head *head = &p->grad->head;

	if (head->closed_round != head->round - 1)
		p->maps.unknown++;
	else if (head->closed_hash == p->hash)
		p->maps.equal++;
	else
		p->maps.different++;
}

static void receive(struct peer *p, size_t len)
{
	const struct server *s = p->server;
	const uint32_t round = s->params->head.round;
	ssize_t n;

	n = s->tp->recv(p->fd, p->grad, grad_size(s), &p->msg);
	if (n < 0)
		err(1, "worker %u, round %u: cannot receive", number(p), round);
	if (!n)
		errx(1, "worker %u, round %u: it closed the connection", number(p),
		     round);
	if ((size_t)n != len || p->grad->head.round != round ||
	    p->grad->head.worker != number(p))
		errx(1, "worker %u, round %u: not the gradient asked for",
		     number(p), round);
	/* The first round has none before it; TCP has nothing to report. */
	if (round > 1 && s->tp != &tp_tcp)
		compare_maps(p);
	p->hash = tp_msg_hash(&p->msg);
}

static void send_params(const struct peer *p, size_t len)
{
	const struct server *s = p->server;
	const struct dblp_sndinfo how = tp_how(s->params->head.round, 0, 0);

	if (s->tp->send(p->fd, s->params, len, &how))
		err(1, "worker %u, round %lu: cannot send", number(p),
		    (unsigned long)how.tag);
}

static void say_goodbye(struct peer *p)
{
	const struct server *s = p->server;

	send_params(p, sizeof(s->params->head));
	receive(p, sizeof(p->grad->head));
	if (s->tp->recv(p->fd, p->grad, grad_size(s), &p->msg))
		errx(1, "worker %u does not close its connection", number(p));
	close(p->fd);
}

static void *peer_run(void *arg)
{
	struct peer *p = arg;
	struct server *s = p->server;

	for (;;) {
		pthread_barrier_wait(&s->barrier);
		if (s->params->head.stop)
			break;
		send_params(p, sizeof(*s->params) + s->size * sizeof(float));
		receive(p, grad_size(s));
		pthread_barrier_wait(&s->barrier);
	}
	say_goodbye(p);
	return NULL;
}

/* Accepts the next worker; its number is in its first message. */
static void accept_one(struct server *s, int listener)
{
	struct train_hello hello;
	struct dblp_msg msg = { 0 };
	const struct dblp_sndinfo how = tp_how(0, 0, 0);
	struct peer *p;
	int fd;

	fd = tp_result(dblp_accept(listener));
	if (fd < 0)
		err(1, "cannot accept");
	if (s->tp->recv(fd, &hello, sizeof(hello), &msg) != sizeof(hello) ||
	    hello.magic != TRAIN_MAGIC)
		errx(1, "a program connected that is not a worker");
	if (hello.worker >= s->workers || s->peer[hello.worker].server)
		errx(1, "worker %u is one too many or came twice: see --workers",
		     hello.worker);
	if (hello.text_hash != s->text.hash)
		errx(1, "worker %u has another text: give all the same files",
		     hello.worker);
	if (s->tp->send(fd, &s->config, sizeof(s->config), &how))
		err(1, "cannot answer worker %u", hello.worker);
	p = &s->peer[hello.worker];
	p->server = s;
	p->fd = fd;
	p->msg = msg;
	p->grad = malloc(grad_size(s));
	if (!p->grad)
		err(1, NULL);
}

void peers_accept(struct server *s)
{
	unsigned int i;
	int listener;

	s->peer = calloc(s->workers, sizeof(*s->peer));
	if (!s->peer)
		err(1, NULL);
	listener = tp_listen(s->tp, &s->addr);
	if (listener < 0)
		err(1, "cannot listen at %s port %u by %s", s->addr.host,
		    s->addr.port, s->tp->name);
	for (i = 0; i < s->workers; i++)
		accept_one(s, listener);
	close(listener);

	pthread_barrier_init(&s->barrier, NULL, s->workers + 1);
	for (i = 0; i < s->workers; i++) {
		errno = pthread_create(&s->peer[i].thread, NULL, peer_run,
				       &s->peer[i]);
		if (errno)
			err(1, "cannot start a thread");
	}
}

void peers_round(struct server *s)
{
	pthread_barrier_wait(&s->barrier);
	pthread_barrier_wait(&s->barrier);
}

void peers_finish(struct server *s)
{
	unsigned int i;

	pthread_barrier_wait(&s->barrier);
	for (i = 0; i < s->workers; i++) {
		struct peer *p = &s->peer[i];

		pthread_join(p->thread, NULL);
		s->log.maps.equal += p->maps.equal;
		s->log.maps.different += p->maps.different;
		s->log.maps.unknown += p->maps.unknown;
		free(p->grad);
		dblp_msg_free(&p->msg);
	}
	pthread_barrier_destroy(&s->barrier);
	free(s->peer);
}
