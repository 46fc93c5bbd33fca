/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: control messages of a message.
 */
#ifndef DBLP_MSG_H
#define DBLP_MSG_H

#include "libdblp.h"

struct msghdr;

/**
 * dblp_msg_read() - read the control messages of a closed message
 * @fd: socket, to fetch a loss map that did not fit
 * @msg: from recvmsg()
 * @sent: it is a report about a sent message
 * @m: its @info and loss map are filled
 *
 * Return: 0, -EBADMSG, -ENOMEM, or another negative errno.
 */
int dblp_msg_read(int fd, struct msghdr *msg, bool sent, struct dblp_msg *m);

#endif /* DBLP_MSG_H */
