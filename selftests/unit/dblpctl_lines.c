// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzer of dblpctl: runs lines that are nearly valid against a fake kernel with
 * arbitrary replies. Inputs depend on a constant seed only.
 *
 * It links all of dblpctl except code that needs a network or waits. The socket
 * functions of libmnl are replaced by the fake kernel, which validates requests.
 */
#define main dblpctl_main
#include "dblpctl.c"
#undef main

#include <errno.h>
#include <linux/dblp_netlink.h>
#include <linux/genetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "process.h"
#include "units.h"

#define INPUTS		20000
#define LINE_LEN	6000
#define FAMILY		0x20

static char line[2 * LINE_LEN];

/* Abort and print the input line if @cond is false */
#define CHECK(cond) do { \
	if (!(cond)) { \
		dprintf(2, "# %s:%d: %s\n# %s\n", __FILE__, __LINE__, #cond, \
			line); \
		abort(); \
	} \
} while (0)

static uint64_t state = 0x5eed;

static uint32_t below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 20) % n);
}

/* The fake kernel */

static _Alignas(8) char reply[32768];
static size_t reply_len;
static bool changed_something;
static uint32_t reply_seq;
/* Number of sleeps; after SLEEPS_MAX the kernel refuses, which ends repeated output */
static unsigned int sleeps;

#define SLEEPS_MAX	3

static const char *const names[] = {
	"reliable", "critical", "tolerant", "resnet", "lossy", "", "\"", "\\",
	"\x01", "\xff\xfe", "a name that is far longer than any may be",
};

#define N(array)	(sizeof(array) / sizeof((array)[0]))

static struct nlmsghdr *add_message(uint16_t type, uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(reply + reply_len);

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = flags;
	nlh->nlmsg_seq = reply_seq;
	return nlh;
}

static void end_message(const struct nlmsghdr *nlh)
{
	reply_len += MNL_ALIGN(nlh->nlmsg_len);
	CHECK(reply_len < sizeof(reply));
}

static void add_any_attr(struct nlmsghdr *nlh, uint16_t type)
{
	static const uint8_t lengths[] = { 4, 4, 4, 4, 8, 8, 16, 2, 0 };
	uint8_t bytes[64];
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(below(3) ? 0 : below(256));
	if (type <= 2 && !below(2))
		mnl_attr_put_strz(nlh, type, names[below(N(names))]);
	else if (!below(8))
		mnl_attr_put(nlh, type, below(64), bytes);
	else
		mnl_attr_put(nlh, type, lengths[below(N(lengths))], bytes);
}

/* Add a message with known, unknown and nested attributes */
static void add_object(uint8_t cmd, uint16_t flags)
{
	struct nlmsghdr *nlh = add_message(FAMILY, flags);
	struct genlmsghdr *genl;
	struct nlattr *nest;
	uint16_t type, i;

	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	for (type = 1; type < 75; type++) {
		if (!below(8))
			continue;
		if (below(8) || type > 6) {
			add_any_attr(nlh, type);
			continue;
		}
		nest = mnl_attr_nest_start(nlh, type);
		for (i = 1; i < 8; i++)
			add_any_attr(nlh, i);
		mnl_attr_nest_end(nlh, nest);
	}
	end_message(nlh);
}

static void add_refusal(int err)
{
	struct nlmsghdr *nlh = add_message(NLMSG_ERROR, NLM_F_CAPPED |
					   (err ? NLM_F_ACK_TLVS : 0));
	struct nlmsgerr *e;

	e = mnl_nlmsg_put_extra_header(nlh, sizeof(*e));
	e->error = -err;
	if (err && below(4))
		mnl_attr_put(nlh, NLMSGERR_ATTR_MSG, below(9), "no, never");
	if (err && below(2))
		mnl_attr_put_u32(nlh, NLMSGERR_ATTR_OFFS, below(200));
	if (err && !below(4))
		mnl_attr_put_u32(nlh, NLMSGERR_ATTR_MISS_TYPE,
				 below(2) ? below(100) : UINT32_MAX);
	end_message(nlh);
}

static void add_dump(uint8_t cmd)
{
	uint16_t flags = NLM_F_MULTI | (below(8) ? 0 : NLM_F_DUMP_INTR);
	struct nlmsghdr *nlh;
	uint32_t n = below(4);
	int *err;

	while (n--)
		add_object(cmd, flags);
	nlh = add_message(NLMSG_DONE, flags);
	err = mnl_nlmsg_put_extra_header(nlh, sizeof(*err));
	*err = below(16) ? 0 : -(int)(1 + below(133));
	end_message(nlh);
}

static void add_family(void)
{
	struct nlmsghdr *nlh = add_message(GENL_ID_CTRL, 0);

	mnl_nlmsg_put_extra_header(nlh, sizeof(struct genlmsghdr));
	mnl_attr_put_u16(nlh, CTRL_ATTR_FAMILY_ID, FAMILY);
	end_message(nlh);
	add_refusal(0);
}

static bool changes(uint8_t cmd)
{
	switch (cmd) {
	case DBLP_CMD_SOCKET_SET:
	case DBLP_CMD_PHASE_SET:
	case DBLP_CMD_PHASE_DEL:
	case DBLP_CMD_JOB_ADD:
	case DBLP_CMD_JOB_SET:
	case DBLP_CMD_JOB_REPLACE:
	case DBLP_CMD_JOB_DEL:
	case DBLP_CMD_PARAM_SET:
		return true;
	}
	return false;
}

ssize_t mnl_socket_sendto(const struct mnl_socket *nl, const void *buf,
			  size_t len)
{
	const struct nlmsghdr *nlh = buf;
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);
	const char *end = (const char *)buf + len;
	const struct nlattr *attr;

	(void)nl;
	CHECK(!only_reading);
	if (sleeps > SLEEPS_MAX) {
		errno = ECONNREFUSED;
		return -1;
	}
	CHECK(mnl_nlmsg_ok(nlh, (int)len) && nlh->nlmsg_len == len);
	attr = mnl_nlmsg_get_payload_offset(nlh, sizeof(*genl));
	for (; (const char *)attr < end; attr = mnl_attr_next(attr))
		CHECK(mnl_attr_ok(attr, (int)(end - (const char *)attr)));
	reply_len = 0;
	reply_seq = nlh->nlmsg_seq;
	if (nlh->nlmsg_type == GENL_ID_CTRL) {
		add_family();
		return (ssize_t)len;
	}
	if (changes(genl->cmd))
		changed_something = true;
	if (nlh->nlmsg_flags & NLM_F_DUMP) {
		add_dump(genl->cmd);
	} else if (!below(4)) {
		add_refusal((int)below(133) + 1);
	} else {
		if (!changes(genl->cmd))
			add_object(genl->cmd, 0);
		add_refusal(0);
	}
	return (ssize_t)len;
}

ssize_t mnl_socket_recvfrom(const struct mnl_socket *nl, void *buf, size_t len)
{
	size_t n = reply_len;

	(void)nl;
	CHECK(n && n <= len);
	memcpy(buf, reply, n);
	reply_len = 0;
	return (ssize_t)n;
}

struct mnl_socket *mnl_socket_open(int bus)
{
	(void)bus;
	return (struct mnl_socket *)reply;
}

int mnl_socket_bind(struct mnl_socket *nl, unsigned int groups, pid_t pid)
{
	(void)nl;
	(void)groups;
	(void)pid;
	return 0;
}

int mnl_socket_setsockopt(const struct mnl_socket *nl, int type, void *buf,
			  socklen_t len)
{
	(void)nl;
	(void)type;
	(void)buf;
	(void)len;
	return 0;
}

int mnl_socket_close(struct mnl_socket *nl)
{
	(void)nl;
	return 0;
}

/* Replacements of functions that write files, need a network, or wait */

int mkostemp(char *template, int flags)
{
	(void)template;
	(void)flags;
	errno = EROFS;
	return -1;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t,
		    struct timespec *rest)
{
	(void)clock;
	(void)flags;
	(void)rest;
	CHECK(t->tv_nsec >= 0 && t->tv_nsec < 1000000000);
	CHECK(sleeps++ <= SLEEPS_MAX);
	return 0;
}

enum status do_monitor(int argc, char **argv)
{
	return no_more(argc, argv);
}

enum status do_doctor(int argc, char **argv)
{
	return no_more(argc, argv);
}

enum status read_processes(void)
{
	return STATUS_OK;
}

const struct process *processes_of(uint64_t inode, size_t *n)
{
	static const struct process some[] = {
		{ 7, 1, "\"\\", 65535 }, { 7, 4294967295, "\xff\x01", 0 }, { 7, 3, "", -1 },
	};

	*n = inode ? below(N(some) + 1) : 0;
	return some;
}

const char *netns_name;

enum status netns_enter(const char *name)
{
	(void)name;
	return STATUS_FAILED;
}

/* Lines */

static const char *const words[] = {
	"socket", "phase", "job", "param", "cc", "stats", "top", "save",
	"version", "help", "list", "show", "set", "add", "del", "replace",
	"flush", "all",
	"nonzero", "-i", "-c", "-p", "loss", "cap", "close", "order", "fill", "name",
	"clr", "on", "off", "low", "high", "low-phase", "high-phase", "eta",
	"hold", "congestion", "timeout", "keepalive", "gso", "peer", "local", "src", "dst", "sport", "dport",
	"and", "=", "-m", "-i", "-pmi", ":7000", "connected", "state",
	"established", "inherit", "none", "critical", "tolerant", "resnet",
	"eager", "early", "full", "keep", "zero", "lossy", "0", "1", "7", "0x1f",
	"4294967295", "4294967296", "0xffffffff", "2%", "0.8%", "40.8%",
	"8000ppm", "100.0001%", "429496.7295%", "10ms", "1.5s", "24h",
	"1193.0464711h", "2min", "0.5", "4294.967295", "10.0.0.0/24",
	"fd00::/8", "::ffff:10.0.0.1/97", "1.2.3.4", "#", "0.000000000000001s",
};

/* Words that may follow a verb and its object */
static const char *const pairs[][2] = {
	{ "loss", "2%" }, { "cap", "100%" }, { "phase", "tolerant" },
	{ "job", "7" }, { "name", "other" }, { "close", "early" },
	{ "order", "shuffled" }, { "fill", "keep" }, { "clr", "on" },
	{ "low", "0.8%" }, { "high", "inherit" }, { "low-phase", "1" },
	{ "high-phase", "2" }, { "eta", "0.5" }, { "hold", "3" },
	{ "congestion", "lossy" }, { "timeout", "10s" },
	{ "keepalive", "2min" }, { "gso", "off" }, { "peer", "10.0.0.0/8" },
	{ "local", "::1" }, { "state", "listen" }, { "sport", ":7000" }, { "-i", "10ms" },
	{ "-c", "1" }, { "-p", "-p" },
};

static void add_word(const char *word)
{
	static char huge[LINE_LEN];
	size_t len = strlen(line);

	if (!below(64)) {
		memset(huge, 'n', LINE_LEN - 1);
		word = huge;
	}
	snprintf(line + len, LINE_LEN - len, "%s%s", word,
		 below(16) ? " " : "\t");
}

/* Make a line of words, mostly in a valid order */
static void make_line(void)
{
	uint32_t n = below(5), pair;

	line[0] = '\0';
	add_word(words[below(9)]);
	if (below(4))
		add_word(words[10 + below(9)]);
	if (below(4))
		add_word(below(4) ? "7" : words[below(N(words))]);
	while (n--) {
		pair = below(N(pairs));
		add_word(below(8) ? pairs[pair][0] : words[below(N(words))]);
		add_word(below(2) ? pairs[pair][1] : words[below(N(words))]);
	}
}

/* Put the line between BATCH_BEGIN and BATCH_COMPLETE, sometimes without one of them */
static void make_saved(void)
{
	static char between[2 * LINE_LEN];

	strcpy(between, line);
	snprintf(line, LINE_LEN, "%s%.4000s\n%s", below(8) ? "begin\n" : "",
		 between, below(8) ? "complete\n" : "");
}

static void change_line(void)
{
	static const char bytes[] = "0159.%:/#-x eEpPmMsShH\t\r\x01\x7f\x80\xff";
	size_t len = strlen(line), at, n;

	if (!len)
		return;
	at = below((uint32_t)len);
	switch (below(5)) {
	case 0:
		line[at] = bytes[below(sizeof(bytes) - 1)];
		break;
	case 1:
		line[at] = '\0';
		break;
	case 2:
		memmove(line + at, line + at + 1, len - at);
		break;
	case 3:
		n = at + 1;
		while (n--)
			if (len < LINE_LEN - 1)
				line[len++] = line[at];
		line[len] = '\0';
		break;
	case 4:
		line[at] = (char)(line[at] ^ 1 << below(7));
		if (!line[at] || line[at] == '\n')
			line[at] = 'x';
		break;
	}
}

/* A formatted value must be parsed as the same value */
static void check_units(const char *text)
{
	char again[DBLP_VALUE_TEXT];
	uint32_t n, m;

	if (!dblp_share_parse(text, &n)) {
		dblp_share_format(n, again);
		CHECK(!dblp_share_parse(again, &m) && m == n);
	}
	if (!dblp_time_parse(text, &n)) {
		dblp_time_format(n, again);
		CHECK(!dblp_time_parse(again, &m) && m == n);
	}
	if (!dblp_ratio_parse(text, &n)) {
		dblp_ratio_format(n, again);
		CHECK(!dblp_ratio_parse(again, &m) && m == n);
	}
	if (is_number(text, &n)) {
		snprintf(again, sizeof(again), below(2) ? "%u" : "%#x", n);
		CHECK(!strcmp(again, "0") || (is_number(again, &m) && m == n));
	}
}

/* Skip a JSON value; returns the end of it, or NULL if it is invalid */
static const char *skip_json(const char *at);

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, " \n");
}

static const char *skip_string(const char *at)
{
	if (*at++ != '"')
		return NULL;
	for (; *at != '"'; at++) {
		if ((unsigned char)*at < ' ')
			return NULL;
		if (*at == '\\' && !strchr("\"\\/bfnrtu", *++at))
			return NULL;
	}
	return at + 1;
}

static const char *skip_members(const char *at, char close)
{
	at = skip_blanks(at);
	if (*at == close)
		return at + 1;
	for (;;) {
		if (close == '}') {
			at = skip_string(skip_blanks(at));
			if (!at || *at++ != ':')
				return NULL;
		}
		at = skip_json(at);
		if (!at)
			return NULL;
		at = skip_blanks(at);
		if (*at == close)
			return at + 1;
		if (*at++ != ',')
			return NULL;
	}
}

static const char *skip_json(const char *at)
{
	size_t n;

	at = skip_blanks(at);
	if (*at == '[' || *at == '{')
		return skip_members(at + 1, *at == '[' ? ']' : '}');
	if (*at == '"')
		return skip_string(at);
	if (!strncmp(at, "true", 4) || !strncmp(at, "null", 4))
		return at + 4;
	if (!strncmp(at, "false", 5))
		return at + 5;
	n = strspn(at, "-0123456789.eE+");
	return n ? at + n : NULL;
}

static void check_json(const char *at)
{
	while (at && *skip_blanks(at))
		at = skip_json(at);
	CHECK(at);
}

static char *out_text, *err_text;

static void try_line(const char *file, int fd)
{
	FILE *out = stdout, *err = stderr;
	size_t out_len, err_len;
	enum status status;

	opts.json = below(2);
	opts.pretty = below(2);
	opts.timestamps = below(2);
	CHECK(!ftruncate(fd, 0));
	CHECK(pwrite(fd, line, strlen(line), 0) == (ssize_t)strlen(line));

	stdout = open_memstream(&out_text, &out_len);
	stderr = open_memstream(&err_text, &err_len);
	sleeps = 0;
	changed_something = false;
	status = run_batch(file, false, run_one);
	fclose(stdout);
	fclose(stderr);
	stdout = out;
	stderr = err;

	CHECK(status <= STATUS_USAGE);
	CHECK(!status || err_len);
	CHECK(status != STATUS_USAGE || !changed_something);
	CHECK(!changed_something || strncmp(line, "begin\n", 6) ||
	      strstr(line, "\ncomplete"));
	CHECK(!err_len || err_text[err_len - 1] == '\n');
	if (opts.json && !status && *out_text && strchr("[{", *out_text))
		check_json(out_text);
	free(out_text);
	free(err_text);
}

int main(void)
{
	int fd = memfd_create("line", 0), i;
	char file[32], *word, *rest;
	uint32_t n;

	/* An input that does not end is an error, too */
	alarm(100);
	puts("TAP version 13\n1..1");
	fflush(stdout);
	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	for (i = 0; i < INPUTS; i++) {
		make_line();
		if (!below(8))
			make_saved();
		for (n = below(6); n; n--)
			change_line();
		try_line(file, fd);
		for (word = strtok_r(line, " \t\r\n", &rest); word;
		     word = strtok_r(NULL, " \t\r\n", &rest))
			check_units(word);
	}
	printf("ok 1 %d lines\n", INPUTS);
	return 0;
}
