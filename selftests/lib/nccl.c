// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "lib/nccl.h"

#include <dlfcn.h>
#include <string.h>

/* From selftests/build, where the calling program is */
#define PLUGIN		"$ORIGIN/../../tools/nccl/libnccl-net-dblp.so"
#define LIMIT_MS	(20 * SECONDS)

struct nccl_plugin plugin;
void *nccl_context;
char said[1 << 16];
static void *library;

static void logger(enum nccl_log_level level, unsigned long parts,
		   const char *file, int line, const char *format, ...)
{
	size_t at = strlen(said);
	va_list ap;

	va_start(ap, format);
	vsnprintf(said + at, sizeof(said) - at, format, ap);
	va_end(ap);
	at = strlen(said);
	snprintf(said + at, sizeof(said) - at, "%s\n",
		 level == NCCL_LOG_WARN ? " (warning)" : "");
}

bool is_said(const char *text)
{
	if (!strstr(said, text))
		fprintf(stderr, "# not said: %s\n# but: %s\n", text, said);
	return strstr(said, text);
}

void nccl_load(int version)
{
	char name[32];
	void *symbol;

	library = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		die("%s", dlerror());
	snprintf(name, sizeof(name), "ncclNetPlugin_v%d", version);
	symbol = dlsym(library, name);
	if (!symbol)
		die("no symbol %s", name);
	plugin = (struct nccl_plugin) { 0 };
	if (version == 8)
		plugin.v8 = symbol;
	else if (version == 10)
		plugin.v10 = symbol;
	else if (version == 11)
		plugin.v11 = symbol;
	else
		plugin.v12 = symbol;
}

bool nccl_unload(void)
{
	if (dlclose(library))
		die("%s", dlerror());
	library = dlopen(PLUGIN, RTLD_NOW | RTLD_NOLOAD);
	return !library;
}

void nccl_set_up(int version)
{
	netns_new();
	netns_set_mtu(1500);
	nccl_load(version);
}

enum nccl_result nccl_init_class(int traffic_class)
{
	struct nccl_config config = { traffic_class };

	if (plugin.v8)
		return plugin.v8->init(logger);
	if (plugin.v10)
		return plugin.v10->init(logger, NULL);
	return CALL_V11(init, &nccl_context, 1, &config, logger, NULL);
}

enum nccl_result nccl_init(void)
{
	return nccl_init_class(NCCL_NO_CLASS);
}

void nccl_finalize(void)
{
	if ((plugin.v11 || plugin.v12) && CALL_V11(finalize, nccl_context))
		die("finalize: %s", said);
	nccl_context = NULL;
}

enum nccl_result nccl_attr(uint32_t op, uint32_t proto)
{
	struct nccl_attr attr = { .op = op, .algorithm = NCCL_UNKNOWN, .proto = proto };

	return CALL_V11(set_attr, nccl_context, &attr);
}

enum nccl_result do_connect(int traffic_class, void *to, void **conn)
{
	struct nccl_config config = { traffic_class };
	void *offload = NULL;

	if (plugin.v8)
		return plugin.v8->connect(0, to, conn, &offload);
	if (plugin.v10)
		return plugin.v10->connect(0, &config, to, conn, &offload);
	return CALL_V11(connect, nccl_context, 0, to, conn, &offload);
}

enum nccl_result do_listen(int device, void *to, void **at)
{
	return plugin.v8 ? plugin.v8->listen(device, to, at) :
	       plugin.v10 ? plugin.v10->listen(device, to, at) :
			    CALL_V11(listen, nccl_context, device, to, at);
}

enum nccl_result do_accept(void *at, void **conn)
{
	void *offload = NULL;

	return CALL(accept, at, conn, &offload);
}

enum nccl_result do_send(void *conn, void *data, size_t size, int tag, void **request)
{
	return plugin.v8 ? plugin.v8->isend(conn, data, size, tag, NULL, request) :
			   CALL_V10(isend, conn, data, size, tag, NULL, NULL, request);
}

enum nccl_result do_recv(void *conn, void *data, size_t size, int tag, void **request)
{
	void *region = NULL, *profile = NULL;
	int size_v8 = size;

	*request = NULL;
	if (plugin.v8)
		return plugin.v8->irecv(conn, 1, &data, &size_v8, &tag, &region, request);
	return CALL_V10(irecv, conn, 1, &data, &size, &tag, &region, &profile, request);
}

int await(void **request, int n, int *size)
{
	u64 end = now_ms() + LIMIT_MS;
	int left = n, i, done, result;

	while (left && now_ms() < end)
		for (i = n - 1; i >= 0; i--) {
			if (!request[i])
				continue;
			result = CALL(test, request[i], &done, &size[i]);
			if (result)
				return result;
			if (done) {
				request[i] = NULL;
				left--;
			}
		}
	return left ? -1 : 0;
}

void *listener, *sender, *receiver;
char handle[NCCL_HANDLE_BYTES];
int connect_result, accept_result;
unsigned char out[40 * MANY], in[41 * MANY + 1];

bool open_class(int traffic_class)
{
	u64 end = now_ms() + LIMIT_MS;

	sender = receiver = NULL;
	connect_result = accept_result = 0;
	if (nccl_context) {
		nccl_finalize();
		if (nccl_init_class(traffic_class))
			die("init: %s", said);
	}
	if (do_listen(0, handle, &listener))
		die("listen: %s", said);
	while ((!sender || !receiver) && !connect_result && !accept_result &&
	       now_ms() < end) {
		if (!sender)
			connect_result = do_connect(traffic_class, handle, &sender);
		if (!receiver)
			accept_result = do_accept(listener, &receiver);
		usleep(100);
	}
	return sender && receiver;
}

void close_all(void)
{
	CALL(close_send, sender);
	CALL(close_recv, receiver);
	CALL(close_listen, listener);
}

int transfer(size_t n, size_t room, int tag, int *size)
{
	void *request[2] = { NULL };
	int sizes[2] = { 0 };
	int result = do_recv(receiver, in, room, tag, &request[1]) ?:
		     do_send(sender, out, n, NCCL_TAG, &request[0]) ?:
		     await(request, 2, sizes);

	*size = sizes[1];
	return result ?: sizes[0] == n ? 0 : -1;
}
