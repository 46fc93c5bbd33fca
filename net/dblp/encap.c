// SPDX-License-Identifier: GPL-2.0-only
/*
 * The static keys that UDP sockets with an encapsulation need.
 *
 * The first such socket of the machine enables them, and the last one disables
 * them. Both patch the kernel's text, which interrupts all CPUs, and any user
 * could cause both in a loop by bind() and close(). So the module keeps one
 * unbound socket of each family that was used, until it is unloaded. Before the
 * first use it has none, and UDP has no additional cost.
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

/* Bits of families whose keys are enabled, or will be by dblp_keep_work() */
static unsigned long dblp_keep_asked;
static struct socket *dblp_kept[__DBLP_KEEP_MAX];

/* UDP_GRO enables the keys */
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

/* Enable keys. After a failure, the next socket of the family tries again */
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
 * dblp_encap_keep() - keep the static keys of a family enabled from now on
 * @family: AF_INET or AF_INET6, of a UDP socket with an encapsulation
 *
 * A worker makes the socket, because a socket belongs to the cgroup of the
 * process that makes it. That cgroup could not be freed before the module is
 * unloaded.
 */
void dblp_encap_keep(sa_family_t family)
{
	int i = family == AF_INET ? DBLP_KEEP_INET : DBLP_KEEP_INET6;

	if (!test_bit(i, &dblp_keep_asked) &&
	    !test_and_set_bit(i, &dblp_keep_asked))
		schedule_work(&dblp_keeper);
}

/**
 * dblp_encap_exit() - release the keys, after all other sockets were released
 */
void dblp_encap_exit(void)
{
	int i;

	cancel_work_sync(&dblp_keeper);
	for (i = 0; i < __DBLP_KEEP_MAX; i++)
		if (dblp_kept[i])
			sock_release(dblp_kept[i]);
}
