// SPDX-License-Identifier: GPL-2.0-only
/* The processes of a run. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "options.h"
#include "perf.h"

/* Processes of the connecting end, by index */
static pid_t *ends;

static void map_results(void)
{
	size_t size = sizeof(*results) +
		      (size_t)cfg.count * sizeof(results->sample[0]);

	results = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (results == MAP_FAILED)
		fail("no memory for %u samples", cfg.count);
	if (pipe(ready_pipe))
		fail("pipe()");
}

/* Fork a child that is killed when this process ends */
static pid_t start(const char *netns)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork()");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, SIG_DFL);
	if (netns)
		netns_enter(netns);
	return 0;
}

static void start_listening_end(void)
{
	if (start(cfg.to))
		return;
	close(ready_pipe[0]);
	cfg.mode->listen();
	_exit(0);
}

static pid_t start_connecting_end(unsigned int index, const char *netns)
{
	pid_t pid = start(netns);

	if (pid)
		return pid;
	cfg.mode->connect(index);
	_exit(0);
}

/* Hosts take turns, so that connections of one host do not arrive in one burst. */
static unsigned int start_connecting_ends(void)
{
	unsigned int n = cfg.mode->one_connector ? 1 : total_connections(), i;

	ends = xcalloc(n, sizeof(*ends));
	for (i = 0; i < n; i++)
		ends[i] = start_connecting_end(i, cfg.from[i % cfg.n_from]);
	return n;
}

static void __attribute__((noreturn)) has_died(pid_t pid, int sig)
{
	unsigned int n = ends ? cfg.n_from : 0, i;

	errno = 0;
	for (i = 0; i < n && cfg.mode == &mode_collective; i++)
		if (ends[i] == pid && n > 1)
			fail("rank %u has died: %s", i, strsignal(sig));
	fail("a process of the run has died: %s", strsignal(sig));
}

/* The first process that fails prints the reason; all others end with this process. */
static void await_all(unsigned int n)
{
	int status;

	while (n--) {
		pid_t pid = wait(&status);

		if (pid < 0)
			fail("wait()");
		if (!status)
			continue;
		if (WIFSIGNALED(status))
			has_died(pid, WTERMSIG(status));
		_exit(WEXITSTATUS(status));
	}
}

static void timed_out(int sig)
{
	static const char text[] =
		"dblp-perf: the run did not end in time (see --timeout)\n";

	(void)sig;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(EXIT_FAILED);
	_exit(EXIT_FAILED);
}

static void run(void)
{
	unsigned int children = 0;
	char byte;

	signal(SIGALRM, timed_out);
	alarm((cfg.timeout_ms + 999) / 1000);
	if (cfg.listens) {
		start_listening_end();
		children++;
		close(ready_pipe[1]);
		if (read(ready_pipe[0], &byte, 1) != 1)
			await_all(children);
	}
	if (cfg.connects)
		children += start_connecting_ends();
	await_all(children);
}

int main(int argc, char **argv)
{
	options_parse(argc, argv);
	map_results();
	if (cfg.mode->prepare)
		cfg.mode->prepare();
	run();
	if (results->valid)
		report();
	return 0;
}
