// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Listening sockets: on rank 0 for joining ranks, on each rank for data.
 */

#include "join.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Attempts to find a free port, which another program may take first */
#define TRIES		16
#define RETRY_MS	20

int dblp_ports_parse(struct dblp_comm *comm)
{
	const char *text = comm->attr.ports;
	unsigned int first, last;
	int end = 0;

	if (!text)
		return 0;
	if (sscanf(text, "%5u-%5u%n", &first, &last, &end) != 2 || text[end] ||
	    !first || first > last || last > 65535)
		return dblp_why(-EINVAL, "ports %s are not a range such as 40000-40100", text);
	comm->port_first = (uint16_t)first;
	comm->n_ports = last - first + 1;
	return 0;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_dblp name;

	return dblp_name_of(fd, false, &name) ? 0 : name.sdblp_port;
}

/* Let a socket at the unspecified address accept IPv4 and IPv6 */
static int both_protocols(int fd, const struct sockaddr_dblp *addr)
{
	const int no = 0;

	return dblp_is_any(addr) &&
	       setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) ? -errno : 0;
}

/*
 * Listen for data on @nic; NULL: for joining ranks. Returns a descriptor or a
 * negative errno
 */
static int listen_once(struct dblp_comm *comm, const struct dblp_nic *nic,
		       const struct sockaddr_dblp *addr)
{
	const int protocol = nic ? comm->transport->protocol : IPPROTO_TCP;
	int fd = dblp_socket(addr, protocol), err = 0;

	if (fd < 0)
		return fd;
	if (nic)
		err = dblp_bind_device(nic, fd) ?: comm->transport->setup(comm, fd) ?:
		      dblp_lock_data(comm, fd);
	if (!err && protocol)
		err = both_protocols(fd, addr);
	if (!err)
		err = dblp_listen(fd, addr);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/*
 * Listen at @addr; without IPv6, the unspecified address becomes that of IPv4
 */
static int listen_at(struct dblp_comm *comm, const struct dblp_nic *nic,
		     const struct sockaddr_dblp *addr)
{
	struct sockaddr_dblp v4 = *addr;
	int fd = listen_once(comm, nic, addr);

	if (fd != -EAFNOSUPPORT || !dblp_is_any(addr) || dblp_addr_parse("0.0.0.0", &v4))
		return fd;
	v4.sdblp_port = addr->sdblp_port;
	return listen_once(comm, nic, &v4);
}

/*
 * Listen at a free port of the range. The first port to try is random, because
 * jobs that start at the same time would compete for the same ports.
 */
static int listen_in_range(struct dblp_comm *comm, const struct dblp_nic *nic,
			   const struct sockaddr_dblp *addr)
{
	const uint32_t n = comm->n_ports ?: TRIES;
	struct sockaddr_dblp at = *addr;
	int fd = -EADDRINUSE;
	uint32_t i;

	for (i = 0; fd == -EADDRINUSE && i < n; i++) {
		if (comm->n_ports)
			at.sdblp_port = htons((uint16_t)(comm->port_first +
				(comm->id + i) % n));
		fd = listen_at(comm, nic, &at);
	}
	if (fd == -EADDRINUSE)
		dblp_why(fd, "no free port among %s", comm->attr.ports ?: "those of this host");
	return fd;
}

/* The address does not matter if AF_DBLP or IPv6 is missing */
static int cannot_listen(int err, const struct sockaddr_dblp *addr)
{
	char text[DBLP_ADDR_TEXT];

	if (err == -EAFNOSUPPORT)
		return err;
	dblp_addr_format(addr, text);
	errno = -err;
	return dblp_why(err, "cannot listen at %s%s: %m", text,
			dblp_is_any(addr) ? " (any address)" : "");
}

/* Address at which rank 0 listens: @bind, or any */
static int bind_address(const struct dblp_comm *comm, struct sockaddr_dblp *addr)
{
	*addr = (struct sockaddr_dblp) { .sdblp_family = AF_DBLP };
	if (!comm->attr.bind || comm->rank)
		return 0;
	if (dblp_addr_parse(comm->attr.bind, addr) || addr->sdblp_port)
		return dblp_why(-EINVAL, "bind %s is not an address", comm->attr.bind);
	return 0;
}

/*
 * Retry while the port is taken: by a process that is ending, or a socket
 * connecting to itself
 */
int dblp_join_listen(struct dblp_comm *comm, uint16_t port, uint64_t until)
{
	uint64_t retry_until = dblp_comm_now() + comm->attr.timeout_ms * MS_NS;
	struct sockaddr_dblp addr;
	int fd = bind_address(comm, &addr);

	if (fd)
		return fd;
	addr.sdblp_port = port;
	for (;;) {
		fd = port ? listen_at(comm, NULL, &addr) :
			    listen_in_range(comm, NULL, &addr);
		if (!port || fd != -EADDRINUSE || !dblp_ms_left(dblp_earlier(until, retry_until)))
			break;
		poll(NULL, 0, RETRY_MS);
	}
	if (fd < 0)
		return cannot_listen(fd, &addr);
	comm->join_listener = fd;
	return 0;
}

static int listen_on(struct dblp_comm *comm, struct dblp_nic *nic,
		     const struct sockaddr_dblp *addr)
{
	int fd = listen_in_range(comm, nic, addr);

	if (fd < 0)
		return cannot_listen(fd, addr);
	nic->listener = fd;
	nic->addr.sdblp_port = port_of(fd);
	return 0;
}

/*
 * A rank that reaches rank 0 by a loopback address is on its host. It listens
 * at all addresses, because it does not know at which one the others reach rank
 * 0.
 */
int dblp_nics_listen(struct dblp_comm *comm, const struct sockaddr_dblp *addr)
{
	struct sockaddr_dblp at;
	uint32_t i;
	int err = bind_address(comm, &at);

	for (i = 0; !err && i < comm->n_nics; i++) {
		struct dblp_nic *nic = &comm->nic[i];

		nic->addr = *addr;
		if (nic->name[0])
			err = dblp_device_address(nic->name, &nic->addr);
		nic->addr.sdblp_port = 0;
		if (nic->name[0] || nic->is_listed ||
		    (comm->rank && !dblp_is_loopback(addr)))
			at = nic->addr;
		if (!err)
			err = listen_on(comm, nic, &at);
	}
	return err;
}
