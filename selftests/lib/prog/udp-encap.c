// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holds a UDP socket that encapsulates, for IPv4 and for IPv6, until it is killed.
 *
 * With the first such socket the kernel patches its code (a static key), with the
 * last it patches it back, and tests have no socket several times a second. QEMU
 * may let a processor execute the trap of a patch under way for ever, when another
 * has long completed it. See selftests/vm/init.
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
			die("a socket that encapsulates");
	}
	for (;;)
		pause();
}
