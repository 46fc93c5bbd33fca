// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cookies: what a client brings back to show that it gets packets at its
 * address. To make and to check one needs no state of a client and no lock of a
 * socket. That each makes one connection is remembered in a table of fixed
 * size, which a namespace gets when somebody in it listens for the first time.
 */
#include <linux/mm.h>

#include "dblp.h"
#include "core/spent.h"

#define DBLP_SPENT_PLACES	1024

/**
 * struct dblp_spent_place - some of the cookies that were spent
 * @lock: innermost, nests in that of any socket
 * @spent: those whose connection ID leads here
 */
struct dblp_spent_place {
	spinlock_t		lock;	/* see above */
	struct dblp_spent	spent;
};

static u64 dblp_now_ms(void)
{
	return div_u64(ktime_get_boottime_ns(), NSEC_PER_MSEC);
}

static u64 dblp_cookie_mac(const struct dblp_net *dn,
			   const struct dblp_cookie *c, u64 client_cid,
			   const struct sockaddr_dblp *client,
			   const struct sockaddr_dblp *server)
{
	struct {
		u64		scid;
		u64		born_ms;
		u64		client_cid;
		struct in6_addr	client_addr;
		struct in6_addr	server_addr;
		__be16		client_port;
		__be16		server_port;
		u32		pad;
	} __aligned(SIPHASH_ALIGNMENT) in = {
		.scid = c->scid,
		.born_ms = c->born_ms,
		.client_cid = client_cid,
		.client_addr = client->sdblp_addr,
		.server_addr = server->sdblp_addr,
		.client_port = client->sdblp_port,
		.server_port = server->sdblp_port,
	};

	return siphash(&in, sizeof(in), &dn->cookie_key);
}

/**
 * dblp_cookie_sign() - make a cookie
 * @dn: namespace
 * @c: its @scid is set, the others are filled
 * @client_cid: connection ID of who gets it
 * @client: his address
 * @server: ours
 */
void dblp_cookie_sign(const struct dblp_net *dn, struct dblp_cookie *c,
		      u64 client_cid, const struct sockaddr_dblp *client,
		      const struct sockaddr_dblp *server)
{
	c->born_ms = dblp_now_ms();
	c->mac = dblp_cookie_mac(dn, c, client_cid, client, server);
}

/* Connection IDs are random, and ours: nobody chooses where his leads */
static struct dblp_spent_place *dblp_spent_place(const struct dblp_net *dn,
						 u64 cid)
{
	return &READ_ONCE(dn->spent)[cid % DBLP_SPENT_PLACES];
}

static bool dblp_cookie_spent(const struct dblp_net *dn,
			      const struct dblp_cookie *c)
{
	struct dblp_spent_place *place = dblp_spent_place(dn, c->scid);
	bool spent;

	spin_lock_bh(&place->lock);
	spent = dblp_spent_has(&place->spent, c->scid, c->born_ms);
	spin_unlock_bh(&place->lock);
	return spent;
}

/**
 * dblp_cookie_spend() - a cookie makes a connection, and no second one
 * @dn: namespace, in which somebody listens
 * @c: the cookie
 *
 * Return: false if it has made one already.
 */
bool dblp_cookie_spend(const struct dblp_net *dn, const struct dblp_cookie *c)
{
	struct dblp_spent_place *place = dblp_spent_place(dn, c->scid);
	bool spent;

	spin_lock_bh(&place->lock);
	spent = dblp_spent_has(&place->spent, c->scid, c->born_ms);
	if (!spent)
		dblp_spent_add(&place->spent, c->scid, c->born_ms);
	spin_unlock_bh(&place->lock);
	return !spent;
}

/**
 * dblp_echo_get() - what a COOKIE-ECHO carries
 * @dn: namespace, in which somebody listens
 * @run: the packet
 * @echo: filled
 *
 * Context: any; no socket is needed.
 * Return: why a packet is not what it should be, or its cookie not ours, not for
 * this client, too old or spent; or DBLP_MIB_NONE.
 */
enum dblp_mib_item dblp_echo_get(const struct dblp_net *dn,
				 const struct dblp_run *run,
				 struct dblp_echo *echo)
{
	const u8 *p = run->p + DBLP_HDR_LEN;
	struct dblp_cookie *c = &echo->cookie;
	struct sockaddr_dblp client, server;

	echo->client_cid = dblp_get_u64(p);
	dblp_get_cookie(c, p + 8);
	if (dblp_get_params(&echo->params, p + 8 + DBLP_COOKIE_LEN) !=
	    DBLP_WIRE_OK)
		return DBLP_MIB_DROPFIELD;
	dblp_skb_addrs(run->train->skb, &client, &server);
	if (!echo->client_cid || c->scid != run->h.dcid ||
	    c->mac != dblp_cookie_mac(dn, c, echo->client_cid, &client,
				      &server))
		return DBLP_MIB_COOKIEBAD;
	if (dblp_now_ms() - c->born_ms > DBLP_COOKIE_LIFE_MS ||
	    dblp_cookie_spent(dn, c))
		return DBLP_MIB_COOKIESTALE;
	return DBLP_MIB_NONE;
}

/**
 * dblp_cookies_prepare() - somebody will listen
 * @dn: namespace
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int dblp_cookies_prepare(struct dblp_net *dn)
{
	struct dblp_spent_place *places;
	u32 i;

	if (READ_ONCE(dn->spent))
		return 0;
	places = kvcalloc(DBLP_SPENT_PLACES, sizeof(*places),
			  GFP_KERNEL_ACCOUNT);
	if (!places)
		return -ENOMEM;
	for (i = 0; i < DBLP_SPENT_PLACES; i++)
		spin_lock_init(&places[i].lock);
	/* Another listener may have been faster */
	if (cmpxchg(&dn->spent, NULL, places))
		kvfree(places);
	return 0;
}

/** dblp_cookies_exit() - forget all cookies; nobody else uses @dn any more */
void dblp_cookies_exit(struct dblp_net *dn)
{
	kvfree(dn->spent);
}
