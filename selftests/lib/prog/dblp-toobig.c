// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plays a router that reports "packet too big" for a packet that was not too big, for
 * scripts: see usage().
 */
#define _GNU_SOURCE
#include "lib/testlib.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TYPE_DATA	9

static uint8_t packet[65536];
static size_t packet_len;
static bool v6;

/* Offset of the UDP payload */
static size_t payload_at(void)
{
	return (v6 ? sizeof(struct ip6_hdr) : 4 * (packet[0] & 0xf)) + 8;
}

static bool is_data(void)
{
	uint8_t proto = v6 ? packet[6] : packet[9];

	return proto == IPPROTO_UDP && packet_len > payload_at() + 16 &&
	       (packet[payload_at()] & 0xf) == TYPE_DATA;
}

/* Wait for the next DATA packet on this interface */
static void await_data(const char *interface)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET };
	socklen_t len = sizeof(a);
	int fd;

	a.sll_ifindex = if_nametoindex(interface);
	a.sll_protocol = htons(ETH_P_ALL);
	fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (!a.sll_ifindex || fd < 0 ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)))
		die("capturing on %s", interface);
	puts("ready");
	fflush(stdout);
	do {
		ssize_t n = recvfrom(fd, packet, sizeof(packet), 0,
				     (struct sockaddr *)&a, &len);

		if (n < 0)
			die("recvfrom");
		packet_len = n;
		v6 = a.sll_protocol == htons(ETH_P_IPV6);
	} while (a.sll_pkttype == PACKET_OUTGOING || !is_data());
	close(fd);
}

static void send_error(unsigned int mtu, size_t quoted)
{
	uint8_t out[8 + 128] = { v6 ? ICMP6_PACKET_TOO_BIG : ICMP_UNREACH };
	struct sockaddr_in6 to6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in to4 = { .sin_family = AF_INET };
	uint16_t sum;
	int fd;

	memcpy(out + 8, packet, quoted);
	out[1] = v6 ? 0 : ICMP_UNREACH_NEEDFRAG;
	out[6] = mtu >> 8;
	out[7] = mtu;
	if (v6) {
		memcpy(&to6.sin6_addr, packet + 8, 16);
	} else {
		memcpy(&to4.sin_addr, packet + 12, 4);
		sum = inet_checksum(inet_sum(0, out, 8 + quoted));
		memcpy(out + 2, &sum, 2);
	}
	fd = v6 ? socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6) :
		  socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	if (fd < 0 ||
	    sendto(fd, out, 8 + quoted, 0,
		   v6 ? (struct sockaddr *)&to6 : (struct sockaddr *)&to4,
		   v6 ? sizeof(to6) : sizeof(to4)) < 0)
		die("sending the ICMP error");
	close(fd);
}

static void usage(void)
{
	fputs("Usage: dblp-toobig INTERFACE MTU genuine|forged|short\n"
	      "Waits for a DATA packet and answers it: as a router would (genuine),\n"
	      "with another connection ID (forged), or without one (short).\n", stderr);
	_exit(2);
}

int main(int argc, char **argv)
{
	size_t quoted;

	if (argc != 4)
		usage();
	await_data(argv[1]);
	quoted = payload_at() + 16;
	if (!strcmp(argv[3], "forged"))
		packet[quoted - 1] ^= 1;
	else if (!strcmp(argv[3], "short"))
		quoted -= 16;
	else if (strcmp(argv[3], "genuine"))
		usage();
	send_error(atoi(argv[2]), quoted);
	puts("sent");
	return 0;
}
