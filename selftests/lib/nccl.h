/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The network plugin for NCCL, loaded and called as by NCCL, in each version of the
 * interface; with host memory, without NCCL.
 */
#ifndef DBLP_TEST_NCCL_H
#define DBLP_TEST_NCCL_H

#include "lib/sock.h"

#include "../tools/nccl/abi.h"

#define NCCL_TAG	0x11
#define NCCL_NEWEST	12
#define MANY		(1 << 20)

/* Functions of the loaded version; the others are NULL */
struct nccl_plugin {
	const struct nccl_net_v8	*v8;
	const struct nccl_net_v10	*v10;
	const struct nccl_net_v11	*v11;
	const struct nccl_net_v12	*v12;
};

extern struct nccl_plugin plugin;
/* Context of the communicator, from version 11 */
extern void *nccl_context;
/* Log output of the plugin */
extern char said[1 << 16];

/* Call a function that all versions have */
#define CALL(function, ...)						\
	(plugin.v8 ? plugin.v8->function(__VA_ARGS__) :			\
		     CALL_V10(function, __VA_ARGS__))

/* Call a function that has the same type from version 10 on */
#define CALL_V10(function, ...)						\
	(plugin.v10 ? plugin.v10->function(__VA_ARGS__) :		\
	 plugin.v11 ? plugin.v11->function(__VA_ARGS__) :		\
		      plugin.v12->function(__VA_ARGS__))
/* Call a function that has the same type from version 11 on */
#define CALL_V11(function, ...)						\
	(plugin.v11 ? plugin.v11->function(__VA_ARGS__) :		\
		      plugin.v12->function(__VA_ARGS__))

/** nccl_set_up() - in a new network namespace, load a version */
void nccl_set_up(int version);
/** nccl_load() - load the plugin and find the functions of a version */
void nccl_load(int version);
/** nccl_unload() - returns false if the plugin is still in memory */
bool nccl_unload(void);
/** is_said() - is @text in the log? Prints the log if not */
bool is_said(const char *text);

enum nccl_result nccl_init_class(int traffic_class);
enum nccl_result nccl_init(void);
/** nccl_finalize() - from version 11 */
void nccl_finalize(void);
/** nccl_attr() - set what the next messages are, from version 11 */
enum nccl_result nccl_attr(uint32_t op, uint32_t proto);

/* Versions before 11 take the traffic class here */
enum nccl_result do_connect(int traffic_class, void *handle, void **conn);
enum nccl_result do_listen(int device, void *handle, void **listener);
enum nccl_result do_accept(void *listener, void **conn);
enum nccl_result do_send(void *conn, void *data, size_t size, int tag, void **request);
enum nccl_result do_recv(void *conn, void *data, size_t size, int tag, void **request);
/** await() - test requests until all are done or one fails; -1 after the time limit */
int await(void **request, int n, int *size);

/* A connection between two ends in this process */
extern void *listener, *sender, *receiver;
extern char handle[NCCL_HANDLE_BYTES];
extern int connect_result, accept_result;
extern unsigned char out[40 * MANY], in[41 * MANY + 1];

/**
 * open_class() - connect both ends, which do not block, in turns; true on success
 *
 * From version 11 this is a new communicator.
 */
bool open_class(int traffic_class);
void close_all(void);
/** transfer() - transfer a message of @n bytes to a buffer of @room bytes */
int transfer(size_t n, size_t room, int tag, int *size);

#endif /* DBLP_TEST_NCCL_H */
