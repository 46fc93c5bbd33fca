/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections: handshake, settings, states.
 */
#ifndef _NET_DBLP_CONN_H
#define _NET_DBLP_CONN_H

#include <linux/dblp.h>
#include <linux/types.h>

#include "core/wire.h"
#include "mib.h"

struct dblp_endpoint;
struct dblp_job;
struct dblp_job_conf;
struct dblp_net;
struct dblp_phase;
struct dblp_run;
struct dblp_sock;
struct dblp_tx_msg;
struct net;
struct proto;
struct sock;

/**
 * struct dblp_echo - content of a COOKIE-ECHO
 * @client_cid: connection ID of the client
 * @cookie: cookie, with the connection ID of the server
 * @params: parameters of the client
 * @ports: number of ports that each end sends from
 * @time: time that the COOKIE-ACK echoes
 */
struct dblp_echo {
	u64			client_cid;
	struct dblp_cookie	cookie;
	struct dblp_params	params;
	u32			ports;
	u64			time;
};

/* handshake.c: the handshake, cookies */
int dblp_handshake_start(struct dblp_sock *dsk);
void dblp_handshake_repeat(struct dblp_sock *dsk, u64 now);
enum dblp_mib_item dblp_handshake_init(struct dblp_endpoint *ep,
				       const struct dblp_run *run);
void dblp_handshake_version(struct dblp_endpoint *ep,
			    const struct dblp_run *run);
enum dblp_mib_item dblp_handshake_echo(struct dblp_endpoint *ep,
				       const struct dblp_run *run,
				       struct dblp_sock **dsk);
enum dblp_mib_item dblp_rcv_init_ack(struct dblp_sock *dsk,
				     struct dblp_run *run);
enum dblp_mib_item dblp_rcv_cookie_echo(struct dblp_sock *dsk,
					struct dblp_run *run);
enum dblp_mib_item dblp_rcv_cookie_ack(struct dblp_sock *dsk,
				       struct dblp_run *run);
enum dblp_mib_item dblp_rcv_version(struct dblp_sock *dsk,
				    struct dblp_run *run);
void dblp_rst_unknown(struct dblp_endpoint *ep, const struct dblp_run *run);
int dblp_cookies_prepare(struct dblp_net *dn);
void dblp_cookies_exit(struct dblp_net *dn);

/* sock.c: socket objects */
struct sock *dblp_sock_alloc(struct net *net, struct proto *prot, int kern);
struct dblp_sock *dblp_sock_clone(struct dblp_sock *listener);
#ifdef CONFIG_MEMCG
void dblp_accept_memory(struct sock *sk);
#else
static inline void dblp_accept_memory(struct sock *sk) {}
#endif
void dblp_sock_info(struct dblp_sock *dsk, struct dblp_info *info);
void dblp_sock_addrs(struct dblp_sock *dsk, struct sockaddr_dblp *local,
		     struct sockaddr_dblp *peer);
const char *dblp_sock_cc_name(struct dblp_sock *dsk);
void dblp_sock_set_share(struct dblp_sock *dsk, int option, u32 ppm);

/* config.c: settings in force for a socket */
void dblp_tx_refresh_budget(const struct dblp_sock *dsk,
			    struct dblp_tx_msg *msg);
void dblp_apply_config(struct dblp_sock *dsk);
void dblp_refresh_config(struct dblp_sock *dsk);
void dblp_set_own(struct dblp_sock *dsk, int option, u32 val);
int dblp_sock_set_place(struct dblp_sock *dsk, const u32 *phase,
			const u32 *job_id);
void dblp_inherit_config(struct dblp_sock *child,
			 const struct dblp_sock *listener);
void dblp_config_push(struct net *net);
bool dblp_phase_change(struct net *net, u32 id, const struct dblp_phase *p);
void dblp_job_push(struct dblp_job *job);
bool dblp_job_set(struct net *net, struct dblp_job *job,
		  const struct dblp_job_conf *conf);
int dblp_job_norm(struct dblp_sock *dsk, u64 norm);

/* conn.c: the states of a connection */
void dblp_conn_established(struct dblp_sock *dsk, const struct dblp_params *p,
			   u64 rtt);
int dblp_conn_start(struct dblp_sock *dsk, gfp_t gfp);
int dblp_wait_connected(struct dblp_sock *dsk, long timeo);
void dblp_set_state(struct dblp_sock *dsk, u8 state, int err);
void dblp_done(struct dblp_sock *dsk, int err);
int dblp_rst_errno(const struct dblp_sock *dsk, u32 reason);
void dblp_peer_gone(struct dblp_sock *dsk, u32 reason);
void dblp_handshake_reset(struct dblp_sock *dsk);
void dblp_conn_unstart(struct dblp_sock *dsk);
void dblp_abort(struct dblp_sock *dsk, enum dblp_rst_reason reason, int err);
void dblp_flush(struct dblp_sock *dsk);
void dblp_close(struct dblp_sock *dsk);
void dblp_stop_listening(struct dblp_sock *dsk);
void dblp_shut_sending(struct dblp_sock *dsk);
void dblp_check_closing(struct dblp_sock *dsk);
void dblp_orphan_check(struct dblp_sock *dsk, u64 now);

#endif /* _NET_DBLP_CONN_H */
