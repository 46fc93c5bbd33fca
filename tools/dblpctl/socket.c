// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl socket: list, show, set.
 */

#include <arpa/inet.h>
#include <net/if.h>
#include <string.h>

#include "dblpctl.h"
#include "names.h"
#include "nl.h"
#include "print.h"
#include "units.h"

/* What is shown of a socket, in this order */
struct field {
	uint16_t		attr;
	const char		*column;
	void			(*print)(const struct field *f,
					 const struct nlattr **tb);
	const char *const	*names;
};

static struct heading heading(const struct field *f)
{
	return (struct heading){ socket_attrs[f->attr], f->column };
}

/* Each with what to show for an attribute that this kernel does not send */
static uint32_t get_u32(const struct nlattr **tb, uint16_t attr)
{
	if (!tb[attr] || mnl_attr_validate(tb[attr], MNL_TYPE_U32))
		return 0;
	return mnl_attr_get_u32(tb[attr]);
}

static uint64_t get_u64(const struct nlattr **tb, uint16_t attr)
{
	if (!tb[attr] || mnl_attr_validate(tb[attr], MNL_TYPE_U64))
		return 0;
	return mnl_attr_get_u64(tb[attr]);
}

static void print_u32(const struct field *f, const struct nlattr **tb)
{
	print_uint(heading(f), get_u32(tb, f->attr), NULL);
}

static void print_u64(const struct field *f, const struct nlattr **tb)
{
	print_uint(heading(f), get_u64(tb, f->attr), NULL);
}

static void print_id(const struct field *f, const struct nlattr **tb)
{
	uint32_t id = get_u32(tb, f->attr);
	char text[UNITS_TEXT];

	snprintf(text, sizeof(text), "%#x", id);
	print_uint(heading(f), id, text);
}

static void print_share(const struct field *f, const struct nlattr **tb)
{
	uint32_t ppm = get_u32(tb, f->attr);
	char text[UNITS_TEXT];

	format_share(text, ppm);
	print_uint(heading(f), ppm, text);
}

static void print_us(const struct field *f, const struct nlattr **tb)
{
	uint32_t us = get_u32(tb, f->attr);
	char text[UNITS_TEXT];

	format_us(text, us);
	print_uint(heading(f), us, text);
}

static void print_enum(const struct field *f, const struct nlattr **tb)
{
	uint32_t value = get_u32(tb, f->attr), i;
	char digits[UNITS_TEXT];

	for (i = 0; f->names[i]; i++) {
		if (i == value) {
			print_string(heading(f), f->names[i], NULL);
			return;
		}
	}
	/* A newer kernel has more of them */
	snprintf(digits, sizeof(digits), "%u", value);
	print_string(heading(f), digits, NULL);
}

static void print_name(const struct field *f, const struct nlattr **tb)
{
	const struct nlattr *attr = tb[f->attr];

	if (!attr || mnl_attr_validate(attr, MNL_TYPE_NUL_STRING))
		print_string(heading(f), "", NULL);
	else
		print_string(heading(f), mnl_attr_get_str(attr), NULL);
}

/* An exact count, short in a table */
static void print_count(const struct field *f, const struct nlattr **tb)
{
	uint64_t n = get_u64(tb, f->attr);
	char text[UNITS_TEXT];

	format_count(text, n);
	print_uint(heading(f), n, print_is_table() ? text : NULL);
}

/* Bytes missing in what was sent, whether they had been sent or not */
static void print_forgiven(const struct field *f, const struct nlattr **tb)
{
	struct heading sum = { NULL, f->column };
	char text[UNITS_TEXT];
	uint64_t n;

	n = get_u64(tb, DBLP_A_SOCKET_BYTES_FORGIVEN_UNSENT) +
	    get_u64(tb, DBLP_A_SOCKET_BYTES_FORGIVEN_SENT);
	format_count(text, n);
	print_uint(sum, n, text);
}

static uint16_t get_port(const struct nlattr **tb, uint16_t attr)
{
	if (!tb[attr] || mnl_attr_validate(tb[attr], MNL_TYPE_U16))
		return 0;
	return ntohs(mnl_attr_get_u16(tb[attr]));
}

static void format_addr(char *text, size_t len, const struct in6_addr *addr)
{
	if (IN6_IS_ADDR_V4MAPPED(addr))
		inet_ntop(AF_INET, &addr->s6_addr[12], text, (socklen_t)len);
	else
		inet_ntop(AF_INET6, addr, text, (socklen_t)len);
}

/* Address and port together, as ss does; in JSON they are apart */
static void print_addr(const struct field *f, const struct nlattr **tb)
{
	char addr[INET6_ADDRSTRLEN], scope[IF_NAMESIZE + 1] = "";
	char text[sizeof(addr) + sizeof(scope) + sizeof("[]:65535")];
	struct in6_addr in6 = IN6ADDR_ANY_INIT;
	uint16_t port;
	uint32_t ifindex;

	if (tb[f->attr] &&
	    mnl_attr_get_payload_len(tb[f->attr]) == sizeof(in6))
		memcpy(&in6, mnl_attr_get_payload(tb[f->attr]), sizeof(in6));
	port = get_port(tb, f->attr + 1);
	ifindex = get_u32(tb, f->attr + 2);
	format_addr(addr, sizeof(addr), &in6);

	if (ifindex) {
		scope[0] = '%';
		if (!if_indextoname(ifindex, scope + 1))
			snprintf(scope + 1, sizeof(scope) - 1, "%u", ifindex);
	}
	if (!port)
		strcpy(text, "-");
	else if (IN6_IS_ADDR_UNSPECIFIED(&in6))
		snprintf(text, sizeof(text), "*:%u", port);
	else if (IN6_IS_ADDR_V4MAPPED(&in6))
		snprintf(text, sizeof(text), "%s:%u", addr, port);
	else
		snprintf(text, sizeof(text), "[%s%s]:%u", addr, scope, port);
	print_string(heading(f), addr, text);
}

static void print_port(const struct field *f, const struct nlattr **tb)
{
	print_uint(heading(f), get_port(tb, f->attr), NULL);
}

/* The attributes of an address follow it */
_Static_assert(DBLP_A_SOCKET_LOCAL_PORT == DBLP_A_SOCKET_LOCAL_ADDR + 1 &&
	       DBLP_A_SOCKET_LOCAL_SCOPE == DBLP_A_SOCKET_LOCAL_ADDR + 2 &&
	       DBLP_A_SOCKET_PEER_PORT == DBLP_A_SOCKET_PEER_ADDR + 1 &&
	       DBLP_A_SOCKET_PEER_SCOPE == DBLP_A_SOCKET_PEER_ADDR + 2,
	       "order of the attributes of an address");

#define F(attr, column, print)	{ DBLP_A_SOCKET_##attr, column, print, NULL }
#define ENUM(attr, column, names) \
	{ DBLP_A_SOCKET_##attr, column, print_enum, names }

static const struct field fields[] = {
	F(ID, "ID", print_id),
	ENUM(STATE, "STATE", state_names),
	F(LOCAL_ADDR, "LOCAL", print_addr),
	F(LOCAL_PORT, NULL, print_port),
	F(LOCAL_SCOPE, NULL, print_u32),
	F(PEER_ADDR, "PEER", print_addr),
	F(PEER_PORT, NULL, print_port),
	F(PEER_SCOPE, NULL, print_u32),
	F(UID, NULL, print_u32),
	F(INODE, NULL, print_u64),
	F(BUDGET, "BUDGET", print_share),
	F(BUDGET_CAP, "CAP", print_share),
	F(PEER_BUDGET_CAP, NULL, print_share),
	ENUM(POLICY, NULL, policy_names),
	ENUM(ORDER, NULL, order_names),
	ENUM(FILL, NULL, fill_names),
	F(CONGESTION, NULL, print_name),
	F(PEER_MSG_MAX, NULL, print_u32),
	F(SEG_SIZE, NULL, print_u32),
	F(SRTT_US, "RTT", print_us),
	F(RTTVAR_US, NULL, print_us),
	F(MIN_RTT_US, NULL, print_us),
	F(CWND, NULL, print_u32),
	F(INFLIGHT, NULL, print_u32),
	F(PTO_COUNT, NULL, print_u32),
	F(REORDERING, NULL, print_u32),
	F(PACING_RATE, NULL, print_u64),
	F(DELIVERY_RATE, NULL, print_u64),
	F(BYTES_FIRST, "SENT", print_count),
	F(BYTES_AGAIN, "AGAIN", print_count),
	F(BYTES_DELIVERED, NULL, print_count),
	F(BYTES_FORGIVEN_UNSENT, NULL, print_count),
	F(BYTES_FORGIVEN_SENT, NULL, print_count),
	F(BYTES_FORGIVEN_SENT, "FORGIVEN", print_forgiven),
	F(BYTES_RECEIVED, "RECEIVED", print_count),
	F(BYTES_MISSING, "MISSING", print_count),
	F(MSGS_SENT, NULL, print_u64),
	F(MSGS_SENT_EARLY, NULL, print_u64),
	F(MSGS_RECEIVED, NULL, print_u64),
	F(MSGS_RECEIVED_EARLY, NULL, print_u64),
	F(PKTS_SENT, NULL, print_u64),
	F(PKTS_LOST, NULL, print_u64),
	F(PKTS_RECEIVED, NULL, print_u64),
	F(SPURIOUS, NULL, print_u64),
};

static void print_socket(const struct nlmsghdr *nlh)
{
	const struct nlattr *tb[DBLP_A_SOCKET_MAX + 1];
	size_t i;

	nl_attrs(nlh, tb, DBLP_A_SOCKET_MAX);
	print_object();
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		fields[i].print(&fields[i], tb);
	print_object_end();
}

/* Takes a number of a socket off the words and begins a request with it */
static enum status begin_with_id(uint8_t cmd, int *argc, char ***argv,
				 struct nlmsghdr **nlh)
{
	const char *wrong;
	uint32_t id;

	if (!*argc)
		return usage_error("which socket? (see dblpctl socket list)");
	wrong = parse_id(**argv, &id);
	if (wrong)
		return usage_error("'%s' %s", **argv, wrong);
	(*argc)--;
	(*argv)++;

	*nlh = nl_request(cmd, 0);
	mnl_attr_put_u32(*nlh, DBLP_A_SOCKET_ID, id);
	return STATUS_OK;
}

static enum status do_list(int argc, char **argv)
{
	enum status status = no_more(argc, argv);
	const struct nlmsghdr *msg;
	struct nl_reply reply;
	struct nlmsghdr *nlh;
	int left;

	if (status)
		return status;
	nlh = nl_request(DBLP_CMD_SOCKET_GET, NLM_F_DUMP);
	if (nl_talk(nlh, socket_attrs, &reply))
		return STATUS_FAILED;

	print_array();
	left = (int)reply.len;
	for (msg = reply.msgs; mnl_nlmsg_ok(msg, left);
	     msg = mnl_nlmsg_next(msg, &left))
		print_socket(msg);
	print_array_end();
	nl_reply_free(&reply);
	return STATUS_OK;
}

static enum status do_show(int argc, char **argv)
{
	struct nl_reply reply;
	struct nlmsghdr *nlh;
	enum status status;

	status = begin_with_id(DBLP_CMD_SOCKET_GET, &argc, &argv, &nlh);
	if (!status)
		status = no_more(argc, argv);
	if (status)
		return status;
	if (nl_talk(nlh, socket_attrs, &reply))
		return STATUS_FAILED;
	print_socket(reply.msgs);
	nl_reply_free(&reply);
	return STATUS_OK;
}

/* One "loss SHARE" or "cap SHARE" */
static enum status add_share(struct nlmsghdr *nlh, int argc, char **argv,
			     bool seen[2])
{
	const char *wrong;
	uint32_t ppm;
	bool cap;

	if (is_prefix(argv[0], "loss"))
		cap = false;
	else if (is_prefix(argv[0], "cap"))
		cap = true;
	else
		return usage_error("'%s' is neither loss nor cap", argv[0]);
	if (seen[cap])
		return usage_error("'%s' is given twice", argv[0]);
	seen[cap] = true;
	if (argc < 2)
		return usage_error("'%s' needs a share, such as 2%%", argv[0]);
	wrong = parse_share(argv[1], &ppm);
	if (wrong)
		return usage_error("'%s' %s", argv[1], wrong);
	mnl_attr_put_u32(nlh, cap ? DBLP_A_SOCKET_BUDGET_CAP :
				    DBLP_A_SOCKET_BUDGET, ppm);
	return STATUS_OK;
}

static enum status do_set(int argc, char **argv)
{
	bool seen[2] = { false, false };
	struct nl_reply reply;
	struct nlmsghdr *nlh;
	enum status status;

	status = begin_with_id(DBLP_CMD_SOCKET_SET, &argc, &argv, &nlh);
	if (!status && !argc)
		status = usage_error("nothing to set: loss SHARE or cap SHARE");
	for (; !status && argc > 0; argc -= 2, argv += 2)
		status = add_share(nlh, argc, argv, seen);
	if (status)
		return status;
	if (nl_talk(nlh, socket_attrs, &reply))
		return STATUS_FAILED;
	nl_reply_free(&reply);
	return STATUS_OK;
}

static enum status do_help(int argc, char **argv)
{
	enum status status = no_more(argc, argv);

	if (status)
		return status;
	puts("Usage: dblpctl [OPTION...] socket [list]\n"
	     "       dblpctl [OPTION...] socket show ID\n"
	     "       dblpctl socket set ID [loss SHARE] [cap SHARE]\n"
	     "\n"
	     "  list   all sockets of this network namespace\n"
	     "  show   all that is known of one socket\n"
	     "  set    change a live socket (needs CAP_NET_ADMIN):\n"
	     "         loss  share that may be missing in what it sends from now on\n"
	     "         cap   most loss that it accepts, whatever its peer allows");
	return STATUS_OK;
}

enum status do_socket(int argc, char **argv)
{
	static const struct command verbs[] = {
		{ "list", do_list },
		{ "show", do_show },
		{ "set", do_set },
		{ "help", do_help },
		{ NULL, NULL },
	};

	if (!argc)
		return do_list(0, argv);
	return run_command(verbs, argc, argv, "verb");
}
