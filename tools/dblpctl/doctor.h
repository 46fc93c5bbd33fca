/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What dblpctl doctor finds.
 */
#ifndef DBLPCTL_DOCTOR_H
#define DBLPCTL_DOCTOR_H

#include <libdblp.h>

/* Only what is bad makes the exit status 1 */
enum verdict {
	VERDICT_OK,
	VERDICT_NOTE,
	VERDICT_BAD,
};

/**
 * doctor_says() - print a finding
 * @verdict: what it comes to
 * @check: a word for what was looked at
 * @command: what mends it, "" if nothing has to be
 * @fmt: what was found
 */
void doctor_says(enum verdict verdict, const char *check, const char *command,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/** check_devices() - offloads and queues of all devices that are up */
void check_devices(void);

/**
 * check_peer() - MTU of the way to a peer, and whether UDP gets through
 * @addr: with the UDP port where it listens, 0 if that is not to be looked at
 * @address: the same, as it was typed
 */
void check_peer(const struct sockaddr_dblp *addr, const char *address);

#endif /* DBLPCTL_DOCTOR_H */
