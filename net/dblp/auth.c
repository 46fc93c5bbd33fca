// SPDX-License-Identifier: GPL-2.0-only
/*
 * Authentication: with DBLP_AUTH_KEY each packet of a connection has a tag that
 * only holders of the key can make. Nothing is encrypted.
 *
 * Tags are not made with the shared key itself. Each connection derives a key
 * for each direction from the shared key, both connection IDs and the cookie,
 * which are never used twice. So packets of other connections and reflected
 * packets have wrong tags. A tag also covers the full packet number, and no
 * number is accepted twice. Packets that are not acknowledged have no number in
 * their header, but in their AUTH frame.
 *
 * A socket has up to two keys, the newest and the previous one. Each packet
 * names the newest key of its sender. An end makes tags with its newest key
 * after the peer has named this key. It forgets the previous key some time
 * after the peer has started to use the newest. So keys can be changed at one
 * end after the other, under traffic.
 *
 * The primitive is keyed BLAKE2s with tags of 16 bytes (RFC 7693): it is
 * incremental, so packets need not be linear.
 */
#include <crypto/blake2s.h>
#include <crypto/utils.h>
#include <linux/bitmap.h>
#include <linux/slab.h>

#include "dblp.h"
#include "window.h"

/*
 * Time for which the previous key is accepted after the first packet with the
 * newest key, in probe timeouts: RFC 9001 section 6.5
 */
#define DBLP_AUTH_OVERLAP_PTOS	3
/*
 * Time after which a refusal without tag is accepted if there is no other
 * answer: the initial RTO of RFC 6298 section 2.1
 */
#define DBLP_AUTH_REFUSAL_NS	(1ULL * NSEC_PER_SEC)

/*
 * Anti-replay window of packets without a number in their header, in packets:
 * RFC 4303 section 3.4.3. Most of these packets are ACKs, whose rate is too low
 * for a path to reorder as many.
 */
#define DBLP_AUTH_WINDOW	1024

/**
 * struct dblp_auth_seen - numbers received
 * @end: the largest number plus one, 0 for none
 * @map: which of the DBLP_AUTH_WINDOW numbers before @end were received; the
 *	bit of a number is the number modulo DBLP_AUTH_WINDOW
 */
struct dblp_auth_seen {
	u64		end;
	DECLARE_BITMAP(map, DBLP_AUTH_WINDOW);
};

/**
 * struct dblp_auth_keys - keys that a connection derives from a shared key
 * @tx: key for the tags of packets sent
 * @rx: key for the tags of packets received
 * @id: ID of the shared key in this connection
 */
struct dblp_auth_keys {
	u8	tx[BLAKE2S_KEY_SIZE];
	u8	rx[BLAKE2S_KEY_SIZE];
	u16	id;
};

/**
 * struct dblp_auth_conn - authentication of a connection or connection attempt
 * @n: number of valid @keys: 0 until they are derived, at most that of the
 *	socket
 * @client: this end is the client
 * @old: packets are sent with @keys[1]
 * @key_used: the peer sends packets with @keys[0]
 * @key_used_at: time of the first such packet
 * @keys: keys derived from the newest and the previous key
 * @salt: input of the derivation: connection ID of the client, cookie
 * @sent: number of packets sent without a number in their header
 * @seen: numbers received of such packets
 * @refusal: positive errno of the latest refusal without tag, or 0
 * @refused_at: time of the first refusal without tag
 *
 * All zero if there is neither.
 */
struct dblp_auth_conn {
	u8			n;
	bool			client;
	bool			old;
	bool			key_used;
	u64			key_used_at;
	struct dblp_auth_keys	keys[2];
	u8			salt[8 + DBLP_COOKIE_LEN];
	u64			sent;
	struct dblp_auth_seen	seen;
	int			refusal;
	u64			refused_at;
};

/**
 * struct dblp_auth - authentication of a socket; under the socket lock
 * @n: number of keys, 1 or 2
 * @secret: hashes of the user's keys, the newest and the previous one
 * @c: state of the connection
 */
struct dblp_auth {
	u8			n;
	u8			secret[2][BLAKE2S_HASH_SIZE];
	struct dblp_auth_conn	c;
};

/* Derive @len bytes for @use from key @i and the connection */
static void dblp_auth_derive(const struct dblp_auth *a, u32 i, char use,
			     u8 *out, u32 len)
{
	static const u8 label[] = "AF_DBLP authentication 1";
	struct blake2s_ctx ctx;
	const u8 what = use;

	blake2s_init_key(&ctx, len, a->secret[i], sizeof(a->secret[i]));
	blake2s_update(&ctx, label, sizeof(label));
	blake2s_update(&ctx, &what, sizeof(what));
	blake2s_update(&ctx, a->c.salt, sizeof(a->c.salt));
	blake2s_final(&ctx, out);
}

/* Derive the keys of the connection from key @i */
static void dblp_auth_make(struct dblp_auth *a, u32 i)
{
	struct dblp_auth_keys *k = &a->c.keys[i];
	bool client = a->c.client;
	u8 id[2];

	dblp_auth_derive(a, i, 'c', client ? k->tx : k->rx, sizeof(k->tx));
	dblp_auth_derive(a, i, 's', client ? k->rx : k->tx, sizeof(k->rx));
	dblp_auth_derive(a, i, 'i', id, sizeof(id));
	k->id = id[0] << 8 | id[1];
}

/* Forget the connection or connection attempt */
static void dblp_auth_clear(struct dblp_auth *a)
{
	memzero_explicit(&a->c, sizeof(a->c));
}

/* Derive @n keys of a new connection */
static void dblp_auth_begin(struct dblp_auth *a, u64 client_cid,
			    const struct dblp_cookie *cookie, bool client,
			    u32 n)
{
	u32 i;

	dblp_auth_clear(a);
	dblp_put_cookie(dblp_put_u64(a->c.salt, client_cid), cookie);
	a->c.client = client;
	for (i = 0; i < n; i++)
		dblp_auth_make(a, i);
	a->c.n = n;
}

/* Make the IDs of the keys differ, in the same way at both ends */
static void dblp_auth_make_distinct(struct dblp_auth *a)
{
	if (a->c.keys[0].id == a->c.keys[1].id)
		a->c.keys[0].id++;
}

static void dblp_auth_forget(struct dblp_auth *a)
{
	memzero_explicit(a->secret[1], sizeof(a->secret[1]));
	memzero_explicit(&a->c.keys[1], sizeof(a->c.keys[1]));
	a->n = 1;
	a->c.n = min_t(u8, a->c.n, 1);
	a->c.old = false;
}

/* Feed bytes @from ... @to of a buffer to a hash */
static void dblp_auth_feed(struct blake2s_ctx *ctx, struct dblp_window *w,
			   u32 from, u32 to)
{
	u8 buf[DBLP_WINDOW_BUF];
	const u8 *p;
	u32 n;

	for (; from < to; from += n) {
		p = dblp_window_piece(w, from, to, buf, &n);
		if (!p)
			return;
		blake2s_update(ctx, p, n);
	}
}

/**
 * struct dblp_auth_pkt - a packet to be tagged or checked
 * @w: window on the buffer of the packet
 * @from: offset of the packet in the buffer
 * @len: length of the packet
 * @at: offset of the AUTH frame from @from
 * @number: full packet number
 */
struct dblp_auth_pkt {
	struct dblp_window	*w;
	u32			from;
	u32			len;
	u32			at;
	u64			number;
};

/* Compute the tag over the number of a packet, and its bytes except the tag */
static void dblp_auth_tag(const struct dblp_auth_pkt *pkt, const u8 *key,
			  u8 *tag)
{
	u32 at = pkt->at + DBLP_AUTH_LEN - DBLP_TAG_LEN;
	struct blake2s_ctx ctx;
	u8 number[8];

	dblp_put_u64(number, pkt->number);
	blake2s_init_key(&ctx, DBLP_TAG_LEN, key, BLAKE2S_KEY_SIZE);
	blake2s_update(&ctx, number, sizeof(number));
	dblp_auth_feed(&ctx, pkt->w, pkt->from, pkt->from + at);
	dblp_auth_feed(&ctx, pkt->w, pkt->from + at + DBLP_TAG_LEN,
		       pkt->from + pkt->len);
	blake2s_final(&ctx, tag);
}

/**
 * dblp_auth_put() - write an AUTH frame without tag, for dblp_auth_sign()
 * @dsk: socket with a key
 * @p: DBLP_AUTH_LEN bytes
 *
 * Return: the end of the frame.
 */
u8 *dblp_auth_put(struct dblp_sock *dsk, u8 *p)
{
	static const u8 no_tag[DBLP_TAG_LEN];
	struct dblp_frame f = { .type = DBLP_FRAME_AUTH };

	sock_owned_by_me(&dsk->sk);
	f.auth.key = dsk->auth->c.keys[0].id;
	f.auth.tag = no_tag;
	return dblp_put_frame(p, p + DBLP_AUTH_LEN, &f);
}

/**
 * dblp_auth_add() - append an AUTH frame to a packet
 * @dsk: socket with a key
 * @skb: packet with its headers and all other frames
 */
void dblp_auth_add(struct dblp_sock *dsk, struct sk_buff *skb)
{
	struct dblp_auth *a = dsk->auth;
	u8 *p;

	sock_owned_by_me(&dsk->sk);
	/* No keys are derived before there is a cookie */
	if (!a->c.n)
		return;
	p = skb_put(skb, DBLP_AUTH_LEN);
	dblp_auth_put(dsk, p);
	skb->data[1] += DBLP_AUTH_LEN / 4;
	if (dblp_numbered(skb->data[0] & 0xf))
		return;
	dblp_store_u32(p + 4, a->c.sent++);
}

/**
 * dblp_auth_sign() - write the tags of packets to be sent
 * @dsk: socket with a key
 * @skb: a packet, or a train of packets of one type
 */
void dblp_auth_sign(struct dblp_sock *dsk, struct sk_buff *skb)
{
	u32 size = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : skb->len;
	struct dblp_window w = { .skb = skb };
	struct dblp_auth_pkt pkt = { .w = &w };
	struct dblp_auth_conn *a = &dsk->auth->c;
	u8 hdr[DBLP_HDR_LEN], tag[DBLP_TAG_LEN];
	struct dblp_hdr h;

	sock_owned_by_me(&dsk->sk);
	for (; pkt.from < skb->len; pkt.from += size) {
		pkt.len = min(size, skb->len - pkt.from);
		if (skb_copy_bits(skb, pkt.from, hdr, sizeof(hdr)) ||
		    dblp_get_hdr(&h, hdr, pkt.len))
			return;
		pkt.at = dblp_auth_at(&h, pkt.len);
		if (!pkt.at)
			return;
		/* Both counters are already past this packet */
		if (dblp_numbered(h.type))
			pkt.number = dblp_pn_expand(dsk->sent.next - 1, h.pn);
		else
			pkt.number = a->sent - 1;
		dblp_auth_tag(&pkt, a->keys[a->old].tx, tag);
		skb_store_bits(skb, pkt.from + pkt.at + DBLP_AUTH_LEN -
			       DBLP_TAG_LEN, tag, sizeof(tag));
	}
}

/* Note that a packet of the peer uses @keys[@i], and names key @newest */
static void dblp_auth_note_key(struct dblp_auth_conn *a, u32 i, u16 newest)
{
	if (a->n < 2)
		return;
	if (newest == a->keys[0].id)
		a->old = false;
	if (i || a->key_used)
		return;
	a->key_used = true;
	a->key_used_at = ktime_get_ns();
}

/* May the previous key be forgotten, as no packet in flight uses it? */
static bool dblp_auth_outdated(const struct dblp_sock *dsk,
			       const struct dblp_auth_conn *a)
{
	u64 pto;

	if (likely(a->n < 2) || !a->key_used)
		return false;
	pto = dblp_pto(&dsk->rtt, DBLP_ACK_DELAY_NS, 0);
	return ktime_get_ns() - a->key_used_at > DBLP_AUTH_OVERLAP_PTOS * pto;
}

/* Record a number. Returns false if it was received before, or is too old */
static bool dblp_auth_record(struct dblp_auth_seen *s, u64 number)
{
	if (number < s->end)
		return s->end - number <= DBLP_AUTH_WINDOW &&
		       !__test_and_set_bit(number % DBLP_AUTH_WINDOW, s->map);
	if (number - s->end >= DBLP_AUTH_WINDOW)
		bitmap_zero(s->map, DBLP_AUTH_WINDOW);
	else
		for (; s->end < number; s->end++)
			__clear_bit(s->end % DBLP_AUTH_WINDOW, s->map);
	__set_bit(number % DBLP_AUTH_WINDOW, s->map);
	s->end = number + 1;
	return true;
}

static bool dblp_auth_frame(const struct dblp_auth_pkt *pkt, u8 *bytes,
			    struct dblp_frame *f)
{
	u32 left = DBLP_AUTH_LEN;
	const u8 *p = bytes;

	return pkt->at &&
	       !skb_copy_bits(pkt->w->skb, pkt->from + pkt->at, bytes, left) &&
	       !dblp_get_frame(f, &p, &left) && f->type == DBLP_FRAME_AUTH;
}

/*
 * Check the tag of a packet. The full number of the packet is computed from @pn
 * in its header and the numbers received, @pns; without @pns, from the number
 * in the AUTH frame.
 */
static enum dblp_mib_item dblp_auth_check(const struct dblp_sock *dsk,
					  struct dblp_auth *auth,
					  struct dblp_auth_pkt *pkt,
					  const struct dblp_ranges *pns, u32 pn)
{
	struct dblp_auth_conn *a = &auth->c;
	u8 bytes[DBLP_AUTH_LEN], tag[DBLP_TAG_LEN];
	struct dblp_frame f;
	u32 i;

	if (!dblp_auth_frame(pkt, bytes, &f) || (pns && f.auth.number))
		return DBLP_MIB_DROPAUTH;
	pkt->number = pns ? dblp_pn_full(pns, pn) :
			    dblp_pn_expand(a->seen.end - 1, f.auth.number);
	if (dblp_auth_outdated(dsk, a))
		dblp_auth_forget(auth);
	for (i = 0; i < a->n; i++) {
		dblp_auth_tag(pkt, a->keys[i].rx, tag);
		if (!crypto_memneq(tag, f.auth.tag, DBLP_TAG_LEN))
			break;
	}
	if (i == a->n || (s64)pkt->number < 0)
		return DBLP_MIB_DROPAUTH;
	if (!pns && !dblp_auth_record(&a->seen, pkt->number))
		return DBLP_MIB_DROPDUPLICATE;
	dblp_auth_note_key(a, i, f.auth.key);
	return DBLP_MIB_NONE;
}

/**
 * dblp_auth_own() - copy packets that their sender can still change
 * @dsk: socket with a key
 * @skb: packet or train; consumed if a copy is returned
 *
 * A local sender can write to shared fragments after the tags were checked.
 *
 * Return: @skb or a copy, or NULL without memory.
 */
struct sk_buff *dblp_auth_own(const struct dblp_sock *dsk, struct sk_buff *skb)
{
	struct sk_buff *copy;

	sock_owned_by_me(&dsk->sk);
	if (likely(!skb_has_shared_frag(skb)))
		return skb;
	copy = skb_copy(skb, GFP_ATOMIC | __GFP_NOWARN);
	if (copy)
		consume_skb(skb);
	return copy;
}

/*
 * Must a packet have a tag? Packets of the handshake have none before keys are
 * derived. An untagged RST is permitted then, but not accepted at once: see
 * dblp_auth_note_refusal().
 */
static bool dblp_auth_wanted(const struct dblp_sock *dsk,
			     const struct dblp_hdr *h)
{
	switch (h->type) {
	case DBLP_PKT_INIT_ACK:
	case DBLP_PKT_VERSION:
		return false;
	case DBLP_PKT_COOKIE_ECHO:
		/* Checked by dblp_auth_accept() */
		return dsk->state != DBLP_STATE_LISTEN;
	case DBLP_PKT_RST:
		return h->ctl_len || !dblp_connecting(dsk);
	default:
		return true;
	}
}

/**
 * dblp_auth_run() - check the tags of packets
 * @dsk: socket; without a key, only handshake and RST packets need the check
 * @run: packets; @n is lowered to those before the first failure, but not below
 *	1
 *
 * Return: DBLP_MIB_NONE if the first packet is authentic and not a duplicate,
 * else the drop reason.
 */
enum dblp_mib_item dblp_auth_run(struct dblp_sock *dsk, struct dblp_run *run)
{
	const struct dblp_ranges *pns = dblp_numbered(run->h.type) ?
					&dsk->acks.pns : NULL;
	const struct dblp_train *t = run->train;
	struct dblp_window w = { .skb = t->skb };
	struct dblp_auth_pkt pkt = { .w = &w };
	enum dblp_mib_item why;
	u32 i;

	sock_owned_by_me(&dsk->sk);
	if (!dblp_auth_wanted(dsk, &run->h))
		return DBLP_MIB_NONE;
	if (!dsk->auth)
		return run->h.ctl_len ? DBLP_MIB_DROPAUTH : DBLP_MIB_NONE;
	for (i = 0; i < run->n; i++) {
		pkt.from = (run->first + i) * t->stride;
		pkt.len = min(t->stride, t->skb->len - pkt.from);
		pkt.at = dblp_auth_at(&run->h, pkt.len);
		why = dblp_auth_check(dsk, dsk->auth, &pkt, pns,
				      run->h.pn + i);
		if (why != DBLP_MIB_NONE)
			break;
	}
	if (i == run->n)
		return DBLP_MIB_NONE;
	run->n = i ?: 1;
	return i ? DBLP_MIB_NONE : why;
}

/**
 * dblp_auth_connect() - derive the keys of a client that has its cookie
 * @dsk: connecting socket, with or without a key
 */
void dblp_auth_connect(struct dblp_sock *dsk)
{
	struct dblp_auth *a = dsk->auth;

	sock_owned_by_me(&dsk->sk);
	if (!a)
		return;
	/* Use the newest key. Keep the previous one, if the attempt fails */
	dblp_auth_begin(a, dsk->cid, &dsk->hs.cookie, true, 1);
}

/**
 * dblp_auth_connected() - forget the previous key after a client has connected
 * @dsk: socket, with or without a key
 */
void dblp_auth_connected(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (dsk->auth)
		dblp_auth_forget(dsk->auth);
}

/**
 * dblp_auth_reset() - forget a connection attempt, but keep the user's keys
 * @dsk: socket, with or without a key
 */
void dblp_auth_reset(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (dsk->auth)
		dblp_auth_clear(dsk->auth);
}

static struct dblp_auth *dblp_auth_alloc(const u8 *secret, gfp_t gfp)
{
	struct dblp_auth *a = kzalloc(sizeof(*a), gfp);

	if (!a)
		return NULL;
	memcpy(a->secret[0], secret, sizeof(a->secret[0]));
	a->n = 1;
	dblp_auth_clear(a);
	return a;
}

/**
 * dblp_auth_accept() - authenticate a COOKIE-ECHO
 * @listener: listener, locked, with or without a key
 * @run: a single packet, with a valid cookie
 * @echo: content of the packet
 * @ap: set to the state of the connection, for kfree_sensitive(); NULL without
 *	a key
 *
 * Return: 0, -ENOMEM, or -EKEYREJECTED if the tag is wrong or only one end has
 * a key.
 */
int dblp_auth_accept(const struct dblp_sock *listener,
		     const struct dblp_run *run, const struct dblp_echo *echo,
		     struct dblp_auth **ap)
{
	const struct dblp_auth *from = listener->auth;
	u32 len = run->len;
	struct dblp_window w = { .skb = run->train->skb };
	struct dblp_auth_pkt pkt = { .w = &w, .len = len };
	struct dblp_auth *a;

	sock_owned_by_me(&listener->sk);
	*ap = NULL;
	if (!from || len == DBLP_ECHO_LEN)
		return !from && len == DBLP_ECHO_LEN ? 0 : -EKEYREJECTED;
	pkt.at = DBLP_ECHO_LEN;
	a = dblp_auth_alloc(from->secret[0], GFP_ATOMIC);
	if (!a)
		return -ENOMEM;
	a->n = from->n;
	memcpy(a->secret[1], from->secret[1], sizeof(a->secret[1]));
	dblp_auth_begin(a, echo->client_cid, &echo->cookie, false, a->n);
	a->c.old = a->n == 2;
	if (a->c.old)
		dblp_auth_make_distinct(a);
	if (dblp_auth_check(listener, a, &pkt, NULL, 0) != DBLP_MIB_NONE) {
		kfree_sensitive(a);
		return -EKEYREJECTED;
	}
	if (a->c.key_used)
		dblp_auth_forget(a);
	*ap = a;
	return 0;
}

/**
 * dblp_auth_note_refusal() - note a refusal without tag
 * @dsk: socket, with or without a key
 * @err: positive errno of the refusal
 *
 * A refusal without tag may be forged. With a key, an attempt to connect
 * continues for DBLP_AUTH_REFUSAL_NS, in case the peer answers.
 *
 * Return: false if there is no key, and the caller must accept the refusal.
 */
bool dblp_auth_note_refusal(struct dblp_sock *dsk, int err)
{
	struct dblp_auth *a = dsk->auth;

	sock_owned_by_me(&dsk->sk);
	if (!a)
		return false;
	if (dblp_connecting(dsk)) {
		if (!a->c.refusal)
			a->c.refused_at = ktime_get_ns();
		a->c.refusal = err;
	}
	return true;
}

/**
 * dblp_auth_refused() - is it time to accept a refusal without tag?
 * @dsk: connecting socket, with or without a key
 * @now: the time
 * @timed_out: the attempt ends in any case
 *
 * Return: positive errno of the refusal, or 0.
 */
int dblp_auth_refused(struct dblp_sock *dsk, u64 now, bool timed_out)
{
	const struct dblp_auth *a = dsk->auth;

	sock_owned_by_me(&dsk->sk);
	if (!a || (!timed_out && now - a->c.refused_at < DBLP_AUTH_REFUSAL_NS))
		return 0;
	return a->c.refusal;
}

static bool dblp_auth_is(const struct dblp_auth *a, u32 i, const u8 *secret)
{
	return !crypto_memneq(a->secret[i], secret, sizeof(a->secret[i]));
}

/* Return to the previous key, which the peer may still use */
static void dblp_auth_swap(struct dblp_auth *a)
{
	u8 secret[BLAKE2S_HASH_SIZE];

	memcpy(secret, a->secret[0], sizeof(secret));
	memcpy(a->secret[0], a->secret[1], sizeof(secret));
	memcpy(a->secret[1], secret, sizeof(secret));
	memzero_explicit(secret, sizeof(secret));
	swap(a->c.keys[0], a->c.keys[1]);
	a->c.old = a->c.n && !a->c.old;
	a->c.key_used = false;
}

/* Add a newer key. The key that packets are sent with becomes the previous */
static void dblp_auth_push(struct dblp_auth *a, const u8 *secret)
{
	struct dblp_auth_conn *c = &a->c;

	memcpy(a->secret[1], a->secret[c->old], sizeof(a->secret[1]));
	memcpy(a->secret[0], secret, sizeof(a->secret[0]));
	a->n = 2;
	if (!c->n)
		return;
	c->keys[1] = c->keys[c->old];
	dblp_auth_make(a, 0);
	c->n = 2;
	c->old = true;
	c->key_used = false;
	dblp_auth_make_distinct(a);
}

static int dblp_auth_replace(struct dblp_auth *a, const u8 *secret, bool only)
{
	if (a->n == 2 && dblp_auth_is(a, 1, secret)) {
		dblp_auth_swap(a);
	} else if (!dblp_auth_is(a, 0, secret)) {
		/* The peer may still use the previous key: do not forget it */
		if (a->c.n == 2 && !a->c.key_used && !only)
			return -EBUSY;
		dblp_auth_push(a, secret);
	}
	if (only)
		dblp_auth_forget(a);
	return 0;
}

/* Change the keys of a socket. Takes @new if there was no key */
static int dblp_auth_change(struct dblp_sock *dsk, const u8 *secret, bool only,
			    struct dblp_auth **new)
{
	bool is_conn = dsk->state >= DBLP_STATE_ESTABLISHED;

	if (dblp_connecting(dsk))
		return -EBUSY;
	/* Either all packets of a connection have tags, or none has */
	if (is_conn && (!dsk->auth || !secret))
		return dsk->auth || secret ? -EISCONN : 0;
	if (!is_conn)
		dblp_auth_reset(dsk);
	if (!secret) {
		dblp_auth_free(dsk);
		return 0;
	}
	if (dsk->auth)
		return dblp_auth_replace(dsk->auth, secret, only);
	swap(dsk->auth, *new);
	return 0;
}

/* Hash a user's key: the key itself is not kept */
static void dblp_auth_secret(const struct dblp_auth_key *key, u8 *secret)
{
	static const u8 label[] = "AF_DBLP key 1";
	struct blake2s_ctx ctx;

	blake2s_init(&ctx, BLAKE2S_HASH_SIZE);
	blake2s_update(&ctx, label, sizeof(label));
	blake2s_update(&ctx, key->key, key->length);
	blake2s_final(&ctx, secret);
}

static int dblp_auth_get_key(struct dblp_auth_key *key, sockptr_t optval,
			     unsigned int optlen)
{
	int err;

	err = dblp_copy_struct(key, sizeof(*key), DBLP_AUTH_KEY_FIRST, optval,
			       optlen);
	if (err)
		return err;
	if (key->flags & ~DBLP_AUTH_ONLY || key->length > DBLP_AUTH_KEY_MAX ||
	    (key->length && key->length < DBLP_AUTH_KEY_MIN) ||
	    memchr_inv(key->key + key->length, 0,
		       DBLP_AUTH_KEY_MAX - key->length))
		return -EINVAL;
	return 0;
}

/**
 * dblp_auth_set() - setsockopt(DBLP_AUTH_KEY)
 * @dsk: socket, not locked
 * @optval: &struct dblp_auth_key
 * @optlen: size of @optval in bytes
 *
 * Return: 0 or a negative errno.
 */
int dblp_auth_set(struct dblp_sock *dsk, sockptr_t optval, unsigned int optlen)
{
	u8 secret[BLAKE2S_HASH_SIZE];
	struct dblp_auth *new = NULL;
	struct dblp_auth_key key;
	int err;

	err = dblp_auth_get_key(&key, optval, optlen);
	if (err)
		goto out;
	dblp_auth_secret(&key, secret);
	new = dblp_auth_alloc(secret, GFP_KERNEL_ACCOUNT);
	if (!new) {
		err = -ENOMEM;
		goto out;
	}
	lock_sock(&dsk->sk);
	err = dblp_auth_change(dsk, key.length ? secret : NULL,
			       key.flags & DBLP_AUTH_ONLY, &new);
	release_sock(&dsk->sk);
	kfree_sensitive(new);
out:
	memzero_explicit(secret, sizeof(secret));
	memzero_explicit(&key, sizeof(key));
	return err;
}

/** dblp_auth_state() - &enum dblp_auth_state bits of a socket */
u32 dblp_auth_state(const struct dblp_sock *dsk)
{
	const struct dblp_auth *a = dsk->auth;

	sock_owned_by_me(&dsk->sk);
	if (!a)
		return 0;
	return DBLP_AUTH_ON | (a->n == 2 ? DBLP_AUTH_OLD : 0) |
	       (a->c.old ? DBLP_AUTH_SENDS_OLD : 0);
}

/** dblp_auth_free() - free the keys of a socket that sends no more packets */
void dblp_auth_free(struct dblp_sock *dsk)
{
	kfree_sensitive(dsk->auth);
	dsk->auth = NULL;
}
