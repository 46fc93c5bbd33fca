// SPDX-License-Identifier: GPL-2.0-only
#include "tags.h"

#include <string.h>

#define BLOCK	64

static const u32 start[8] = {
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
	0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

/* Order of the words of a block in each round */
static const u8 order[10][16] = {
	{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
	{ 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
	{ 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 },
	{ 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
	{ 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 },
	{ 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
	{ 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 },
	{ 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
	{ 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 },
	{ 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
};

/**
 * struct hash - state of a hash computation
 * @h: hash state
 * @total: bytes hashed, including @block
 * @block: bytes not hashed yet
 * @n: number of bytes in @block
 */
struct hash {
	u32	h[8];
	u64	total;
	u8	block[BLOCK];
	u32	n;
};

static u32 turn(u32 x, u32 by)
{
	return x >> by | x << (32 - by);
}

static void mix(u32 *v, u32 a, u32 b, u32 c, u32 d, u32 x, u32 y)
{
	v[a] += v[b] + x;
	v[d] = turn(v[d] ^ v[a], 16);
	v[c] += v[d];
	v[b] = turn(v[b] ^ v[c], 12);
	v[a] += v[b] + y;
	v[d] = turn(v[d] ^ v[a], 8);
	v[c] += v[d];
	v[b] = turn(v[b] ^ v[c], 7);
}

static void compress(struct hash *s, bool last)
{
	u32 v[16], m[16], i, r;

	for (i = 0; i < 16; i++)
		m[i] = s->block[4 * i] | s->block[4 * i + 1] << 8 |
		       s->block[4 * i + 2] << 16 |
		       (u32)s->block[4 * i + 3] << 24;
	memcpy(v, s->h, sizeof(s->h));
	memcpy(v + 8, start, sizeof(start));
	v[12] ^= (u32)s->total;
	v[13] ^= s->total >> 32;
	v[14] ^= last ? 0xffffffff : 0;
	for (r = 0; r < 10; r++)
		for (i = 0; i < 8; i++) {
			u32 a = i % 4, skew = i / 4;

			mix(v, a, 4 + (a + skew) % 4, 8 + (a + 2 * skew) % 4,
			    12 + (a + 3 * skew) % 4, m[order[r][2 * i]],
			    m[order[r][2 * i + 1]]);
		}
	for (i = 0; i < 8; i++)
		s->h[i] ^= v[i] ^ v[i + 8];
	s->n = 0;
}

/* Keep a full block until more bytes follow, because the last block is special */
static void feed(struct hash *s, const u8 *p, u32 len)
{
	for (; len; len--) {
		if (s->n == BLOCK)
			compress(s, false);
		s->block[s->n++] = *p++;
		s->total++;
	}
}

void blake2s(u8 *out, u32 len, const u8 *key, const struct tags_part *parts,
	     u32 n)
{
	struct hash s = { 0 };
	u8 first[BLOCK] = { 0 };
	u32 i;

	memcpy(s.h, start, sizeof(start));
	s.h[0] ^= 0x01010000 ^ (key ? TAGS_HASH << 8 : 0) ^ len;
	if (key) {
		memcpy(first, key, TAGS_HASH);
		feed(&s, first, BLOCK);
	}
	for (i = 0; i < n; i++)
		feed(&s, parts[i].p, parts[i].len);
	memset(s.block + s.n, 0, BLOCK - s.n);
	compress(&s, true);
	for (i = 0; i < len; i++)
		out[i] = s.h[i / 4] >> 8 * (i % 4);
}

void tags_key(struct tags *t, const char *key)
{
	const struct tags_part parts[] = {
		{ "AF_DBLP key 1", sizeof("AF_DBLP key 1") },
		{ key, strlen(key) },
	};

	memset(t, 0, sizeof(*t));
	blake2s(t->secret, TAGS_HASH, NULL, parts, 2);
}

void tags_begin(struct tags *t, u64 client_cid, const struct dblp_cookie *cookie,
		bool client)
{
	static const char label[] = "AF_DBLP authentication 1";
	u8 salt[8 + DBLP_COOKIE_LEN], id[2];
	struct tags_part parts[] = {
		{ label, sizeof(label) },
		{ client ? "c" : "s", 1 },
		{ salt, sizeof(salt) },
	};

	dblp_put_cookie(dblp_put_u64(salt, client_cid), cookie);
	blake2s(t->tx, TAGS_HASH, t->secret, parts, 3);
	parts[1].p = "i";
	blake2s(id, sizeof(id), t->secret, parts, 3);
	t->id = id[0] << 8 | id[1];
	t->sent = 0;
	t->ready = true;
}

/* Offset of the AUTH frame, 0 if the packet may have none */
static u32 frame_at(const u8 *p, u32 len)
{
	u32 ctl_len, at;

	if (len < DBLP_HDR_LEN || p[0] >> 4 != DBLP_VERSION)
		return 0;
	ctl_len = 4 * p[1];
	at = DBLP_HDR_LEN + ctl_len;
	switch (p[0] & 0xf) {
	case DBLP_PKT_COOKIE_ECHO:
	case DBLP_PKT_COOKIE_ACK:
	case DBLP_PKT_RST:
		at = len;
		break;
	case DBLP_PKT_DATA:
		at += DBLP_DATA_HDR_LEN;
		break;
	case DBLP_PKT_ACK:
	case DBLP_PKT_CTRL:
	case DBLP_PKT_PROBE:
		break;
	default:
		return 0;
	}
	return at <= len && ctl_len + DBLP_AUTH_LEN <= DBLP_CTL_MAX ? at : 0;
}

u32 tags_sign(struct tags *t, u8 *p, u32 len)
{
	bool numbered = len && dblp_numbered(p[0] & 0xf);
	u32 at = t->ready ? frame_at(p, len) : 0;
	struct tags_part parts[3];
	u8 number[8], tag[DBLP_TAG_LEN] = { 0 };
	struct dblp_frame f = {
		.type = DBLP_FRAME_AUTH, .auth.key = t->id, .auth.tag = tag,
	};

	if (!at)
		return len;
	dblp_put_u64(number, numbered ? dblp_load_u32(p + 4) : t->sent);
	if (!numbered)
		f.auth.number = t->sent++;
	memmove(p + at + DBLP_AUTH_LEN, p + at, len - at);
	dblp_put_frame(p + at, p + at + DBLP_AUTH_LEN, &f);
	p[1] += DBLP_AUTH_LEN / 4;
	len += DBLP_AUTH_LEN;
	at += DBLP_AUTH_LEN - DBLP_TAG_LEN;
	parts[0] = (struct tags_part){ number, sizeof(number) };
	parts[1] = (struct tags_part){ p, at };
	parts[2] = (struct tags_part){ p + at + DBLP_TAG_LEN,
				       len - at - DBLP_TAG_LEN };
	blake2s(tag, DBLP_TAG_LEN, t->tx, parts, 3);
	memcpy(p + at, tag, DBLP_TAG_LEN);
	return len;
}
