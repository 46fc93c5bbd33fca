/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The inside of the plugin. NCCL calls it from several threads, for each connection
 * from one at a time; it has none of its own, so that all goes on when NCCL asks for it.
 *
 *	plugin.c	what NCCL calls
 *	classes.c	which communicators may lose what
 *	devices.c	the network devices
 *	connect.c	how connections begin
 *	conn.c		messages
 */
#ifndef DBLP_NCCL_PLUGIN_H
#define DBLP_NCCL_PLUGIN_H

#include <engine.h>

#include "abi.h"

/* Where NCCL wants the log */
extern nccl_logger net_log;

#define net_warn(format, ...)						\
	net_log(NCCL_LOG_WARN, NCCL_LOG_ALL, __FILE__, __LINE__,	\
		"NET/DBLP : " format, ## __VA_ARGS__)
#define net_info(format, ...)						\
	net_log(NCCL_LOG_INFO, NCCL_LOG_INIT | NCCL_LOG_NET, __func__,	\
		__LINE__, "NET/DBLP : " format, ## __VA_ARGS__)

/* Bytes of a message of NCCL: as much as its own sockets take */
#define NET_BYTES_MAX	(1U << 30)

/* classes.c */

/** net_classes_init() - read DBLP_NCCL_LOSSY; not ncclSuccess if it is wrong */
enum nccl_result net_classes_init(void);
/** net_class_budget() - what a class of traffic may lose, ppm */
uint32_t net_class_budget(int traffic_class);
/**
 * net_only_simple() - has NCCL been told to use no other protocol?
 *
 * LL and LL128 tell by flags among the data that it has come: a zero there would be
 * waited for for ever.
 */
bool net_only_simple(void);

/* devices.c */

/**
 * struct net_device - a network interface
 * @name: its name
 * @pci_path: in /sys, NULL if it is virtual
 * @addr: where it is reached
 * @mbit_s: how fast it is
 */
struct net_device {
	char			name[IFNAMSIZ];
	char			*pci_path;
	struct sockaddr_dblp	addr;
	int			mbit_s;
};

/** net_devices_init() - find them; not ncclSuccess if there is none */
enum nccl_result net_devices_init(void);
/** net_device_of() - NULL if there is none with this number */
struct net_device *net_device_of(int number);
int net_devices(void);

/* conn.c */

enum net_state {
	NET_FREE,
	NET_QUEUED,
	NET_DONE,
};

/**
 * struct net_request - a message of NCCL
 * @conn: where it goes, or comes
 * @state: &enum net_state
 * @data: where it is
 * @size: its bytes; of one that comes the most that it may have, until it has come
 * @tag: sent before the data: so no message is empty
 */
struct net_request {
	struct net_conn	*conn;
	enum net_state	state;
	char		*data;
	size_t		size;
	uint64_t	tag;
};

/* What the end that connects says first, as a message */
struct net_hello {
	uint64_t	nonce;
	int32_t		traffic_class;
	int32_t		reserved;
};

/**
 * struct net_conn - one direction of a connection
 * @next: of those that are not open yet
 * @fd: the socket
 * @sends: the direction
 * @is_open: NCCL has it
 * @attempt: number by which net_connect() finds it
 * @budget: ppm that may be missing, as far as this end is concerned
 * @error: what has ended it, or ncclSuccess
 * @peer: address, for the log
 * @hello: the first message
 * @request: messages that were asked for, in order
 * @free: entry for the next one
 * @turn: entry of the one that is sent, or comes
 * @sent: bytes of it that were sent
 * @tag: of the one that comes
 * @in: the one that comes, if its length is not 0
 * @bytes: of all that have come
 * @missing: of these
 */
struct net_conn {
	struct net_conn		*next;
	int			fd;
	bool			sends;
	bool			is_open;
	uint64_t		attempt;
	uint32_t		budget;
	enum nccl_result	error;
	char			peer[DBLP_ADDR_TEXT];
	struct net_hello	hello;
	struct net_request	request[NCCL_REQUESTS_MAX];
	unsigned int		free;
	unsigned int		turn;
	size_t			sent;
	uint64_t		tag;
	struct dblp_inbox	in;
	uint64_t		bytes;
	uint64_t		missing;
};

/**
 * net_conn_new() - a connection whose first message is queued
 * @fd: the socket, which is closed if this fails
 * @addr: of the peer
 *
 * Return: NULL without memory.
 */
struct net_conn *net_conn_new(int fd, bool sends,
			      const struct sockaddr_dblp *addr);
void net_conn_free(struct net_conn *c);
/** net_post() - a message is to be sent, or to come; @request is NULL if all are used */
enum nccl_result net_post(struct net_conn *c, void *data, size_t size, int tag,
			  void **request);
/** net_progress() - let messages go on; the error of the connection */
enum nccl_result net_progress(struct net_conn *c);
/** net_test() - as NCCL calls it */
enum nccl_result net_test(void *request, int *done, int *size);

/* connect.c */

enum nccl_result net_listen(int device, void *handle, void **listener);
enum nccl_result net_connect(int device, int traffic_class, void *handle,
			     void **conn);
enum nccl_result net_accept(void *listener, void **conn, void **offload);
enum nccl_result net_close_listen(void *listener);

#endif /* DBLP_NCCL_PLUGIN_H */
