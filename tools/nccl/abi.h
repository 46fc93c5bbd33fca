/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The interface between NCCL and its network plugins, versions 8, 10, 11 and 12: order and
 * types of the members of structures, and values of constants. The names are those of
 * this project.
 */
#ifndef DBLP_NCCL_ABI_H
#define DBLP_NCCL_ABI_H

#include <stddef.h>
#include <stdint.h>

enum nccl_result {
	ncclSuccess		= 0,
	ncclSystemError		= 2,
	ncclInternalError	= 3,
	ncclInvalidUsage	= 5,
	ncclRemoteError		= 6,
};

enum nccl_log_level {
	NCCL_LOG_WARN	= 2,
	NCCL_LOG_INFO	= 3,
};

/* Subsystems of NCCL's log, see NCCL_DEBUG_SUBSYS */
#define NCCL_LOG_INIT		1UL
#define NCCL_LOG_NET		16UL
#define NCCL_LOG_ALL		(~0UL)

/* Kinds of memory */
#define NCCL_PTR_HOST		1
#define NCCL_PTR_CUDA		2

#define NCCL_HANDLE_BYTES	128
#define NCCL_REQUESTS_MAX	32

/* Traffic class of a communicator without one */
#define NCCL_NO_CLASS		(-1)
/* Rail or plane of a device that has none, from version 12 */
#define NCCL_NO_ID		(-1)

/* From version 10, *request of irecv() is this if the protocol is LL or LL128 */
#define NCCL_FLAGS_IN_DATA	((void *)1)

/* Bits of struct nccl_attr, from version 11; all bits are set where it is unknown */
#define NCCL_OP_BROADCAST	(1U << 0)
#define NCCL_OP_REDUCE		(1U << 1)
#define NCCL_OP_ALL_GATHER	(1U << 2)
#define NCCL_OP_REDUCE_SCATTER	(1U << 3)
#define NCCL_OP_ALL_REDUCE	(1U << 4)
#define NCCL_OP_SEND		(1U << 6)
#define NCCL_PROTO_LL		(1U << 0)
#define NCCL_PROTO_LL128	(1U << 1)
#define NCCL_PROTO_SIMPLE	(1U << 2)
#define NCCL_UNKNOWN		(~0U)

typedef void (*nccl_logger)(enum nccl_log_level level, unsigned long parts,
			    const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

struct nccl_properties_v8 {
	char		*name;
	char		*pci_path;
	uint64_t	guid;
	int		memory;
	int		global_regions;
	int		mbit_s;
	int		port;
	float		latency_us;
	int		conns_max;
	int		recvs_max;
	int		offload;
	int		offload_version;
};

/* Physical devices of a device: this one alone, unless NCCL has merged some */
struct nccl_nic_v10 {
	int		n;
	int		device[4];
};

struct nccl_nic_v12 {
	int		n;
	int		device[8];
};

#define NCCL_PROPERTIES_V10						\
	char		*name;						\
	char		*pci_path;					\
	uint64_t	guid;						\
	int		memory;						\
	int		global_regions;					\
	int		always_flush;					\
	int		mbit_s;						\
	int		port;						\
	float		latency_us;					\
	int		conns_max;					\
	int		recvs_max;					\
	int		offload;					\
	int		offload_version

struct nccl_properties_v10 {
	NCCL_PROPERTIES_V10;
	struct nccl_nic_v10 nic;
	size_t		p2p_max;
	size_t		collective_max;
};

struct nccl_properties_v11 {
	NCCL_PROPERTIES_V10;
	struct nccl_nic_v10 nic;
	size_t		p2p_max;
	size_t		collective_max;
	int		requests_max;
};

struct nccl_properties_v12 {
	NCCL_PROPERTIES_V10;
	struct nccl_nic_v12 nic;
	size_t		p2p_max;
	size_t		collective_max;
	int		requests_max;
	int16_t		rail;
	int16_t		plane;
};

_Static_assert(sizeof(struct nccl_properties_v8) == 64 &&
	       sizeof(struct nccl_properties_v10) == 104 &&
	       sizeof(struct nccl_properties_v11) == 112 &&
	       sizeof(struct nccl_properties_v12) == 128 &&
	       offsetof(struct nccl_properties_v10, p2p_max) == 88 &&
	       offsetof(struct nccl_properties_v12, p2p_max) == 104,
	       "NCCL has these sizes on 64-bit machines");

/* Of a communicator: given to connect() by version 10, to init() from version 11 */
struct nccl_config {
	int		traffic_class;
};

struct nccl_flows {
	int32_t		peers_max;
	int32_t		peers_min;
	int32_t		flows_max;
	int32_t		flows_min;
};

/*
 * Attributes of the next messages of a communicator, from version 11. @proto is stale
 * where the operation is not collective
 */
struct nccl_attr {
	struct nccl_flows	send;
	struct nccl_flows	recv;
	uint32_t		op;
	uint32_t		algorithm;
	uint32_t		proto;
};

_Static_assert(sizeof(struct nccl_attr) == 44, "NCCL has this size");

/* Functions of all versions. The last argument of accept() is for offload */
#define NCCL_NET_ACCEPT							\
	enum nccl_result (*accept)(void *listener, void **conn,		\
				   void **offload)

#define NCCL_NET_MEMORY							\
	enum nccl_result (*reg_mr)(void *conn, void *data, size_t size,	\
				   int memory, void **region);		\
	enum nccl_result (*reg_mr_dmabuf)(void *conn, void *data,	\
					  size_t size, int memory,	\
					  uint64_t offset, int fd,	\
					  void **region);		\
	enum nccl_result (*dereg_mr)(void *conn, void *region)

#define NCCL_NET_END							\
	enum nccl_result (*iflush)(void *conn, int n, void **data,	\
				   int *sizes, void **regions,		\
				   void **request);			\
	enum nccl_result (*test)(void *request, int *done, int *sizes);	\
	enum nccl_result (*close_send)(void *conn);			\
	enum nccl_result (*close_recv)(void *conn);			\
	enum nccl_result (*close_listen)(void *listener);		\
	enum nccl_result (*device_mr)(void *conn, void *region,		\
				      void **device_region);		\
	enum nccl_result (*irecv_consumed)(void *conn, int n,		\
					   void *request)

struct nccl_net_v8 {
	const char *name;
	enum nccl_result (*init)(nccl_logger log);
	enum nccl_result (*devices)(int *n);
	enum nccl_result (*properties)(int device,
				       struct nccl_properties_v8 *p);
	enum nccl_result (*listen)(int device, void *handle, void **listener);
	enum nccl_result (*connect)(int device, void *handle, void **conn,
				    void **offload);
	NCCL_NET_ACCEPT;
	NCCL_NET_MEMORY;
	enum nccl_result (*isend)(void *conn, void *data, int size, int tag,
				  void *region, void **request);
	enum nccl_result (*irecv)(void *conn, int n, void **data, int *sizes,
				  int *tags, void **regions, void **request);
	NCCL_NET_END;
};

/* Version 10 adds handles of NCCL's profiler to isend() and irecv() */
#define NCCL_NET_MESSAGES						\
	enum nccl_result (*isend)(void *conn, void *data, size_t size,	\
				  int tag, void *region, void *profile,	\
				  void **request);			\
	enum nccl_result (*irecv)(void *conn, int n, void **data,	\
				  size_t *sizes, int *tags,		\
				  void **regions, void **profiles,	\
				  void **request)

struct nccl_net_v10 {
	const char *name;
	enum nccl_result (*init)(nccl_logger log, void *profiler);
	enum nccl_result (*devices)(int *n);
	enum nccl_result (*properties)(int device,
				       struct nccl_properties_v10 *p);
	enum nccl_result (*listen)(int device, void *handle, void **listener);
	enum nccl_result (*connect)(int device, struct nccl_config *config,
				    void *handle, void **conn, void **offload);
	NCCL_NET_ACCEPT;
	NCCL_NET_MEMORY;
	NCCL_NET_MESSAGES;
	NCCL_NET_END;
	enum nccl_result (*make_nic)(int *device, struct nccl_nic_v10 *nic);
};

/*
 * Version 11 has a context for each communicator. NCCL calls set_attr() before isend()
 * and irecv(), from the same thread. Version 12 differs in properties
 */
#define NCCL_NET_V11(properties_type, nic_type)				\
	const char *name;						\
	enum nccl_result (*init)(void **context, uint64_t comm,		\
				 struct nccl_config *config,		\
				 nccl_logger log, void *profiler);	\
	enum nccl_result (*devices)(int *n);				\
	enum nccl_result (*properties)(int device, properties_type *p);	\
	enum nccl_result (*listen)(void *context, int device,		\
				   void *handle, void **listener);	\
	enum nccl_result (*connect)(void *context, int device,		\
				    void *handle, void **conn,		\
				    void **offload);			\
	NCCL_NET_ACCEPT;						\
	NCCL_NET_MEMORY;						\
	NCCL_NET_MESSAGES;						\
	NCCL_NET_END;							\
	enum nccl_result (*make_nic)(int *device, nic_type *nic);	\
	enum nccl_result (*finalize)(void *context);			\
	enum nccl_result (*set_attr)(void *context,			\
				     struct nccl_attr *attr)

struct nccl_net_v11 {
	NCCL_NET_V11(struct nccl_properties_v11, struct nccl_nic_v10);
};

struct nccl_net_v12 {
	NCCL_NET_V11(struct nccl_properties_v12, struct nccl_nic_v12);
};

_Static_assert(sizeof(struct nccl_net_v8) == 19 * sizeof(void *) &&
	       sizeof(struct nccl_net_v10) == 20 * sizeof(void *) &&
	       sizeof(struct nccl_net_v11) == 22 * sizeof(void *) &&
	       sizeof(struct nccl_net_v12) == 22 * sizeof(void *),
	       "a name, and 18, 19 and 21 functions");

#endif /* DBLP_NCCL_ABI_H */
