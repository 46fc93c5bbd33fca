/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Authentication of a scripted peer: the tags of Documentation/protocol.rst, made
 * anew here, so that a test and the module agree only if both follow the document.
 */
#ifndef DBLP_TEST_TAGS_H
#define DBLP_TEST_TAGS_H

#include <linux/types.h>
#include <stdbool.h>

#include "wire.h"

#define TAGS_HASH	32

/**
 * struct tags - the key of a peer, and of what it sends
 * @secret: hash of the key
 * @tx: key of the tags of its packets, once @ready
 * @id: name of the key
 * @sent: packets sent without a number in their header
 * @ready: the cookie is known
 */
struct tags {
	u8	secret[TAGS_HASH];
	u8	tx[TAGS_HASH];
	u16	id;
	u64	sent;
	bool	ready;
};

/** tags_key() - begin with the key of both ends */
void tags_key(struct tags *t, const char *key);

/** tags_begin() - a connection with this cookie; @client: for the client's packets */
void tags_begin(struct tags *t, u64 client_cid, const struct dblp_cookie *cookie,
		bool client);

/**
 * tags_sign() - give a packet its AUTH frame, unless it may have none
 * @t: key
 * @p: the packet, with room for DBLP_AUTH_LEN bytes more
 * @len: its length
 *
 * Return: its new length.
 */
u32 tags_sign(struct tags *t, u8 *p, u32 len);

/** blake2s() - RFC 7693: @len bytes of the hash of @parts, keyed unless @key is NULL */
struct tags_part {
	const void	*p;
	u32		len;
};

void blake2s(u8 *out, u32 len, const u8 *key, const struct tags_part *parts,
	     u32 n);

#endif /* DBLP_TEST_TAGS_H */
