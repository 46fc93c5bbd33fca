// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl monitor: prints events.
 */

#include <libdblp.h>
#include <linux/genetlink.h>
#include <string.h>

#include "addr.h"
#include "dblpctl.h"
#include "field.h"
#include "names.h"
#include "nl.h"
#include "print.h"

#define F(attr, column, print)	{ DBLP_A_EVENT_##attr, column, print, NULL }

#define FE(attr, column, names)	\
	{ DBLP_A_EVENT_##attr, column, print_enum, names }

/* Print the name, because numbers differ between architectures */
static void print_error(const struct field *f, const struct values *v)
{
	int error = (int)get_u32(v, f->attr);
	const char *name = error ? strerrorname_np(error) : "none";

	print_string(heading(f, v), name ?: "unknown", NULL);
}

/* Print a tag; text omits 0 */
static void print_tag(const struct field *f, const struct values *v)
{
	uint64_t tag = get_u64(v, f->attr);

	print_bits(heading(f, v), tag, tag ? NULL : "");
}

_Static_assert(DBLP_A_EVENT_LOCAL_PORT == DBLP_A_EVENT_LOCAL_ADDR + 1 &&
	       DBLP_A_EVENT_LOCAL_SCOPE == DBLP_A_EVENT_LOCAL_ADDR + 2 &&
	       DBLP_A_EVENT_PEER_PORT == DBLP_A_EVENT_PEER_ADDR + 1 &&
	       DBLP_A_EVENT_PEER_SCOPE == DBLP_A_EVENT_PEER_ADDR + 2,
	       "order of the attributes of an address");

/* Fields of events, in this order; each event has some of them */
static const struct field fields[] = {
	F(SOCKET, "socket", print_id),
	F(LOCAL_ADDR, "local", print_addr),
	F(LOCAL_PORT, NULL, print_port),
	F(LOCAL_SCOPE, NULL, print_u32),
	F(PEER_ADDR, "peer", print_addr),
	F(PEER_PORT, NULL, print_port),
	F(PEER_SCOPE, NULL, print_u32),
	FE(STATE, "state", dblp_state_names),
	F(ERROR, "error", print_error),
	F(MSG_ID, "id", print_u32),
	F(TAG, "tag", print_tag),
	F(LENGTH, "length", print_u32),
	F(MISSING, "missing", print_u32),
	F(JOB, "job", print_u32),
	F(OLD_PHASE, "from", print_u32),
	F(PHASE, "phase", print_u32),
	F(NAME, "name", print_name),
	F(BUDGET, "budget", print_share),
	FE(REASON, "reason", dblp_reason_names),
	FE(POLICY, "close", dblp_policy_names),
	FE(ORDER, "order", dblp_order_names),
	FE(FILL, "fill", dblp_fill_names),
	F(BUDGET_CAP, "cap", print_share),
	FE(BY, "by", dblp_actor_names),
	F(NORM, "norm", print_norm),
	F(PREVIOUS, "previous", print_norm),
	F(CHANGE, "change", print_ratio),
	F(ETA, "eta", print_ratio),
};

/* Kinds of events: the first words of their names */
static const char *const kinds[] = { "conn", "msg", "job", "phase" };

#define N_KINDS	(sizeof(kinds) / sizeof(kinds[0]))

static bool wanted[N_KINDS];

static bool is_wanted(const char *name)
{
	size_t i;

	for (i = 0; i < N_KINDS; i++)
		if (!strncmp(name, kinds[i], strlen(kinds[i])))
			return wanted[i];
	return false;
}

static void print_event(const char *name, const char *text)
{
	static const struct heading event = { "event", "" };

	print_object();
	print_timestamp();
	print_string(event, name, text);
}

static int print_message(const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[DBLP_A_EVENT_MAX + 1];
	struct values v = { event_attrs, tb };
	size_t i;

	/* A newer module may have more events */
	if (genl->cmd > DBLP_CMD_MAX || !event_names[genl->cmd] ||
	    !is_wanted(event_names[genl->cmd]))
		return 0;
	nl_attrs(nlh, tb, DBLP_A_EVENT_MAX);
	print_event(event_names[genl->cmd], NULL);
	for (i = 0; i < N_FIELDS(fields); i++)
		if (tb[fields[i].attr])
			fields[i].print(&fields[i], &v);
	print_object_end();
	return print_end();
}

/* The kernel dropped events because the receive buffer was full */
static int print_lost(void)
{
	print_event("lost", "events lost");
	print_object_end();
	return print_end();
}

static enum status do_help(int argc, char **argv)
{
	return show_help(argc, argv,
		"Usage: dblpctl [OPTION...] monitor [conn | msg | job | phase]...\n"
		"\n"
		"Prints a line for each event in this network namespace, until it is interrupted\n"
		"or the module is removed. The default is all kinds of events:\n"
		"\n"
		"  conn   conn-begin, conn-end: connections, also failed attempts\n"
		"  msg    msg-closed: messages received with bytes missing\n"
		"  job    job-add, job-phase, job-del\n"
		"  phase  phase-set, phase-del\n"
		"\n"
		"events lost: the kernel dropped events because they were too many.\n"
		"This needs CAP_NET_ADMIN.");
}

static enum status read_kind(const char *word)
{
	size_t i;

	for (i = 0; i < N_KINDS; i++) {
		if (is_prefix(word, kinds[i])) {
			wanted[i] = true;
			return STATUS_OK;
		}
	}
	return usage_error("'%s' is not conn, msg, job or phase", word);
}

enum status do_monitor(int argc, char **argv)
{
	enum status status = STATUS_OK;
	int i, heard;

	if (argc && is_prefix(argv[0], "help"))
		return do_help(argc - 1, argv + 1);
	memset(wanted, argc == 0, sizeof(wanted));
	for (i = 0; !status && i < argc; i++)
		status = read_kind(argv[i]);
	if (status || only_reading)
		return status;
	if (nl_listen())
		return STATUS_FAILED;
	print_line();
	do {
		heard = nl_hear(print_message);
		if (heard < 0)
			heard = print_lost();
	} while (!heard);
	return STATUS_FAILED;
}
