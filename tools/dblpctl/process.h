/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes that have sockets open, found as by ss -p.
 */
#ifndef DBLPCTL_PROCESS_H
#define DBLPCTL_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "cmd.h"

/**
 * struct process - a process that has a socket open
 * @inode: inode of the socket
 * @pid: number of the process in the namespace of /proc
 * @name: name of the process, which it can set itself
 * @rank: its rank in a job, as its launcher or libdblp says; -1 if it has none
 */
struct process {
	uint64_t	inode;
	uint32_t	pid;
	char		name[64];
	int32_t		rank;
};

/**
 * read_processes() - scan /proc, for processes_of()
 *
 * Processes that this user may not inspect, or that end meanwhile, are omitted.
 */
enum status read_processes(void);

/**
 * processes_of() - find the processes that have a socket open
 * @inode: inode of the socket, 0 for none
 * @n: set to the number of processes
 *
 * Return: array of processes by pid, as of the last read_processes().
 */
const struct process *processes_of(uint64_t inode, size_t *n);

#endif /* DBLPCTL_PROCESS_H */
