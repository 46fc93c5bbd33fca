// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mode idle: kernel memory of idle connections, and the timers that expire for them.
 * At the end each connection carries one byte in each direction, as proof that it was
 * alive.
 */
#include <errno.h>
#include <stdlib.h>

#include "conn.h"

#define SETTLE_NS	(5 * 1000000000ULL)

static void accept_them(struct conn *all, int fd, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		conn_accept(&all[i], fd, &cfg.main);
}

static void idle_listen(void)
{
	unsigned int n = total_connections(), i;
	struct conn *all = xcalloc(n, sizeof(*all));
	int fd;

	want_files(n + 64);
	fd = conn_listener(&cfg.main, cfg.port);
	count_timers(&results->timers[0], cfg.time_ms);
	read_memory(&results->memory[0]);
	listening();
	accept_them(all, fd, n);
	/* Wait until deferred work of the handshakes has ended. */
	sleep_ns(SETTLE_NS);
	read_memory(&results->memory[1]);
	span_begin();
	count_timers(&results->timers[1], cfg.time_ms);
	span_end();
	for (i = 0; i < n; i++) {
		conn_signal(&all[i]);
		errno = 0;
		if (!conn_await(&all[i]))
			fail("connection %u ended while idle", all[i].index);
		results->delivered++;
	}
	for (i = 0; i < n; i++)
		conn_finish(&all[i]);
	free(all);
}

static void idle_connect(unsigned int index)
{
	unsigned int n = total_connections(), i;
	struct conn *all = xcalloc(n, sizeof(*all));

	(void)index;
	want_files(n + 64);
	for (i = 0; i < n; i++)
		conn_connect(&all[i], &cfg.main, cfg.port, i);
	conn_note_cc(&all[0], 0);
	for (i = 0; i < n; i++) {
		errno = 0;
		if (!conn_await(&all[i]))
			fail("connection %u ended while idle", i);
		conn_signal(&all[i]);
		results->sent++;
	}
	for (i = 0; i < n; i++)
		conn_finish(&all[i]);
	free(all);
}

const struct mode mode_idle = {
	.name		= "idle",
	.summary	= "idle connections: kernel memory, timers",
	.one_connector	= true,
	.listen		= idle_listen,
	.connect	= idle_connect,
};
