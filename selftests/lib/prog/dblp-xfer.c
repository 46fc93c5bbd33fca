// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sends messages of known contents from one network namespace to another (with
 * --duplex in both directions at once) and checks each message: delivered bytes are
 * exact, the missing bytes are those of the loss map, are within the budget, are not
 * critical, and cut no element, and both ends have the same loss map.
 *
 * The exit status is 0 if all checks passed. A line on stdout for each direction has the
 * totals.
 */
#define _GNU_SOURCE
#include "lib/testlib.h"
#include "lib/xfer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEP_BYTE	0xa5
#define SEGMENT		1440	/* approximate bytes of a segment on Ethernet */

/**
 * struct end - one end of the connection
 * @name: for messages
 * @fd: the socket
 * @sends: it sends messages
 * @receives: it receives messages
 * @seed: seed of the contents it sends
 * @peer_seed: seed of the contents it receives
 * @sent: reports of the messages it has sent
 * @n_sent: number of @sent
 * @rcvd: messages it has received
 * @n_rcvd: number of @rcvd
 */
struct end {
	const char	*name;
	int		fd;
	bool		sends;
	bool		receives;
	uint64_t	seed;
	uint64_t	peer_seed;
	struct message	*sent;
	uint32_t	n_sent;
	struct message	*rcvd;
	uint32_t	n_rcvd;
};

static struct end self;

static uint32_t message_size(uint32_t i)
{
	return cfg.size[i % cfg.n_sizes];
}

static uint32_t message_critical(uint32_t i)
{
	uint32_t size = message_size(i);

	return cfg.critical < size ? cfg.critical : size;
}

/* With policy full, a message has budget 0 */
static uint32_t message_budget(uint32_t i)
{
	if (cfg.policy == DBLP_POLICY_FULL)
		return 0;
	return cfg.halfway && i >= cfg.count / 2 ? cfg.then : cfg.budget;
}

static uint64_t message_tag(uint64_t seed, uint32_t i)
{
	return seed * 1000003 + i;
}

static bool uses_sndinfo(void)
{
	return cfg.per_message || cfg.critical;
}

#define ZEROS_BLOCK	4000	/* bytes of a block, which is all zero or not */

/* Is @offset of a message in a block of zeroes? @end is the start of the next block */
static bool is_zero(uint64_t seed, uint32_t i, uint32_t offset, uint32_t *end)
{
	uint32_t block = offset / ZEROS_BLOCK;
	uint64_t x = (seed * 31 + i) * 0x9e3779b97f4a7c15ULL + block;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	*end = (block + 1) * ZEROS_BLOCK;
	return (x >> 32) % 100 < cfg.zeros;
}

static void contents_fill(unsigned char *buf, uint32_t size, uint64_t seed,
			  uint32_t i)
{
	uint32_t at, end;

	pattern_fill(buf, size, 0, seed, i);
	for (at = 0; at < size && cfg.zeros; at = end)
		if (is_zero(seed, i, at, &end))
			memset(buf + at, 0, (end < size ? end : size) - at);
}

/* As pattern_check(), for the bytes @from ... @to - 1 of the message at @buf */
static ssize_t contents_check(const unsigned char *buf, uint32_t from,
			      uint32_t to, uint64_t seed, uint32_t i)
{
	uint32_t at, end = to;
	ssize_t bad;

	for (at = from; at < to; at = end) {
		bool zero = cfg.zeros && is_zero(seed, i, at, &end);

		if (end > to)
			end = to;
		bad = zero ? bytes_check(buf + at - from, end - at, 0) :
		      pattern_check(buf + at - from, end - at, at, seed, i);
		if (bad >= 0)
			return at - from + bad;
	}
	return -1;
}

static void set_option(int fd, int opt, uint32_t value, const char *name)
{
	if (setsockopt(fd, SOL_DBLP, opt, &value, sizeof(value)))
		die("setsockopt(%s, %u)", name, value);
}

static void setup_socket(int fd)
{
	if (!cfg.per_message) {
		set_option(fd, DBLP_BUDGET, cfg.budget, "DBLP_BUDGET");
		set_option(fd, DBLP_CLOSE_POLICY, cfg.policy,
			   "DBLP_CLOSE_POLICY");
	}
	if (cfg.cap != UINT32_MAX)
		set_option(fd, DBLP_BUDGET_CAP, cfg.cap, "DBLP_BUDGET_CAP");
	set_option(fd, DBLP_DEADLINE, cfg.deadline, "DBLP_DEADLINE");
	set_option(fd, DBLP_ELEMENT, cfg.element, "DBLP_ELEMENT");
	set_option(fd, DBLP_ORDER, cfg.order, "DBLP_ORDER");
	set_option(fd, DBLP_FILL, cfg.fill, "DBLP_FILL");
	set_option(fd, DBLP_ECT, cfg.ect, "DBLP_ECT");
	set_option(fd, DBLP_NOTIFY, 1, "DBLP_NOTIFY");
	if (cfg.cc && setsockopt(fd, SOL_DBLP, DBLP_CONGESTION, cfg.cc,
				 strlen(cfg.cc) + 1))
		die("setsockopt(DBLP_CONGESTION, %s)", cfg.cc);
}

/* Check invariants 1 and 4, and that RCVINFO and RANGES are consistent */
static void check_info(const struct end *e, uint32_t i,
		       const struct message *m)
{
	const struct dblp_rcvinfo *info = &m->info;
	uint32_t size = message_size(i), critical = message_critical(i);
	uint32_t budget = message_budget(i);
	uint64_t tag = uses_sndinfo() ? message_tag(e->peer_seed, i) : 0;
	uint32_t most, r, sum = 0, end = 0;
	bool over;

	/* The message may have been in flight when the budget was changed */
	if (cfg.halfway && !cfg.settled && info->budget == cfg.then)
		budget = cfg.then;
	errno = 0;
	if (info->msg_id != i || info->length != size || info->tag != tag)
		die("%s: message %u of %u bytes, tag %llu; expected %u, %u, %llu",
		    e->name, info->msg_id, info->length,
		    (unsigned long long)info->tag, i, size,
		    (unsigned long long)tag);
	if (info->budget != budget)
		die("%s: message %u: budget %u, not %u", e->name, i,
		    info->budget, budget);
	if (cfg.cap < budget)
		budget = cfg.cap;
	most = budget_bytes(budget, size - critical);
	over = info->missing > most;
	if (over != !!(info->flags & DBLP_RCV_OVER_BUDGET))
		die("%s: message %u misses %u bytes, bound %u, flags %#x",
		    e->name, i, info->missing, most, info->flags);
	if (over && (!cfg.deadline || info->reason != DBLP_REASON_DEADLINE))
		die("%s: message %u misses %u bytes of %u, bound %u", e->name,
		    i, info->missing, size, most);
	if (!info->missing != (info->reason == DBLP_REASON_COMPLETE) ||
	    (info->reason == DBLP_REASON_DEADLINE && !cfg.deadline))
		die("%s: message %u misses %u bytes, reason %u", e->name, i,
		    info->missing, info->reason);
	if (info->ranges != m->n)
		die("%s: message %u: %u ranges, RCVINFO says %u", e->name, i,
		    m->n, info->ranges);

	for (r = 0; r < m->n; r++) {
		uint32_t from = m->range[r].offset, len = m->range[r].length;

		if (!len || len > size || from > size - len ||
		    (r && from <= end))
			die("%s: message %u: range %u is %u+%u", e->name, i, r,
			    from, len);
		if (from < critical)
			die("%s: message %u: byte %u is critical and missing",
			    e->name, i, from);
		end = from + len;
		if (from % cfg.element || (end != size && end % cfg.element))
			die("%s: message %u: range %u+%u cuts an element of %u",
			    e->name, i, from, len, cfg.element);
		sum += len;
	}
	if (sum != info->missing)
		die("%s: message %u: ranges of %u bytes, %u missing", e->name,
		    i, sum, info->missing);
}

static void check_present(const struct end *e, uint32_t i,
			  const unsigned char *buf, uint32_t from, uint32_t to)
{
	ssize_t bad = contents_check(buf + from, from, to, e->peer_seed, i);

	if (bad >= 0)
		die("%s: message %u of %u bytes: byte %zd is wrong and not reported missing",
		    e->name, i, message_size(i), from + bad);
}

/* Bytes outside the loss map must be exact, bytes in it as filled */
static void check_contents(const struct end *e, uint32_t i,
			   const unsigned char *buf, const struct message *m)
{
	unsigned char fill = cfg.fill == DBLP_FILL_KEEP ? KEEP_BYTE : 0;
	uint32_t r, pos = 0;
	ssize_t bad;

	errno = 0;
	for (r = 0; r < m->n; r++) {
		const struct dblp_range *range = &m->range[r];

		check_present(e, i, buf, pos, range->offset);
		bad = bytes_check(buf + range->offset, range->length, fill);
		if (bad >= 0)
			die("%s: message %u: missing byte %zd is %#x, not %#x",
			    e->name, i, range->offset + bad,
			    buf[range->offset + bad], fill);
		pos = range->offset + range->length;
	}
	check_present(e, i, buf, pos, message_size(i));
}

static uint32_t largest_size(void)
{
	uint32_t i, max = 0;

	for (i = 0; i < cfg.n_sizes; i++)
		if (cfg.size[i] > max)
			max = cfg.size[i];
	return max;
}

static void receive_one(struct end *e, unsigned char *buf, uint32_t room,
			uint32_t i)
{
	struct message *m = &e->rcvd[i];
	ssize_t ret;

	if (cfg.fill == DBLP_FILL_KEEP)
		memset(buf, KEEP_BYTE, message_size(i));
	do {
		if (cfg.nonblock &&
		    !wait_for(e->fd, POLLIN, cfg.timeout * 1000))
			die("%s: no POLLIN for message %u", e->name, i);
		ret = message_recv(e->fd, buf, room,
				   cfg.nonblock ? MSG_DONTWAIT : 0, m);
	} while (ret < 0 && cfg.nonblock && errno == EAGAIN);
	if (ret < 0)
		die("%s: recvmsg(), message %u", e->name, i);
	errno = 0;
	if (ret != message_size(i))
		die("%s: message %u of %u bytes gave %zd", e->name, i,
		    message_size(i), ret);
	check_info(e, i, m);
	check_contents(e, i, buf, m);
	e->n_rcvd = i + 1;
}

static void *receive_all(void *arg)
{
	struct end *e = arg;
	uint32_t room = largest_size() + 1;
	unsigned char *buf = malloc(room);
	struct message m;
	uint32_t i;

	if (!buf)
		die("malloc");
	for (i = 0; i < cfg.count; i++)
		receive_one(e, buf, room, i);
	/* After the last message there must be end of file, not an error */
	if (message_recv(e->fd, buf, room, 0, &m))
		die("%s: a message after the last one", e->name);
	free(buf);
	return NULL;
}

/* Read a report of a closed message; true if there was one */
static bool take_report(struct end *e)
{
	struct message m;

	if (message_recv(e->fd, NULL, 0, MSG_ERRQUEUE | MSG_DONTWAIT, &m) < 0) {
		if (errno == EAGAIN)
			return false;
		die("%s: recvmsg(MSG_ERRQUEUE)", e->name);
	}
	errno = 0;
	if (m.info.msg_id >= cfg.count || e->sent[m.info.msg_id].info.length)
		die("%s: message %u is reported %s", e->name, m.info.msg_id,
		    m.info.msg_id >= cfg.count ? "and was not sent" : "twice");
	e->sent[m.info.msg_id] = m;
	e->n_sent++;
	return true;
}

/* POLLERR without a report: print the error of the socket and exit */
static void die_of_error(const struct end *e)
{
	socklen_t len = sizeof(int);
	int err = 0;

	getsockopt(e->fd, SOL_SOCKET, SO_ERROR, &err, &len);
	errno = err;
	die("%s: %u of %u messages were not reported as closed", e->name,
	    cfg.count - e->n_sent, cfg.count);
}

static void send_one(struct end *e, unsigned char *buf, uint32_t i)
{
	struct dblp_sndinfo info = {
		.tag		= message_tag(e->seed, i),
		.critical	= message_critical(i),
	};
	uint32_t size = message_size(i);
	ssize_t ret;

	if (cfg.per_message) {
		info.flags = DBLP_SND_BUDGET | DBLP_SND_POLICY;
		info.budget = cfg.budget;
		info.policy = cfg.policy;
	}
	contents_fill(buf, size, e->seed, i);
	do {
		if (cfg.nonblock &&
		    !wait_for(e->fd, POLLOUT, cfg.timeout * 1000))
			die("%s: no POLLOUT for message %u", e->name, i);
		ret = sndinfo_send(e->fd, buf, size,
				   cfg.nonblock ? MSG_DONTWAIT : 0,
				   uses_sndinfo() ? &info : NULL);
		while (take_report(e))
			;
	} while (ret < 0 && cfg.nonblock && errno == EAGAIN);
	if (ret != size)
		die("%s: sendmsg() of %u bytes gave %zd", e->name, size, ret);
}

/* Run a command that changes the socket, as an operator does */
static void run_command(const char *command)
{
	errno = 0;
	if (system(command))
		die("'%s' failed", command);
}

/* Check the sums of sent, forgiven and delivered bytes */
static void check_sums(const struct end *e)
{
	uint64_t all = 0, missing = 0;
	struct dblp_info info;
	socklen_t len = sizeof(info);
	uint32_t i;

	if (getsockopt(e->fd, SOL_DBLP, DBLP_INFO, &info, &len))
		die("getsockopt(DBLP_INFO)");
	for (i = 0; i < cfg.count; i++) {
		all += message_size(i);
		missing += e->sent[i].info.missing;
	}
	errno = 0;
	if (info.bytes_forgiven_unsent + info.bytes_forgiven_sent != missing ||
	    info.bytes_delivered + missing != all)
		die("%s: delivered %llu, forgiven %llu and %llu of %llu, missing %llu",
		    e->name, (unsigned long long)info.bytes_delivered,
		    (unsigned long long)info.bytes_forgiven_unsent,
		    (unsigned long long)info.bytes_forgiven_sent,
		    (unsigned long long)all, (unsigned long long)missing);
	if (info.bytes_first + info.bytes_elided + info.bytes_forgiven_unsent !=
	    all)
		die("%s: first sent %llu, elided %llu, never sent %llu of %llu",
		    e->name, (unsigned long long)info.bytes_first,
		    (unsigned long long)info.bytes_elided,
		    (unsigned long long)info.bytes_forgiven_unsent,
		    (unsigned long long)all);
}

/* Check elided bytes; without zeroes none may be elided */
static void check_elided(const struct end *e)
{
	struct dblp_info info;
	socklen_t len = sizeof(info);

	if (getsockopt(e->fd, SOL_DBLP, DBLP_INFO, &info, &len))
		die("getsockopt(DBLP_INFO)");
	errno = 0;
	if (info.bytes_elided < cfg.expect_elided ||
	    (!cfg.zeros && info.bytes_elided))
		die("%s: %llu bytes are elided", e->name,
		    (unsigned long long)info.bytes_elided);
}

/* Read reports until @n messages are closed */
static void take_reports(struct end *e, uint32_t n)
{
	while (e->n_sent < n) {
		errno = 0;
		if (!wait_for(e->fd, POLLERR, cfg.timeout * 1000))
			die("%s: %u of %u messages were never reported as closed",
			    e->name, n - e->n_sent, n);
		if (!take_report(e))
			die_of_error(e);
	}
}

static void send_all(struct end *e)
{
	unsigned char *buf = malloc(largest_size());
	uint32_t i;

	if (!buf)
		die("malloc");
	for (i = 0; i < cfg.count; i++) {
		if (cfg.halfway && i == cfg.count / 2) {
			if (cfg.settled)
				take_reports(e, i);
			run_command(cfg.halfway);
		}
		send_one(e, buf, i);
	}
	take_reports(e, cfg.count);
	check_sums(e);
	check_elided(e);
	if (shutdown(e->fd, SHUT_WR))
		die("%s: shutdown()", e->name);
	free(buf);
}

static void run_end(struct end *e)
{
	pthread_t thread;
	struct message m;
	char byte;

	e->sent = calloc(cfg.count, sizeof(*e->sent));
	e->rcvd = calloc(cfg.count, sizeof(*e->rcvd));
	if (!e->sent || !e->rcvd)
		die("calloc");

	if (e->receives) {
		errno = pthread_create(&thread, NULL, receive_all, e);
		if (errno)
			die("pthread_create()");
	}
	if (e->sends)
		send_all(e);
	else if (shutdown(e->fd, SHUT_WR))
		die("%s: shutdown()", e->name);
	if (e->receives)
		pthread_join(thread, NULL);
	else if (message_recv(e->fd, &byte, 1, 0, &m))
		die("%s: the peer did not end the connection in order",
		    e->name);
	close(e->fd);
}

/* The listening process passes its loss maps to the other by a file. */
static void save_messages(FILE *f, const struct message *m, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		fwrite(&m[i].info, sizeof(m[i].info), 1, f);
		fwrite(&m[i].n, sizeof(m[i].n), 1, f);
		fwrite(m[i].range, sizeof(*m[i].range), m[i].n, f);
	}
}

static struct message *load_messages(FILE *f, uint32_t n)
{
	struct message *m = calloc(n, sizeof(*m));
	uint32_t i;

	if (!m)
		die("calloc");
	errno = 0;
	for (i = 0; i < n; i++) {
		if (fread(&m[i].info, sizeof(m[i].info), 1, f) != 1 ||
		    fread(&m[i].n, sizeof(m[i].n), 1, f) != 1)
			die("the other end's record ends early");
		m[i].range = calloc(m[i].n + 1, sizeof(*m[i].range));
		if (!m[i].range)
			die("calloc");
		if (fread(m[i].range, sizeof(*m[i].range), m[i].n, f) != m[i].n)
			die("the other end's record ends early");
	}
	return m;
}

/* Check invariant 2: both ends have the same loss maps */
static void compare_maps(const char *way, const struct message *sent,
			 const struct message *rcvd)
{
	uint32_t i;

	errno = 0;
	for (i = 0; i < cfg.count; i++) {
		if (memcmp(&sent[i].info, &rcvd[i].info, sizeof(sent[i].info)))
			die("%s: message %u: sender has {tag %llu, id %u, length %u, missing %u, ranges %u, budget %u, reason %u}, receiver {%llu, %u, %u, %u, %u, %u, %u}",
			    way, i, (unsigned long long)sent[i].info.tag,
			    sent[i].info.msg_id, sent[i].info.length,
			    sent[i].info.missing, sent[i].info.ranges,
			    sent[i].info.budget, sent[i].info.reason,
			    (unsigned long long)rcvd[i].info.tag,
			    rcvd[i].info.msg_id, rcvd[i].info.length,
			    rcvd[i].info.missing, rcvd[i].info.ranges,
			    rcvd[i].info.budget, rcvd[i].info.reason);
		if (sent[i].n != rcvd[i].n ||
		    (sent[i].n && memcmp(sent[i].range, rcvd[i].range,
					 sent[i].n * sizeof(*sent[i].range))))
			die("%s: message %u: the loss maps differ (%u and %u ranges)",
			    way, i, sent[i].n, rcvd[i].n);
	}
}

/* Sum of (position relative to the message) x bytes over a range */
static double moment(double from, double len, double size)
{
	return (from + len / 2) / size * len;
}

/*
 * Check invariant 5. If missing bytes are random, the mean position of missing and of
 * delivered bytes is the middle of the droppable part. The rarer of the two is tested,
 * because it shows a bias best: if only the tail were missing, its mean would be at
 * 1 - share / 2. The mean of n positions has a standard deviation of sqrt(1/12 n), more
 * if losses are bursts; a deviation of six times this is not random. A single missing
 * segment at the end is random.
 */
static void check_spread(const char *way, const struct message *m)
{
	double missing = 0, missing_moment = 0, all = 0, rarer, centre, n;
	uint32_t i, r, tails = 0, hit = 0, same = 0;

	for (i = 0; i < cfg.count; i++) {
		uint32_t crit = message_critical(i);
		uint32_t size = message_size(i) - crit;
		const struct message *prev = i ? &m[i - 1] : NULL;

		if (!m[i].n)
			continue;
		hit++;
		all += size;
		for (r = 0; r < m[i].n; r++) {
			missing += m[i].range[r].length;
			missing_moment += moment(m[i].range[r].offset - crit,
						 m[i].range[r].length, size);
		}
		tails += m[i].n == 1 && m[i].range[0].length > SEGMENT &&
			 m[i].range[0].offset + m[i].range[0].length ==
			 message_size(i);
		same += prev && prev->n == m[i].n &&
			!memcmp(prev->range, m[i].range,
				m[i].n * sizeof(*m[i].range));
	}
	errno = 0;
	rarer = missing < all / 2 ? missing : all - missing;
	n = rarer / SEGMENT;
	if (n < 40)
		die("%s: too few bytes are missing or delivered to judge their spread",
		    way);
	centre = missing < all / 2 ? missing_moment / missing :
		 (all / 2 - missing_moment) / (all - missing);
	printf("%s centre=%.3f places=%.0f\n", way, centre, n);
	if ((centre - 0.5) * (centre - 0.5) > 36 / (12 * n))
		die("%s: the centre of %s bytes is at %.3f of the message",
		    way, missing < all / 2 ? "missing" : "delivered", centre);
	if (tails)
		die("%s: %u messages of %u miss only their tail", way, tails,
		    hit);
	if (same > hit / 4)
		die("%s: %u messages of %u miss the same bytes as the one before",
		    way, same, hit);
}

static void summary(const char *way, const struct message *m)
{
	uint64_t bytes = 0, missing = 0;
	uint32_t i, early = 0, ranges = 0;

	for (i = 0; i < cfg.count; i++) {
		bytes += m[i].info.length;
		missing += m[i].info.missing;
		early += m[i].info.missing > 0;
		ranges += m[i].n;
	}
	errno = 0;
	if (missing < cfg.expect_missing)
		die("%s: %llu bytes are missing, at least %llu were expected",
		    way, (unsigned long long)missing,
		    (unsigned long long)cfg.expect_missing);
	if (missing > cfg.allow_missing)
		die("%s: %llu bytes are missing, at most %llu were expected",
		    way, (unsigned long long)missing,
		    (unsigned long long)cfg.allow_missing);
	printf("%s messages=%u bytes=%llu missing=%llu early=%u ranges=%u budget=%u...%u\n",
	       way, cfg.count, (unsigned long long)bytes,
	       (unsigned long long)missing, early, ranges, m[0].info.budget,
	       m[cfg.count - 1].info.budget);
	if (cfg.spread)
		check_spread(way, m);
}

static void print_info(const char *name, int fd)
{
	struct dblp_info i;
	socklen_t len = sizeof(i);
	char line[400];
	int n;

	if (getsockopt(fd, SOL_DBLP, DBLP_INFO, &i, &len))
		return;
	n = snprintf(line, sizeof(line),
		     "# %s: state %u srtt %u us cwnd %u inflight %u pto %u rate %llu first %llu again %llu msgs sent %llu received %llu pkts sent %llu lost %llu received %llu spurious %llu\n",
		     name, i.state, i.srtt_us, i.cwnd, i.inflight, i.pto_count,
		     (unsigned long long)i.pacing_rate,
		     (unsigned long long)i.bytes_first,
		     (unsigned long long)i.bytes_again,
		     (unsigned long long)i.msgs_sent,
		     (unsigned long long)i.msgs_received,
		     (unsigned long long)i.pkts_sent,
		     (unsigned long long)i.pkts_lost,
		     (unsigned long long)i.pkts_received,
		     (unsigned long long)i.spurious);
	if (write(STDERR_FILENO, line, n) < 0)
		_exit(1);
}

static void timed_out(int sig)
{
	char line[200];
	int n = snprintf(line, sizeof(line),
			 "# %s: no end after %u s: %u sent, %u received of %u\n",
			 self.name, cfg.timeout, self.n_sent, self.n_rcvd,
			 cfg.count);

	(void)sig;
	if (write(STDERR_FILENO, line, n) < 0)
		_exit(1);
	print_info(self.name, self.fd);
	_exit(1);
}

static int listener(unsigned int *port)
{
	struct sockaddr_dblp a;
	socklen_t len = sizeof(a);
	int fd;

	fd = socket(AF_DBLP, SOCK_SEQPACKET, 0);
	if (fd < 0)
		die("socket(AF_DBLP)");
	setup_socket(fd);
	set_option(fd, DBLP_SPRAY, cfg.spray, "DBLP_SPRAY");
	addr_parse(&a, cfg.address, 0);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 1))
		die("listening on %s", cfg.address);
	if (getsockname(fd, (struct sockaddr *)&a, &len))
		die("getsockname()");
	*port = ntohs(a.sdblp_port);
	return fd;
}

static void run_listening_end(int ready, FILE *record)
{
	unsigned int port;
	int lfd;

	self.name = cfg.duplex ? "listener" : "receiver";
	self.receives = true;
	self.sends = cfg.duplex;
	self.seed = cfg.seed + 1000000;
	self.peer_seed = cfg.seed;
	if (cfg.to)
		netns_enter(cfg.to);
	lfd = listener(&port);
	self.fd = lfd;
	if (write(ready, &port, sizeof(port)) != sizeof(port))
		die("pipe");
	self.fd = accept(lfd, NULL, NULL);
	if (self.fd < 0)
		die("accept()");
	/* Set them also if the socket inherited them. */
	setup_socket(self.fd);
	close(lfd);
	run_end(&self);
	save_messages(record, self.rcvd, cfg.count);
	if (self.sends)
		save_messages(record, self.sent, cfg.count);
	if (fflush(record))
		die("writing the record");
}

static void run_connecting_end(unsigned int port)
{
	struct sockaddr_dblp a;

	self.name = cfg.duplex ? "connector" : "sender";
	self.sends = true;
	self.receives = cfg.duplex;
	self.seed = cfg.seed;
	self.peer_seed = cfg.seed + 1000000;
	if (cfg.from)
		netns_enter(cfg.from);
	self.fd = socket(AF_DBLP, SOCK_SEQPACKET, 0);
	if (self.fd < 0)
		die("socket(AF_DBLP)");
	setup_socket(self.fd);
	set_option(self.fd, DBLP_SPRAY, cfg.spray, "DBLP_SPRAY");
	addr_parse(&a, cfg.address, port);
	if (connect(self.fd, (struct sockaddr *)&a, sizeof(a)))
		die("connecting to %s", cfg.address);
	if (cfg.connected)
		run_command(cfg.connected);
	run_end(&self);
}

static void transfer(void)
{
	struct message *rcvd, *sent;
	FILE *record = tmpfile();
	unsigned int port;
	int ready[2], status;
	pid_t child;

	if (!record || pipe(ready))
		die("tmpfile() or pipe()");
	signal(SIGALRM, timed_out);
	child = fork();
	if (child < 0)
		die("fork()");
	alarm(cfg.timeout);
	if (!child) {
		close(ready[0]);
		run_listening_end(ready[1], record);
		_exit(0);
	}
	close(ready[1]);
	errno = 0;
	if (read(ready[0], &port, sizeof(port)) != sizeof(port))
		die("the listening end did not start");
	run_connecting_end(port);
	if (waitpid(child, &status, 0) != child || status) {
		errno = 0;
		die("the listening end has failed (status %#x)", status);
	}

	rewind(record);
	rcvd = load_messages(record, cfg.count);
	compare_maps("there", self.sent, rcvd);
	summary("there", rcvd);
	if (cfg.duplex) {
		sent = load_messages(record, cfg.count);
		compare_maps("back", sent, self.rcvd);
		summary("back", self.rcvd);
	}
}

int main(int argc, char **argv)
{
	xfer_parse(argc, argv);
	transfer();
	return 0;
}
