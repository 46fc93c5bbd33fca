// SPDX-License-Identifier: GPL-2.0-only
/*
 * The software baseline of the papers: a gather over UDP, in rounds, from N senders to
 * one receiver. A fixed share P_low of each message may be missing (MLT in software; DBLP,
 * arXiv 2605.01989, outside of its phases).
 *
 * The paper gives: a datagram holds one chunk of the size of the MTU and {sequence,
 * round, length}; probe, bitmap and stop take a reliable channel, here TCP. A sender
 * sends all chunks that are not acknowledged, then a probe; the receiver answers with
 * a bitmap of received chunks, and the sender retransmits the missing ones, until stop.
 * The receiver sends stop when it has 1 - P_low of the chunks, which it checks on each
 * chunk and on each probe. Missing chunks are zero. There is no congestion control, and
 * there are no timeouts: only the probe detects lost chunks.
 *
 * Choices made here, none of which slows the scheme down: chunks have 1460 bytes; a sender
 * blocks on the queue of its own device, which is the flow control; it checks for stop
 * before each chunk; the receiver reads all pending data before it answers a probe, so
 * that bitmaps are current; receive buffers are as large as a message; a set bit in a
 * bitmap is a received chunk.
 *
 * A round begins with a byte to each sender, as in dblp-perf(1), and ends when each
 * message has enough chunks. Then each message is checked: received chunks are exact,
 * missing ones are zero and at most P_low.
 */
#include <arg.h>
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <units.h>

#define SENDERS		64
#define CHUNK		1460

/**
 * struct data_head - header of a chunk
 * @sequence: number of the chunk
 * @round: round
 * @length: bytes of the chunk
 */
struct data_head {
	uint32_t	sequence;
	uint32_t	round;
	uint32_t	length;
};

/* Messages on the reliable channel; a bitmap follows %BITMAP */
enum control_type { HELLO, GO, PROBE, BITMAP, STOP, END };

/**
 * struct control - message on the reliable channel
 * @type: &enum control_type
 * @value: round, or in %HELLO the index of the sender
 */
struct control {
	uint32_t	type;
	uint32_t	value;
};

/**
 * struct sender - state of a sender at the receiver
 * @control: reliable channel
 * @data: UDP socket of this sender only
 * @message: the message, with zeroes for missing chunks
 * @bitmap: bits of received chunks
 * @received: number of received chunks
 * @stopped: stop was sent
 */
struct sender {
	int		control;
	int		data;
	unsigned char	*message;
	unsigned char	*bitmap;
	uint32_t	received;
	bool		stopped;
};

static struct {
	const char	*to;
	const char	*from[SENDERS];
	uint32_t	senders;
	const char	*address;
	unsigned int	port;
	uint32_t	size;
	uint32_t	rounds;
	uint32_t	p_low;
	uint32_t	loss;
	uint64_t	seed;
	const char	*hook;
	unsigned int	timeout;
} cfg = {
	.from = { NULL }, .senders = 1, .address = "127.0.0.1", .port = 7100, .size = 300000,
	.rounds = 10, .seed = 1, .timeout = 600,
};

static struct sender senders[SENDERS];
/* Received probes, missing bytes, duplicate chunks */
static uint64_t probes, missing, again;

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	fputs("dblp-baseline: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, err ? ": %s\n" : "\n", strerror(err));
	_exit(1);
}

static void enter(const char *netns)
{
	errno = -dblp_netns_enter(netns);
	if (errno)
		die("namespace %s", netns);
}

static struct sockaddr_dblp address(unsigned int port)
{
	struct sockaddr_dblp addr;
	const char *why = dblp_addr_alone(cfg.address, &addr);

	errno = 0;
	if (why)
		die("--address: '%s' %s", cfg.address, why);
	addr.sdblp_port = htons(port);
	return addr;
}

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* Write the message of a sender in a round; @message is from new_message() */
static void make_message(unsigned char *message, uint32_t index, uint32_t round)
{
	uint64_t state = cfg.seed + index + round * 0xd1342543de82ef95ULL, word;
	size_t at;

	for (at = 0; at < cfg.size; at += sizeof(word)) {
		word = draw(&state);
		memcpy(message + at, &word, sizeof(word));
	}
}

static uint32_t chunks(void)
{
	return (cfg.size + CHUNK - 1) / CHUNK;
}

static uint32_t chunk_bytes(uint32_t i)
{
	return i + 1 < chunks() ? CHUNK : cfg.size - i * CHUNK;
}

/* Number of chunks before stop */
static uint32_t needed(void)
{
	return chunks() - (uint32_t)((uint64_t)chunks() * cfg.p_low / DBLP_PPM);
}

static size_t bitmap_bytes(void)
{
	return (chunks() + 7) / 8;
}

static bool has(const unsigned char *bitmap, uint32_t i)
{
	return bitmap[i / 8] & 1 << i % 8;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void *allocate(size_t n)
{
	void *p = calloc(1, n);

	if (!p)
		die("no memory");
	return p;
}

static unsigned char *new_message(void)
{
	return allocate(cfg.size + sizeof(uint64_t));
}

static void put(int fd, enum control_type type, uint32_t value)
{
	struct control c = { type, value };

	if (send(fd, &c, sizeof(c), MSG_NOSIGNAL) != sizeof(c))
		die("the reliable channel has ended");
}

static void get(int fd, void *buf, size_t len)
{
	ssize_t n = dblp_recv_all(fd, buf, len);

	errno = n < 0 ? -n : 0;
	if (n != (ssize_t)len)
		die("the reliable channel has ended");
}

static int udp_socket(void)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("no UDP socket");
	return fd;
}

static void udp_address(struct sockaddr_in6 *to, uint32_t index)
{
	struct sockaddr_dblp a = address(cfg.port + 1 + index);

	memcpy(to, &a, sizeof(*to));
	to->sin6_family = AF_INET6;
}

/* Sender */

/* Has stop arrived? Before a probe, the receiver sends nothing else. */
static bool told_to_stop(int control)
{
	struct control c;
	ssize_t n = recv(control, &c, sizeof(c), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0)
		die("the reliable channel has ended");
	get(control, (char *)&c + n, sizeof(c) - n);
	if (c.type != STOP)
		die("control message %u is not stop", c.type);
	return true;
}

static bool send_pass(int control, int data, const unsigned char *message,
		      const unsigned char *bitmap, uint32_t round)
{
	uint32_t i;

	for (i = 0; i < chunks(); i++) {
		struct data_head head = { i, round, chunk_bytes(i) };
		struct iovec iov[2] = {
			{ &head, sizeof(head) },
			{ (void *)(message + (size_t)i * CHUNK), head.length },
		};
		struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

		if (has(bitmap, i))
			continue;
		if (told_to_stop(control))
			return false;
		/* A packet dropped by a full device queue counts as lost */
		if (sendmsg(data, &msg, 0) < 0 && errno != ENOBUFS)
			die("sendmsg()");
	}
	return true;
}

static void send_round(int control, int data, const unsigned char *message, uint32_t round)
{
	unsigned char *bitmap = allocate(bitmap_bytes());
	struct control c;

	while (send_pass(control, data, message, bitmap, round)) {
		put(control, PROBE, round);
		get(control, &c, sizeof(c));
		if (c.type == STOP)
			break;
		get(control, bitmap, bitmap_bytes());
	}
	free(bitmap);
}

static void sender_run(uint32_t index)
{
	unsigned char *message = new_message();
	struct sockaddr_dblp addr;
	struct sockaddr_in6 to;
	struct control c;
	int control, data;
	uint32_t round;

	addr = address(cfg.port);
	control = dblp_socket(&addr, IPPROTO_TCP);
	if (control < 0 || dblp_connect(control, &addr, -1))
		die("no connection");
	data = udp_socket();
	udp_address(&to, index);
	if (connect(data, (struct sockaddr *)&to, sizeof(to)))
		die("connect()");
	put(control, HELLO, index);
	for (round = 0; ; round++) {
		make_message(message, index, round);
		get(control, &c, sizeof(c));
		if (c.type == END)
			break;
		send_round(control, data, message, round);
	}
	free(message);
}

/* Receiver */

/* Simulated loss, for a network without losses (splitmix64) */
static bool lost(void)
{
	static uint64_t state;

	if (!cfg.loss)
		return false;
	if (!state)
		state = cfg.seed;
	return draw(&state) % DBLP_PPM < cfg.loss;
}

static void stop_if_enough(struct sender *s, uint32_t round)
{
	if (s->stopped || s->received < needed())
		return;
	s->stopped = true;
	put(s->control, STOP, round);
}

static void take_chunk(struct sender *s, const struct data_head *head, ssize_t n,
		       uint32_t round)
{
	/* Ignore chunks of other rounds, duplicates, and chunks after stop */
	if (n < (ssize_t)sizeof(*head) || head->round != round || s->stopped ||
	    head->sequence >= chunks() || head->length != chunk_bytes(head->sequence) ||
	    n != (ssize_t)(sizeof(*head) + head->length))
		return;
	if (has(s->bitmap, head->sequence)) {
		again++;
		return;
	}
	memcpy(s->message + (size_t)head->sequence * CHUNK, head + 1, head->length);
	s->bitmap[head->sequence / 8] |= 1 << head->sequence % 8;
	s->received++;
	stop_if_enough(s, round);
}

static void take_data(struct sender *s, uint32_t round)
{
	_Alignas(struct data_head) char packet[sizeof(struct data_head) + CHUNK];
	ssize_t n;

	while ((n = recv(s->data, packet, sizeof(packet), MSG_DONTWAIT)) >= 0)
		if (!lost())
			take_chunk(s, (void *)packet, n, round);
	if (errno != EAGAIN)
		die("recv()");
}

static void take_probe(struct sender *s, uint32_t round)
{
	struct control c;

	get(s->control, &c, sizeof(c));
	if (c.type != PROBE)
		die("control message %u is no probe", c.type);
	probes++;
	/* Ignore a probe that crossed stop */
	if (c.value != round || s->stopped)
		return;
	stop_if_enough(s, round);
	if (s->stopped)
		return;
	put(s->control, BITMAP, round);
	if (send(s->control, s->bitmap, bitmap_bytes(), MSG_NOSIGNAL) !=
	    (ssize_t)bitmap_bytes())
		die("the reliable channel has ended");
}

static bool all_stopped(void)
{
	uint32_t i;

	for (i = 0; i < cfg.senders; i++)
		if (!senders[i].stopped)
			return false;
	return true;
}

static uint64_t receive_round(uint32_t round)
{
	struct pollfd fds[2 * SENDERS];
	uint64_t start = now_ns();
	uint32_t i, n = cfg.senders;

	for (i = 0; i < n; i++) {
		fds[i] = (struct pollfd){ senders[i].data, POLLIN, 0 };
		fds[n + i] = (struct pollfd){ senders[i].control, POLLIN, 0 };
		put(senders[i].control, GO, round);
	}
	while (!all_stopped()) {
		if (poll(fds, 2 * n, -1) < 0 && errno != EINTR)
			die("poll()");
		for (i = 0; i < n; i++) {
			take_data(&senders[i], round);
			if (fds[n + i].revents)
				take_probe(&senders[i], round);
		}
	}
	return now_ns() - start;
}

static void begin_round(void)
{
	uint32_t i;

	for (i = 0; i < cfg.senders; i++) {
		struct sender *s = &senders[i];

		memset(s->message, 0, cfg.size);
		memset(s->bitmap, 0, bitmap_bytes());
		s->received = 0;
		s->stopped = false;
	}
}

/* Check that missing chunks are zero and few enough, and all others exact */
static void check_message(const struct sender *s, uint32_t index, uint32_t round)
{
	static const unsigned char zeroes[CHUNK];
	static unsigned char *sent;
	uint64_t lacks = 0;
	uint32_t i;

	sent = sent ?: new_message();
	make_message(sent, index, round);
	errno = 0;
	for (i = 0; i < chunks(); i++) {
		size_t at = (size_t)i * CHUNK;
		bool here = has(s->bitmap, i);

		if (memcmp(s->message + at, here ? sent + at : zeroes, chunk_bytes(i)))
			die("sender %u, round %u: chunk %u is wrong", index, round, i);
		lacks += !here;
		missing += here ? 0 : chunk_bytes(i);
	}
	if (lacks * DBLP_PPM > (uint64_t)chunks() * cfg.p_low)
		die("sender %u, round %u: %" PRIu64 " chunks are missing", index, round, lacks);
}

static void run_hook(uint32_t round)
{
	char text[16];

	if (!cfg.hook)
		return;
	snprintf(text, sizeof(text), "%u", round);
	setenv("DBLP_ROUND", text, 1);
	errno = 0;
	if (system(cfg.hook))
		die("the hook failed before round %u", round);
}

static void print_results(const uint64_t *sample)
{
	uint64_t total = (uint64_t)cfg.senders * cfg.rounds * cfg.size, elapsed = 0;
	uint32_t i;

	for (i = 0; i < cfg.rounds; i++)
		elapsed += sample[i];
	printf("{\"elapsed_ns\":%" PRIu64 ",\"delivered_bytes\":%" PRIu64
	       ",\"missing_bytes\":%" PRIu64 ",\"probes\":%" PRIu64 ",\"again\":%" PRIu64
	       ",\"samples\":[", elapsed, total - missing, missing, probes, again);
	for (i = 0; i < cfg.rounds; i++)
		printf("%s%" PRIu64, i ? "," : "", sample[i]);
	printf("]}\n");
}

static void listen_data(struct sender *s, uint32_t index)
{
	struct sockaddr_in6 addr;
	/* The kernel uses half of this for overhead */
	int room = 4 * cfg.size + 65536;

	s->data = udp_socket();
	udp_address(&addr, index);
	if (bind(s->data, (struct sockaddr *)&addr, sizeof(addr)))
		die("bind()");
	if (setsockopt(s->data, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		die("SO_RCVBUFFORCE");
}

static void accept_senders(int listener)
{
	struct control hello;
	uint32_t i;

	for (i = 0; i < cfg.senders; i++) {
		int fd = dblp_accept(listener);

		if (fd < 0)
			die("accept(): %s", strerror(-fd));
		get(fd, &hello, sizeof(hello));
		if (hello.type != HELLO || hello.value >= cfg.senders)
			die("an unknown program has connected");
		senders[hello.value].control = fd;
	}
}

static void __attribute__((noreturn)) end_now(const char *text)
{
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		_exit(2);
	_exit(1);
}

static void out_of_time(int sig)
{
	end_now("dblp-baseline: out of time\n");
}

/* The sender has printed the reason */
static void sender_ended(int sig)
{
	int status, saved = errno;

	while (waitpid(-1, &status, WNOHANG) > 0)
		if (status)
			end_now("dblp-baseline: a sender has failed\n");
	errno = saved;
}

static void start_sender(uint32_t index)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork()");
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_DFL);
	if (cfg.from[index])
		enter(cfg.from[index]);
	sender_run(index);
	_exit(0);
}

static void receiver_run(void)
{
	uint64_t *sample = allocate(cfg.rounds * sizeof(*sample));
	struct sockaddr_dblp addr;
	int listener, status;
	uint32_t i, round;

	addr = address(cfg.port);
	listener = dblp_socket(&addr, IPPROTO_TCP);
	if (listener < 0 || dblp_listen(listener, &addr))
		die("cannot listen at %s, port %u", cfg.address, cfg.port);
	for (i = 0; i < cfg.senders; i++) {
		listen_data(&senders[i], i);
		senders[i].message = new_message();
		senders[i].bitmap = allocate(bitmap_bytes());
		start_sender(i);
	}
	accept_senders(listener);
	for (round = 0; round < cfg.rounds; round++) {
		run_hook(round);
		begin_round();
		sample[round] = receive_round(round);
		for (i = 0; i < cfg.senders; i++)
			check_message(&senders[i], i, round);
	}
	for (i = 0; i < cfg.senders; i++)
		put(senders[i].control, END, 0);
	while (wait(&status) > 0)
		if (status)
			end_now("dblp-baseline: a sender has failed\n");
	print_results(sample);
}

/* Command line */

static void usage(FILE *f)
{
	fputs("Usage: dblp-baseline [OPTION...]\n"
	      "Gather messages as the software of the papers does, and print one JSON object.\n\n"
	      "  --to NAMESPACE          namespace of the receiver\n"
	      "  --from NAMESPACE[,...]  namespace of each sender\n"
	      "  --senders N             number of senders in this namespace (default 1)\n"
	      "  --address ADDR          address of the receiver (default 127.0.0.1)\n"
	      "  --port N                TCP port; data uses the UDP ports after it (default 7100)\n"
	      "  --size BYTES            size of a message (default 300000)\n"
	      "  --rounds N              number of rounds (default 10)\n"
	      "  --p-low SHARE           share of the chunks that may be missing (default 0%)\n"
	      "  --loss SHARE            share of the chunks that the receiver drops\n"
	      "  --seed N                seed of losses and contents (default 1)\n"
	      "  --hook COMMAND          run before each round; $DBLP_ROUND is its number\n"
	      "  --timeout TIME          fail after this time (default 10min)\n", f);
}

static void set_senders(char *text)
{
	cfg.senders = dblp_words(text, cfg.from, SENDERS);
	errno = 0;
	if (!cfg.senders)
		die("--from has more than %u namespaces", SENDERS);
}

enum { TO, FROM, N_SENDERS, ADDRESS, PORT, SIZE, ROUNDS, P_LOW, LOSS, SEED, HOOK, TIMEOUT, HELP };

static const struct option options[] = {
	[TO] = { "to", 1, NULL, 0 }, [FROM] = { "from", 1, NULL, 0 },
	[N_SENDERS] = { "senders", 1, NULL, 0 }, [ADDRESS] = { "address", 1, NULL, 0 },
	[PORT] = { "port", 1, NULL, 0 }, [SIZE] = { "size", 1, NULL, 0 },
	[ROUNDS] = { "rounds", 1, NULL, 0 }, [P_LOW] = { "p-low", 1, NULL, 0 },
	[LOSS] = { "loss", 1, NULL, 0 }, [SEED] = { "seed", 1, NULL, 0 },
	[HOOK] = { "hook", 1, NULL, 0 }, [TIMEOUT] = { "timeout", 1, NULL, 0 },
	[HELP] = { "help", 0, NULL, 0 }, { }
};

static void parse_option(int i)
{
	const char *name = options[i].name;

	switch (i) {
	case TO: cfg.to = optarg; break;
	case FROM: set_senders(optarg); break;
	case N_SENDERS: cfg.senders = arg_number(name, optarg, 1, SENDERS); break;
	case ADDRESS: cfg.address = optarg; break;
	case PORT: cfg.port = arg_number(name, optarg, 1, 65535 - SENDERS); break;
	case SIZE: cfg.size = arg_size(name, optarg, 1, 64 << 20); break;
	case ROUNDS: cfg.rounds = arg_number(name, optarg, 1, 1000000); break;
	case P_LOW: cfg.p_low = arg_share(name, optarg); break;
	case LOSS: cfg.loss = arg_share(name, optarg); break;
	case SEED: cfg.seed = arg_number(name, optarg, 1, UINT64_MAX); break;
	case HOOK: cfg.hook = optarg; break;
	case TIMEOUT: cfg.timeout = (arg_time(name, optarg, 1000, 86400000) + 999) / 1000; break;
	case HELP:
		usage(stdout);
		exit(0);
	}
}

int main(int argc, char **argv)
{
	int i = 0, opt;

	while ((opt = getopt_long(argc, argv, "", options, &i)) != -1) {
		if (opt == '?') {
			usage(stderr);
			return 2;
		}
		parse_option(i);
	}
	if (optind != argc || !cfg.senders) {
		usage(stderr);
		return 2;
	}
	signal(SIGALRM, out_of_time);
	/* accept() goes on */
	signal(SIGCHLD, sender_ended);
	alarm(cfg.timeout);
	if (cfg.to)
		enter(cfg.to);
	receiver_run();
	return 0;
}
