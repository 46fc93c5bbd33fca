// SPDX-License-Identifier: GPL-2.0-only
/*
 * The static keys that UDP sockets with an encapsulation need.
 *
 * The first such socket of the machine turns them on and the last one turns them
 * off. Both patch the kernel's text, which interrupts all processors, and any user
 * could cause both in a loop by bind() and close(). So the module has one socket of
 * each family that was used, unbound, until it is unloaded. Without use it has
 * none, and UDP costs what it did before.
 */
#include <linux/net.h>
#include <linux/udp.h>
#include <net/net_namespace.h>

#include "dblp.h"

enum {
	DBLP_KEEP_INET,
	DBLP_KEEP_INET6,
	__DBLP_KEEP_MAX
};

/* Bits of families whose keys are on, or will be */
static unsigned long dblp_keep_asked;
static struct socket *dblp_kept[__DBLP_KEEP_MAX];

/* UDP_GRO needs the keys, too */
static struct socket *dblp_keep_open(sa_family_t family)
{
	struct socket *sock;
	int on = 1;

	if (sock_create_kern(&init_net, family, SOCK_DGRAM, IPPROTO_UDP, &sock))
		return NULL;
	if (!sock->ops->setsockopt(sock, SOL_UDP, UDP_GRO, KERNEL_SOCKPTR(&on),
				   sizeof(on)))
		return sock;
	sock_release(sock);
	return NULL;
}

/* If that fails, the next socket of the family asks again */
static void dblp_keep_work(struct work_struct *work)
{
	int i;

	for (i = 0; i < __DBLP_KEEP_MAX; i++) {
		if (!test_bit(i, &dblp_keep_asked) || dblp_kept[i])
			continue;
		dblp_kept[i] = dblp_keep_open(i == DBLP_KEEP_INET ? AF_INET :
								    AF_INET6);
		if (!dblp_kept[i])
			clear_bit(i, &dblp_keep_asked);
	}
}

static DECLARE_WORK(dblp_keeper, dblp_keep_work);

/**
 * dblp_encap_keep() - keep the static keys of a family on from now on
 * @family: of a UDP socket with an encapsulation: AF_INET or AF_INET6
 *
 * A worker does that: sockets belong to the cgroup of the process that makes them,
 * which would not go away until the module is unloaded.
 */
void dblp_encap_keep(sa_family_t family)
{
	int i = family == AF_INET ? DBLP_KEEP_INET : DBLP_KEEP_INET6;

	if (!test_bit(i, &dblp_keep_asked) &&
	    !test_and_set_bit(i, &dblp_keep_asked))
		schedule_work(&dblp_keeper);
}

/** dblp_encap_exit() - release the keys, after all other sockets */
void dblp_encap_exit(void)
{
	int i;

	cancel_work_sync(&dblp_keeper);
	for (i = 0; i < __DBLP_KEEP_MAX; i++)
		if (dblp_kept[i])
			sock_release(dblp_kept[i]);
}
