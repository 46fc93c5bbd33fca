/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checks of dblpctl doctor.
 */
#ifndef DBLPCTL_DOCTOR_H
#define DBLPCTL_DOCTOR_H

#include <libdblp.h>
#include <stdbool.h>

/**
 * check_module() - check that the right module is loaded
 *
 * Return: true if the module is loaded.
 */
bool check_module(void);

/** check_kernel() - check whether the kernel has a known fault */
void check_kernel(void);

/** check_devices() - check offloads and queues of all devices that are up */
void check_devices(void);

/**
 * check_peer() - check the route and path MTU to a peer, and its port
 * @addr: address of the peer, and UDP port to connect to, or 0
 * @address: the address as the user typed it
 */
void check_peer(const struct sockaddr_dblp *addr, const char *address);

#endif /* DBLPCTL_DOCTOR_H */
