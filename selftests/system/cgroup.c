// SPDX-License-Identifier: GPL-2.0-only
/*
 * BPF programs of cgroups also apply to AF_DBLP. Each hook is tested with a real program,
 * attached to the cgroup of the test.
 */
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/sock.h"

#include "kselftest_harness.h"

#define CGROUPS	"/tmp/dblp-cgroup"
#define GROUP	CGROUPS "/dblp-test"

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), \
			    .off = (o), .imm = (i) })
#define MOV_IMM(d, i)	INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define MOV_REG(d, s)	INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define ADD_IMM(d, i)	INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define CALL(f)		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define LOAD_W(d, s, o)	INSN(BPF_LDX | BPF_MEM | BPF_W, d, s, o, 0)
#define SKIP_UNLESS(d, i)	INSN(BPF_JMP | BPF_JNE | BPF_K, d, 0, 1, i)
#define LOAD_H(d, s, o)	INSN(BPF_LDX | BPF_MEM | BPF_H, d, s, o, 0)
#define JUMP_UNLESS(d, i, n)	INSN(BPF_JMP | BPF_JNE | BPF_K, d, 0, n, i)
#define STORE_W(d, s, o)	INSN(BPF_STX | BPF_MEM | BPF_W, d, s, o, 0)
#define ADD_TO_W(d, s, o)	INSN(BPF_STX | BPF_ATOMIC | BPF_W, d, s, o, BPF_ADD)
#define EXIT()		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* Two instructions that load the address of the first value of a map */
#define MAP_VALUE(d, fd) \
	INSN(BPF_LD | BPF_DW | BPF_IMM, d, BPF_PSEUDO_MAP_VALUE, 0, fd), \
	INSN(0, 0, 0, 0, 0)

static int bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* What a program has recorded, in the only element of a map */
struct seen {
	uint32_t	calls;
	uint32_t	mark;
	uint32_t	priority;
	uint32_t	hash;
	uint32_t	cgroup;
};

#define SEEN(field)	((int)offsetof(struct seen, field))

static int seen_new(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = sizeof(uint32_t),
		.value_size = sizeof(struct seen), .max_entries = 1,
	};
	int map = bpf(BPF_MAP_CREATE, &attr);

	if (map < 0)
		die("bpf(BPF_MAP_CREATE)");
	return map;
}

static struct seen seen_now(int map)
{
	struct seen s;
	uint32_t key = 0;
	union bpf_attr attr = {
		.map_fd = map, .key = (uintptr_t)&key, .value = (uintptr_t)&s,
	};

	if (bpf(BPF_MAP_LOOKUP_ELEM, &attr))
		die("bpf(BPF_MAP_LOOKUP_ELEM)");
	return s;
}

static int load(enum bpf_prog_type type, enum bpf_attach_type where,
		const struct bpf_insn *insns, size_t n)
{
	char log[4096] = "";
	union bpf_attr load = {
		.prog_type = type, .expected_attach_type = where,
		.insns = (uintptr_t)insns, .insn_cnt = n,
		.license = (uintptr_t)"GPL",
		.log_buf = (uintptr_t)log, .log_size = sizeof(log), .log_level = 1,
	};
	int prog = bpf(BPF_PROG_LOAD, &load);

	if (prog < 0)
		die("bpf(BPF_PROG_LOAD): %s", log);
	return prog;
}

/* Attach a program of up to two dozen instructions until detach() */
static void attach(int group, enum bpf_prog_type type,
		   enum bpf_attach_type where, const struct bpf_insn *insns,
		   size_t n)
{
	union bpf_attr to = { .target_fd = group, .attach_type = where };
	int prog = load(type, where, insns, n);

	to.attach_bpf_fd = prog;
	if (bpf(BPF_PROG_ATTACH, &to))
		die("bpf(BPF_PROG_ATTACH)");
	close(prog);
}

#define ATTACH(group, type, where, ...) do { \
	const struct bpf_insn __i[] = { __VA_ARGS__ }; \
	attach(group, type, where, __i, sizeof(__i) / sizeof(__i[0])); \
} while (0)

/* Attach a program that refuses everything */
static void refuse(int group, enum bpf_prog_type type,
		   enum bpf_attach_type where)
{
	ATTACH(group, type, where, MOV_IMM(0, 0), EXIT());
}

static void detach(int group, enum bpf_attach_type where)
{
	union bpf_attr attr = { .target_fd = group, .attach_type = where };

	if (bpf(BPF_PROG_DETACH, &attr))
		die("bpf(BPF_PROG_DETACH)");
}

FIXTURE(cgroup) {
	struct sockaddr_dblp addr;
	int group;
	int fd;
};

FIXTURE_VARIANT(cgroup) {
	const char *address;
	bool v4;
};

FIXTURE_VARIANT_ADD(cgroup, ipv4) { .address = "10.7.0.2", .v4 = true };
FIXTURE_VARIANT_ADD(cgroup, ipv6) { .address = "fd07::2" };

/* A socket with a short timeout for a failing connect() */
static int hasty_socket(void)
{
	int fd = new_socket();

	set_u32(fd, DBLP_USER_TIMEOUT, 300);
	return fd;
}

FIXTURE_SETUP(cgroup)
{
	netns_new();
	run("ip addr add 10.7.0.2/32 dev lo; ip addr add fd07::2/128 dev lo nodad");
	if (mkdir(CGROUPS, 0755) && errno != EEXIST)
		die(CGROUPS);
	/* It is already mounted if an earlier test failed */
	if (mount("none", CGROUPS, "cgroup2", 0, NULL) && errno != EBUSY)
		die("mount(cgroup2)");
	if (mkdir(GROUP, 0755) && errno != EEXIST)
		die(GROUP);
	self->group = open(GROUP, O_RDONLY | O_DIRECTORY);
	if (self->group < 0)
		die(GROUP);
	file_write(GROUP "/cgroup.procs", "0");
	addr_parse(&self->addr, variant->address, 0);
	self->fd = hasty_socket();
	errno = 0;
}

FIXTURE_TEARDOWN(cgroup)
{
	close(self->fd);
	file_write(CGROUPS "/cgroup.procs", "0");
	close(self->group);
	while (rmdir(GROUP) && errno == EBUSY)
		usleep(10000);
	umount2(CGROUPS, MNT_DETACH);
}

/* Refuse packets by 4 bytes of the destination in the IP header */
static void refuse_packets_to(int group, bool v4, enum bpf_attach_type where)
{
	ATTACH(group, BPF_PROG_TYPE_CGROUP_SKB, where,
	       MOV_IMM(2, v4 ? 16 : 24), MOV_REG(3, 10), ADD_IMM(3, -8),
	       MOV_IMM(4, 4), CALL(BPF_FUNC_skb_load_bytes), LOAD_W(7, 10, -8),
	       MOV_IMM(0, 1), SKIP_UNLESS(7, v4 ? 0x0200070a : 0x000007fd),
	       MOV_IMM(0, 0), EXIT());
}

static void expect_passing(struct __test_metadata *_metadata, int client,
			   int server)
{
	char c;

	EXPECT_EQ(1, send(client, "x", 1, 0));
	EXPECT_EQ(1, recv(server, &c, 1, 0));
}

/* No packet is sent, neither of a handshake nor of a connection */
TEST_F(cgroup, egress)
{
	int listener, client, server;
	char buf[100000] = { 1 };

	listener = new_listener(variant->address, 1, &self->addr);
	connect_pair(&self->addr, listener, &client, &server);
	expect_passing(_metadata, client, server);
	refuse_packets_to(self->group, variant->v4, BPF_CGROUP_INET_EGRESS);
	EXPECT_ERR(ETIMEDOUT, connect_to(self->fd, &self->addr));
	set_u32(client, DBLP_USER_TIMEOUT, 300);
	EXPECT_EQ(sizeof(buf), send(client, buf, sizeof(buf), 0));
	EXPECT_TRUE(wait_for(client, POLLHUP, 10 * SECONDS));
	EXPECT_ERR(EAGAIN, recv(server, buf, 1, MSG_DONTWAIT));
	detach(self->group, BPF_CGROUP_INET_EGRESS);
	EXPECT_EQ(0, connect_to(self->fd, &self->addr));
}

/* A filter for other addresses is called and passes packets, also trains */
TEST_F(cgroup, egress_elsewhere)
{
	int listener, client, server;
	char buf[100000] = { 1 };

	refuse_packets_to(self->group, !variant->v4, BPF_CGROUP_INET_EGRESS);
	listener = new_listener(variant->address, 1, &self->addr);
	connect_pair(&self->addr, listener, &client, &server);
	EXPECT_EQ(sizeof(buf), send(client, buf, sizeof(buf), 0));
	EXPECT_EQ(sizeof(buf), recv(server, buf, sizeof(buf), 0));
}

TEST_F(cgroup, ingress)
{
	new_listener(variant->address, 1, &self->addr);
	refuse_packets_to(self->group, variant->v4, BPF_CGROUP_INET_INGRESS);
	EXPECT_ERR(ETIMEDOUT, connect_to(self->fd, &self->addr));
	detach(self->group, BPF_CGROUP_INET_INGRESS);
	EXPECT_EQ(0, connect_to(self->fd, &self->addr));
}

TEST_F(cgroup, connect)
{
	enum bpf_attach_type where = variant->v4 ? BPF_CGROUP_INET4_CONNECT :
						   BPF_CGROUP_INET6_CONNECT;
	struct sockaddr_dblp elsewhere, a;
	socklen_t len = sizeof(a);

	new_listener(variant->address, 1, &self->addr);
	elsewhere = self->addr;
	refuse(self->group, BPF_PROG_TYPE_CGROUP_SOCK_ADDR, where);
	EXPECT_ERR(EPERM, connect_to(self->fd, &self->addr));
	detach(self->group, where);

	/* The program may also change the destination */
	ATTACH(self->group, BPF_PROG_TYPE_CGROUP_SOCK_ADDR, where,
	       MOV_IMM(2, self->addr.sdblp_port),
	       STORE_W(1, 2, offsetof(struct bpf_sock_addr, user_port)),
	       MOV_IMM(0, 1), EXIT());
	elsewhere.sdblp_port = htons(1);
	EXPECT_EQ(0, connect_to(self->fd, &elsewhere));
	EXPECT_EQ(0, getpeername(self->fd, (struct sockaddr *)&a, &len));
	EXPECT_EQ(self->addr.sdblp_port, a.sdblp_port);
}

TEST_F(cgroup, bind)
{
	enum bpf_attach_type where = variant->v4 ? BPF_CGROUP_INET4_BIND :
						   BPF_CGROUP_INET6_BIND;
	struct sockaddr_dblp a;

	refuse(self->group, BPF_PROG_TYPE_CGROUP_SOCK_ADDR, where);
	EXPECT_ERR(EPERM, bind_to(self->fd, &self->addr));
	detach(self->group, where);
	ATTACH(self->group, BPF_PROG_TYPE_CGROUP_SOCK_ADDR, where,
	       MOV_IMM(2, htons(5555)),
	       STORE_W(1, 2, offsetof(struct bpf_sock_addr, user_port)),
	       MOV_IMM(0, 1), EXIT());
	EXPECT_EQ(0, bind_to(self->fd, &self->addr));
	local_name(self->fd, &a);
	EXPECT_EQ(5555, ntohs(a.sdblp_port));
}

TEST_F(cgroup, post_bind)
{
	enum bpf_attach_type where = variant->v4 ? BPF_CGROUP_INET4_POST_BIND :
						   BPF_CGROUP_INET6_POST_BIND;

	refuse(self->group, BPF_PROG_TYPE_CGROUP_SOCK, where);
	EXPECT_ERR(EPERM, bind_to(self->fd, &self->addr));
	detach(self->group, where);
	EXPECT_EQ(0, bind_to(self->fd, &self->addr));
}

static int reusing_socket(void)
{
	int fd = hasty_socket();

	set_int(fd, SO_REUSEADDR, 1);
	return fd;
}

/* A socket that joins a port binds no UDP socket, but the programs run */
TEST_F(cgroup, bind_of_a_socket_that_joins)
{
	enum bpf_attach_type where = variant->v4 ? BPF_CGROUP_INET4_BIND :
						   BPF_CGROUP_INET6_BIND;
	enum bpf_attach_type post = variant->v4 ? BPF_CGROUP_INET4_POST_BIND :
						  BPF_CGROUP_INET6_POST_BIND;
	struct sockaddr_dblp a, elsewhere, joined;
	int first = reusing_socket();

	EXPECT_EQ(0, bind_to(first, &self->addr));
	local_name(first, &a);
	set_int(self->fd, SO_REUSEADDR, 1);

	refuse(self->group, BPF_PROG_TYPE_CGROUP_SOCK_ADDR, where);
	EXPECT_ERR(EPERM, bind_to(self->fd, &a));
	detach(self->group, where);

	/* A program that refuses only this port */
	ATTACH(self->group, BPF_PROG_TYPE_CGROUP_SOCK, post,
	       LOAD_W(7, 1, offsetof(struct bpf_sock, src_port)), MOV_IMM(0, 1),
	       SKIP_UNLESS(7, ntohs(a.sdblp_port)), MOV_IMM(0, 0), EXIT());
	EXPECT_ERR(EPERM, bind_to(self->fd, &a));
	detach(self->group, post);

	ATTACH(self->group, BPF_PROG_TYPE_CGROUP_SOCK_ADDR, where,
	       MOV_IMM(2, a.sdblp_port),
	       STORE_W(1, 2, offsetof(struct bpf_sock_addr, user_port)),
	       MOV_IMM(0, 1), EXIT());
	elsewhere = a;
	elsewhere.sdblp_port = htons(5555);
	EXPECT_EQ(0, bind_to(self->fd, &elsewhere));
	local_name(self->fd, &joined);
	EXPECT_EQ(a.sdblp_port, joined.sdblp_port);
}

/* The UDP socket is in the cgroup of the socket that bound it first */
TEST_F(cgroup, programs_of_a_socket_that_joins_another_cgroup)
{
	enum bpf_attach_type where = variant->v4 ? BPF_CGROUP_INET4_CONNECT :
						   BPF_CGROUP_INET6_CONNECT;
	int root = open(CGROUPS, O_RDONLY | O_DIRECTORY);
	struct sockaddr_dblp a, b = self->addr;
	int first, second;

	file_write(CGROUPS "/cgroup.procs", "0");
	new_listener(variant->address, 1, &b);
	first = reusing_socket();
	EXPECT_EQ(0, bind_to(first, &self->addr));
	local_name(first, &a);
	file_write(GROUP "/cgroup.procs", "0");

	/* A program that could not run for it, and one that is attached later */
	set_int(self->fd, SO_REUSEADDR, 1);
	refuse(self->group, BPF_PROG_TYPE_CGROUP_SOCK_ADDR, where);
	EXPECT_ERR(EADDRINUSE, bind_to(self->fd, &a));
	detach(self->group, where);
	EXPECT_EQ(0, bind_to(self->fd, &a));
	refuse(self->group, BPF_PROG_TYPE_CGROUP_SOCK_ADDR, where);
	EXPECT_ERR(EPERM, connect_to(self->fd, &b));
	detach(self->group, where);
	refuse_packets_to(self->group, variant->v4, BPF_CGROUP_INET_EGRESS);
	EXPECT_ERR(ETIMEDOUT, connect_to(self->fd, &b));
	detach(self->group, BPF_CGROUP_INET_EGRESS);
	refuse_packets_to(self->group, variant->v4, BPF_CGROUP_INET_INGRESS);
	EXPECT_ERR(ETIMEDOUT, connect_to(self->fd, &b));
	detach(self->group, BPF_CGROUP_INET_INGRESS);
	EXPECT_EQ(0, connect_to(self->fd, &b));

	/* A program that runs for both is no obstacle */
	ATTACH(root, BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_EGRESS,
	       MOV_IMM(0, 1), EXIT());
	second = reusing_socket();
	EXPECT_EQ(0, bind_to(second, &a));
	detach(root, BPF_CGROUP_INET_EGRESS);
}

/* Programs of a listener's own cgroup also apply to its answers */
TEST_F(cgroup, programs_of_a_listener_that_joins_another_cgroup)
{
	struct sockaddr_dblp a;
	int first, client;

	file_write(CGROUPS "/cgroup.procs", "0");
	first = reusing_socket();
	client = new_socket();
	ASSERT_EQ(0, fcntl(client, F_SETFL, O_NONBLOCK));
	ASSERT_EQ(0, bind_to(first, &self->addr));
	local_name(first, &a);
	set_int(self->fd, SO_REUSEADDR, 1);
	ASSERT_EQ(0, bind_to(self->fd, &a));
	ASSERT_EQ(0, listen(self->fd, 1));
	refuse_packets_to(self->group, variant->v4, BPF_CGROUP_INET_EGRESS);
	EXPECT_ERR(EINPROGRESS, connect_to(client, &a));
	usleep(100000);
	EXPECT_EQ(DBLP_STATE_INIT_SENT, get_info(client).state);
	detach(self->group, BPF_CGROUP_INET_EGRESS);
	EXPECT_TRUE(wait_for(client, POLLOUT, 10 * SECONDS));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(client).state);
}

/* Refuse at each hook between bind() and the first packet */
static void refuse_all(int group, bool v4)
{
	refuse(group, BPF_PROG_TYPE_CGROUP_SOCK_ADDR,
	       v4 ? BPF_CGROUP_INET4_BIND : BPF_CGROUP_INET6_BIND);
	refuse(group, BPF_PROG_TYPE_CGROUP_SOCK,
	       v4 ? BPF_CGROUP_INET4_POST_BIND : BPF_CGROUP_INET6_POST_BIND);
	refuse(group, BPF_PROG_TYPE_CGROUP_SOCK_ADDR,
	       v4 ? BPF_CGROUP_INET4_CONNECT : BPF_CGROUP_INET6_CONNECT);
	refuse(group, BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_EGRESS);
	refuse(group, BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_INGRESS);
}

/* As with TCP, the process that binds, listens or connects may be in another cgroup */
TEST_F(cgroup, programs_of_a_process_with_a_socket_of_another_cgroup)
{
	int listener, client, server;

	file_write(CGROUPS "/cgroup.procs", "0");
	listener = new_socket();
	client = hasty_socket();
	set_u32(client, DBLP_SPRAY, 2);
	set_u32(listener, DBLP_SPRAY, 2);
	refuse_all(self->group, variant->v4);
	file_write(GROUP "/cgroup.procs", "0");
	ASSERT_EQ(0, bind_to(listener, &self->addr));
	ASSERT_EQ(0, listen(listener, 1));
	local_name(listener, &self->addr);
	ASSERT_EQ(0, connect_to(client, &self->addr));
	server = accept(listener, NULL, NULL);
	ASSERT_LE(0, server);
	expect_passing(_metadata, client, server);
	expect_passing(_metadata, server, client);

	/* A socket stays in the cgroup when its process leaves */
	file_write(CGROUPS "/cgroup.procs", "0");
	EXPECT_ERR(EPERM, bind_to(self->fd, &self->addr));
	EXPECT_ERR(EPERM, connect_to(self->fd, &self->addr));
}

TEST_F(cgroup, sock_create)
{
	refuse(self->group, BPF_PROG_TYPE_CGROUP_SOCK,
	       BPF_CGROUP_INET_SOCK_CREATE);
	EXPECT_ERR(EPERM, socket(AF_DBLP, SOCK_SEQPACKET, 0));
	detach(self->group, BPF_CGROUP_INET_SOCK_CREATE);
}

/* A connection to a listener of the cgroup, accepted by a process outside */
static void connect_from_outside(FIXTURE_DATA(cgroup) *self,
				 const char *address, int *listener,
				 int *client, int *server)
{
	*listener = new_listener(address, 1, &self->addr);
	file_write(CGROUPS "/cgroup.procs", "0");
	connect_pair(&self->addr, *listener, client, server);
}

static int get_budget(int fd)
{
	socklen_t len = sizeof(uint32_t);
	uint32_t budget;

	return getsockopt(fd, SOL_DBLP, DBLP_BUDGET, &budget, &len);
}

/* For all kinds of sockets: unconnected, listening, accepted */
TEST_F(cgroup, sockopts)
{
	int listener, client, server, fd[3], i, one = 1;

	connect_from_outside(self, variant->address, &listener, &client,
			     &server);
	fd[0] = self->fd;
	fd[1] = listener;
	fd[2] = server;
	refuse(self->group, BPF_PROG_TYPE_CGROUP_SOCKOPT,
	       BPF_CGROUP_SETSOCKOPT);
	refuse(self->group, BPF_PROG_TYPE_CGROUP_SOCKOPT,
	       BPF_CGROUP_GETSOCKOPT);
	for (i = 0; i < 3; i++) {
		EXPECT_ERR(EPERM, try_u32(fd[i], DBLP_BUDGET, 1000));
		EXPECT_ERR(EPERM, setsockopt(fd[i], SOL_SOCKET, SO_KEEPALIVE,
					     &one, sizeof(one)));
		EXPECT_ERR(EPERM, get_budget(fd[i]));
	}
	/* The client is not in the cgroup */
	EXPECT_EQ(0, try_u32(client, DBLP_BUDGET, 1000));
	detach(self->group, BPF_CGROUP_SETSOCKOPT);
	detach(self->group, BPF_CGROUP_GETSOCKOPT);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, try_u32(fd[i], DBLP_BUDGET, 1000));
		EXPECT_EQ(0, get_budget(fd[i]));
	}
}

TEST_F(cgroup, release)
{
	int listener, client, server, map = seen_new();

	connect_from_outside(self, variant->address, &listener, &client,
			     &server);
	ATTACH(self->group, BPF_PROG_TYPE_CGROUP_SOCK,
	       BPF_CGROUP_INET_SOCK_RELEASE,
	       MAP_VALUE(1, map), MOV_IMM(2, 1), ADD_TO_W(1, 2, SEEN(calls)),
	       MOV_IMM(0, 1), EXIT());
	close(client);
	EXPECT_EQ(0, seen_now(map).calls);
	close(server);
	EXPECT_EQ(1, seen_now(map).calls);
	close(listener);
	EXPECT_EQ(2, seen_now(map).calls);
	detach(self->group, BPF_CGROUP_INET_SOCK_RELEASE);
}

/* Record the packets sent from the listener's port */
static void watch(int group, bool v4, uint16_t port, int map)
{
	ATTACH(group, BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_EGRESS,
	       MOV_REG(6, 1), MOV_IMM(2, v4 ? 20 : 40), MOV_REG(3, 10),
	       ADD_IMM(3, -8), MOV_IMM(4, 2), CALL(BPF_FUNC_skb_load_bytes),
	       LOAD_H(7, 10, -8), JUMP_UNLESS(7, port, 10),
	       MAP_VALUE(1, map), MOV_IMM(2, 1), ADD_TO_W(1, 2, SEEN(calls)),
	       LOAD_W(2, 6, offsetof(struct __sk_buff, mark)),
	       STORE_W(1, 2, SEEN(mark)),
	       LOAD_W(2, 6, offsetof(struct __sk_buff, priority)),
	       STORE_W(1, 2, SEEN(priority)),
	       LOAD_W(2, 6, offsetof(struct __sk_buff, hash)),
	       STORE_W(1, 2, SEEN(hash)),
	       MOV_IMM(0, 1), EXIT());
}

/* Record of the server's next packets, of which the last has a message or is an ACK */
static struct seen see(struct __test_metadata *_metadata, int map, int server,
		       int client)
{
	uint32_t before = seen_now(map).calls;
	struct seen s;

	expect_passing(_metadata, server, client);
	s = seen_now(map);
	EXPECT_LT(before, s.calls);
	return s;
}

/* Packets of accepted sockets have the present settings of the socket */
TEST_F(cgroup, packets_have_the_settings_of_accepted_sockets)
{
	int listener, client, server, map = seen_new(), off = 0;
	struct seen first, s;

	listener = new_listener(variant->address, 1, &self->addr);
	set_int(listener, SO_MARK, 11);
	/* A priority above that of packets without a message */
	set_int(listener, SO_PRIORITY, 101);
	connect_pair(&self->addr, listener, &client, &server);
	watch(self->group, variant->v4, self->addr.sdblp_port, map);
	first = see(_metadata, map, server, client);
	EXPECT_EQ(11, first.mark);
	EXPECT_EQ(101, first.priority);

	set_int(server, SO_MARK, 22);
	set_int(server, SO_PRIORITY, 102);
	s = see(_metadata, map, server, client);
	EXPECT_EQ(22, s.mark);
	EXPECT_EQ(102, s.priority);
	EXPECT_EQ(first.hash, s.hash);

	/* The hash for multipath changes, unless SO_TXREHASH is off */
	set_int(server, SO_CNX_ADVICE, 1);
	s = see(_metadata, map, server, client);
	EXPECT_NE(first.hash, s.hash);
	first = s;
	/* Later kernels support SO_TXREHASH for TCP only */
	if (setsockopt(server, SOL_SOCKET, SO_TXREHASH, &off, sizeof(off))) {
		EXPECT_EQ(EOPNOTSUPP, errno);
	} else {
		set_int(server, SO_CNX_ADVICE, 1);
		s = see(_metadata, map, server, client);
		EXPECT_EQ(first.hash, s.hash);
	}

	detach(self->group, BPF_CGROUP_INET_EGRESS);
}

#define BPF_FS	"/tmp/dblp-bpf"

/* Filters of tc and netfilter find the cgroup by the packet's socket */
static void watch_owner(bool v4, uint16_t port, int map)
{
	const struct bpf_insn insns[] = {
		MOV_REG(6, 1), MOV_IMM(2, v4 ? 34 : 54), MOV_REG(3, 10),
		ADD_IMM(3, -8), MOV_IMM(4, 2), CALL(BPF_FUNC_skb_load_bytes),
		LOAD_H(7, 10, -8), JUMP_UNLESS(7, port, 8), MOV_REG(1, 6),
		CALL(BPF_FUNC_skb_cgroup_id), MAP_VALUE(1, map),
		STORE_W(1, 0, SEEN(cgroup)), MOV_IMM(2, 1),
		ADD_TO_W(1, 2, SEEN(calls)), MOV_IMM(0, 0), EXIT(),
	};
	union bpf_attr pin = { .pathname = (uintptr_t)BPF_FS "/owner" };

	if (mkdir(BPF_FS, 0700) && errno != EEXIST)
		die(BPF_FS);
	if (mount("none", BPF_FS, "bpf", 0, NULL))
		die("mount(bpf)");
	pin.bpf_fd = load(BPF_PROG_TYPE_SCHED_CLS, 0, insns,
			  sizeof(insns) / sizeof(insns[0]));
	if (bpf(BPF_OBJ_PIN, &pin))
		die("bpf(BPF_OBJ_PIN)");
	close(pin.bpf_fd);
	run("tc qdisc add dev lo clsact && tc filter add dev lo egress bpf da "
	    "object-pinned " BPF_FS "/owner");
	if (umount(BPF_FS))
		die("umount()");
}

TEST_F(cgroup, owner_of_packets)
{
	int listener, client, server, map = seen_new();
	struct stat group;

	connect_from_outside(self, variant->address, &listener, &client,
			     &server);
	watch_owner(variant->v4, self->addr.sdblp_port, map);
	ASSERT_EQ(0, fstat(self->group, &group));
	EXPECT_EQ((uint32_t)group.st_ino,
		  see(_metadata, map, server, client).cgroup);
}

TEST_HARNESS_MAIN
