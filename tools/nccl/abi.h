/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The interface between NCCL and its network plugins, versions 8 and 10: order and types
 * of the members of structures, and values of constants. The names are those of this
 * project.
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
#define NCCL_NIC_DEVICES	4

/* Traffic class of a communicator without one */
#define NCCL_NO_CLASS		(-1)

/* Version 10 sets *request of irecv() to this if the protocol is LL or LL128 */
#define NCCL_FLAGS_IN_DATA	((void *)1)

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

struct nccl_nic {
	int		n;
	int		device[NCCL_NIC_DEVICES];
};

struct nccl_properties_v10 {
	char		*name;
	char		*pci_path;
	uint64_t	guid;
	int		memory;
	int		global_regions;
	int		always_flush;
	int		mbit_s;
	int		port;
	float		latency_us;
	int		conns_max;
	int		recvs_max;
	int		offload;
	int		offload_version;
	struct nccl_nic	nic;
	size_t		p2p_max;
	size_t		collective_max;
};

_Static_assert(sizeof(struct nccl_properties_v8) == 64 &&
	       sizeof(struct nccl_properties_v10) == 104 &&
	       offsetof(struct nccl_properties_v10, p2p_max) == 88,
	       "NCCL has these sizes on 64-bit machines");

struct nccl_config_v10 {
	int		traffic_class;
};

/* Functions of both versions. The last argument of accept() is for offload */
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
struct nccl_net_v10 {
	const char *name;
	enum nccl_result (*init)(nccl_logger log, void *profiler);
	enum nccl_result (*devices)(int *n);
	enum nccl_result (*properties)(int device,
				       struct nccl_properties_v10 *p);
	enum nccl_result (*listen)(int device, void *handle, void **listener);
	enum nccl_result (*connect)(int device, struct nccl_config_v10 *config,
				    void *handle, void **conn, void **offload);
	NCCL_NET_ACCEPT;
	NCCL_NET_MEMORY;
	enum nccl_result (*isend)(void *conn, void *data, size_t size, int tag,
				  void *region, void *profile, void **request);
	enum nccl_result (*irecv)(void *conn, int n, void **data,
				  size_t *sizes, int *tags, void **regions,
				  void **profiles, void **request);
	NCCL_NET_END;
	enum nccl_result (*make_nic)(int *device, struct nccl_nic *nic);
};

_Static_assert(sizeof(struct nccl_net_v8) == 19 * sizeof(void *) &&
	       sizeof(struct nccl_net_v10) == 20 * sizeof(void *),
	       "a name, and 18 and 19 functions");

#endif /* DBLP_NCCL_ABI_H */
