// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random, mostly invalid system calls on AF_DBLP sockets: fuzzcall [CALLS [SEED]]. The
 * same seed makes the same calls, although their results depend on timing. Bugs show as
 * kernel reports; the test itself checks that a normal connection works meanwhile, and
 * that no socket is left.
 */
#define _GNU_SOURCE
#include "lib/sock.h"

#include <linux/errqueue.h>
#include <linux/sockios.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define CALLS		4000
#define ROUND		400
#define FDS		16
#define BYTES		(1 << 18)

static uint64_t state;
static struct sockaddr_dblp listener_at;
static int fds[FDS];
/* An inaccessible page follows @bytes; @fixed is read-only */
static char *bytes, *fixed;

static uint32_t any(void)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 32;
}

static uint32_t below(uint32_t n)
{
	return any() % n;
}

static bool once_in(uint32_t n)
{
	return !below(n);
}

/* The right length, off by one, or a random one */
static uint32_t length(uint32_t right)
{
	switch (below(8)) {
	case 0:
		return any();
	case 1:
		return right - 1;
	case 2:
		return right + 1;
	case 3:
		return below(right + 1);
	default:
		return right;
	}
}

/* A value for options: small, at a limit, or random */
static uint32_t value(void)
{
	static const uint32_t edges[] = {
		0, 1, 2, 3, 7, 8, 255, 256, 4096, 65535, 1000000, 1000001,
		0x7fffffff, 0x80000000, 0xffffffff,
	};

	return once_in(3) ? any() >> below(32) :
			    edges[below(sizeof(edges) / sizeof(*edges))];
}

/* Memory for @len bytes, or an invalid address */
static void *memory(uint32_t len)
{
	switch (below(16)) {
	case 0:
		return NULL;
	case 1:
		return (void *)1;
	case 2:
		return (void *)0xffff888000001000UL;
	case 3:
		/* The inaccessible page is within the bytes */
		return bytes + BYTES - below(len < BYTES ? len + 1 : BYTES);
	case 4:
		return fixed;
	default:
		return len < BYTES ? bytes + below(BYTES - len) : bytes;
	}
}

static int *some(void)
{
	return &fds[below(FDS)];
}

static void replace(int fd)
{
	int *slot = some();

	if (fd < 0)
		return;
	if (*slot >= 0)
		close(*slot);
	*slot = fd;
	if (!once_in(20))
		fcntl(fd, F_SETFL, O_NONBLOCK);
}

static struct sockaddr_dblp address(void)
{
	struct sockaddr_dblp a = listener_at;

	if (once_in(2))
		a.sdblp_port = once_in(2) ? 0 : any();
	if (once_in(6))
		((char *)&a)[below(sizeof(a))] = any();
	return a;
}

static void put_control(struct msghdr *m)
{
	static _Alignas(8) char control[512];
	struct cmsghdr *c = (struct cmsghdr *)control;
	uint32_t i;

	if (once_in(2))
		return;
	for (i = 0; i < sizeof(control) / 4; i++)
		((uint32_t *)control)[i] = value();
	c->cmsg_level = once_in(8) ? SOL_SOCKET : SOL_DBLP;
	c->cmsg_type = below(8);
	c->cmsg_len = once_in(4) ? length(CMSG_LEN(32)) :
				   CMSG_LEN(sizeof(struct dblp_sndinfo));
	if (once_in(2)) {
		struct dblp_sndinfo *info = (void *)CMSG_DATA(c);

		memset(info, 0, sizeof(*info));
		info->flags = below(64);
		info->budget = value();
		info->critical = value();
	}
	m->msg_control = once_in(16) ? memory(64) : control;
	m->msg_controllen = once_in(4) ? below(sizeof(control)) :
					 CMSG_SPACE(sizeof(struct dblp_sndinfo));
}

static void put_bytes(struct msghdr *m, struct iovec *iov)
{
	uint32_t i;

	m->msg_iov = once_in(32) ? memory(64) : iov;
	m->msg_iovlen = once_in(32) ? any() : below(5);
	for (i = 0; i < 4; i++) {
		iov[i].iov_len = once_in(8) ? value() :
				 below(once_in(4) ? BYTES : 2000);
		iov[i].iov_base = memory(iov[i].iov_len);
	}
}

static void try_sendmsg(void)
{
	struct sockaddr_dblp a = address();
	struct iovec iov[4];
	struct msghdr m = {};

	put_bytes(&m, iov);
	put_control(&m);
	if (once_in(8)) {
		m.msg_name = &a;
		m.msg_namelen = length(sizeof(a));
	}
	sendmsg(*some(), &m, (once_in(2) ? 0 : any()) | MSG_NOSIGNAL |
		(once_in(16) ? 0 : MSG_DONTWAIT));
}

static void try_recvmsg(void)
{
	static const int flags[] = {
		0, MSG_PEEK, MSG_TRUNC, MSG_WAITALL, MSG_ERRQUEUE,
		MSG_PEEK | MSG_TRUNC, MSG_ERRQUEUE | MSG_PEEK, MSG_OOB,
	};
	struct sockaddr_dblp a;
	struct iovec iov[4];
	struct msghdr m = {};

	put_bytes(&m, iov);
	put_control(&m);
	if (once_in(4)) {
		m.msg_name = once_in(8) ? memory(28) : &a;
		m.msg_namelen = length(sizeof(a));
	}
	recvmsg(*some(), &m, (once_in(8) ? (int)any() : flags[below(8)]) |
		(once_in(16) ? 0 : MSG_DONTWAIT));
}

static void try_option(bool set)
{
	int level = once_in(4) ? SOL_SOCKET : once_in(16) ? (int)any() : SOL_DBLP;
	uint32_t len = once_in(3) ? length(4) : once_in(4) ? length(256) : 4, i;
	int name = below(level == SOL_DBLP ? 40 : 80);
	socklen_t size = len;
	char *at = memory(len);

	for (i = 0; i < 64; i++)
		bytes[i] = any();
	if (once_in(2)) {
		uint32_t v = value();

		at = bytes;
		memcpy(at, &v, sizeof(v));
	}
	if (set)
		setsockopt(*some(), level, name, at, len);
	else
		getsockopt(*some(), level, name, at,
			   once_in(16) ? memory(4) : (void *)&size);
}

static void try_address(void)
{
	struct sockaddr_dblp a = address();
	socklen_t len = length(sizeof(a));
	void *at = once_in(12) ? memory(sizeof(a)) : &a;

	switch (below(5)) {
	case 0:
		bind(*some(), at, len);
		break;
	case 1:
	case 2:
		connect(*some(), at, len);
		break;
	case 3:
		getsockname(*some(), memory(sizeof(a)), &len);
		break;
	case 4:
		getpeername(*some(), memory(sizeof(a)), &len);
		break;
	}
}

static void try_ioctl(void)
{
	static const unsigned long cmds[] = {
		SIOCINQ, SIOCOUTQ, SIOCOUTQNSD, FIONBIO, SIOCGSTAMP_OLD,
		SIOCGIFCONF,
	};

	ioctl(*some(), once_in(4) ? any() : cmds[below(6)], memory(64));
}

static void try_file(void)
{
	struct pollfd p = { *some(), any(), 0 };
	struct iovec iov[4];
	struct msghdr m = {};
	int pipes[2];

	switch (below(6)) {
	case 0:
		poll(&p, 1, below(3));
		break;
	case 1:
		replace(dup(*some()));
		break;
	case 2:
		put_bytes(&m, iov);
		readv(p.fd, iov, below(5));
		break;
	case 3:
		put_bytes(&m, iov);
		writev(p.fd, iov, below(5));
		break;
	case 4:
		if (pipe2(pipes, O_NONBLOCK))
			break;
		if (write(pipes[1], bytes, 4096) > 0)
			splice(pipes[0], NULL, p.fd, NULL, value(),
			       SPLICE_F_NONBLOCK);
		splice(p.fd, NULL, pipes[1], NULL, value(), SPLICE_F_NONBLOCK);
		close(pipes[0]);
		close(pipes[1]);
		break;
	case 5:
		mmap(NULL, 4096, PROT_READ, MAP_SHARED, p.fd, 0);
		break;
	}
}

/* Let another process share the sockets for a moment */
static void try_fork(void)
{
	pid_t pid = fork();

	if (!pid) {
		try_sendmsg();
		try_recvmsg();
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void try_call(void)
{
	int *slot;

	switch (below(20)) {
	case 0:
		replace(socket(AF_DBLP, once_in(8) ? below(8) : SOCK_SEQPACKET,
			       once_in(16) ? below(3) : 0));
		break;
	case 1:
		listen(*some(), once_in(4) ? (int)any() : (int)below(8));
		break;
	case 2:
	case 3:
		replace(accept4(*some(), NULL, NULL, SOCK_CLOEXEC));
		break;
	case 4:
		shutdown(*some(), below(5) - 1);
		break;
	case 5:
		slot = some();
		if (*slot >= 0)
			close(*slot);
		*slot = -1;
		break;
	case 6:
	case 7:
		try_address();
		break;
	case 8:
		try_ioctl();
		break;
	case 9:
	case 10:
		try_file();
		break;
	case 11:
	case 12:
	case 13:
		try_option(!once_in(3));
		break;
	case 14:
		if (once_in(20))
			try_fork();
		break;
	case 15:
	case 16:
		try_recvmsg();
		break;
	default:
		try_sendmsg();
	}
}

/* Open a listener and connections to it */
static void begin_round(void)
{
	uint32_t i;

	bytes = mmap(NULL, BYTES + 4096, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fixed = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (bytes == MAP_FAILED || fixed == MAP_FAILED ||
	    mprotect(bytes + BYTES, 4096, PROT_NONE))
		die("mmap()");
	fds[0] = new_listener(once_in(2) ? "127.0.0.1" : "::1", 8, &listener_at);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	for (i = 1; i + 1 < FDS; i += 2) {
		connect_pair(&listener_at, fds[0], &fds[i], &fds[i + 1]);
		fcntl(fds[i], F_SETFL, O_NONBLOCK);
		fcntl(fds[i + 1], F_SETFL, O_NONBLOCK);
	}
	fds[FDS - 1] = new_socket();
}

/* Returns false if the round failed */
static bool run_round(uint64_t seed, uint32_t calls)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		signal(SIGPIPE, SIG_IGN);
		state = seed;
		begin_round();
		/* A call may wait forever */
		alarm(10);
		while (calls--)
			try_call();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("fork()");
	if (status && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)) {
		printf("# a round ends with status %#x\n", status);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	uint32_t calls = argc > 1 ? strtoul(argv[1], NULL, 0) :
			 less_if_slow(CALLS, 4, "calls"), done;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1, end;
	int listener, client, server;
	struct sockaddr_dblp addr;
	char byte = 0;
	bool good = true;

	printf("TAP version 13\n1..2\n");
	fflush(stdout);
	netns_new();
	listener = new_listener("127.0.0.1", 8, &addr);
	connect_pair(&addr, listener, &client, &server);
	for (done = 0; good && done < calls; done += ROUND) {
		good = run_round(seed + done, ROUND);
		if (!good)
			printf("# calls from %u on with seed %llu end badly\n",
			       done, (unsigned long long)seed);
		if (done / ROUND % 25 == 24)
			printf("# %u of %u\n", done + ROUND, calls);
		fflush(stdout);
		if (send(client, &byte, 1, 0) != 1 ||
		    recv(server, &byte, 1, 0) != 1)
			die("an honest connection is broken");
	}
	printf("%sok 1 %u calls\n# value %u\n", good ? "" : "not ", done, done);
	/* Closed sockets may send until the user timeout */
	end = now_ms() + 60 * SECONDS;
	while (socket_count() > 3 && now_ms() < end)
		sleep_ms(100);
	good &= socket_count() == 3;
	printf("%sok 2 no socket is left\n", socket_count() == 3 ? "" : "not ");
	return !good;
}
