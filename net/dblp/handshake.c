// SPDX-License-Identifier: GPL-2.0-only
/*
 * The four-way handshake: INIT, INIT-ACK, COOKIE-ECHO, COOKIE-ACK, like that of
 * SCTP (RFC 9260 section 5.1). A server holds no state until the client has
 * validated its address by returning the cookie. No stateless answer is longer
 * than the packet that it answers.
 */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/unaligned.h>
#include <net/rps.h>

#include "dblp.h"
#include "core/spent.h"

/*
 * Cookies validate the address of a client. Making and checking a cookie needs
 * no state of the client and no socket lock. Each cookie makes at most one
 * connection, because a table of fixed size records spent cookies. The first
 * listener of a namespace allocates this table.
 */

#define DBLP_SPENT_PLACES	1024

/**
 * struct dblp_spent_place - a bucket of the table of spent cookies
 * @lock: innermost lock, taken inside socket locks
 * @spent: spent cookies whose connection ID hashes to this bucket
 */
struct dblp_spent_place {
	spinlock_t		lock;	/* see above */
	struct dblp_spent	spent;
};

/* Clients see the times of cookies. The random epoch hides the uptime */
static u64 dblp_now_ms(const struct dblp_net *dn)
{
	return dn->cookie_epoch_ms +
	       div_u64(ktime_get_boottime_ns(), NSEC_PER_MSEC);
}

static u64 dblp_cookie_mac(const struct dblp_net *dn,
			   const struct dblp_cookie *c, u64 client_cid,
			   const struct sockaddr_dblp *client,
			   const struct sockaddr_dblp *server, int zone)
{
	struct {
		u64		scid;
		u64		born_ms;
		u64		client_cid;
		struct in6_addr	client_addr;
		struct in6_addr	server_addr;
		__be16		client_port;
		__be16		server_port;
		u32		features;
		u64		zone;
	} __aligned(SIPHASH_ALIGNMENT) in = {
		.scid = c->scid,
		.born_ms = c->born_ms,
		.client_cid = client_cid,
		.client_addr = client->sdblp_addr,
		.server_addr = server->sdblp_addr,
		.client_port = client->sdblp_port,
		.server_port = server->sdblp_port,
		.features = c->features,
		.zone = zone,
	};

	return siphash(&in, sizeof(in), &dn->cookie_key);
}

/* Complete a cookie, of which only @scid is set, for a client */
static void dblp_cookie_sign(const struct dblp_net *dn, struct dblp_cookie *c,
			     u64 client_cid, const struct sockaddr_dblp *client,
			     const struct sockaddr_dblp *server, int zone)
{
	c->born_ms = dblp_now_ms(dn);
	c->features = DBLP_FEATURES;
	c->mac = dblp_cookie_mac(dn, c, client_cid, client, server, zone);
}

/* Peers cannot choose the bucket, because this end chooses random IDs */
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

/* Record a cookie as spent. Returns false if it was spent before */
static bool dblp_cookie_spend(const struct dblp_net *dn,
			      const struct dblp_cookie *c)
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

/*
 * Parse a COOKIE-ECHO. Returns DBLP_MIB_NONE, or the drop reason if the packet
 * is malformed, or its cookie forged, of another client, too old, or spent.
 */
static enum dblp_mib_item dblp_echo_get(const struct dblp_net *dn,
					const struct dblp_run *run,
					struct dblp_echo *echo)
{
	const u8 *p = run->p + DBLP_HDR_LEN;
	struct dblp_cookie *c = &echo->cookie;
	struct sockaddr_dblp client, server;
	int zone;

	echo->client_cid = dblp_get_u64(p);
	echo->ports = run->h.seg_size ?: 1;
	dblp_get_cookie(c, p + 8);
	echo->time = dblp_get_u64(run->p + DBLP_ECHO_LEN - DBLP_TIME_LEN);
	if (dblp_get_params(&echo->params, p + 8 + DBLP_COOKIE_LEN) !=
	    DBLP_WIRE_OK)
		return DBLP_MIB_DROPFIELD;
	dblp_skb_addrs(run->train->skb, &client, &server);
	zone = dblp_skb_zone(run->train->skb, &client.sdblp_addr,
			     &server.sdblp_addr);
	if (!echo->client_cid || c->scid != run->h.dcid ||
	    c->mac != dblp_cookie_mac(dn, c, echo->client_cid, &client,
				      &server, zone))
		return DBLP_MIB_COOKIEBAD;
	if (dblp_now_ms(dn) - c->born_ms > DBLP_COOKIE_LIFE_MS ||
	    dblp_cookie_spent(dn, c))
		return DBLP_MIB_COOKIESTALE;
	return DBLP_MIB_NONE;
}

/**
 * dblp_cookies_prepare() - allocate the table of spent cookies
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
	/* Another listener may have set the table meanwhile */
	if (cmpxchg(&dn->spent, NULL, places))
		kvfree(places);
	return 0;
}

/** dblp_cookies_exit() - free the table of spent cookies; @dn has no users */
void dblp_cookies_exit(struct dblp_net *dn)
{
	kvfree(dn->spent);
}

/* Set the parameters that this end sends to the peer */
static void dblp_our_params(const struct dblp_sock *dsk, struct dblp_params *p)
{
	p->cap = dsk->opt.cap;
	p->max_msg = dsk->rx.id_limit;
	p->window = dsk->rx.window_max;
	p->max_data = dblp_first_credit(dsk);
	p->msg_max = dsk->rx.len_max;
	/* A server has measured none yet, and sends its features in the cookie */
	p->rtt_us = dsk->passive ? 0 :
		    min_t(u64, div_u64(dsk->hs.rtt, NSEC_PER_USEC),
			  DBLP_PARAMS_RTT_MAX);
	p->features = dsk->passive ? 0 : dsk->features;
}

static u64 dblp_new_cid(void)
{
	u64 cid;

	do {
		cid = get_random_u64();
	} while (!cid);
	return cid;
}

static u8 *dblp_put_plain_hdr(u8 *p, u8 type, u64 dcid)
{
	struct dblp_hdr h = {
		.type = type,
		.dcid = dcid,
	};

	return dblp_put_hdr(p, &h);
}

/*
 * May another RST be sent? The limit is per source address, because one source
 * could use up a common limit and deny RSTs to all others.
 */
static bool dblp_rst_allowed(struct dblp_net *dn, const struct sk_buff *skb)
{
	u64 host = siphash_1u64(dblp_skb_source(skb), &dn->cookie_key);

	return dblp_rate_count(&dn->rst[host % DBLP_RST_QUOTAS],
			       DBLP_RST_PER_SECOND) < DBLP_RST_PER_SECOND;
}

/*
 * Answer a packet with a RST to connection ID @dcid. The RST echoes the
 * connection ID that the packet was sent to, or @dcid if that is 0: an INIT.
 */
static void dblp_rst_reply(struct dblp_endpoint *ep, const struct dblp_run *run,
			   enum dblp_rst_reason reason, u64 dcid)
{
	const struct sk_buff *skb = run->train->skb;
	u8 out[DBLP_RST_LEN];
	u8 *p;

	if (run->len < DBLP_RST_LEN ||
	    !dblp_rst_allowed(dblp_pernet(ep->net), skb))
		return;
	p = dblp_put_plain_hdr(out, DBLP_PKT_RST, dcid);
	put_unaligned_be32(reason, p);
	put_unaligned_be32(0, p + 4);
	dblp_put_u64(p + 8, run->h.dcid ?: dcid);
	dblp_reply(ep, skb, out, sizeof(out));
	DBLP_INC_STATS(ep->net, DBLP_MIB_RSTSENT);
}

/* Refuse a client because there is no listener */
static enum dblp_mib_item dblp_refuse(struct dblp_endpoint *ep,
				      const struct dblp_run *run, u64 cid)
{
	dblp_rst_reply(ep, run, DBLP_RST_REFUSED, cid);
	return DBLP_MIB_DROPNOLISTENER;
}

/**
 * dblp_rst_unknown() - answer a packet of an unknown connection with a RST
 * @ep: endpoint that received the packet
 * @run: packet other than a RST. The RST echoes its connection ID to prove
 *	that it answers the packet
 */
void dblp_rst_unknown(struct dblp_endpoint *ep, const struct dblp_run *run)
{
	dblp_rst_reply(ep, run, DBLP_RST_UNKNOWN, 0);
}

/* Find the listener for a packet, or NULL; called under RCU */
static struct dblp_sock *dblp_find_listener(const struct dblp_endpoint *ep,
					    const struct sk_buff *skb)
{
	struct dblp_sock *dsk = rcu_dereference(ep->listener);

	/* The listener may have been bound to a device after its endpoint */
	if (!dsk || !dblp_skb_is_via(skb, READ_ONCE(dsk->sk.sk_bound_dev_if)) ||
	    !dblp_same_policy(&dsk->sk, ep->usk, CGROUP_INET_INGRESS))
		return NULL;
	return dsk;
}

/**
 * dblp_handshake_init() - answer an INIT with a cookie
 * @ep: endpoint that received it
 * @run: the packet
 *
 * Context: softirq, RCU; no socket lock is taken.
 * Return: the drop reason, or DBLP_MIB_NONE.
 */
enum dblp_mib_item dblp_handshake_init(struct dblp_endpoint *ep,
				       const struct dblp_run *run)
{
	const struct sk_buff *skb = run->train->skb;
	u32 padding = DBLP_HDR_LEN + 8 + DBLP_TIME_LEN;
	struct sockaddr_dblp client, server;
	u8 out[DBLP_INIT_ACK_LEN];
	struct dblp_cookie cookie;
	u64 cid;
	u8 *p;

	cid = dblp_get_u64(run->p + DBLP_HDR_LEN);
	if (run->h.dcid || !cid ||
	    memchr_inv(run->p + padding, 0, DBLP_INIT_LEN - padding))
		return DBLP_MIB_DROPFIELD;
	if (!dblp_find_listener(ep, skb))
		return dblp_refuse(ep, run, cid);

	dblp_skb_addrs(skb, &client, &server);
	cookie.scid = dblp_new_cid();
	dblp_cookie_sign(dblp_pernet(ep->net), &cookie, cid, &client, &server,
			 dblp_skb_zone(skb, &client.sdblp_addr,
				       &server.sdblp_addr));

	p = dblp_put_plain_hdr(out, DBLP_PKT_INIT_ACK, cid);
	p = dblp_put_cookie(p, &cookie);
	memcpy(p, run->p + DBLP_HDR_LEN + 8, DBLP_TIME_LEN);
	dblp_reply(ep, skb, out, sizeof(out));
	DBLP_INC_STATS(ep->net, DBLP_MIB_COOKIESENT);
	return DBLP_MIB_NONE;
}

/**
 * dblp_handshake_version() - answer an INIT of another version
 * @ep: endpoint that received it
 * @run: the packet
 */
void dblp_handshake_version(struct dblp_endpoint *ep,
			    const struct dblp_run *run)
{
	u8 out[DBLP_HDR_LEN + 8 + 4];
	u8 *p;

	if (run->len < DBLP_INIT_LEN ||
	    !dblp_find_listener(ep, run->train->skb))
		return;
	p = dblp_put_plain_hdr(out, DBLP_PKT_VERSION, 0);
	p = dblp_put_u64(p, dblp_get_u64(run->p + DBLP_HDR_LEN));
	put_unaligned_be32(DBLP_VERSION, p);
	dblp_reply(ep, run->train->skb, out, sizeof(out));
}

/* Refuse a client with a cookie; also called from the listener's backlog */
static void dblp_rst_client(struct dblp_sock *listener,
			    const struct dblp_run *run,
			    enum dblp_rst_reason reason, u64 cid)
{
	local_bh_disable();
	rcu_read_lock();
	dblp_rst_reply(listener->ep, run, reason, cid);
	rcu_read_unlock();
	local_bh_enable();
}

static struct dblp_sock *dblp_child_alloc(struct dblp_sock *listener,
					  const struct sk_buff *skb)
{
	struct dblp_sock *dsk = dblp_sock_clone(listener);

	if (!dsk)
		return NULL;
	dsk->ep = listener->ep;
	dblp_endpoint_get(dsk->ep);
	dblp_skb_addrs(skb, &dsk->peer, &dsk->local);
	dsk->local.sdblp_flowinfo = listener->local.sdblp_flowinfo;
	dsk->sk.sk_bound_dev_if = dblp_skb_device(skb, dsk->ep, &listener->sk);
	dblp_path_init(&dsk->path, &dsk->local, &dsk->peer, &dsk->sk,
		       dsk->sk.sk_bound_dev_if);
	return dsk;
}

/* Send a COOKIE-ACK. @time: time in the COOKIE-ECHO */
static void dblp_send_cookie_ack(struct dblp_sock *dsk, u64 time)
{
	u8 out[DBLP_COOKIE_ACK_LEN];
	struct dblp_params ours;
	u8 *p;

	dblp_our_params(dsk, &ours);
	p = dblp_put_plain_hdr(out, DBLP_PKT_COOKIE_ACK, dsk->peer_key.cid);
	dblp_put_u64(dblp_put_params(p, &ours), time);
	dblp_send_raw(dsk, out, sizeof(out));
}

static int dblp_child_create(struct dblp_sock *listener,
			     const struct sk_buff *skb,
			     const struct dblp_echo *echo,
			     struct dblp_auth *auth)
{
	const struct dblp_params *theirs = &echo->params;
	struct dblp_sock *dsk;
	int err = -ENOMEM;

	dsk = dblp_child_alloc(listener, skb);
	if (!dsk) {
		kfree_sensitive(auth);
		return -ENOMEM;
	}
	/* The clone has the hash of the listener's latest packet */
	sock_rps_save_rxhash(&dsk->sk, skb);
	dsk->auth = auth;
	dsk->cid = echo->cookie.scid;
	dsk->opt.spray = echo->ports;
	dsk->passive = true;
	dsk->features = theirs->features & DBLP_FEATURES;
	dsk->peer_key.cid = echo->client_cid;
	dsk->peer_key.addr = dsk->peer.sdblp_addr;
	dsk->peer_key.port = dsk->peer.sdblp_port;
	dsk->peer_key.zone = dblp_skb_zone(skb, &dsk->peer.sdblp_addr,
					   &dsk->local.sdblp_addr);

	err = dblp_conn_start(dsk, GFP_ATOMIC);
	if (err)
		goto err_put;

	/*
	 * From here on netlink and packets can find the socket. The backlog of
	 * the listener is processed with softirqs enabled: disable them.
	 */
	local_bh_disable();
	bh_lock_sock_nested(&dsk->sk);
	err = dblp_sock_number(dsk, GFP_ATOMIC);
	if (err)
		goto err_unlock;
	if (listener->conf.job)
		dblp_enter_job(dsk, listener->conf.job);
	err = dblp_conn_hash(dsk);
	/* The lock is held, so the connection cannot end before this */
	if (!err && !dblp_cookie_spend(dsk->dn, &echo->cookie))
		err = -EEXIST;
	if (err)
		goto err_unhash;
	dblp_conn_established(dsk, theirs,
			      (u64)theirs->rtt_us * NSEC_PER_USEC);
	dblp_send_cookie_ack(dsk, echo->time);
	bh_unlock_sock(&dsk->sk);
	local_bh_enable();

	list_add_tail(&dsk->accept, &listener->accept);
	sk_acceptq_added(&listener->sk);
	return 0;

err_unhash:
	dblp_conn_unhash(dsk);
	dblp_sock_unnumber(dsk);
err_unlock:
	bh_unlock_sock(&dsk->sk);
	local_bh_enable();
err_put:
	sock_set_flag(&dsk->sk, SOCK_DEAD);
	sock_put(&dsk->sk);
	return err;
}

/* Parse a COOKIE-ECHO, and check that @listener may accept it */
static enum dblp_mib_item dblp_echo_check(const struct dblp_sock *listener,
					  const struct dblp_run *run,
					  struct dblp_echo *echo)
{
	enum dblp_mib_item why = dblp_echo_get(listener->dn, run, echo);

	if (why == DBLP_MIB_NONE && sk_acceptq_is_full(&listener->sk))
		return DBLP_MIB_ACCEPTQUEUEFULL;
	return why;
}

/**
 * dblp_handshake_echo() - find the listener for a COOKIE-ECHO
 * @ep: endpoint that received the packet
 * @run: the packet
 * @dsk: set to the listener, with a reference
 *
 * Invalid packets are dropped without the lock or the backlog of the listener.
 *
 * Context: softirq, RCU.
 * Return: the drop reason, or DBLP_MIB_NONE.
 */
enum dblp_mib_item dblp_handshake_echo(struct dblp_endpoint *ep,
				       const struct dblp_run *run,
				       struct dblp_sock **dsk)
{
	struct dblp_sock *listener = dblp_find_listener(ep, run->train->skb);
	struct dblp_echo echo;
	enum dblp_mib_item why;

	if (!listener)
		return dblp_refuse(ep, run,
				   dblp_get_u64(run->p + DBLP_HDR_LEN));
	why = dblp_echo_check(listener, run, &echo);
	if (why != DBLP_MIB_NONE)
		return why;
	if (!refcount_inc_not_zero(&listener->sk.sk_refcnt))
		return DBLP_MIB_DROPNOLISTENER;
	*dsk = listener;
	return DBLP_MIB_NONE;
}

/* Make a connection. Check again, as the packet may have been in the backlog */
static enum dblp_mib_item dblp_accept_echo(struct dblp_sock *listener,
					   const struct dblp_run *run)
{
	const struct sk_buff *skb = run->train->skb;
	enum dblp_mib_item why;
	struct dblp_echo echo;
	struct dblp_auth *auth;
	int err;

	why = dblp_echo_check(listener, run, &echo);
	if (why != DBLP_MIB_NONE)
		return why;

	err = dblp_auth_accept(listener, run, &echo, &auth);
	if (err == -EKEYREJECTED) {
		dblp_rst_client(listener, run, DBLP_RST_AUTH, echo.client_cid);
		return DBLP_MIB_DROPAUTH;
	}
	if (!err && echo.ports > listener->opt.spray) {
		kfree_sensitive(auth);
		dblp_rst_client(listener, run, DBLP_RST_SPRAY, echo.client_cid);
		return DBLP_MIB_DROPPORT;
	}
	if (!err)
		err = dblp_child_create(listener, skb, &echo, auth);
	/* A duplicate of this packet may have been in the backlog */
	if (err == -EEXIST)
		return DBLP_MIB_DROPDUPLICATE;
	if (err)
		return DBLP_MIB_DROPMEMORY;
	DBLP_INC_SK_STATS(listener, DBLP_MIB_CONNPASSIVE);
	listener->sk.sk_data_ready(&listener->sk);
	return DBLP_MIB_NONE;
}

/**
 * dblp_rcv_cookie_echo() - process a COOKIE-ECHO
 * @dsk: listener, or a connection whose COOKIE-ACK was lost
 * @run: the packet
 *
 * Return: the drop reason, or DBLP_MIB_NONE.
 */
enum dblp_mib_item dblp_rcv_cookie_echo(struct dblp_sock *dsk,
					struct dblp_run *run)
{
	sock_owned_by_me(&dsk->sk);
	if (dsk->state == DBLP_STATE_LISTEN)
		return dblp_accept_echo(dsk, run);
	if (!dsk->passive ||
	    dblp_get_u64(run->p + DBLP_HDR_LEN) != dsk->peer_key.cid)
		return DBLP_MIB_DROPSTATE;
	dblp_send_cookie_ack(dsk, dblp_get_u64(run->p + DBLP_ECHO_LEN -
					       DBLP_TIME_LEN));
	return DBLP_MIB_NONE;
}

/*
 * Time in a packet of the handshake, which the answer echoes. So each answer
 * gives a sample of the round-trip time, whichever repetition it answers. The
 * time counts from the first packet of the state, to hide this machine's clock.
 */
static u64 dblp_handshake_time(const struct dblp_sock *dsk, u64 now)
{
	return now - dsk->hs.since;
}

/*
 * Round-trip time in ns from the time that an answer echoes; 0 if this time is
 * later than that of the last packet, and so invalid.
 */
static u64 dblp_handshake_rtt(const struct dblp_sock *dsk, u64 echoed)
{
	u64 now = dblp_handshake_time(dsk, ktime_get_ns());

	return echoed <= dblp_handshake_time(dsk, dsk->hs.sent) ? now - echoed :
								  0;
}

static void dblp_send_init(struct dblp_sock *dsk, u64 now)
{
	u8 out[DBLP_INIT_LEN] = {};
	u8 *p;

	p = dblp_put_plain_hdr(out, DBLP_PKT_INIT, 0);
	p = dblp_put_u64(p, dsk->cid);
	dblp_put_u64(p, dblp_handshake_time(dsk, now));
	dblp_send_raw(dsk, out, sizeof(out));
}

static void dblp_send_echo(struct dblp_sock *dsk, u64 now)
{
	struct dblp_hdr h = {
		.type = DBLP_PKT_COOKIE_ECHO,
		.seg_size = dsk->opt.spray > 1 ? dsk->opt.spray : 0,
		.dcid = dsk->hs.cookie.scid,
	};
	u8 out[DBLP_ECHO_LEN];
	struct dblp_params ours;
	u8 *p;

	dblp_our_params(dsk, &ours);
	p = dblp_put_u64(dblp_put_hdr(out, &h), dsk->cid);
	p = dblp_put_cookie(p, &dsk->hs.cookie);
	p = dblp_put_params(p, &ours);
	dblp_put_u64(p, dblp_handshake_time(dsk, now));
	dblp_send_raw(dsk, out, sizeof(out));
}

/* Enter a state of the handshake. The caller sends its first packet */
static void dblp_handshake_state(struct dblp_sock *dsk, u8 state, u64 now)
{
	dblp_set_state(dsk, state, 0);
	dsk->hs.since = now;
	dsk->hs.sent = now;
	dsk->hs.wait = DBLP_HANDSHAKE_MIN_NS;
}

/* Enter a client in the table of connections, unless already done */
static int dblp_handshake_hash(struct dblp_sock *dsk)
{
	int err;

	if (dsk->hashed)
		return 0;
	do {
		dsk->cid = dblp_new_cid();
		err = dblp_conn_hash(dsk);
	} while (err == -EEXIST);
	return err;
}

/*
 * Request another cookie, under another connection ID. The server may have made
 * a connection from the previous cookie, whose packets must not count as
 * answers. A RST will tell the server that this connection has no peer.
 */
static void dblp_handshake_restart(struct dblp_sock *dsk, u64 now)
{
	dblp_handshake_reset(dsk);
	dblp_handshake_state(dsk, DBLP_STATE_INIT_SENT, now);
}

/**
 * dblp_handshake_start() - begin to connect
 * @dsk: socket with path and endpoint
 *
 * Return: 0, or -ENOMEM; then the caller must call dblp_conn_unstart().
 */
int dblp_handshake_start(struct dblp_sock *dsk)
{
	int err;

	sock_owned_by_me(&dsk->sk);
	err = dblp_conn_start(dsk, GFP_KERNEL);
	if (err)
		return err;
	err = dblp_handshake_hash(dsk);
	if (err)
		return err;
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_CONNACTIVE);
	dsk->connect_at = ktime_get_ns();
	dsk->sk.sk_state = TCP_SYN_SENT;
	dblp_handshake_state(dsk, DBLP_STATE_INIT_SENT, dsk->connect_at);
	dblp_handshake_repeat(dsk, dsk->connect_at);
	return 0;
}

static void dblp_handshake_send(struct dblp_sock *dsk, u64 now)
{
	dsk->hs.sent = now;
	if (dsk->state == DBLP_STATE_INIT_SENT)
		dblp_send_init(dsk, now);
	else
		dblp_send_echo(dsk, now);
}

/**
 * dblp_handshake_repeat() - send or repeat the packet of the current state
 * @dsk: connecting socket
 * @now: the time
 *
 * The first repetition is early, because there is no RTT sample yet, and an
 * initial RTO of a second is too long for data centres. On longer paths,
 * doubling the interval and dblp_backoff() prevent harm.
 */
void dblp_handshake_repeat(struct dblp_sock *dsk, u64 now)
{
	u64 end = dsk->connect_at +
		  (u64)dsk->opt.user_timeout_ms * NSEC_PER_MSEC;
	int refused = dblp_auth_refused(dsk, now, now >= end);
	u64 silence = now - dsk->connect_at;

	sock_owned_by_me(&dsk->sk);
	if (refused) {
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_CONNREFUSED);
		dblp_done(dsk, refused);
		return;
	}
	if (now >= end) {
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_CONNTIMEOUT);
		dblp_done(dsk, ETIMEDOUT);
		return;
	}
	/* The cookie has expired */
	if (dsk->state == DBLP_STATE_COOKIE_SENT &&
	    now - dsk->hs.since >
	    (u64)DBLP_COOKIE_LIFE_MS * NSEC_PER_MSEC)
		dblp_handshake_restart(dsk, now);

	/* If there is no memory to enter the client, send nothing, and retry */
	if (!dblp_handshake_hash(dsk))
		dblp_handshake_send(dsk, now);
	dsk->due.handshake = min(end, now + dblp_backoff(dsk->hs.wait,
							 silence));
	dsk->hs.wait = min_t(u64, 2 * dsk->hs.wait, DBLP_HANDSHAKE_MAX_NS);
	dblp_timer_update(dsk);
}

/* Fail because the peer lacks a version or feature that this end needs */
static enum dblp_mib_item dblp_not_supported(struct dblp_sock *dsk)
{
	if (!dblp_auth_note_refusal(dsk, EPROTONOSUPPORT))
		dblp_done(dsk, EPROTONOSUPPORT);
	return DBLP_MIB_NONE;
}

/**
 * dblp_rcv_init_ack() - process an INIT-ACK
 * @dsk: connecting socket
 * @run: the packet
 *
 * Return: the drop reason, or DBLP_MIB_NONE.
 */
enum dblp_mib_item dblp_rcv_init_ack(struct dblp_sock *dsk,
				     struct dblp_run *run)
{
	u64 now;

	sock_owned_by_me(&dsk->sk);
	/* The handshake may have restarted since the lookup by this ID */
	if (run->h.dcid != dsk->cid)
		return DBLP_MIB_DROPUNKNOWNCONN;
	dblp_get_cookie(&dsk->hs.cookie, run->p + DBLP_HDR_LEN);
	if (!dsk->hs.cookie.scid)
		return DBLP_MIB_DROPFIELD;
	if (dsk->opt.spray > 1 &&
	    !(dsk->hs.cookie.features & DBLP_FEATURE_SPRAY))
		return dblp_not_supported(dsk);
	/* Only the client can measure it, because the server has no state */
	dsk->hs.rtt = dblp_handshake_rtt(dsk, dblp_get_u64(run->p +
						DBLP_INIT_ACK_LEN -
						DBLP_TIME_LEN));
	dsk->features = dsk->hs.cookie.features & DBLP_FEATURES;
	dsk->peer_key.cid = dsk->hs.cookie.scid;
	dsk->peer_key.zone = dblp_skb_zone(run->train->skb,
					   &dsk->peer.sdblp_addr,
					   &dsk->local.sdblp_addr);
	if (dblp_conn_hash(dsk)) {
		dsk->peer_key.cid = 0;
		return DBLP_MIB_DROPMEMORY;
	}
	dblp_auth_connect(dsk);
	now = ktime_get_ns();
	dblp_handshake_state(dsk, DBLP_STATE_COOKIE_SENT, now);
	dblp_handshake_repeat(dsk, now);
	return DBLP_MIB_NONE;
}

/**
 * dblp_rcv_cookie_ack() - process a COOKIE-ACK
 * @dsk: connecting socket
 * @run: the packet
 *
 * Return: the drop reason, or DBLP_MIB_NONE.
 */
enum dblp_mib_item dblp_rcv_cookie_ack(struct dblp_sock *dsk,
				       struct dblp_run *run)
{
	struct dblp_params theirs;
	u64 rtt;

	sock_owned_by_me(&dsk->sk);
	/* As in dblp_rcv_init_ack() */
	if (run->h.dcid != dsk->cid)
		return DBLP_MIB_DROPUNKNOWNCONN;
	if (dblp_get_params(&theirs, run->p + DBLP_HDR_LEN) != DBLP_WIRE_OK ||
	    theirs.features)
		return DBLP_MIB_DROPFIELD;

	rtt = dblp_handshake_rtt(dsk, dblp_get_u64(run->p +
						   DBLP_COOKIE_ACK_LEN -
						   DBLP_TIME_LEN));
	dblp_auth_connected(dsk);
	dblp_conn_established(dsk, &theirs, rtt ?: dsk->hs.rtt);
	dsk->sk.sk_state_change(&dsk->sk);
	return DBLP_MIB_NONE;
}

/**
 * dblp_rcv_version() - process a VERSION packet
 * @dsk: connecting socket
 * @run: the packet
 *
 * Return: the drop reason, or DBLP_MIB_NONE.
 */
enum dblp_mib_item dblp_rcv_version(struct dblp_sock *dsk, struct dblp_run *run)
{
	u32 at;

	sock_owned_by_me(&dsk->sk);
	for (at = DBLP_HDR_LEN + 8; at + 4 <= run->len; at += 4)
		if (get_unaligned_be32(run->p + at) == DBLP_VERSION)
			return DBLP_MIB_DROPFIELD;
	return dblp_not_supported(dsk);
}
