/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sockets, for other commands.
 */
#ifndef DBLPCTL_SOCKET_H
#define DBLPCTL_SOCKET_H

#include "cmd.h"
#include "field.h"

/** sockets_each() - object_each() of sockets */
enum status sockets_each(enum status (*each)(const struct values *v, void *arg),
			 void *arg);

#endif /* DBLPCTL_SOCKET_H */
