/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests to the generic netlink family of the module.
 */
#ifndef DBLPCTL_NL_H
#define DBLPCTL_NL_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * nl_request() - begin a request
 * @cmd: DBLP_CMD_...
 * @flags: NLM_F_DUMP or 0
 *
 * Return: a message to add attributes to, valid until the next call.
 */
struct nlmsghdr *nl_request(uint8_t cmd, uint16_t flags);

/**
 * struct nl_reply - the messages of a reply
 * @msgs: all messages, aligned
 * @len: total length of @msgs, bytes
 * @torn: the reply is a dump that changed during every attempt to read it; a
 *	message was printed
 */
struct nl_reply {
	struct nlmsghdr	*msgs;
	size_t		len;
	bool		torn;
};

/**
 * nl_talk() - send a request and receive the whole reply
 * @nlh: from nl_request()
 * @attr_names: names by attribute, for error messages
 * @attr_max: highest attribute of @attr_names
 * @reply: filled; freed by nl_reply_free()
 *
 * A dump that was interrupted by a change is repeated.
 *
 * Return: 0, or 1 after an error message.
 */
int nl_talk(struct nlmsghdr *nlh, const char *const *attr_names,
	    uint16_t attr_max, struct nl_reply *reply);

/**
 * nl_try() - send a request that may be refused
 * @nlh: from nl_request()
 * @refused: set to the errno of the refusal, or 0
 *
 * Return: 0, or 1 after an error message.
 */
int nl_try(struct nlmsghdr *nlh, int *refused);

/**
 * nl_see_right() - does the caller have CAP_NET_ADMIN in the namespace?
 * @has: filled
 *
 * Without it, objects of other users are not visible either.
 *
 * Return: 0, or 1 after an error message.
 */
int nl_see_right(bool *has);

/** nl_need_right() - 0 if the caller has CAP_NET_ADMIN, else 1 after a message */
int nl_need_right(void);
void nl_reply_free(struct nl_reply *reply);

/**
 * nl_attrs() - parse the attributes of one message of a reply
 * @nlh: message
 * @tb: filled by attribute; NULL for absent ones
 * @max: highest attribute of @tb
 */
void nl_attrs(const struct nlmsghdr *nlh, const struct nlattr **tb,
	      uint16_t max);

/**
 * nl_listen() - subscribe to events
 *
 * Return: 0, or 1 after an error message.
 */
int nl_listen(void);

/**
 * nl_hear() - wait for events
 * @each: called for each event
 *
 * Return: 0, the first other value that @each returns, -1 if events were lost, or 1
 * after an error message, also if the module was removed.
 */
int nl_hear(int (*each)(const struct nlmsghdr *nlh));

void nl_close(void);

#endif /* DBLPCTL_NL_H */
