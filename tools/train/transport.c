// SPDX-License-Identifier: GPL-2.0-only
#include <err.h>
#include <stdlib.h>
#include <string.h>

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

static uint32_t hash_word(uint32_t hash, uint32_t word)
{
	return ((hash ^ word) * 0x9e3779b1U) ^ (word >> 15);
}

uint32_t tp_msg_hash(const struct tp_msg *msg)
{
	uint32_t hash = hash_word(msg->n, msg->missing);
	uint32_t i;

	for (i = 0; i < msg->n; i++) {
		hash = hash_word(hash, msg->range[i].offset);
		hash = hash_word(hash, msg->range[i].length);
	}
	return hash;
}

void tp_msg_room(struct tp_msg *msg, uint32_t n)
{
	if (n <= msg->room)
		return;
	msg->range = realloc(msg->range, n * sizeof(*msg->range));
	if (!msg->range)
		err(1, NULL);
	msg->room = n;
}
