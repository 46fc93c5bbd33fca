/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which processes have sockets open, as ss -p finds it.
 */
#ifndef DBLPCTL_PROCESS_H
#define DBLPCTL_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "dblpctl.h"

/**
 * struct process - a process that has a socket open
 * @inode: of the socket
 * @pid: in the process namespace of /proc
 * @name: may have been chosen by the process
 */
struct process {
	uint64_t	inode;
	uint32_t	pid;
	char		name[64];
};

/**
 * read_processes() - look through /proc, for processes_of()
 *
 * Processes that this user may not look at, and that end meanwhile, are left out.
 */
enum status read_processes(void);

/**
 * processes_of() - the processes that have a socket open
 * @inode: of the socket, 0 for none
 * @n: filled: how many
 *
 * Return: the first of them, in the order of their numbers, as of the last read_processes().
 */
const struct process *processes_of(uint64_t inode, size_t *n);

#endif /* DBLPCTL_PROCESS_H */
