// SPDX-License-Identifier: GPL-2.0-only
/* A rank joins the other ranks, and checks that their options agree. */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

/**
 * struct hello - first message of a rank to the others
 * @host: host_digest()
 * @config: options of the rank
 */
struct hello {
	uint64_t	host;
	struct config	config;
};

/* Ranks with equal digests share a network namespace, and so its jobs */
static uint64_t host_digest(void)
{
	struct {
		char		boot[40];
		uint64_t	dev;
		uint64_t	ino;
	} id = { 0 };
	struct stat st = { 0 };
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f || !fgets(id.boot, sizeof(id.boot), f))
		err(1, "/proc/sys/kernel/random/boot_id");
	fclose(f);
	if (stat("/proc/self/ns/net", &st))
		err(1, "/proc/self/ns/net");
	id.dev = st.st_dev;
	id.ino = st.st_ino;
	return digest(&id, sizeof(id));
}

/* Called before the ranks join, so that a missing job is reported as such */
static int open_job(uint32_t job)
{
	int fd;

	if (!job)
		return -1;
	fd = socket(AF_DBLP, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err(1, "no AF_DBLP (is dblp.ko loaded?)");
	if (!setsockopt(fd, SOL_DBLP, DBLP_JOB, &job, sizeof(job)))
		return fd;
	if (errno == ENOENT)
		errx(1, "there is no job %u here: dblpctl job add %u", job, job);
	err(1, "job %u", job);
}

static void open_comm(struct run *r)
{
	int error = dblp_comm_open(&r->comm, &r->opt.attr);

	if (error && *dblp_comm_why(NULL))
		errx(1, "cannot join the other ranks: %s", dblp_comm_why(NULL));
	if (error == -EINVAL)
		errx(1, "cannot join the other ranks: --rank and --nranks (or RANK and WORLD_SIZE), --rendezvous or --devices are invalid, or --nranks, --transport or the number of --devices differ between ranks");
	if (error == -EAFNOSUPPORT)
		errx(1, "%s", access("/sys/module/dblp", F_OK) ?
		     "no AF_DBLP (is dblp.ko loaded?)" :
		     "this kernel has no IPv6, which an address needs");
	if (error) {
		errno = -error;
		err(1, "cannot join the other ranks");
	}
	r->rank = dblp_comm_rank(r->comm);
	r->nranks = dblp_comm_nranks(r->comm);
}

static const struct hello *hello_of(const struct gather *g, uint32_t rank)
{
	return (const void *)(g->all + rank * g->each);
}

/* All ranks have the same records, so all find the same difference and end */
static void compare(struct run *r, const struct gather *g)
{
	char what[CONFIG_DIFFERENCE];
	uint32_t i;

	for (i = 1; i < r->nranks; i++)
		if (config_differ(&hello_of(g, i)->config,
				  &hello_of(g, 0)->config, false, what))
			run_fail_all(r, "rank %u %s as rank 0", i, what);
}

static void agree(struct run *r)
{
	const struct hello mine = { host_digest(), r->opt.config };
	struct gather g;
	uint32_t first;
	int error;

	error = gather_open(&g, r->comm, sizeof(mine));
	if (!error)
		error = gather_begin(&g, &mine);
	if (!error)
		error = gather_end(&g);
	if (error)
		run_broken(r, error);
	compare(r, &g);
	/* The first rank of a host reports norms to its job: others would count twice */
	for (first = 0; hello_of(&g, first)->host != mine.host;)
		first++;
	r->job = first == r->rank ? r->opt.attr.job : 0;
	gather_free(&g);
}

void run_join(struct run *r)
{
	r->job_fd = open_job(r->opt.attr.job);
	open_comm(r);
	r->opt.config.nranks = r->nranks;
	r->server = config_server(&r->opt.config) && !r->rank;
	if (r->nranks == 1 && config_server(&r->opt.config))
		run_fail_all(r, "--plan ps needs 2 ranks or more: rank 0 contributes nothing");
	agree(r);
}
