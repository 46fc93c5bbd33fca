// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keeps a UDP encapsulation socket open, for IPv4 and for IPv6, until it is killed.
 *
 * The kernel patches its code (a static key) for the first such socket and after the last
 * one, which would happen several times a second during tests. QEMU may let a CPU execute
 * the trap of a patch forever although another CPU has completed the patch. See
 * selftests/vm/init.
 */
#include "lib/testlib.h"

#include <linux/udp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
	static const int families[] = { AF_INET, AF_INET6 };
	int type = UDP_ENCAP_L2TPINUDP, fd;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		fd = socket(families[i], SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd < 0 || setsockopt(fd, IPPROTO_UDP, UDP_ENCAP, &type,
					 sizeof(type)))
			die("UDP encapsulation socket");
	}
	for (;;)
		pause();
}
