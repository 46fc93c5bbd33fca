/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests to the generic netlink family, built attribute by attribute, also such that
 * dblpctl cannot make.
 */
#ifndef DBLP_NLTEST_H
#define DBLP_NLTEST_H

#include <libmnl/libmnl.h>
#include <linux/dblp_netlink.h>
#include <linux/genetlink.h>
#include <stdbool.h>
#include <stdint.h>

extern struct mnl_socket *nl;
extern uint16_t family;
/* The request that begin() started */
extern char request[8192];

/**
 * struct nl_got - the reply to a request
 * @err: errno, or 0
 * @missing: missing attribute, or 0
 * @offset: offset of the invalid attribute in @request, or 0
 * @torn: the dump was interrupted by a change
 * @msg: the kernel's message, or ""
 */
struct nl_got {
	int		err;
	unsigned int	missing;
	unsigned int	offset;
	bool		torn;
	char		msg[256];
};

extern struct nl_got got;

/** open_netlink() - open a netlink socket in the thread's namespace */
void open_netlink(void);

/** begin() - start a request; the caller adds attributes */
struct nlmsghdr *begin(uint16_t type, uint8_t cmd, uint16_t flags);

/** job_request() - start a request about job @id */
struct nlmsghdr *job_request(uint8_t cmd, uint32_t id);

/** ASK() - make a request with u32 attributes, each followed by its value */
struct nlmsghdr *request_u32(uint8_t cmd, const uint32_t *attrs, size_t n);
#define ASK(cmd, ...) \
	request_u32(cmd, (const uint32_t[]){ __VA_ARGS__ }, \
		    sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

/** ask() - send a request; receive() gets the reply */
void ask(struct nlmsghdr *nlh);

/** receive() - call recvmsg() once; true at the end of the reply */
bool receive(void (*each)(const struct nlmsghdr *nlh, void *arg), void *arg);

/** result() - send a request; returns 0 or the errno, with its message in @got */
int result(struct nlmsghdr *nlh);
/** result_each() - as result(), and call @each for each message of the reply */
int result_each(struct nlmsghdr *nlh,
		void (*each)(const struct nlmsghdr *nlh, void *arg), void *arg);

/**
 * struct nl_state - all settings as dumped, except times
 * @len: length of @bytes
 * @bytes: attributes of all objects
 */
struct nl_state {
	size_t	len;
	char	bytes[1 << 16];
};

/** nl_state_take() - dump all settings, to compare them later */
void nl_state_take(struct nl_state *s);

#define REFUSED(err, nlh) do { \
	EXPECT_EQ(err, result(nlh)); \
	EXPECT_NE(0, strlen(got.msg)); \
} while (0)

#endif /* DBLP_NLTEST_H */
