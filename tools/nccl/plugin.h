/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The inside of the plugin. NCCL calls it from several threads, but uses each connection
 * from one thread at a time. The plugin has no threads: messages progress in NCCL's
 * calls.
 */
#ifndef DBLP_NCCL_PLUGIN_H
#define DBLP_NCCL_PLUGIN_H

#include <engine.h>

#include "abi.h"

/* NCCL's log function: log.c */
extern nccl_logger net_log;

#define net_warn(format, ...)						\
	net_log(NCCL_LOG_WARN, NCCL_LOG_ALL, __FILE__, __LINE__,	\
		"NET/DBLP : " format, ## __VA_ARGS__)
#define net_info(format, ...)						\
	net_log(NCCL_LOG_INFO, NCCL_LOG_INIT | NCCL_LOG_NET, __func__,	\
		__LINE__, "NET/DBLP : " format, ## __VA_ARGS__)

/* Maximum bytes of a message, as for NCCL's own sockets */
#define NET_BYTES_MAX	(1U << 30)

/* classes.c */

/** net_classes_init() - read DBLP_NCCL_LOSSY; not ncclSuccess if it is invalid */
enum nccl_result net_classes_init(void);
/** net_class_budget() - loss budget of a traffic class, ppm */
uint32_t net_class_budget(int traffic_class);
/**
 * net_only_simple() - is NCCL restricted to its protocol Simple?
 *
 * LL and LL128 detect the arrival of data by flags in the data. They would wait forever
 * for a flag that is lost and read as zero. From version 11 NCCL sets the protocol
 * before each operation, see net_context_set().
 */
bool net_only_simple(void);

/* devices.c */

/**
 * struct net_device - a network interface
 * @name: name of the interface
 * @pci_path: path in /sys, NULL if it is virtual
 * @addr: its address
 * @mbit_s: its rate, Mbit/s
 * @is_named: NCCL_SOCKET_IFNAME chooses it
 * @is_warned: the log says that packets leave by another device
 */
struct net_device {
	char			name[IFNAMSIZ];
	char			*pci_path;
	struct sockaddr_dblp	addr;
	int			mbit_s;
	bool			is_named;
	bool			is_warned;
};

/** net_devices_init() - find the devices; not ncclSuccess if there is none */
enum nccl_result net_devices_init(void);
/** net_device_of() - device with this number, or NULL */
struct net_device *net_device_of(int number);
int net_devices(void);

/* route.c */

/**
 * net_route_by() - let packets of a socket leave by a device
 * @d: device of the connection
 * @fd: socket, not connected yet
 * @peer: address to connect to
 *
 * If @d is named and routes lead elsewhere, bind the socket to it. If @d has no route to
 * @peer, log a warning instead, once for each device.
 *
 * Return: 0 or a negative errno.
 */
int net_route_by(struct net_device *d, int fd, const struct sockaddr_dblp *peer);

/* context.c */

/**
 * struct net_context - a communicator of NCCL, from version 11
 * @traffic_class: from its configuration
 * @users: connections that send, and NCCL until it calls finalize()
 * @may_lose: the next messages are of a reduction with the protocol Simple
 */
struct net_context {
	int		traffic_class;
	unsigned int	users;
	bool		may_lose;
};

/** net_context_new() - returns a context with one user, or NULL if out of memory */
struct net_context *net_context_new(int traffic_class);
struct net_context *net_context_get(struct net_context *ctx);
void net_context_put(struct net_context *ctx);
/** net_context_set() - may messages of the next operation lose data? */
void net_context_set(struct net_context *ctx, const struct nccl_attr *attr);
/** net_context_may_lose() - as set; true if there is no context */
bool net_context_may_lose(const struct net_context *ctx);

/* conn.c */

enum net_state {
	NET_FREE,
	NET_QUEUED,
	NET_DONE,
};

/**
 * struct net_request - a message of NCCL
 * @conn: its connection
 * @state: &enum net_state
 * @exact: nothing of it may be missing, whatever the connection allows
 * @data: its buffer
 * @size: bytes to send; bytes of the buffer until a message is received, then its bytes
 * @tag: NCCL's tag, sent before the data, so that no message is empty
 */
struct net_request {
	struct net_conn	*conn;
	enum net_state	state;
	bool		exact;
	char		*data;
	size_t		size;
	uint64_t	tag;
};

/* The sender knows the protocol of each message: it loses nothing of LL and LL128 */
#define NET_HELLO_SEES_PROTO	1U

/* First message of the connecting end. @flags is 0 from older versions of the plugin */
struct net_hello {
	uint64_t	nonce;
	int32_t		traffic_class;
	uint32_t	flags;
};

/**
 * struct net_conn - one direction of a connection
 * @next: next connection that is not open yet
 * @ctx: communicator of a connection that sends; NULL before version 11
 * @fd: the socket
 * @sends: true: it sends; false: it receives
 * @is_open: the connection was returned to NCCL
 * @attempt: number by which net_connect() finds a connection that is not open
 * @budget: loss budget of this end, ppm
 * @error: error that ended the connection, or ncclSuccess
 * @peer: address, for the log
 * @hello: the first message
 * @request: ring of messages, in the order of NCCL's calls
 * @free: index of the next entry to use
 * @turn: index of the message that is sent or received
 * @sent: bytes sent of message @turn
 * @tag: tag of the message that is received
 * @in: message that is received, if its length is not 0
 * @bytes: bytes received, including missing ones
 * @missing: bytes of @bytes that are missing
 */
struct net_conn {
	struct net_conn		*next;
	struct net_context	*ctx;
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
 * net_conn_new() - allocate a connection and queue its first message
 * @fd: the socket, which is closed if this fails
 * @sends: see &struct net_conn
 * @addr: address of the peer
 * Return: the connection, or NULL if out of memory.
 */
struct net_conn *net_conn_new(int fd, bool sends,
			      const struct sockaddr_dblp *addr);
void net_conn_free(struct net_conn *c);
/** net_post() - queue a message; @request is NULL if all requests are in use */
enum nccl_result net_post(struct net_conn *c, void *data, size_t size, int tag,
			  void **request);
/** net_progress() - send and receive; returns the error of the connection */
enum nccl_result net_progress(struct net_conn *c);
/** net_test() - NCCL's test() */
enum nccl_result net_test(void *request, int *done, int *size);

/* connect.c */

enum nccl_result net_listen(int device, void *handle, void **listener);
/** net_connect() - NCCL's connect(); @ctx is NULL before version 11 */
enum nccl_result net_connect(struct net_context *ctx, int device, int traffic_class,
			     void *handle, void **conn);
/** net_forget() - close connections of @ctx, or all, that never opened */
void net_forget(const struct net_context *ctx);
enum nccl_result net_accept(void *listener, void **conn, void **offload);
enum nccl_result net_close_listen(void *listener);

#endif /* DBLP_NCCL_PLUGIN_H */
