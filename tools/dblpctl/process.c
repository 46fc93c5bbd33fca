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

#include "err.h"
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
