/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: how ranks find each other.
 *
 * Each rank connects to rank 0 over TCP. Both prove that they know the secret
 * of the job. When all ranks have joined, rank 0 sends the addresses of all
 * ranks to each of them. The connections stay open as control connections, see
 * control.c. Messages on one of them:
 *
 *	rank r		&struct dblp_hello
 *	rank 0		&struct dblp_challenge
 *	rank r		MAC of "rank r"
 *	rank 0		&struct dblp_ctl of type %DBLP_CTL_TABLE, then the table; or of type
 *			%DBLP_CTL_ABORT, then %DBLP_WHY_TEXT bytes of text
 *
 * At any time rank 0 may send %DBLP_CTL_REFUSE and close the connection.
 * Without a secret the key is zero: the messages are the same, but any process
 * can make them.
 *
 *	rendezvous.c	address of rank 0
 *	device.c	addresses of this host
 *	resolve.c	names of hosts
 *	listen.c	listening sockets
 *	secret.c	proofs
 *	admit.c		rank 0
 *	join.c		the other ranks
 *	hello.c		messages of both
 */
#ifndef DBLP_JOIN_H
#define DBLP_JOIN_H

#include "engine.h"

/* Most addresses of rank 0 to try: a name may have several */
#define DBLP_WHERE_MAX	8

/**
 * struct dblp_where - possible addresses of rank 0
 * @n: number of addresses; may be 0 on rank 0
 * @port: on rank 0: port to listen at, in network byte order; 0: any
 * @id: number of its communicator, 0: unknown
 * @addr: the addresses
 */
struct dblp_where {
	uint32_t		n;
	uint16_t		port;
	uint64_t		id;
	struct sockaddr_dblp	addr[DBLP_WHERE_MAX];
};

/**
 * struct dblp_hello - first message of a rank to rank 0
 * @ctl: %DBLP_CTL_JOIN; @comm is the wanted communicator, 0: any
 * @nonce: random
 * @reached: address at which this rank reached rank 0
 * @addr: address and port of each device, @ctl.nics entries. The unspecified
 *	address stands for the source address of the connection
 */
struct dblp_hello {
	struct dblp_ctl		ctl;
	uint8_t			nonce[DBLP_MAC];
	struct sockaddr_dblp	reached;
	struct sockaddr_dblp	addr[DBLP_NICS_MAX];
};

/*
 * struct dblp_challenge - rank 0's answer to a hello: its nonce, and the MAC of
 *	"rank 0"
 */
struct dblp_challenge {
	struct dblp_ctl		ctl;
	uint8_t			nonce[DBLP_MAC];
	uint8_t			mac[DBLP_MAC];
};

/**
 * struct dblp_candidate - rank 0: a connection whose peer has not proved to be a rank
 * @fd: its socket; -1: the entry is free
 * @since: when it was accepted, ns
 * @got: bytes received of @hello, then of @mac
 * @challenged: @hello is complete, and a challenge was sent
 * @proof: expected MAC
 * @mac: received MAC
 * @hello: the peer's hello
 */
struct dblp_candidate {
	int			fd;
	uint64_t		since;
	size_t			got;
	bool			challenged;
	uint8_t			proof[DBLP_MAC];
	uint8_t			mac[DBLP_MAC];
	struct dblp_hello	hello;
};

/** dblp_hello_length() - bytes of @h that are sent */
static inline size_t dblp_hello_length(const struct dblp_hello *h)
{
	return offsetof(struct dblp_hello, addr) + h->ctl.nics * sizeof(*h->addr);
}

static inline bool dblp_is_loopback(const struct sockaddr_dblp *addr)
{
	const struct in6_addr *a = &addr->sdblp_addr;

	return IN6_IS_ADDR_LOOPBACK(a) ||
	       (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

static inline bool dblp_is_any(const struct sockaddr_dblp *addr)
{
	return IN6_IS_ADDR_UNSPECIFIED(&addr->sdblp_addr);
}

/* rendezvous.c */

/**
 * dblp_rendezvous() - find rank 0; on rank 0: find where to listen
 * @comm: the communicator
 * @where: filled
 *
 * Return: 0; -EAGAIN if it is not known yet; another negative errno.
 */
int dblp_rendezvous(struct dblp_comm *comm, struct dblp_where *where);
/** dblp_rendezvous_store() - "kv": store the address of rank 0, @addr */
int dblp_rendezvous_store(struct dblp_comm *comm, const struct sockaddr_dblp *addr);
/** dblp_rendezvous_own() - address of this rank in the list; 1: there is no list */
int dblp_rendezvous_own(const struct dblp_comm *comm, struct sockaddr_dblp *addr);
/** dblp_uses_kv() - is the rendezvous "kv"? */
bool dblp_uses_kv(const struct dblp_comm *comm);

/* device.c */

/** dblp_device_address() - first address of a device; 0 or a negative errno */
int dblp_device_address(const char *name, struct sockaddr_dblp *addr);
/*
 * dblp_device_pick() - choose an address by which others are likely to reach
 *	this host
 */
int dblp_device_pick(struct sockaddr_dblp *addr);
/** dblp_name_of() - local or peer address of a socket; 0 or a negative errno */
int dblp_name_of(int fd, bool peer, struct sockaddr_dblp *addr);

/* resolve.c */

/** dblp_resolve() - addresses of a host, given by name or address; 0 or -EAGAIN */
int dblp_resolve(const char *host, const char *port, struct dblp_where *where);

/* listen.c */

/** dblp_join_listen() - rank 0: listen for ranks at @port; 0 or a negative errno */
int dblp_join_listen(struct dblp_comm *comm, uint16_t port, uint64_t until);
/**
 * dblp_nics_listen() - listen for data on each device
 * @comm: the communicator
 * @addr: address for a device without a name
 */
int dblp_nics_listen(struct dblp_comm *comm, const struct sockaddr_dblp *addr);

/* secret.c */

/**
 * dblp_prove() - MAC that proves knowledge of the secret
 * @comm: the communicator
 * @who: "rank 0" or "rank r": the end that makes the proof
 * @h: hello of rank r
 * @nonce: nonce of rank 0
 * @mac: filled
 */
void dblp_prove(const struct dblp_comm *comm, const char *who, const struct dblp_hello *h,
		const uint8_t nonce[DBLP_MAC], uint8_t mac[DBLP_MAC]);

/* hello.c */

/** dblp_hello_make() - make this rank's hello, without @nonce and @reached */
void dblp_hello_make(const struct dblp_comm *comm, struct dblp_hello *h);
/** dblp_transfer() - send or receive all of @buf; 0 or a negative errno */
int dblp_transfer(int fd, void *buf, size_t len, bool out, uint64_t until);

#endif /* DBLP_JOIN_H */
