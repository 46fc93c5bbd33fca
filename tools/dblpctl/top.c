// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl top: rates of each job, repeatedly.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "dblpctl.h"
#include "err.h"
#include "interval.h"
#include "job.h"
#include "names.h"
#include "phase.h"
#include "print.h"
#include "rates.h"
#include "socket.h"
#include "units.h"

/**
 * struct look - sample of all sockets, or rates of all jobs
 * @at: time of the sample, or duration of the interval, in seconds
 * @rows: sockets with their counters, or jobs with increases
 * @n: number of @rows
 */
struct look {
	double		at;
	struct row	*rows;
	size_t		n;
};

static struct row *add_row(struct look *look)
{
	look->rows = checked(realloc(look->rows,
				     (look->n + 1) * sizeof(*look->rows)));
	memset(&look->rows[look->n], 0, sizeof(*look->rows));
	return &look->rows[look->n++];
}

static enum status note_socket(const struct values *v, void *look)
{
	struct row *r = add_row(look);

	r->socket = get_u32(v, DBLP_A_SOCKET_ID);
	r->job = get_u32(v, DBLP_A_SOCKET_JOB);
	r->sockets = 1;
	r->srtt_us = get_u32(v, DBLP_A_SOCKET_SRTT_US);
	r->n[COUNT_DELIVERED] = get_u64(v, DBLP_A_SOCKET_BYTES_DELIVERED);
	r->n[COUNT_FORGIVEN] = get_u64(v, DBLP_A_SOCKET_BYTES_FORGIVEN_UNSENT) +
			       get_u64(v, DBLP_A_SOCKET_BYTES_FORGIVEN_SENT);
	r->n[COUNT_RECEIVED] = get_u64(v, DBLP_A_SOCKET_BYTES_RECEIVED);
	r->n[COUNT_MISSING] = get_u64(v, DBLP_A_SOCKET_BYTES_MISSING);
	r->n[COUNT_PKTS_SENT] = get_u64(v, DBLP_A_SOCKET_PKTS_SENT);
	r->n[COUNT_PKTS_LOST] = get_u64(v, DBLP_A_SOCKET_PKTS_LOST);
	return STATUS_OK;
}

static enum status note_job(const struct values *v, void *look)
{
	struct row *r = add_row(look);

	r->job = get_u32(v, DBLP_A_JOB_ID);
	r->is_known = true;
	r->phase = get_u32(v, DBLP_A_JOB_PHASE);
	snprintf(r->name, sizeof(r->name), "%s",
		 get_string(v, DBLP_A_JOB_NAME));
	return STATUS_OK;
}

static void forget(struct look *look)
{
	free(look->rows);
	memset(look, 0, sizeof(*look));
}

static enum status take_look(struct look *look)
{
	enum status status;

	forget(look);
	status = sockets_each(note_socket, look);
	look->at = seconds_now();
	rows_by_socket(look->rows, look->n);
	return status;
}

/* Compute the rates of jobs between the samples @old and @new */
static enum status take_rates(const struct look *old, const struct look *new,
			      struct look *rates)
{
	enum status status;
	size_t i;

	for (i = 0; i < new->n; i++)
		*add_row(rates) = new->rows[i];
	rows_since(rates->rows, rates->n, old->rows, old->n);
	status = jobs_each(note_job, rates) ?: read_phase_names();
	rates->at = new->at - old->at;
	rates->n = rows_by_job(rates->rows, rates->n);
	rows_order(rates->rows, rates->n);
	return status;
}

static void print_rate(const char *key, const char *column, uint64_t n,
		       double seconds)
{
	const struct heading h = { key, column };
	char text[DBLP_VALUE_TEXT];

	n = per_second(n, seconds);
	dblp_count_format(n, text);
	print_uint(h, n, text);
}

/* Print a job; of other users' jobs only the number is known */
static void print_job(const struct row *r)
{
	static const struct heading job = { "job", "JOB" };
	static const struct heading name = { "name", "NAME" };
	static const struct heading phase = { "phase", "PHASE" };
	static const struct heading unknown = { NULL, "PHASE" };
	static const struct heading phase_name_only = { "phase_name", NULL };

	print_uint(job, r->job, r->job ? NULL : "none");
	print_string(name, r->name, NULL);
	if (!r->is_known) {
		print_string(unknown, "-", NULL);
		return;
	}
	print_phase_id(phase, r->phase);
	print_string(phase_name_only, phase_name(r->phase), NULL);
}

static void print_row(const struct row *r, double seconds)
{
	static const struct heading sockets = { "sockets", "SOCKETS" };
	static const struct heading srtt = { "srtt_us", "RTT" };
	static const struct heading loss = { "loss", "LOSS" };
	bool sent = r->n[COUNT_PKTS_SENT];
	char text[DBLP_VALUE_TEXT];

	print_object();
	if (print_is_json())
		print_timestamp();
	print_job(r);
	print_rate("asked", "ASKED", row_asked(r), seconds);
	print_rate("delivered", "DELIVERED", r->n[COUNT_DELIVERED], seconds);
	print_rate("forgiven", "FORGIVEN", r->n[COUNT_FORGIVEN], seconds);
	dblp_us_format(r->srtt_us, text);
	print_uint(srtt, r->srtt_us, sent ? text : "-");
	dblp_share_format(row_loss(r), text);
	print_uint(loss, row_loss(r), sent ? text : "-");
	print_uint(sockets, r->sockets, NULL);
	print_rate("received", "RECEIVED", r->n[COUNT_RECEIVED], seconds);
	print_rate("missing", "MISSING", r->n[COUNT_MISSING], seconds);
	print_object_end();
}

/*
 * begin_block() - separate a table from the one before
 *
 * On a terminal, clear the screen and limit the table to its size. Before the first
 * table, scroll the old contents up, so that they stay in the scrollback. The mode of
 * the terminal does not change, so that nothing must be restored at the end.
 *
 * Return: number of jobs that fit the screen.
 */
static size_t begin_block(bool first)
{
	struct winsize size = { 0 };
	int i;

	if (print_is_json() || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size)) {
		if (!first)
			print_gap();
		return SIZE_MAX;
	}
	for (i = 0; first && i < size.ws_row; i++)
		putchar('\n');
	fputs("\033[H\033[J", stdout);
	print_width(size.ws_col);
	if (!size.ws_row)
		return SIZE_MAX;
	/* Lines for time, headings, sockets without a job, "more jobs", and the cursor */
	return size.ws_row > 5 ? size.ws_row - 5U : 1;
}

static void print_rates(const struct look *rates, bool first)
{
	size_t room = begin_block(first), i, left_out = 0;

	if (!print_is_json())
		print_timestamp();
	if (!print_is_json() && !rates->n)
		puts("no jobs and no sockets");
	print_array();
	for (i = 0; i < rates->n; i++) {
		if (i < room || !rates->rows[i].job)
			print_row(&rates->rows[i], rates->at);
		else
			left_out++;
	}
	print_array_end();
	if (left_out)
		printf("%zu more jobs\n", left_out);
}

static enum status show(const struct look *old, const struct look *new,
			bool first)
{
	struct look rates = { 0 };
	enum status status = take_rates(old, new, &rates);

	if (!status)
		print_rates(&rates, first);
	forget(&rates);
	if (!status && print_end())
		status = STATUS_FAILED;
	return status;
}

static enum status repeat(const struct interval *interval)
{
	struct look looks[2] = { 0 }, *old = looks, *new = looks + 1, *swap;
	struct timespec next;
	enum status status;
	uint32_t i;

	clock_gettime(CLOCK_MONOTONIC, &next);
	status = take_look(old);
	for (i = 0; !status && (!interval->count || i < interval->count); i++) {
		sleep_until_next(&next, interval->ms);
		status = take_look(new) ?: show(old, new, !i);
		swap = old;
		old = new;
		new = swap;
	}
	forget(old);
	forget(new);
	return status;
}

static enum status do_help(int argc, char **argv)
{
	return show_help(argc, argv,
		"Usage: dblpctl [OPTION...] top [-i TIME] [-c COUNT]\n"
		"\n"
		"Shows the rates of each job in the last interval, repeatedly, until it is\n"
		"interrupted. The job that sent most is first; the last line is the sockets without\n"
		"a job. Without CAP_NET_ADMIN only your own sockets count.\n"
		"\n"
		"  ASKED      bytes per second of settled messages that were sent\n"
		"  DELIVERED  delivered part of ASKED\n"
		"  FORGIVEN   part of ASKED that is missing within the budget or at the deadline\n"
		"  RTT        largest smoothed round-trip time of sockets that sent packets\n"
		"  LOSS       share of the sent packets that was declared lost\n"
		"  SOCKETS    number of sockets now\n"
		"  RECEIVED   bytes per second of closed messages that were received\n"
		"  MISSING    missing part of RECEIVED\n"
		"\n"
		"  -i TIME    interval (1s, 500ms; default 1s)\n"
		"  -c COUNT   number of tables (default: unlimited; with -j, 1)\n"
		"\n"
		"On a terminal each table replaces the one before.");
}

enum status do_top(int argc, char **argv)
{
	struct interval interval = { 0, 0 };
	enum status status = STATUS_OK;
	bool taken = true;

	if (argc && is_prefix(argv[0], "help"))
		return do_help(argc - 1, argv + 1);
	while (!status && argc && taken)
		status = take_interval(&argc, &argv, &interval, &taken);
	if (!status)
		status = no_more(argc, argv);
	if (status || only_reading)
		return status;
	if (!interval.ms)
		interval.ms = 1000;
	if (!interval.count && print_is_json())
		interval.count = 1;
	return repeat(&interval);
}
