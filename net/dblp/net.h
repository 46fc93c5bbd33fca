/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Common to all layers above: limits and times, namespaces, endpoints, paths,
 * memory, timers. phase.h, window.h and netlink/event.h have the rest.
 */
#ifndef _NET_DBLP_NET_H
#define _NET_DBLP_NET_H

#include <linux/bpf-cgroup.h>
#include <linux/dblp.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/pkt_sched.h>
#include <linux/rhashtable.h>
#include <linux/siphash.h>
#include <linux/skbuff.h>
#include <linux/xarray.h>
#include <net/flow.h>
#include <net/net_namespace.h>

#include "core/spray.h"
#include "netlink/event.h"
#include "mib.h"
#include "phase.h"
#include "rate.h"

struct dblp_sent_pkt;
struct dblp_sock;
struct dblp_tx_msg;

/* The packet was not dropped */
#define DBLP_MIB_NONE	__DBLP_MIB_MAX

/* Limits and times */
enum dblp_limits {
	/* Original sizes of structures, in bytes: see abi.rst */
	DBLP_SNDINFO_FIRST	= 32,
	DBLP_AUTH_KEY_FIRST	= 72,
	/* Bytes of credit that a message uses besides its own: see FLOW */
	DBLP_MSG_COST		= 1024,
	/* Messages that may be open at once in each direction */
	DBLP_MSG_WINDOW		= 4096,
	/* Unread reports on the error queue from which on no message begins */
	DBLP_NOTIFY_MAX		= 4096,
	/* Message bytes: default receive window and send buffer */
	DBLP_WINDOW_DEFAULT	= 32 << 20,
	DBLP_WINDOW_MIN		= 4096,
	/* Bytes of initial credit, if that is more than 1/16 of the window */
	DBLP_WINDOW_FIRST	= 65536,
	/* Data packets pending before an ACK is due */
	DBLP_ACK_EVERY		= 2,
	/* Data packets pending that force an ACK at once */
	DBLP_ACK_EVERY_FAST	= 64,
	/* Packets received before ACKs are spaced by DBLP_ACK_SPACE_NS */
	DBLP_ACK_QUICKLY	= 128,
	/* Bytes of CLOSE frames that a packet repeats before the ACK */
	DBLP_CLOSES_AGAIN	= 256,
	/*
	 * Answers bypass window and pacer. Their bytes are limited to 3 times
	 * the bytes received, at most to the size of the largest train.
	 * DBLP_ANSWER_MIN bytes are always allowed, for an ACK of the latest
	 * packets
	 */
	DBLP_ANSWER_TIMES	= 3,
	DBLP_ANSWER_MAX		= 65536,
	DBLP_ANSWER_MIN		= 64,
	/* Messages that are processed in one step of deferred work */
	DBLP_STEPS		= 32,
	/* Packets in flight that a probe examines for a segment to repeat */
	DBLP_PROBE_LOOK		= 64,
	/* Packets of a probe: two, RFC 9002 section 6.2.4, and a CTRL packet */
	DBLP_PROBE_PKTS		= 3,
	/* Bytes of a probe reserved for dblp_put_ack_frames() */
	DBLP_ACK_FRAMES_ROOM	= DBLP_CLOSES_AGAIN + 64,
	/* Packets in the sent ring; the smallest has room for a probe */
	DBLP_SENT_RING_MIN	= 4,
	DBLP_SENT_RING_MAX	= 1 << 16,
	/* Bytes of the backlog in addition to those received */
	DBLP_BACKLOG_MAX	= 1 << 20,
	/* DSCP EF: a CLOSE must overtake the data that it makes useless */
	DBLP_CTL_TOS		= 0xb8,
	/* Priority for that DSCP in queues of this machine */
	DBLP_CTL_PRIORITY	= TC_PRIO_INTERACTIVE,
	/* Stateless RSTs per source, and hash buckets of sources */
	DBLP_RST_PER_SECOND	= 1000,
	DBLP_RST_QUOTAS		= 256,
	/* Netlink events of each kind, so that a listener slows nothing down */
	DBLP_EVENTS_PER_SECOND	= 1000,
	/* Netlink events per second from the norms of one job */
	DBLP_JOB_EVENTS_PER_SECOND = 100,
	DBLP_USER_TIMEOUT_MS	= 30000,
	DBLP_USER_TIMEOUT_MIN_MS = 1,
	DBLP_USER_TIMEOUT_MAX_MS = 3600000,
	DBLP_KEEPALIVE_MS	= 15000,
	DBLP_KEEPALIVE_MIN_MS	= 10,
	DBLP_KEEPALIVE_MAX_MS	= 86400000,
	/* User timeout after close(), once only FIN or control frames remain */
	DBLP_CLOSE_TIMEOUT_MS	= 5000,
	/* Least number of probe timeouts in it: tcp_orphan_retries is 8, too */
	DBLP_CLOSE_PROBES	= 8,
	/* Default limit of orphans in a namespace */
	DBLP_ORPHANS_MAX	= 16384,
	DBLP_COOKIE_LIFE_MS	= 5000,
	DBLP_ELEMENT_MAX	= 256,
	DBLP_MTU_MAX		= 64000,
};

/* For sending: fail rather than invoke the OOM killer */
#define DBLP_GFP_SEND	(GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)
/* The same, charged to the caller, for memory freed before it returns */
#define DBLP_GFP_CALL	(DBLP_GFP_SEND | __GFP_ACCOUNT)

#define DBLP_ACK_DELAY_NS	(1 * NSEC_PER_MSEC)
/* Interval of ACKs; more frequent ones would tell the sender nothing new */
#define DBLP_ACK_SPACE_NS	(100 * NSEC_PER_USEC)
/* Handshake packets: repeated after MIN, doubled to MAX, dblp_backoff() */
#define DBLP_HANDSHAKE_MIN_NS	(20 * NSEC_PER_MSEC)
#define DBLP_HANDSHAKE_MAX_NS	(250 * NSEC_PER_MSEC)
/* Probe interval with no packet in flight while the peer must answer */
#define DBLP_PERSIST_NS		(500 * NSEC_PER_MSEC)
#define DBLP_DEADLINE_MAX	3600000000U	/* microseconds */
/* Cached memory is freed after this time without use */
#define DBLP_SPARE_NS		(100 * NSEC_PER_MSEC)
/* Without memory or route: retry after this, then dblp_backoff() */
#define DBLP_RETRY_NS		(10 * NSEC_PER_MSEC)
/* Smallest lead of the pacer over its rate, which hides the timer's latency */
#define DBLP_PACE_AHEAD_NS	(100 * NSEC_PER_USEC)

/**
 * struct dblp_net - state of a network namespace
 * @conns: connections by our connection ID
 * @peers: connections by the connection ID and address of the peer
 * @socks: all sockets by number
 * @next_id: start of the search for a free number; under the lock of @socks
 * @generation: changes with @socks, for consistent dumps
 * @cookie_key: key of the MAC of cookies
 * @cookie_epoch_ms: random offset of the time in cookies to the time since boot
 * @spent: cookies that were used, see handshake.c; NULL until the first socket
 *	listens, then fixed
 * @rst: rates of stateless RSTs, by a hash of the source address
 * @events: rates of netlink events, by kind
 * @endpoints: number of endpoints
 * @config: configuration by netlink
 * @orphans: number of connections closed by their user, see conn.c
 * @sysctl_rmem_default: initial SO_RCVBUF of sockets
 * @sysctl_wmem_default: initial SO_SNDBUF of sockets
 * @sysctl_max_orphans: limit of @orphans
 * @sysctl: registration of the sysctls
 * @sysctl_table: their table, freed after @sysctl
 * @shared: endpoints that other sockets may join with SO_REUSEADDR
 * @shared_lock: protects @shared
 * @spray_lock: held while ports are added to an endpoint
 * @mib: counters
 */
struct dblp_net {
	struct rhashtable	conns;
	struct rhashtable	peers;
	struct xarray		socks;
	u32			next_id;
	atomic_t		generation;
	siphash_key_t		cookie_key;
	u64			cookie_epoch_ms;
	struct dblp_spent_place	*spent;
	struct dblp_rate	rst[DBLP_RST_QUOTAS];
	struct dblp_rate	events[DBLP_EVENT_KINDS];
	atomic_t		endpoints;
	struct list_head	shared;
	spinlock_t		shared_lock;	/* for @shared */
	struct mutex		spray_lock;	/* see above */
	struct dblp_config	config;
	atomic_t		orphans;
	int			sysctl_rmem_default;
	int			sysctl_wmem_default;
	int			sysctl_max_orphans;
	struct ctl_table_header	*sysctl;
	struct ctl_table	*sysctl_table;
	struct dblp_mib __percpu *mib;
};

struct dblp_endpoint;

/**
 * struct dblp_endpoint_ops - receivers of an endpoint's packets and errors
 * @rcv: receives and consumes a packet or a train, with a valid UDP checksum
 *	and without UDP header. In softirq context, under RCU
 * @err: receives a validated ICMP error for a packet of the connection:
 *	ECONNREFUSED or EMSGSIZE. In softirq context, under bh_lock_sock(), with
 *	a reference; a process may own the socket
 */
struct dblp_endpoint_ops {
	void	(*rcv)(struct dblp_endpoint *ep, struct sk_buff *skb);
	void	(*err)(struct dblp_sock *dsk, int err);
};

/**
 * struct dblp_endpoint - a bound UDP socket
 * @refs: sockets that use it
 * @usk: the UDP socket
 * @ports: local ports; the first is that of @usk
 * @extra: UDP sockets of the other ports, by index of the port, used for
 *	sending only; NULL if there are no other ports
 * @n_ports: number of ports; only grows
 * @listener: listening socket of the endpoint, or NULL; written under its lock,
 *	read under RCU
 * @net: its namespace
 * @ops: operations for received packets and errors
 * @shared: in @shared of the namespace, if other sockets may join
 * @addr: if shared: address as bound
 * @ifindex: if shared: interface as bound, 0 for none
 * @uid: if shared: user of the socket that bound it
 * @receiving: number of connections with a partly received message
 * @received: bytes of numbered packets that its connections received
 * @release: in the list of endpoints to be released
 * @rcu: for freeing it after a grace period
 */
struct dblp_endpoint {
	refcount_t		refs;
	struct sock		*usk;
	__be16			ports[DBLP_SPRAY_MAX];
	struct sock		**extra;
	u32			n_ports;
	struct dblp_sock __rcu	*listener;
	struct net		*net;
	const struct dblp_endpoint_ops *ops;
	struct list_head	shared;
	struct sockaddr_dblp	addr;
	int			ifindex;
	kuid_t			uid;
	atomic_t		receiving;
	atomic64_t		received;
	struct llist_node	release;
	struct rcu_head		rcu;
};

/**
 * struct dblp_path - path to a peer
 * @fl: route key; also the addresses in the IP header
 * @gateway: next hop of that route, as IPv6 address or IPv4-mapped
 * @ifindex: outgoing interface
 * @cookie: validates the cached route
 * @mtu: bytes; larger packets are sent in IP fragments. 0: the route's MTU
 * @family: AF_INET or AF_INET6
 * @sport: our UDP port
 * @dport: UDP port of the peer
 */
struct dblp_path {
	struct flowi	fl;
	struct in6_addr	gateway;
	int		ifindex;
	u32		cookie;
	u32		mtu;
	sa_family_t	family;
	__be16		sport;
	__be16		dport;
};

/**
 * struct dblp_peer_key - key that finds a connection for RST and ICMP errors
 * @cid: connection ID of the peer
 * @addr: address of the peer
 * @port: UDP port of the peer
 * @pad: 0
 * @zone: link or VRF that the address belongs to, see dblp_skb_zone(); a client
 *	sets it with the first answer
 */
struct dblp_peer_key {
	u64		cid;
	struct in6_addr	addr;
	__be16		port;
	u16		pad;
	int		zone;
};

/** enum dblp_deferred - work left to release_sock() */
enum dblp_deferred {
	DBLP_DEFER_TIMER,
	DBLP_DEFER_MTU,
	DBLP_DEFER_TSQ,
	/* Not for release_sock(): @tsq_tasklet is scheduled */
	DBLP_TSQ_QUEUED,
};

/* path.c: routes, IP headers, path MTU, ECN */
struct dst_entry *dblp_route(struct net *net, struct dblp_path *path);
struct sk_buff *dblp_skb_alloc(u32 len, gfp_t gfp);
int dblp_ip_xmit(struct dblp_endpoint *ep, struct sk_buff *skb,
		 struct dst_entry *dst, struct dblp_path *path, u8 tos);
void dblp_path_init(struct dblp_path *path, const struct sockaddr_dblp *local,
		    const struct sockaddr_dblp *peer, struct sock *sk,
		    int ifindex);
void dblp_reply(struct dblp_endpoint *ep, const struct sk_buff *to,
		const u8 *data, u32 len);
struct dst_entry *dblp_conn_dst(struct dblp_sock *dsk);
u32 dblp_mss(struct dblp_sock *dsk, struct dst_entry **dstp);
u32 dblp_seg_size(struct dblp_sock *dsk, bool meta);
u8 dblp_path_data_tos(struct dblp_sock *dsk, u32 n);
u32 dblp_path_ce(struct dblp_sock *dsk);
void dblp_path_acked(struct dblp_sock *dsk, const struct dblp_sent_pkt *pkt,
		     u32 n);
void dblp_path_lost(struct dblp_sock *dsk, const struct dblp_sent_pkt *pkt);
void dblp_path_timeout(struct dblp_sock *dsk);
u32 dblp_path_probe(struct dblp_sock *dsk, u64 now);
void dblp_path_probed(struct dblp_sock *dsk, u32 probe, bool sent);

/* endpoint.c: UDP sockets */
int dblp_endpoint_bind(struct dblp_sock *dsk, const struct sockaddr_dblp *addr,
		       const struct dblp_endpoint_ops *ops);
void dblp_endpoint_name(const struct dblp_endpoint *ep,
			struct sockaddr_dblp *addr);
int dblp_endpoint_connect(struct dblp_sock *dsk, struct sockaddr_dblp *peer);
void dblp_endpoint_get(struct dblp_endpoint *ep);
void dblp_endpoint_put(struct dblp_endpoint *ep);
int dblp_endpoints_init(void);
void dblp_endpoints_exit(void);
void dblp_endpoints_flush(void);
void dblp_reuse_init(struct dblp_net *dn);
int dblp_endpoint_listen(struct dblp_sock *dsk);
int dblp_endpoint_spray(struct dblp_sock *dsk);

#ifdef CONFIG_CGROUP_BPF
bool dblp_same_programs(struct sock *sk, struct sock *usk, int type);

/* Are the cgroup programs of @type the same for @usk and @sk? */
#define dblp_same_policy(sk, usk, type) \
	(!cgroup_bpf_enabled(type) || dblp_same_programs(sk, usk, type))
#else
#define dblp_same_policy(sk, usk, type)	((void)(sk), (void)(usk), true)
#endif

/* encap.c: static keys of UDP sockets */
void dblp_encap_keep(sa_family_t family);
void dblp_encap_exit(void);

/* addr.c: addresses of received packets */
bool dblp_skb_is_unicast(const struct sk_buff *skb);
bool dblp_skb_is_via(const struct sk_buff *skb, int ifindex);
int dblp_skb_device(const struct sk_buff *skb, const struct dblp_endpoint *ep,
		    const struct sock *sk);
int dblp_skb_zone(const struct sk_buff *skb, const struct in6_addr *peer,
		  const struct in6_addr *local);
bool dblp_skb_in_zone(const struct sk_buff *skb, const struct dblp_sock *dsk);
bool dblp_skb_is_between(const struct sk_buff *skb,
			 const struct sockaddr_dblp *peer,
			 const struct sockaddr_dblp *local);
u64 dblp_skb_source(const struct sk_buff *skb);
void dblp_skb_addrs(const struct sk_buff *skb, struct sockaddr_dblp *saddr,
		    struct sockaddr_dblp *daddr);

/* tsq.c: small queues */
bool dblp_tsq_full(struct dblp_sock *dsk, u32 mss);
void dblp_tsq_init(struct dblp_sock *dsk);

/* memory.c: memory accounting */
bool dblp_wmem_schedule(struct sock *sk, int size);
int dblp_tx_charge(struct dblp_sock *dsk, u32 size);
void dblp_tx_uncharge(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 size);
void dblp_tx_leave_buffer(struct dblp_sock *dsk, struct dblp_tx_msg *msg);
bool dblp_rmem_schedule(struct sock *sk, int size);
void dblp_rmem_charge(struct sock *sk, int size);
void dblp_rmem_uncharge(struct sock *sk, int size);
bool dblp_rx_may_hold(struct dblp_sock *dsk, u32 size, u32 id);
void dblp_tx_refused(struct dblp_sock *dsk);
bool dblp_writable(const struct dblp_sock *dsk);
void dblp_wake_writers(struct dblp_sock *dsk);
void dblp_no_space(struct dblp_sock *dsk);
void dblp_write_space(struct dblp_sock *dsk);

/* timer.c: setting of timeouts */
void dblp_defer(struct dblp_sock *dsk, enum dblp_deferred what);
void dblp_timer_init(struct dblp_sock *dsk);
void dblp_timer_update(struct dblp_sock *dsk);
void dblp_work_soon(struct dblp_sock *dsk);
void dblp_keepalive_set(struct dblp_sock *dsk);
u64 dblp_last_received(const struct dblp_sock *dsk);
u64 dblp_user_timeout(const struct dblp_sock *dsk);
void dblp_keepalive(struct sock *sk, int on);
void dblp_keepalive_tune(struct dblp_sock *dsk, u32 ms);

/* net.c: state of a namespace */
extern unsigned int dblp_net_id;

struct dblp_net *dblp_pernet(struct net *net);
int dblp_conns_init(struct dblp_net *dn);
void dblp_conns_exit(struct dblp_net *dn);
struct dblp_sock *dblp_conn_find(const struct dblp_endpoint *ep, u64 cid);
struct dblp_sock *dblp_conn_find_peer(const struct dblp_endpoint *ep,
				      const struct dblp_peer_key *key);
int dblp_conn_hash(struct dblp_sock *dsk);
void dblp_conn_unhash_peer(struct dblp_sock *dsk);
void dblp_conn_unhash(struct dblp_sock *dsk);
int dblp_sock_number(struct dblp_sock *dsk, gfp_t gfp);
void dblp_sock_unnumber(struct dblp_sock *dsk);
struct dblp_sock *dblp_sock_by_id(struct net *net, u32 id);
struct dblp_sock *dblp_sock_next(struct net *net, u32 *id);
u32 dblp_sock_generation(struct net *net);
void dblp_count_drops(struct net *net, const struct dblp_sock *dsk,
		      enum dblp_mib_item why, u32 n);
int dblp_sysctl_init(struct net *net, struct dblp_net *dn, long *mem);
void dblp_sysctl_exit(struct dblp_net *dn);

#endif /* _NET_DBLP_NET_H */
