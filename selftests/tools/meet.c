// SPDX-License-Identifier: GPL-2.0-only
/*
 * libdblp: ranks on several hosts find each other, whatever address of rank 0 they were
 * given. What needs one host only is in unit/test_comm_join.c.
 */
#define _GNU_SOURCE
#include "lib/ranks.h"
#include "lib/sock.h"

#define HOSTS	3
#define SECRET	"000102030405060708090a0b0c0d0e0f"

static char host[HOSTS][32];

/* Host i has 10.0.0.i, fd00::i and fe80::i at dev<i>, on one bridge, and a network inside */
static void make_hosts(bool link_local_only)
{
	int bridge, fd, i;

	netns_new();
	bridge = netns_this();
	run("ip link add br0 type bridge");
	run("ip link set br0 up");
	for (i = 0; i < HOSTS; i++) {
		netns_new();
		fd = netns_this();
		snprintf(host[i], sizeof(host[i]), "/proc/self/fd/%d", fd);
		run("ip link set lo up");
		/* Before the others, as where it was there first */
		run("ip link add docker0 type bridge");
		run("ip addr add 172.17.0.1/16 dev docker0");
		run("ip link set docker0 up");
		run("ip link add dev%d type veth peer name p%d netns /proc/%d/fd/%d", i, i,
		    getpid(), bridge);
		run("ip link set dev%d addrgenmode none", i);
		run("ip addr add fe80::%d/64 dev dev%d nodad", i + 1, i);
		if (!link_local_only) {
			run("ip addr add 10.0.0.%d/24 dev dev%d", i + 1, i);
			run("ip addr add fd00::%d/64 dev dev%d nodad", i + 1, i);
		}
		run("ip link set dev%d up", i);
		netns_set(bridge);
		run("ip link set p%d master br0", i);
		run("ip link set p%d up", i);
	}
}

/* Ranks 0 and 1 on the first host, the others on one each */
static void prepare_on_hosts(const char *data)
{
	int i;

	transport = data;
	prepare(4, next_epoch(), 1000, run_allreduce);
	for (i = 0; i < 4; i++)
		rank[i].netns = host[i ? i - 1 : 0];
}

static void expect_sums(struct __test_metadata *_metadata)
{
	run_all(4);
	expect_good(_metadata, 4);
}

static const char *const transports[] = { "dblp", "tcp" };

TEST(hosts_may_know_rank_0_by_different_addresses)
{
	static const char *const known_by[][4] = {
		{ "127.0.1.1", "127.0.1.1", "10.0.0.1", "[fd00::1]" },
		{ "unknown.invalid", "10.0.0.1", "10.0.0.1", "10.0.0.1" },
		{ "0.0.0.0", "localhost", "[fd00::1]", "[fd00::1]" },
		{ "[fe80::1%dev0]", "[fe80::1%dev0]", "[fe80::1%dev1]", "[fe80::1%dev2]" },
	};
	char at[4][64];
	int k, t, i;

	make_hosts(false);
	for (k = 0; k < 4; k++)
		for (t = 0; t < 2; t++) {
			prepare_on_hosts(transports[t]);
			for (i = 0; i < 4; i++) {
				snprintf(at[i], sizeof(at[i]), "tcp://%s:%d", known_by[k][i],
					 7000 + 2 * k + t);
				rank[i].attr.rendezvous = at[i];
				rank[i].attr.secret = k % 2 ? SECRET : NULL;
				rank[i].attr.authenticate = k == 3 && !t;
			}
			expect_sums(_metadata);
		}
}

TEST(rank_0_stores_an_address_that_others_reach)
{
	char dev[4][8];
	int t, i;

	make_hosts(false);
	for (t = 0; t < 2; t++) {
		prepare_on_hosts(transports[t]);
		expect_sums(_metadata);
		EXPECT_NE(NULL, strstr(rank[0].text, " 10.0.0.1:"));
		/* Rank 1 has reached it there, too */
		EXPECT_NE(NULL, strstr(rank[1].text, " 10.0.0.1:"));
		prepare_on_hosts(transports[t]);
		for (i = 0; i < 4; i++) {
			snprintf(dev[i], sizeof(dev[i]), "dev%d", i ? i - 1 : 0);
			rank[i].attr.devices = dev[i];
		}
		expect_sums(_metadata);
	}
}

/* The first device is not the one by which the others are reached */
TEST(rank_0_stores_the_address_that_routes_lead_to)
{
	int here, k;

	make_hosts(false);
	here = netns_this();
	if (dblp_netns_enter(host[0]))
		die("entering a host");
	run("ip addr add 192.168.9.1/24 dev docker0 && ip link set docker0 down && "
	    "ip link set docker0 name aaa0 && ip link set aaa0 up");
	for (k = 0; k < 2; k++) {
		if (k)
			setenv("MASTER_ADDR", "10.0.0.3", 1);
		run("ip route %s default via 10.0.0.2", k ? "del" : "add");
		netns_set(here);
		prepare_on_hosts("tcp");
		expect_sums(_metadata);
		EXPECT_NE(NULL, strstr(rank[0].text, " 10.0.0.1:"));
		if (dblp_netns_enter(host[0]))
			die("entering a host");
	}
	unsetenv("MASTER_ADDR");
}

TEST(link_local_addresses_need_a_device_which_is_said)
{
	struct dblp_comm *comm;
	char dev[4][8];
	int t, i, here;

	make_hosts(true);
	here = netns_this();
	prepare_on_hosts("tcp");
	/* The network inside is there, but no use to others */
	ASSERT_EQ(0, dblp_netns_enter(host[0]));
	EXPECT_EQ(-EADDRNOTAVAIL, dblp_comm_open(&comm, &rank[0].attr));
	EXPECT_NE(NULL, strstr(dblp_comm_why(NULL), "name a device"));
	rank[1].attr.rendezvous = "tcp://[fe80::1]:7000";
	EXPECT_EQ(-EINVAL, dblp_comm_open(&comm, &rank[1].attr));
	EXPECT_NE(NULL, strstr(dblp_comm_why(NULL), "fe80::1%eth0"));
	netns_set(here);
	for (t = 0; t < 2; t++) {
		prepare_on_hosts(transports[t]);
		for (i = 0; i < 4; i++) {
			snprintf(dev[i], sizeof(dev[i]), "dev%d", i ? i - 1 : 0);
			rank[i].attr.devices = dev[i];
			rank[i].attr.rendezvous = i < 2 ? "tcp://[fe80::1%dev0]:7000" :
				i == 2 ? "tcp://[fe80::1%dev1]:7000" : "tcp://[fe80::1%dev2]:7000";
		}
		expect_sums(_metadata);
	}
}

/* Where rank 0 does not listen yet, the kernel connects others to themselves */
TEST(ranks_do_not_take_themselves_for_rank_0)
{
	int i;

	netns_new();
	run("sysctl -q -w net.ipv4.ip_local_port_range='7000 7015'");
	transport = "tcp";
	prepare(4, next_epoch(), 1000, run_allreduce);
	EACH_RANK(4, r->attr.rendezvous = "tcp://127.0.0.1:7000");
	for (i = 1; i < 4; i++)
		pthread_create(&rank[i].thread, NULL, rank_main, &rank[i]);
	sleep(1);
	pthread_create(&rank[0].thread, NULL, rank_main, &rank[0]);
	for (i = 0; i < 4; i++)
		pthread_join(rank[i].thread, NULL);
	expect_good(_metadata, 4);
}

/*
 * Connects to the port for data without and with the key. With authentication
 * the first is refused; else its first message proves nothing, and rank 0 counts
 * a stranger
 */
static void run_stranger(struct rank *r)
{
	const int authenticate = (int)r->attr.authenticate;
	struct sockaddr_dblp to = r->comm->nic[0].addr;
	char hello[DBLP_HEAD_LEN] = "";
	int fd;

	r->good = true;
	dblp_addr_parse("127.0.0.1", &to);
	to.sdblp_port = r->comm->nic[0].addr.sdblp_port;
	fd = dblp_socket(&to, 0);
	r->good &= dblp_connect(fd, &to, WAIT_MS) == (authenticate ? -EKEYREJECTED : 0);
	if (!authenticate) {
		r->good &= send(fd, hello, sizeof(hello), 0) == sizeof(hello);
		while (!strangers_of(r))
			usleep(1000);
	}
	close(fd);
	fd = dblp_socket(&to, 0);
	if (dblp_lock_data(r->comm, fd))
		abort();
	r->good &= dblp_connect(fd, &to, WAIT_MS) == 0;
	close(fd);
}

TEST(secret_keeps_strangers_from_data)
{
	uint32_t i;

	netns_new();
	transport = "dblp";
	for (i = 0; i < 2; i++) {
		prepare(1, next_epoch(), 10, run_stranger);
		rank[0].attr.rendezvous = "tcp://127.0.0.1:7000";
		rank[0].attr.secret = SECRET;
		rank[0].attr.authenticate = i;
		run_all(1);
		expect_good(_metadata, 1);
	}
}

static char *why_of[4];

static void *open_only(void *arg)
{
	struct rank *r = arg;

	if (dblp_netns_enter(r->netns))
		abort();
	r->opened = dblp_comm_open(&r->comm, &r->attr);
	why_of[r - rank] = strdup(dblp_comm_why(NULL));
	return NULL;
}

/* Open the communicator on all hosts, and expect the same error and reason of all ranks */
static void expect_why(struct __test_metadata *_metadata, int err, const char *why)
{
	int i;

	EACH_RANK(4, r->attr.rendezvous = "tcp://10.0.0.1:7000");
	for (i = 0; i < 4; i++)
		pthread_create(&rank[i].thread, NULL, open_only, &rank[i]);
	for (i = 0; i < 4; i++) {
		pthread_join(rank[i].thread, NULL);
		EXPECT_EQ(err, rank[i].opened);
		EXPECT_NE(NULL, strstr(why_of[i], why));
	}
}

TEST(what_one_rank_has_otherwise_is_named_by_all)
{
	make_hosts(false);
	prepare_on_hosts("tcp");
	EACH_RANK(4, r->attr.devices = "lo");
	expect_why(_metadata, -EADDRNOTAVAIL, "listens at 127.0.0.1:");
	prepare_on_hosts("dblp");
	EACH_RANK(4, r->attr.secret = SECRET);
	rank[3].attr.authenticate = 1;
	expect_why(_metadata, -EINVAL, "rank 3 has another authentication of data than rank 0");
}

TEST(rank_0_listens_at_one_address_if_it_is_asked_to)
{
	struct dblp_comm *comm;
	int i, here;

	make_hosts(false);
	here = netns_this();
	prepare_on_hosts("dblp");
	EACH_RANK(4, r->attr.bind = "10.0.0.1");
	expect_sums(_metadata);
	prepare_on_hosts("dblp");
	EACH_RANK(4, r->attr.rendezvous = "tcp://10.0.0.1:7000");
	rank[0].attr.bind = "fd00::1";
	EACH_RANK(4, r->attr.join_ms = 1000);
	for (i = 0; i < 4; i++)
		pthread_create(&rank[i].thread, NULL, open_only, &rank[i]);
	for (i = 0; i < 4; i++) {
		pthread_join(rank[i].thread, NULL);
		EXPECT_EQ(-ETIMEDOUT, rank[i].opened);
	}
	EXPECT_NE(NULL, strstr(why_of[2], "does not answer at 10.0.0.1:7000"));
	rank[0].attr.bind = "192.0.2.1";
	ASSERT_EQ(0, dblp_netns_enter(host[0]));
	EXPECT_EQ(-EADDRNOTAVAIL, dblp_comm_open(&comm, &rank[0].attr));
	EXPECT_NE(NULL, strstr(dblp_comm_why(NULL), "192.0.2.1"));
	netns_set(here);
}

TEST_HARNESS_MAIN
