// SPDX-License-Identifier: GPL-2.0-only
/*
 * Authentication: with DBLP_AUTH_KEY each packet of a connection has a tag that
 * only those can make who have the key. Nothing is encrypted.
 *
 * The key that two ends share makes no tags itself. Each connection derives from
 * it, from both connection IDs and from the cookie, which are never used twice,
 * one key for each direction. So a packet of another connection, or one sent
 * back to where it comes from, is as good as forged. Within a connection a tag
 * also covers the packet's number in full, and no number is taken twice.
 * Packets that are not acknowledged have no number in their header; the AUTH
 * frame has one for them.
 *
 * A socket has up to two keys, the newest and the one before. Each packet names
 * the newest that its sender has. An end makes tags with the newest as soon as
 * the other has named it, and forgets the other a moment after the peer does so.
 * Thus the ends may get a new key one after the other, under traffic.
 *
 * The primitive is keyed BLAKE2s with tags of 16 bytes (RFC 7693): it can be fed
 * piece by piece, so that no packet has to be in one piece.
 */
#include <crypto/blake2s.h>
#include <crypto/utils.h>
#include <linux/slab.h>

#include "dblp.h"
#include "window.h"

/*
 * Packets made with the old key may come for so many probe timeouts after the first
 * with the newest: RFC 9001 section 6.5
 */
#define DBLP_AUTH_OVERLAP_PTOS	3
/* Refusals that anybody could have sent are believed after so long without any
 * other answer: where nothing is known of the path, it comes by then (RFC 6298 2.1)
 */
#define DBLP_AUTH_DOUBT_NS	(1ULL * NSEC_PER_SEC)

/**
 * struct dblp_auth_keys - a key, and what a connection has derived from it
 * @secret: hash of what the user gave
 * @tx: makes the tags of packets sent
 * @rx: those of packets received
 * @id: names the key, within this connection
 */
struct dblp_auth_keys {
	u8	secret[BLAKE2S_HASH_SIZE];
	u8	tx[BLAKE2S_KEY_SIZE];
	u8	rx[BLAKE2S_KEY_SIZE];
	u16	id;
};

/**
 * struct dblp_auth - of a socket that has a key; under the socket lock
 * @n: how many keys there are, 1 or 2
 * @ready: a connection has derived its own
 * @client: it made the connection
 * @old: packets are made with @keys[1]
 * @heard: the peer makes its own with @keys[0]
 * @heard_at: since when
 * @keys: the newest, and the one before
 * @salt: what keys are derived from besides: connection ID of the client, cookie
 * @sent: packets without a number in their header that were sent
 * @seen: those that came
 * @doubt: positive errno of a refusal that anybody could have sent, or 0
 * @doubt_at: when the first of them came
 */
struct dblp_auth {
	u8			n;
	bool			ready;
	bool			client;
	bool			old;
	bool			heard;
	u64			heard_at;
	struct dblp_auth_keys	keys[2];
	u8			salt[8 + DBLP_COOKIE_LEN];
	u64			sent;
	struct dblp_ranges	seen;
	int			doubt;
	u64			doubt_at;
};

/* Bytes that only this key and this connection give, for one use */
static void dblp_auth_derive(const struct dblp_auth *a,
			     const struct dblp_auth_keys *k, char use, u8 *out,
			     u32 len)
{
	static const u8 label[] = "AF_DBLP authentication 1";
	struct blake2s_ctx ctx;
	const u8 what = use;

	blake2s_init_key(&ctx, len, k->secret, sizeof(k->secret));
	blake2s_update(&ctx, label, sizeof(label));
	blake2s_update(&ctx, &what, sizeof(what));
	blake2s_update(&ctx, a->salt, sizeof(a->salt));
	blake2s_final(&ctx, out);
}

/* The keys of the connection */
static void dblp_auth_make(const struct dblp_auth *a, struct dblp_auth_keys *k)
{
	u8 id[2];

	dblp_auth_derive(a, k, 'c', a->client ? k->tx : k->rx, sizeof(k->tx));
	dblp_auth_derive(a, k, 's', a->client ? k->rx : k->tx, sizeof(k->rx));
	dblp_auth_derive(a, k, 'i', id, sizeof(id));
	k->id = id[0] << 8 | id[1];
}

static void dblp_auth_salt(struct dblp_auth *a, u64 client_cid,
			   const struct dblp_cookie *cookie)
{
	dblp_put_cookie(dblp_put_u64(a->salt, client_cid), cookie);
	dblp_ranges_init(&a->seen);
	a->heard = false;
	a->old = false;
	a->ready = true;
}

/* The two names must differ, and do so at both ends alike */
static void dblp_auth_tell_apart(struct dblp_auth *a)
{
	if (a->keys[0].id == a->keys[1].id)
		a->keys[0].id++;
}

static void dblp_auth_forget(struct dblp_auth *a)
{
	memzero_explicit(&a->keys[1], sizeof(a->keys[1]));
	a->n = 1;
	a->old = false;
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
 * struct dblp_auth_pkt - a packet, and how it is named
 * @w: a window on the buffer it is in
 * @from: its first byte there
 * @len: its length
 * @at: its AUTH frame, counted from @from
 * @number: its number in full
 */
struct dblp_auth_pkt {
	struct dblp_window	*w;
	u32			from;
	u32			len;
	u32			at;
	u64			number;
};

/* All of the packet but the tag, and its number */
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
 * dblp_auth_put() - write an AUTH frame, whose tag is made when all is there
 * @dsk: socket with a key
 * @p: DBLP_AUTH_LEN bytes
 *
 * Return: the byte behind it.
 */
u8 *dblp_auth_put(struct dblp_sock *dsk, u8 *p)
{
	static const u8 no_tag[DBLP_TAG_LEN];
	struct dblp_frame f = { .type = DBLP_FRAME_AUTH };

	sock_owned_by_me(&dsk->sk);
	f.auth.key = dsk->auth->keys[0].id;
	f.auth.tag = no_tag;
	return dblp_put_frame(p, p + DBLP_AUTH_LEN, &f);
}

/**
 * dblp_auth_add() - a packet gets an AUTH frame
 * @dsk: socket with a key
 * @skb: header and frames of the packet, and what comes before the frames
 */
void dblp_auth_add(struct dblp_sock *dsk, struct sk_buff *skb)
{
	struct dblp_auth *a = dsk->auth;
	u8 *p;

	sock_owned_by_me(&dsk->sk);
	/* Before the cookie there is nothing to derive a key from */
	if (!a->ready)
		return;
	p = skb_put(skb, DBLP_AUTH_LEN);
	dblp_auth_put(dsk, p);
	skb->data[1] += DBLP_AUTH_LEN / 4;
	if (dblp_numbered(skb->data[0] & 0xf))
		return;
	dblp_store_u32(p + 4, a->sent++);
}

/**
 * dblp_auth_sign() - make the tags of packets that are about to leave
 * @dsk: socket with a key
 * @skb: a packet, or a train, whose packets are alike
 */
void dblp_auth_sign(struct dblp_sock *dsk, struct sk_buff *skb)
{
	u32 size = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : skb->len;
	struct dblp_window w = { .skb = skb };
	struct dblp_auth_pkt pkt = { .w = &w };
	struct dblp_auth *a = dsk->auth;
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
		/* Both counts are beyond those of packets made before */
		if (dblp_numbered(h.type))
			pkt.number = dblp_pn_expand(dsk->sent.next - 1, h.pn);
		else
			pkt.number = a->sent - 1;
		dblp_auth_tag(&pkt, a->keys[a->old].tx, tag);
		skb_store_bits(skb, pkt.from + pkt.at + DBLP_AUTH_LEN -
			       DBLP_TAG_LEN, tag, sizeof(tag));
	}
}

/* The peer has made a packet with @keys[@i], and named the newest key it has */
static void dblp_auth_heard(struct dblp_auth *a, u32 i, u16 newest)
{
	if (a->n < 2)
		return;
	if (newest == a->keys[0].id)
		a->old = false;
	if (i || a->heard)
		return;
	a->heard = true;
	a->heard_at = ktime_get_ns();
}

/* Nothing that is still on its way was made with the old key */
static bool dblp_auth_outdated(const struct dblp_sock *dsk,
			       const struct dblp_auth *a)
{
	u64 pto;

	if (likely(a->n < 2) || !a->heard)
		return false;
	pto = dblp_pto(&dsk->rtt, DBLP_ACK_DELAY_NS, 0, 0);
	return ktime_get_ns() - a->heard_at > DBLP_AUTH_OVERLAP_PTOS * pto;
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

/* Was a packet made with one of our keys? @pkt lacks its number yet, of which its
 * header has the low bits in @pn if @pns are the numbers that came before
 */
static enum dblp_mib_item dblp_auth_check(const struct dblp_sock *dsk,
					  struct dblp_auth *a,
					  struct dblp_auth_pkt *pkt,
					  const struct dblp_ranges *pns, u32 pn)
{
	u8 bytes[DBLP_AUTH_LEN], tag[DBLP_TAG_LEN];
	struct dblp_frame f;
	u32 i;

	if (!dblp_auth_frame(pkt, bytes, &f) || (pns && f.auth.number))
		return DBLP_MIB_DROPAUTH;
	pkt->number = pns ? dblp_pn_full(pns, pn) :
			    dblp_pn_full(&a->seen, f.auth.number);
	if (dblp_auth_outdated(dsk, a))
		dblp_auth_forget(a);
	for (i = 0; a->ready && i < a->n; i++) {
		dblp_auth_tag(pkt, a->keys[i].rx, tag);
		if (!crypto_memneq(tag, f.auth.tag, DBLP_TAG_LEN))
			break;
	}
	if (!a->ready || i == a->n || (s64)pkt->number < 0)
		return DBLP_MIB_DROPAUTH;
	if (!pns && !dblp_ranges_add(&a->seen, pkt->number))
		return DBLP_MIB_DROPDUPLICATE;
	dblp_auth_heard(a, i, f.auth.key);
	return DBLP_MIB_NONE;
}

/**
 * dblp_auth_own() - see to it that nobody changes a packet once it was checked
 * @dsk: socket with a key
 * @skb: a packet or a train; consumed if a copy is returned
 *
 * Memory that its sender, a process of this machine, can still write to is
 * copied.
 *
 * Return: the same, or a copy; NULL if there is no memory for one.
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

/* May there be a tag, and must there be one? The handshake has none before there
 * are keys; nor has a RST then, which is not believed at once: dblp_auth_doubts().
 */
static bool dblp_auth_wanted(const struct dblp_sock *dsk, const struct dblp_hdr *h)
{
	switch (h->type) {
	case DBLP_PKT_INIT_ACK:
	case DBLP_PKT_VERSION:
		return false;
	case DBLP_PKT_COOKIE_ECHO:
		/* dblp_auth_accept() asks */
		return dsk->state != DBLP_STATE_LISTEN;
	case DBLP_PKT_RST:
		return h->ctl_len || !dblp_connecting(dsk);
	default:
		return true;
	}
}

/**
 * dblp_auth_run() - were packets made by the peer?
 * @dsk: socket; if it has no key, packets that are not of the handshake or a RST
 *	need not be asked about
 * @run: the packets; @n is lowered to those before the first that was not, but
 *	not below 1
 *
 * Return: DBLP_MIB_NONE if the first one was, and is no copy of another; else
 * under what it is counted.
 */
enum dblp_mib_item dblp_auth_run(struct dblp_sock *dsk, struct dblp_run *run)
{
	const struct dblp_ranges *pns = dblp_numbered(run->h.type) ?
					&dsk->pns : NULL;
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
 * dblp_auth_connect() - a client has its cookie: from now on packets have tags
 * @dsk: connecting socket, perhaps without a key
 */
void dblp_auth_connect(struct dblp_sock *dsk)
{
	struct dblp_auth *a = dsk->auth;

	sock_owned_by_me(&dsk->sk);
	if (!a)
		return;
	a->client = true;
	dblp_auth_forget(a);
	dblp_auth_salt(a, dsk->cid, &dsk->cookie);
	dblp_auth_make(a, &a->keys[0]);
}

static struct dblp_auth *dblp_auth_alloc(const u8 *secret, gfp_t gfp)
{
	struct dblp_auth *a = kzalloc(sizeof(*a), gfp);

	if (!a)
		return NULL;
	memcpy(a->keys[0].secret, secret, sizeof(a->keys[0].secret));
	a->n = 1;
	dblp_ranges_init(&a->seen);
	return a;
}

/**
 * dblp_auth_accept() - may this COOKIE-ECHO make a connection?
 * @listener: who accepts it, locked, perhaps without a key
 * @run: the packet, alone; its cookie is good
 * @echo: what it says
 * @ap: where the connection's part goes, for kfree_sensitive(); NULL without key
 *
 * Return: 0, -ENOMEM, or -EKEYREJECTED if one end has a key that the other has
 * not.
 */
int dblp_auth_accept(const struct dblp_sock *listener,
		     const struct dblp_run *run, const struct dblp_echo *echo,
		     struct dblp_auth **ap)
{
	const struct dblp_auth *from = listener->auth;
	u32 len = run->len, i;
	struct dblp_window w = { .skb = run->train->skb };
	struct dblp_auth_pkt pkt = { .w = &w, .len = len };
	struct dblp_auth *a;

	sock_owned_by_me(&listener->sk);
	*ap = NULL;
	if (!from || len == DBLP_ECHO_LEN)
		return !from && len == DBLP_ECHO_LEN ? 0 : -EKEYREJECTED;
	pkt.at = DBLP_ECHO_LEN;
	a = dblp_auth_alloc(from->keys[0].secret, GFP_ATOMIC);
	if (!a)
		return -ENOMEM;
	a->n = from->n;
	memcpy(a->keys[1].secret, from->keys[1].secret,
	       sizeof(a->keys[1].secret));
	dblp_auth_salt(a, echo->client_cid, &echo->cookie);
	for (i = 0; i < a->n; i++)
		dblp_auth_make(a, &a->keys[i]);
	a->old = a->n == 2;
	if (a->old)
		dblp_auth_tell_apart(a);
	if (dblp_auth_check(listener, a, &pkt, NULL, 0) != DBLP_MIB_NONE) {
		kfree_sensitive(a);
		return -EKEYREJECTED;
	}
	if (a->heard)
		dblp_auth_forget(a);
	*ap = a;
	return 0;
}

/**
 * dblp_auth_doubts() - somebody says that there is no such connection
 * @dsk: socket, perhaps without a key
 * @err: positive errno that a refusal stands for
 *
 * Who has a key does not believe it without a tag. An attempt to connect goes on
 * for a while, as the peer may yet answer.
 *
 * Return: false if it is to be believed: there is no key.
 */
bool dblp_auth_doubts(struct dblp_sock *dsk, int err)
{
	struct dblp_auth *a = dsk->auth;

	sock_owned_by_me(&dsk->sk);
	if (!a)
		return false;
	if (dblp_connecting(dsk)) {
		if (!a->doubt)
			a->doubt_at = ktime_get_ns();
		a->doubt = err;
	}
	return true;
}

/**
 * dblp_auth_refused() - is it time to believe a refusal?
 * @dsk: connecting socket, perhaps without a key
 * @now: the time
 * @late: the attempt is over in any case
 *
 * Return: positive errno, 0 for none.
 */
int dblp_auth_refused(struct dblp_sock *dsk, u64 now, bool late)
{
	struct dblp_auth *a = dsk->auth;
	int err;

	sock_owned_by_me(&dsk->sk);
	if (!a || !a->doubt || (!late && now - a->doubt_at < DBLP_AUTH_DOUBT_NS))
		return 0;
	err = a->doubt;
	a->doubt = 0;
	return err;
}

static bool dblp_auth_is(const struct dblp_auth_keys *k, const u8 *secret)
{
	return !crypto_memneq(k->secret, secret, sizeof(k->secret));
}

/* Back to the key before, which the peer may never have left */
static void dblp_auth_swap(struct dblp_auth *a)
{
	swap(a->keys[0], a->keys[1]);
	a->old = a->ready && !a->old;
	a->heard = false;
}

/* A newer key. The one that packets are made with becomes the one before */
static void dblp_auth_push(struct dblp_auth *a, const u8 *secret)
{
	a->keys[1] = a->keys[a->old];
	memcpy(a->keys[0].secret, secret, sizeof(a->keys[0].secret));
	a->n = 2;
	a->heard = false;
	a->old = a->ready;
	if (!a->ready)
		return;
	dblp_auth_make(a, &a->keys[0]);
	dblp_auth_tell_apart(a);
}

static int dblp_auth_replace(struct dblp_auth *a, const u8 *secret, bool only)
{
	if (a->n == 2 && dblp_auth_is(&a->keys[1], secret)) {
		dblp_auth_swap(a);
	} else if (!dblp_auth_is(&a->keys[0], secret)) {
		/* Else the peer might use one that we have forgotten */
		if (a->ready && a->n == 2 && !a->heard && !only)
			return -EBUSY;
		dblp_auth_push(a, secret);
	}
	if (only)
		dblp_auth_forget(a);
	return 0;
}

/* @new is taken if there was none */
static int dblp_auth_change(struct dblp_sock *dsk, const u8 *secret, bool only,
			    struct dblp_auth **new)
{
	bool is_conn = dsk->state >= DBLP_STATE_ESTABLISHED;

	if (dblp_connecting(dsk))
		return -EBUSY;
	/* It has a key from its first packet to its last, or none */
	if (is_conn && (!dsk->auth || !secret))
		return dsk->auth || secret ? -EISCONN : 0;
	if (!is_conn && dsk->auth) {
		dsk->auth->ready = false;
		dsk->auth->old = false;
	}
	if (!secret) {
		dblp_auth_free(dsk);
		return 0;
	}
	if (dsk->auth)
		return dblp_auth_replace(dsk->auth, secret, only);
	swap(dsk->auth, *new);
	return 0;
}

/* What is kept of a key has one length, and cannot be turned back */
static void dblp_auth_secret(const struct dblp_auth_key *key, u8 *secret)
{
	static const u8 label[] = "AF_DBLP key 1";
	struct blake2s_ctx ctx;

	blake2s_init(&ctx, BLAKE2S_HASH_SIZE);
	blake2s_update(&ctx, label, sizeof(label));
	blake2s_update(&ctx, key->key, key->length);
	blake2s_final(&ctx, secret);
}

static int dblp_auth_get_key(struct dblp_auth_key *key, sockptr_t optval)
{
	if (copy_from_sockptr(key, optval, sizeof(*key)))
		return -EFAULT;
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
 * @optlen: its size
 *
 * Return: 0 or a negative errno.
 */
int dblp_auth_set(struct dblp_sock *dsk, sockptr_t optval, unsigned int optlen)
{
	u8 secret[BLAKE2S_HASH_SIZE];
	struct dblp_auth *new = NULL;
	struct dblp_auth_key key;
	int err;

	if (optlen != sizeof(key))
		return -EINVAL;
	err = dblp_auth_get_key(&key, optval);
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
	       (a->old ? DBLP_AUTH_SENDS_OLD : 0);
}

/** dblp_auth_free() - forget all keys of a socket that nobody sends with */
void dblp_auth_free(struct dblp_sock *dsk)
{
	kfree_sensitive(dsk->auth);
	dsk->auth = NULL;
}
