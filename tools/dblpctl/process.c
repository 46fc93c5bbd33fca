// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that have sockets open, found as by ss -p: by the inodes that their
 * descriptors in /proc name.
 */

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <comm.h>

#include "err.h"
#include "field.h"
#include "process.h"

/* Sorted by inode, then by pid, after read_processes() */
static struct {
	struct process	*all;
	size_t		n;
} holders;

static int compare_inodes(const void *a, const void *b)
{
	const struct process *p = a, *q = b;

	return (p->inode > q->inode) - (p->inode < q->inode);
}

static int compare(const void *a, const void *b)
{
	const struct process *p = a, *q = b;

	return compare_inodes(a, b) ?: (p->pid > q->pid) - (p->pid < q->pid);
}

static void add(const struct process *p)
{
	holders.all = checked(realloc(holders.all, (holders.n + 1) *
						   sizeof(*holders.all)));
	holders.all[holders.n++] = *p;
}

/* Inode of the socket of descriptor @name, 0 if it is not a socket */
static uint64_t inode_of(DIR *fds, const char *name)
{
	char link[64];
	ssize_t len = readlinkat(dirfd(fds), name, link, sizeof(link) - 1);
	uint64_t inode;

	if (len < 0)
		return 0;
	link[len] = '\0';
	return sscanf(link, "socket:[%" SCNu64 "]", &inode) == 1 ? inode : 0;
}

/* Read the name of a process. It may have newlines; only the last one is removed. */
static bool read_name(const char *path, char *name, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t len;

	if (!f)
		return false;
	len = fread(name, 1, size - 1, f);
	fclose(f);
	name[len] = '\0';
	if (len && name[len - 1] == '\n')
		name[len - 1] = '\0';
	return len;
}

/* The number that @text begins with, if it is one of a rank */
static int32_t parse_rank(const char *text)
{
	char *end;
	unsigned long rank = strtoul(text, &end, 10);

	return end == text || *end || rank >= DBLP_RANKS_MAX ? -1 : (int32_t)rank;
}

/* The rank that the launcher has set in the environment of a process, or -1 */
static int32_t rank_of_launcher(uint32_t pid)
{
	static const char *const names[] = {
		"RANK=", "OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "SLURM_PROCID=",
	};
	char path[64], *entry = NULL;
	size_t size = 0, best = N_FIELDS(names), i;
	int32_t rank = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/environ", pid);
	f = fopen(path, "r");
	while (f && getdelim(&entry, &size, '\0', f) > 0)
		for (i = 0; i < best; i++)
			if (!strncmp(entry, names[i], strlen(names[i]))) {
				rank = parse_rank(entry + strlen(names[i]));
				best = i;
			}
	free(entry);
	if (f)
		fclose(f);
	return rank;
}

/* The rank in the name of a thread of libdblp, or -1 */
static int32_t rank_of_thread(uint32_t pid)
{
	const struct dirent *entry;
	char path[300], name[64];
	int32_t rank = -1;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", pid);
	tasks = opendir(path);
	while (tasks && rank < 0 && (entry = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%s/comm", pid, entry->d_name);
		if (read_name(path, name, sizeof(name)) &&
		    !strncmp(name, DBLP_THREAD_NAME, strlen(DBLP_THREAD_NAME)))
			rank = parse_rank(name + strlen(DBLP_THREAD_NAME));
	}
	if (tasks)
		closedir(tasks);
	return rank;
}

/* Add the sockets of a process, if the kernel lets this user see its descriptors */
static void note_process(const char *pid)
{
	struct process p = { .pid = (uint32_t)strtoul(pid, NULL, 10) };
	const struct dirent *entry;
	char path[64];
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", p.pid);
	if (!read_name(path, p.name, sizeof(p.name)))
		return;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/fd", p.pid);
	fds = opendir(path);
	if (!fds)
		return;
	p.rank = rank_of_launcher(p.pid);
	if (p.rank < 0)
		p.rank = rank_of_thread(p.pid);
	while ((entry = readdir(fds))) {
		p.inode = inode_of(fds, entry->d_name);
		if (p.inode)
			add(&p);
	}
	closedir(fds);
}

/* Sort, and remove duplicates: a process may have several descriptors of a socket */
static void sort_holders(void)
{
	size_t i, n = 0;

	if (!holders.n)
		return;
	qsort(holders.all, holders.n, sizeof(*holders.all), compare);
	for (i = 1; i < holders.n; i++)
		if (compare(&holders.all[n], &holders.all[i]))
			holders.all[++n] = holders.all[i];
	holders.n = n + 1;
}

enum status read_processes(void)
{
	const struct dirent *entry;
	DIR *proc = opendir("/proc");

	holders.n = 0;
	if (!proc) {
		complain("cannot read /proc: %s", strerror(errno));
		return STATUS_FAILED;
	}
	while ((entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			note_process(entry->d_name);
	closedir(proc);
	sort_holders();
	return STATUS_OK;
}

const struct process *processes_of(uint64_t inode, size_t *n)
{
	const struct process key = { .inode = inode }, *p, *end;

	*n = 0;
	if (!inode || !holders.n)
		return NULL;
	p = bsearch(&key, holders.all, holders.n, sizeof(key), compare_inodes);
	if (!p)
		return NULL;
	while (p > holders.all && p[-1].inode == inode)
		p--;
	for (end = holders.all + holders.n; p + *n < end; (*n)++)
		if (p[*n].inode != inode)
			break;
	return p;
}
