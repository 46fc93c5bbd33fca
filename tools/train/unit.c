// SPDX-License-Identifier: GPL-2.0-only
/* Checks the trainer's parts. Prints TAP. */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clr.h"
#include "log.h"
#include "reduce.h"
#include "server.h"
#include "text.h"
#include "train.h"

/* model.c once more, in double precision: see the Makefile. */
double model_loss_double(const struct model *m, const double *param,
			 const struct text *t, const size_t *pos,
			 unsigned int n, double *grad);
void model_init_double(const struct model *m, double *param, uint64_t seed);

static unsigned int test_number, test_failures;

static void ok(bool good, const char *what)
{
	printf("%sok %u - %s\n", good ? "" : "not ", ++test_number, what);
	test_failures += !good;
}

static void *zeroed(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		abort();
	return p;
}

/* Text with an order to find: each letter often follows the one before it. */
static struct text make_text(size_t len)
{
	uint8_t *byte = zeroed(len);
	uint64_t rng = 5;
	struct text t;
	size_t i;

	for (i = 0; i < len; i++) {
		const unsigned int last = i ? byte[i - 1] - 'a' : 0;

		byte[i] = 'a' + (rng_next(&rng) % 8 ? last + 7 :
						      rng_next(&rng)) % 20;
	}
	text_from(&t, byte, len);
	free(byte);
	return t;
}

static void test_text(void)
{
	const unsigned int n = 4096;
	size_t *a = zeroed(n * sizeof(*a)), *b = zeroed(n * sizeof(*b));
	struct text t = make_text(20000);
	bool *held = zeroed(t.len);
	bool apart = true, context = true;
	unsigned int i;

	text_draw_held(&t, a, n, 12, 1);
	for (i = 0; i < n; i++) {
		held[a[i]] = true;
		context = context && a[i] >= 12 && a[i] < t.len;
	}
	text_draw(&t, a, n, 12, rng_mix(1, 1, 1));
	for (i = 0; i < n; i++) {
		apart = apart && !held[a[i]];
		context = context && a[i] >= 12 && a[i] < t.len;
	}
	ok(apart, "no training on held-out text");
	ok(context, "drawn positions have a context");
	text_draw(&t, b, n, 12, rng_mix(1, 1, 1));
	ok(!memcmp(a, b, n * sizeof(*a)), "the same seed draws the same batch");
	text_draw(&t, b, n, 12, rng_mix(1, 2, 1));
	ok(memcmp(a, b, n * sizeof(*a)), "another worker draws another batch");
	ok(t.vocab == 20 && t.byte[t.symbol[0]] >= 'a', "symbols are numbered");
	free(a);
	free(b);
	free(held);
	text_free(&t);
}

static void test_gradient(void)
{
	const struct model m = { 20, 4, 6 };
	const size_t size = model_size(&m);
	double *param = zeroed(size * sizeof(*param));
	double *grad = zeroed(size * sizeof(*grad));
	struct text t = make_text(4000);
	const double step = 1e-5;
	double worst = 0;
	size_t pos[16], i;

	model_init_double(&m, param, 3);
	text_draw(&t, pos, 16, m.context, 9);
	model_loss_double(&m, param, &t, pos, 16, grad);
	for (i = 0; i < size; i++) {
		const double was = param[i];
		double up, down, error;

		param[i] = was + step;
		up = model_loss_double(&m, param, &t, pos, 16, NULL);
		param[i] = was - step;
		down = model_loss_double(&m, param, &t, pos, 16, NULL);
		param[i] = was;
		error = fabs((up - down) / (2 * step) - grad[i]);
		worst = error > worst ? error : worst;
	}
	ok(worst < 1e-8, "the gradient agrees with finite differences");
	ok(size % 2 == 0, "parameters are pairs");
	free(param);
	free(grad);
	text_free(&t);
}

static void test_clr(void)
{
	/* Falls fast, settles, a jump (a new learning rate), settles. */
	static const double norm[] = { 10, 4, 3.5, 3.4, 1.7, 1.6, 2.5, 1.25 };
	static const bool critical[] = { 1, 1, 0, 0, 1, 0, 1, 1 };
	const unsigned int n = sizeof(norm) / sizeof(*norm);
	bool good = true, inside = true;
	unsigned int i, j;
	struct clr c;

	clr_init(&c, 0.5, 3);
	ok(c.critical, "training starts critically");
	for (i = 0; i < n; i++) {
		for (j = 0; j < 3; j++) {
			const bool was = c.critical;
			const bool is = clr_round(&c, norm[i] + j - 1);

			if (j < 2)
				inside = inside && is == was;
		}
		good = good && c.critical == critical[i];
	}
	ok(good, "critical when the norm changes by eta or more, else tolerant");
	ok(inside, "the phase changes between epochs only");
}

#define HEAD	16
#define N	8

static const float grads[3][N] = {
	{ 1, 2, 3, 4, 5, 6, 7, 8 },
	{ 10, 20, 30, 40, 50, 60, 70, 80 },
	{ 100, 200, 300, 400, 500, 600, 700, 800 },
};

/* Two elements a segment, as on the wire; zero where something is missing. */
static void make_loss(float arrived[3][N], struct dblp_msg *msg)
{
	static struct dblp_range first[] = { { HEAD, 8 } };
	static struct dblp_range second[] = { { HEAD, 8 }, { HEAD + 16, 16 } };
	static struct dblp_range third[] = { { HEAD, 16 } };

	memcpy(arrived, grads, sizeof(grads));
	memset(&arrived[0][0], 0, 8);
	memset(&arrived[1][0], 0, 8);
	memset(&arrived[1][4], 0, 16);
	memset(&arrived[2][0], 0, 16);
	msg[0] = (struct dblp_msg){ .n = 1, .range = first };
	msg[1] = (struct dblp_msg){ .n = 2, .range = second };
	msg[2] = (struct dblp_msg){ .n = 1, .range = third };
}

static bool near(const float *a, const float *b, size_t n)
{
	while (n--)
		if (fabsf(a[n] - b[n]) > 1e-4f * (1 + fabsf(b[n])))
			return false;
	return true;
}

static void test_reduce(void)
{
	static const float rescaled[N] = {
		0, 0, 33 / 2.0, 44 / 2.0,
		505 / 2.0, 606 / 2.0, 707 / 2.0, 808 / 2.0,
	};
	static const float bubbled[N] = {
		0, 0, 33 / 3.0, 44 / 3.0,
		505 / 3.0, 606 / 3.0, 707 / 3.0, 808 / 3.0,
	};
	static const float kept[N] = { 10, 20, 0, 0, 50, 60, 70, 80 };
	float arrived[3][N], avg[N], residual[N] = { 0 };
	float *const in[3] = { arrived[0], arrived[1], arrived[2] };
	struct dblp_msg msg[3];

	make_loss(arrived, msg);
	reduce_average(REDUCE_RESCALE, avg, N, in, msg, HEAD, 3);
	ok(near(avg, rescaled, N), "rescale averages over what arrived");
	reduce_average(REDUCE_BUBBLE, avg, N, in, msg, HEAD, 3);
	ok(near(avg, bubbled, N), "bubble counts what is missing as zero");
	reduce_keep(residual, grads[1], N, &msg[1], HEAD);
	ok(near(residual, kept, N), "feedback keeps what is missing");
	ok(fabs(reduce_norm(grads[0], N) - sqrt(204)) < 1e-9,
	   "the norm is Euclidean");
}

/*
 * Trains with a share of the segments of each gradient missing. Gives the loss
 * on held-out text.
 */
static double train_with_loss(const struct text *t, double share, bool feedback)
{
	enum { SEGMENT = 64, SAMPLES = 32, HELD = 512, ROUNDS = 80 };
	const struct model m = { t->vocab, 4, 16 };
	const size_t size = model_size(&m);
	const uint32_t bytes = size * sizeof(float);
	float *param = zeroed(bytes), *avg = zeroed(bytes);
	float *grad[3], *residual[3], *in[3];
	struct dblp_msg msg[3] = { 0 };
	uint64_t rng = 17;
	size_t pos[HELD], i;
	unsigned int r, w;
	struct adam adam;
	double loss;

	adam_init(&adam, size, 0.02);
	model_init(&m, param, 1);
	for (w = 0; w < 3; w++) {
		grad[w] = zeroed(bytes);
		residual[w] = zeroed(bytes);
		in[w] = zeroed(bytes);
		msg[w].range = zeroed((bytes / SEGMENT + 1) *
				      sizeof(*msg[w].range));
	}
	for (r = 1; r <= ROUNDS; r++) {
		for (w = 0; w < 3; w++) {
			uint32_t at;

			text_draw(t, pos, SAMPLES, m.context, rng_mix(1, w, r));
			model_loss(&m, param, t, pos, SAMPLES, grad[w]);
			for (i = 0; feedback && i < size; i++)
				grad[w][i] += residual[w][i];
			memset(residual[w], 0, bytes);
			memcpy(in[w], grad[w], bytes);
			msg[w].n = 0;
			for (at = 0; at + SEGMENT <= bytes; at += SEGMENT) {
				if ((rng_next(&rng) >> 11) * 0x1p-53 >= share)
					continue;
				msg[w].range[msg[w].n++] = (struct dblp_range){
					at, SEGMENT };
				memset((char *)in[w] + at, 0, SEGMENT);
			}
			reduce_keep(residual[w], grad[w], size, &msg[w], 0);
		}
		reduce_average(feedback ? REDUCE_BUBBLE : REDUCE_RESCALE, avg,
			       size, in, msg, 0, 3);
		adam_step(&adam, param, avg);
	}
	text_draw_held(t, pos, HELD, m.context, 1);
	loss = model_loss(&m, param, t, pos, HELD, NULL);
	adam_free(&adam);
	for (w = 0; w < 3; w++) {
		free(grad[w]);
		free(residual[w]);
		free(in[w]);
		dblp_msg_free(&msg[w]);
	}
	free(param);
	free(avg);
	return loss;
}

static void test_training(void)
{
	struct text t = make_text(20000);
	const double start = log(t.vocab);
	const double exact = train_with_loss(&t, 0, true);
	const double feedback = train_with_loss(&t, 0.408, true);
	const double rescale = train_with_loss(&t, 0.408, false);

	printf("# loss %.3f -> %.3f; with 40.8 %% missing: feedback %.3f, rescale %.3f\n",
	       start, exact, feedback, rescale);
	ok(exact < 0.6 * start, "the model learns");
	ok(feedback < exact + 0.1, "it learns from late gradients");
	ok(rescale < exact + 0.1, "it learns from what arrives");
	text_free(&t);
}

/* The other end of test_tcp(): sends back what it gets, twice the tag. */
static void *echo(void *arg)
{
	const int listener = *(int *)arg;
	const size_t room = 4 << 20;
	char *buf = zeroed(room);
	struct dblp_msg msg = { 0 };
	int fd = dblp_accept(listener);
	ssize_t n;

	while ((n = tp_tcp.recv(fd, buf, room, &msg)) > 0) {
		const struct dblp_sndinfo how = { .tag = 2 * msg.info.tag };

		if (tp_tcp.send(fd, buf, n, &how))
			break;
	}
	close(fd);
	free(buf);
	return n ? arg : NULL;
}

static bool echoes(int fd, size_t len)
{
	const struct dblp_sndinfo how = { .tag = len };
	char *out = zeroed(len), *in = zeroed(len);
	struct dblp_msg msg = { 0 };
	bool good;
	size_t i;

	for (i = 0; i < len; i++)
		out[i] = i * 31 >> 3;
	good = !tp_tcp.send(fd, out, len, &how) &&
	       tp_tcp.recv(fd, in, len, &msg) == (ssize_t)len &&
	       !memcmp(out, in, len) && msg.info.tag == 2 * len &&
	       msg.info.length == len && !msg.info.missing && !msg.n;
	free(out);
	free(in);
	return good;
}

static void test_tcp(void)
{
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	struct tp_addr addr = { "127.0.0.1", 0 };
	struct dblp_msg msg = { 0 };
	int listener, fd;
	pthread_t thread;
	void *bad;
	char c;

	listener = tp_listen(&tp_tcp, &addr);
	getsockname(listener, (struct sockaddr *)&name, &len);
	addr.port = ntohs(name.sin_port);
	pthread_create(&thread, NULL, echo, &listener);
	fd = tp_connect(&tp_tcp, &addr);
	ok(fd >= 0 && echoes(fd, 1) && echoes(fd, 70000) && echoes(fd, 3 << 20),
	   "messages over TCP arrive whole");
	ok(!tp_tcp.closed(fd, &msg) && tp_tcp.set_budget(fd, 1) &&
	   errno == EOPNOTSUPP, "TCP has no losses to report and no budget");
	ok(!tp_tcp.send(fd, "ab", 2, &(struct dblp_sndinfo){ 0 }) &&
	   tp_tcp.recv(fd, &c, 1, &msg) == -1 && errno == EMSGSIZE,
	   "a message larger than the buffer is refused");
	shutdown(fd, SHUT_WR);
	pthread_join(thread, &bad);
	ok(!bad, "the end of a connection is no message");
	close(fd);
	close(listener);
	addr.host = "example";
	ok(tp_connect(&tp_tcp, &addr) == -1 && errno == EINVAL &&
	   tp_connect(&tp_dblp, &addr) == -1 && errno == EINVAL,
	   "an address that is none is refused");
}

static void test_maps(void)
{
	struct dblp_range a[] = { { 64, 1400 }, { 4264, 2800 } };
	struct dblp_range b[] = { { 64, 1400 }, { 5664, 2800 } };
	const struct dblp_msg x = { .n = 2, .info.missing = 4200, .range = a };
	const struct dblp_msg y = { .n = 2, .info.missing = 4200, .range = b };
	const struct dblp_msg z = { 0 };

	ok(tp_msg_hash(&x) == tp_msg_hash(&x) &&
	   tp_msg_hash(&x) != tp_msg_hash(&y) &&
	   tp_msg_hash(&x) != tp_msg_hash(&z),
	   "loss maps that differ have different digests");
}

static void test_hook(void)
{
	char text[] = "burst:3,17:echo a:b";
	struct hook h;

	hook_parse(&h, text);
	ok(!strcmp(h.name, "burst") && !strcmp(h.command, "echo a:b"),
	   "a hook has a name and a command");
	ok(hook_due(&h, 3) && hook_due(&h, 17) && !hook_due(&h, 1) &&
	   !hook_due(&h, 7) && !hook_due(&h, 31), "it is due in its rounds");
}

static void test_log(void)
{
	const struct log_round round = {
		1, "fixed", 8000, 8000, 20000, 123456, 860616, 5600, 0.25, 4.5,
		"burst",
	};
	struct log log = {
		.name = "two words", .transport = "dblp", .workers = 3,
		.params = 71702, .samples = 384, .held_start = 4.25,
		.held_end = 2.125, .maps = { 3, 2, 1 },
	};
	char file[] = "/tmp/dblp-train-unit.XXXXXX";
	const struct log_round *r;
	struct log back;
	FILE *f;

	f = fdopen(mkstemp(file), "w");
	log_begin(f, &log);
	log_round(f, &round);
	log_end(f, &log);
	fclose(f);
	log_read(&back, file);
	unlink(file);
	r = back.round;
	ok(!strcmp(back.name, log.name) && !strcmp(back.transport, "dblp") &&
	   back.workers == 3 && back.params == 71702 && back.samples == 384 &&
	   back.held_start == 4.25 && back.held_end == 2.125 &&
	   !memcmp(&back.maps, &log.maps, sizeof(log.maps)) && back.n == 1,
	   "a log is read as it was written");
	ok(r->round == 1 && !strcmp(r->phase, "fixed") && r->budget_set == 8000 &&
	   r->budget_min == 8000 && r->budget_max == 20000 &&
	   r->us == 123456 && r->asked == 860616 && r->missing == 5600 &&
	   r->norm == 0.25 && r->loss == 4.5 && !strcmp(r->event, "burst"),
	   "and so are its rounds");
	log_free(&back);
}

int main(void)
{
	printf("TAP version 13\n");
	test_text();
	test_gradient();
	test_clr();
	test_reduce();
	test_training();
	test_maps();
	test_tcp();
	test_hook();
	test_log();
	printf("1..%u\n", test_number);
	return !!test_failures;
}
