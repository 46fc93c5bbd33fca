// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints a line for each UDP packet, or fragment of one, that passes an interface, for
 * scripts: see usage().
 */
#define _GNU_SOURCE
#include "lib/testlib.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/dblp.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

static const char * const types[16] = {
	[1] = "INIT", "INIT-ACK", "COOKIE-ECHO", "COOKIE-ACK", "VERSION", "RST",
	"ACK", "CTRL", "DATA", "PROBE",
};

/**
 * struct seen - printed properties of a packet
 * @family: 4 or 6
 * @len: length with IP header, bytes
 * @tos: traffic class
 * @label: flow label
 * @df: the packet may not be fragmented
 * @piece: the packet is a fragment
 * @udp: its UDP header, NULL in all fragments except the first
 */
struct seen {
	int		family;
	unsigned int	len;
	unsigned int	tos;
	unsigned int	label;
	bool		df;
	bool		piece;
	const uint8_t	*udp;
};

static bool parse4(struct seen *s, const uint8_t *p, size_t len)
{
	const struct iphdr *ip = (const struct iphdr *)p;
	unsigned int frag = ntohs(ip->frag_off);

	if (len < sizeof(*ip) || ip->version != 4 ||
	    ip->protocol != IPPROTO_UDP)
		return false;
	s->len = ntohs(ip->tot_len);
	s->tos = ip->tos;
	s->df = frag & IP_DF;
	s->piece = frag & (IP_MF | IP_OFFMASK);
	s->udp = frag & IP_OFFMASK ? NULL : p + 4 * ip->ihl;
	return true;
}

static bool parse6(struct seen *s, const uint8_t *p, size_t len)
{
	const struct ip6_hdr *ip = (const struct ip6_hdr *)p;
	const struct ip6_frag *frag = (const struct ip6_frag *)(ip + 1);
	uint32_t flow = ntohl(ip->ip6_flow);

	if (len < sizeof(*ip) + sizeof(*frag) || flow >> 28 != 6)
		return false;
	s->len = ntohs(ip->ip6_plen) + sizeof(*ip);
	s->tos = flow >> 20 & 0xff;
	s->label = flow & 0xfffff;
	s->df = true;
	s->piece = ip->ip6_nxt == IPPROTO_FRAGMENT;
	if (s->piece) {
		s->udp = frag->ip6f_offlg & IP6F_OFF_MASK ? NULL :
			 (const uint8_t *)(frag + 1);
		return frag->ip6f_nxt == IPPROTO_UDP;
	}
	s->udp = (const uint8_t *)(ip + 1);
	return ip->ip6_nxt == IPPROTO_UDP;
}

/* Open a pcap file of packets that begin with their IP header */
static FILE *pcap_open(const char *path)
{
	static const uint32_t header[] = {
		0xa1b2c3d4, 4 << 16 | 2, 0, 0, UINT16_MAX, 101 /* LINKTYPE_RAW */
	};
	FILE *f = fopen(path, "w");

	if (!f || fwrite(header, sizeof(header), 1, f) != 1)
		die("writing %s", path);
	return f;
}

static void pcap_write(FILE *f, const uint8_t *packet, size_t kept, size_t len)
{
	uint32_t header[4] = { [2] = kept, [3] = len };
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	header[0] = now.tv_sec;
	header[1] = now.tv_nsec / 1000;
	if (fwrite(header, sizeof(header), 1, f) != 1 ||
	    fwrite(packet, kept, 1, f) != 1 || fflush(f))
		die("writing a packet");
}

static void print(const struct seen *s, bool out)
{
	const uint8_t *payload = s->udp ? s->udp + sizeof(struct udphdr) : NULL;
	const char *type = payload ? types[payload[0] & 0xf] : NULL;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("%lld %s %d %u %#x %#x %s %s %s\n",
	       now.tv_sec * 1000000LL + now.tv_nsec / 1000, out ? "out" : "in",
	       s->family, s->len, s->tos, s->label, s->df ? "df" : "-",
	       s->piece ? "piece" : "whole", type ?: "-");
	fflush(stdout);
}

/* Format of dblpctl -t */
static void print_time(void)
{
	struct timespec now;
	char text[32];

	clock_gettime(CLOCK_REALTIME, &now);
	strftime(text, sizeof(text), "%FT%T", localtime(&now.tv_sec));
	printf("%s.%06ld ", text, now.tv_nsec / 1000);
}

/* Print BUDGET frames, and CLOSE frames of messages with bytes missing */
static void print_budgets(const uint8_t *p, size_t len, bool out)
{
	struct dblp_frame f;
	struct dblp_hdr h;
	uint32_t left;

	if (dblp_get_hdr(&h, p, len))
		return;
	p += DBLP_HDR_LEN + (h.type == DBLP_PKT_DATA ? DBLP_DATA_HDR_LEN : 0);
	for (left = h.ctl_len; left && !dblp_get_frame(&f, &p, &left);) {
		if (f.type != DBLP_FRAME_BUDGET &&
		    (f.type != DBLP_FRAME_CLOSE || !f.close.missing))
			continue;
		print_time();
		printf("%s %s ", out ? "out" : "in", types[h.type]);
		if (f.type == DBLP_FRAME_BUDGET)
			printf("BUDGET message %u budget %g%%\n", f.budget.msg_id,
			       f.budget.ppm / 1e4);
		else
			printf("CLOSE message %u missing %u\n", f.close.msg_id,
			       f.close.missing);
		fflush(stdout);
	}
}

static void usage(void)
{
	fputs("Usage: dblp-sniff [-w FILE | -b] INTERFACE\n"
	      "Prints a line for each UDP packet until it is killed:\n"
	      "  time in us, in|out, 4|6, bytes with IP header, traffic class,\n"
	      "  flow label, df|-, whole|piece, type of the AF_DBLP packet\n"
	      "after a line 'ready'. -w: also writes whole packets to FILE (pcap).\n"
	      "-b: prints BUDGET frames instead, and CLOSE frames of messages with\n"
	      "  bytes missing, with the time of day.\n",
	      stderr);
	_exit(2);
}

static int capture_on(const char *interface)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET };
	int fd, room = 64 << 20;

	a.sll_ifindex = if_nametoindex(interface);
	a.sll_protocol = htons(ETH_P_ALL);
	fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (!a.sll_ifindex || fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)))
		die("capturing on %s", interface);
	return fd;
}

int main(int argc, char **argv)
{
	static uint8_t buf[UINT16_MAX];
	bool budgets = argc == 3 && !strcmp(argv[1], "-b");
	FILE *pcap = NULL;
	int fd;

	if (argc == 4 && !strcmp(argv[1], "-w"))
		pcap = pcap_open(argv[2]);
	else if (argc != 2 && !budgets)
		usage();
	fd = capture_on(argv[argc - 1]);
	puts("ready");
	fflush(stdout);
	for (;;) {
		/* Without pcap, headers are enough */
		size_t room = pcap || budgets ? sizeof(buf) : 256;
		struct sockaddr_ll a;
		socklen_t len = sizeof(a);
		struct seen s = {};
		ssize_t n = recvfrom(fd, buf, room, MSG_TRUNC,
				     (struct sockaddr *)&a, &len);
		bool known = false;

		if (n < 0)
			die("recvfrom");
		if (a.sll_protocol == htons(ETH_P_IP)) {
			s.family = 4;
			known = parse4(&s, buf, n);
		} else if (a.sll_protocol == htons(ETH_P_IPV6)) {
			s.family = 6;
			known = parse6(&s, buf, n);
		}
		if (!known)
			continue;
		if (pcap)
			pcap_write(pcap, buf, (size_t)n < room ? (size_t)n : room, n);
		if (!budgets)
			print(&s, a.sll_pkttype == PACKET_OUTGOING);
		else if (s.udp)
			print_budgets(s.udp + sizeof(struct udphdr),
				      buf + n - s.udp - sizeof(struct udphdr),
				      a.sll_pkttype == PACKET_OUTGOING);
	}
}
