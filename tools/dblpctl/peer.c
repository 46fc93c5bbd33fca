// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl doctor: the path to a peer.
 */

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "doctor.h"
#include "finding.h"

/* Port of traceroute: no program listens there, so the peer's kernel answers by ICMP */
#define PROBE_PORT	33434
#define PROBE_MS	700
#define PROBE_SMALL	64
/* Together longer than the kernel's rate limit of ICMP errors after a burst of six */
#define PROBE_TRIES	3
#define CONNECT_MS	3000
#define HEADERS4	28
#define HEADERS6	48
#define IPV6_MIN_MTU	1280

enum probe {
	PROBE_ARRIVED,
	PROBE_LOST,
	PROBE_TOO_LARGE,
	PROBE_FAILED,
};

static int probe_socket(const struct sockaddr_dblp *addr)
{
	bool ipv4 = IN6_IS_ADDR_V4MAPPED(&addr->sdblp_addr);
	int v4 = IP_PMTUDISC_PROBE, v6 = IPV6_PMTUDISC_PROBE;
	struct sockaddr_dblp to = *addr;
	int fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (ipv4)
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &v4, sizeof(v4));
	else
		setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &v6, sizeof(v6));
	to.sdblp_port = htons(PROBE_PORT);
	if (!dblp_connect(fd, &to, -1))
		return fd;
	close(fd);
	return -1;
}

/* Send one packet of @len bytes and wait for the ICMP answer */
static enum probe probe_once(int fd, size_t len)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	static char buf[65536];

	if (send(fd, buf, len, 0) < 0 && errno != ECONNREFUSED)
		return errno == EMSGSIZE ? PROBE_TOO_LARGE : PROBE_FAILED;
	if (poll(&p, 1, PROBE_MS) <= 0)
		return PROBE_LOST;
	if (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) >= 0 ||
	    errno == ECONNREFUSED)
		return PROBE_ARRIVED;
	return errno == EMSGSIZE ? PROBE_TOO_LARGE : PROBE_FAILED;
}

static enum probe probe(const struct sockaddr_dblp *addr, size_t len)
{
	enum probe result = PROBE_FAILED;
	int fd = probe_socket(addr), i;

	if (fd < 0)
		return result;
	for (i = 0; i < PROBE_TRIES; i++) {
		result = probe_once(fd, len);
		if (result != PROBE_LOST)
			break;
	}
	close(fd);
	return result;
}

/* MTU of the outgoing device */
static int device_mtu(const struct sockaddr_dblp *addr)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(&addr->sdblp_addr);
	int fd = probe_socket(addr), mtu = 0;
	socklen_t len = sizeof(mtu);

	if (fd < 0)
		return 0;
	if (v4)
		getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len);
	else
		getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &len);
	close(fd);
	return mtu;
}

/* Find the largest packet that arrives. Small packets do, those of @mtu do not. */
static int search_mtu(const struct sockaddr_dblp *addr, size_t headers, int mtu)
{
	int passes = (int)headers + PROBE_SMALL, fails = mtu, next;

	while (fails - passes > 1) {
		next = passes + (fails - passes) / 2;
		if (probe(addr, (size_t)next - headers) == PROBE_ARRIVED)
			passes = next;
		else
			fails = next;
	}
	return passes;
}

static void check_mtu(const struct sockaddr_dblp *addr, const char *address)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(&addr->sdblp_addr);
	size_t headers = v4 ? HEADERS4 : HEADERS6;
	int mtu = device_mtu(addr), passes;
	char command[256];

	if (mtu <= (int)headers) {
		snprintf(command, sizeof(command), "ip route get %s", address);
		doctor_says(VERDICT_BAD, "route", command,
			    "there is no route to %s", address);
		return;
	}
	if (probe(addr, PROBE_SMALL) != PROBE_ARRIVED) {
		doctor_says(VERDICT_NOTE, "mtu", "",
			    "%s does not answer UDP probes, so its path MTU is unknown",
			    address);
		return;
	}
	if (probe(addr, (size_t)mtu - headers) == PROBE_ARRIVED) {
		doctor_says(VERDICT_OK, "mtu", "",
			    "packets of %d bytes reach %s", mtu, address);
		return;
	}
	passes = search_mtu(addr, headers, mtu);
	/* A device needs at least this MTU for IPv6 */
	if (!v4 && passes < IPV6_MIN_MTU)
		*command = '\0';
	else
		snprintf(command, sizeof(command),
			 "sudo ip link set dev \"$(ip -o route get %s | sed 's/.* dev \\([^ ]*\\).*/\\1/')\" mtu %d",
			 address, passes);
	doctor_says(VERDICT_BAD, "mtu", command,
		    "packets of %d bytes, the MTU here, do not reach %s, but packets of %d bytes do: the path has a smaller MTU",
		    mtu, address, passes);
}

/* Connect to a peer; returns the errno, or 0 */
static int try_connect(const struct sockaddr_dblp *addr)
{
	int fd = dblp_socket(addr, 0), err;

	if (fd < 0)
		return -fd;
	err = -dblp_connect(fd, addr, CONNECT_MS);
	close(fd);
	return err;
}

static void check_port(const struct sockaddr_dblp *addr, const char *address)
{
	unsigned int port = ntohs(addr->sdblp_port);
	int err = try_connect(addr);
	char command[128];

	switch (err) {
	case 0:
		doctor_says(VERDICT_OK, "port", "", "%s accepts at UDP port %u",
			    address, port);
		break;
	case ECONNREFUSED:
		snprintf(command, sizeof(command),
			 "dblpctl socket list state listen (there)");
		doctor_says(VERDICT_BAD, "port", command,
			    "UDP port %u of %s is open, but no program listens",
			    port, address);
		break;
	case ETIMEDOUT:
		snprintf(command, sizeof(command),
			 "sudo nft insert rule inet filter input udp dport %u accept (there)",
			 port);
		doctor_says(VERDICT_BAD, "port", command,
			    "UDP port %u of %s does not answer: it is blocked, or dblp is not loaded there",
			    port, address);
		break;
	default:
		snprintf(command, sizeof(command), "ip route get %s", address);
		doctor_says(VERDICT_BAD, "port", command, "%s port %u: %s",
			    address, port, strerror(err));
	}
}

/* With ipv6.disable=1 the kernel has no IPv6 sockets */
static bool kernel_has_family(const struct sockaddr_dblp *addr)
{
	int fd = probe_socket(addr);

	if (fd < 0)
		return errno != EAFNOSUPPORT;
	close(fd);
	return true;
}

void check_peer(const struct sockaddr_dblp *addr, const char *address)
{
	if (!kernel_has_family(addr)) {
		doctor_says(VERDICT_BAD, "route", "",
			    "this kernel has no IPv6 (ipv6.disable=1?), which %s needs",
			    address);
		return;
	}
	check_mtu(addr, address);
	if (addr->sdblp_port)
		check_port(addr, address);
}
