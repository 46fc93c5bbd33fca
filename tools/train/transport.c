// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "transport.h"

const struct transport *tp_find(const char *name)
{
	static const struct transport *const all[] = { &tp_tcp, &tp_dblp };
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}

ssize_t tp_result(ssize_t result)
{
	if (result >= 0)
		return result;
	errno = -result;
	return -1;
}

struct dblp_sndinfo tp_how(uint64_t tag, uint32_t budget, uint8_t phase)
{
	struct dblp_sndinfo how = { .tag = tag };

	if (budget == TP_SOCKET_BUDGET)
		return how;
	how.flags = DBLP_SND_BUDGET | DBLP_SND_POLICY | DBLP_SND_PHASE;
	how.budget = budget;
	how.policy = DBLP_POLICY_EAGER;
	how.phase = phase;
	return how;
}

static int open_socket(const struct transport *tp, const struct tp_addr *addr,
		       struct sockaddr_dblp *name)
{
	int err = dblp_addr_parse(addr->host, name);

	if (err || name->sdblp_port)
		return err ?: -EINVAL;
	name->sdblp_port = htons(addr->port);
	return dblp_socket(name, tp->protocol);
}

/* Returns @fd, or closes it and returns -1 after an error */
static int opened(int fd, int err)
{
	if (err)
		close(fd);
	return tp_result(err ?: fd);
}

int tp_listen(const struct transport *tp, const struct tp_addr *addr)
{
	struct sockaddr_dblp name;
	int fd = open_socket(tp, addr, &name), err;

	if (fd < 0)
		return tp_result(fd);
	err = tp->ask_for_holes ? tp->ask_for_holes(fd) : 0;
	return opened(fd, err ?: dblp_listen(fd, &name));
}

int tp_connect(const struct transport *tp, const struct tp_addr *addr)
{
	struct sockaddr_dblp name;
	int fd = open_socket(tp, addr, &name), err;

	if (fd < 0)
		return tp_result(fd);
	err = tp->notify ? tp->notify(fd) : 0;
	return opened(fd, err ?: dblp_connect(fd, &name, -1));
}

static uint32_t hash_word(uint32_t hash, uint32_t word)
{
	return ((hash ^ word) * 0x9e3779b1U) ^ (word >> 15);
}

uint32_t tp_msg_hash(const struct dblp_msg *msg)
{
	uint32_t hash = hash_word(msg->n, msg->info.missing);
	uint32_t i;

	for (i = 0; i < msg->n; i++) {
		hash = hash_word(hash, msg->range[i].offset);
		hash = hash_word(hash, msg->range[i].length);
	}
	return hash;
}
