/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What dblpctl doctor finds.
 */
#ifndef DBLPCTL_DOCTOR_H
#define DBLPCTL_DOCTOR_H

#include <libdblp.h>

/* Only VERDICT_BAD makes the exit status 1 */
enum verdict {
	VERDICT_OK,
	VERDICT_NOTE,
	VERDICT_BAD,
};

/**
 * doctor_says() - print a finding
 * @verdict: how severe it is
 * @check: a word for what was checked
 * @command: what fixes it, "" if nothing needs to be fixed
 * @fmt: what was found
 */
void doctor_says(enum verdict verdict, const char *check, const char *command,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/** check_devices() - offloads and queues of all devices that are up */
void check_devices(void);

/**
 * check_peer() - MTU of the path to a peer, and whether UDP gets through
 * @addr: with the UDP port on which it listens, 0 if that is not to be checked
 * @address: the same, as the user typed it
 */
void check_peer(const struct sockaddr_dblp *addr, const char *address);

#endif /* DBLPCTL_DOCTOR_H */
