/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Authentication tags of a scripted peer: a second implementation of
 * Documentation/protocol.rst. Tests pass only if the module and this follow it.
 */
#ifndef DBLP_TEST_TAGS_H
#define DBLP_TEST_TAGS_H

#include <linux/types.h>
#include <stdbool.h>

#include "wire.h"

#define TAGS_HASH	32

/**
 * struct tags - keys of a scripted peer
 * @secret: hash of the key
 * @tx: key of the tags of its packets, valid if @ready
 * @id: key ID
 * @sent: number of packets sent without a packet number in the header
 * @ready: the cookie is known
 */
struct tags {
	u8	secret[TAGS_HASH];
	u8	tx[TAGS_HASH];
	u16	id;
	u64	sent;
	bool	ready;
};

/** tags_key() - set the key of both ends */
void tags_key(struct tags *t, const char *key);

/** tags_begin() - start a connection with this cookie; @client: the peer is the client */
void tags_begin(struct tags *t, u64 client_cid, const struct dblp_cookie *cookie,
		bool client);

/**
 * tags_sign() - add the AUTH frame to a packet, unless the packet may have none
 * @t: keys
 * @p: the packet, with room for DBLP_AUTH_LEN more bytes
 * @len: length of the packet
 *
 * Return: new length of the packet.
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
