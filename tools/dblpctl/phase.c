// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl phase: list, show, set, del.
 */

#include <string.h>

#include "dblpctl.h"
#include "field.h"
#include "names.h"
#include "nl.h"
#include "phase.h"
#include "print.h"
#include "units.h"
#include "words.h"

#define F(attr, column, print)	{ DBLP_A_PHASE_##attr, column, print, NULL }
#define ENUM(attr, column, names) \
	{ DBLP_A_PHASE_##attr, column, print_enum, names }

static const struct field fields[] = {
	F(ID, "ID", print_u32),
	F(NAME, "NAME", print_name),
	F(BUDGET, "LOSS", print_share),
	ENUM(POLICY, "CLOSE", policy_names),
	ENUM(ORDER, "ORDER", order_names),
	ENUM(FILL, "FILL", fill_names),
	F(SOCKETS, "SOCKETS", print_u32),
};

static const struct keyword keywords[] = {
	{ "loss", DBLP_A_PHASE_BUDGET, "a share, such as 2%", read_share,
	  NULL },
	{ "close", DBLP_A_PHASE_POLICY, "a policy: full, eager or early",
	  read_enum, policy_names },
	{ "order", DBLP_A_PHASE_ORDER,
	  "an order: auto, sequential or shuffled", read_enum, order_names },
	{ "fill", DBLP_A_PHASE_FILL, "a fill: zero or keep", read_enum,
	  fill_names },
	{ "name", DBLP_A_PHASE_NAME, "a name", read_name, NULL },
	{ NULL, 0, NULL, NULL, NULL },
};

static void print_phase(const struct nlmsghdr *nlh)
{
	const struct nlattr *tb[DBLP_A_PHASE_MAX + 1];
	struct values v = { phase_attrs, tb };

	nl_attrs(nlh, tb, DBLP_A_PHASE_MAX);
	print_fields(fields, sizeof(fields) / sizeof(fields[0]), &v);
}

static bool has_name(const struct nlmsghdr *nlh, const char *name, uint32_t *id)
{
	const struct nlattr *tb[DBLP_A_PHASE_MAX + 1];
	struct values v = { phase_attrs, tb };

	nl_attrs(nlh, tb, DBLP_A_PHASE_MAX);
	*id = get_u32(&v, DBLP_A_PHASE_ID);
	return !strcmp(get_string(&v, DBLP_A_PHASE_NAME), name);
}

enum status find_phase(const char *word, uint32_t *id)
{
	const struct nlmsghdr *msg;
	struct nl_reply reply;
	bool found = false;
	int left;

	/* No name begins with a digit */
	if (*word >= '0' && *word <= '9') {
		if (!parse_id(word, id))
			return STATUS_OK;
		return usage_error("'%s' is not the number of a phase", word);
	}
	if (nl_talk(nl_request(DBLP_CMD_PHASE_GET, NLM_F_DUMP), phase_attrs,
		    &reply))
		return STATUS_FAILED;
	left = (int)reply.len;
	for (msg = reply.msgs; !found && mnl_nlmsg_ok(msg, left);
	     msg = mnl_nlmsg_next(msg, &left))
		found = has_name(msg, word, id);
	nl_reply_free(&reply);
	if (found)
		return STATUS_OK;
	usage_error("no phase is called '%s' (see dblpctl phase list)", word);
	return STATUS_FAILED;
}

/* Takes a phase off the words */
static enum status take_phase(int *argc, char ***argv, uint32_t *id)
{
	enum status status;

	if (!*argc)
		return usage_error("which phase? (see dblpctl phase list)");
	status = find_phase(**argv, id);
	(*argc)--;
	(*argv)++;
	return status;
}

static enum status do_list(int argc, char **argv)
{
	enum status status = no_more(argc, argv);
	const struct nlmsghdr *msg;
	struct nl_reply reply;
	int left;

	if (status)
		return status;
	if (nl_talk(nl_request(DBLP_CMD_PHASE_GET, NLM_F_DUMP), phase_attrs,
		    &reply))
		return STATUS_FAILED;
	print_array();
	left = (int)reply.len;
	for (msg = reply.msgs; mnl_nlmsg_ok(msg, left);
	     msg = mnl_nlmsg_next(msg, &left))
		print_phase(msg);
	print_array_end();
	nl_reply_free(&reply);
	return STATUS_OK;
}

static enum status do_show(int argc, char **argv)
{
	struct nl_reply reply;
	struct nlmsghdr *nlh;
	enum status status;
	uint32_t id;

	status = take_phase(&argc, &argv, &id) ?: no_more(argc, argv);
	if (status)
		return status;
	nlh = nl_request(DBLP_CMD_PHASE_GET, 0);
	mnl_attr_put_u32(nlh, DBLP_A_PHASE_ID, id);
	if (nl_talk(nlh, phase_attrs, &reply))
		return STATUS_FAILED;
	print_phase(reply.msgs);
	nl_reply_free(&reply);
	return STATUS_OK;
}

static enum status do_set(int argc, char **argv)
{
	struct value values[WORDS_MAX];
	struct nl_reply reply;
	struct nlmsghdr *nlh;
	enum status status;
	uint32_t id;

	status = take_phase(&argc, &argv, &id) ?:
		 read_words(keywords, argc, argv, values);
	if (status)
		return status;
	nlh = nl_request(DBLP_CMD_PHASE_SET, 0);
	mnl_attr_put_u32(nlh, DBLP_A_PHASE_ID, id);
	put_words(nlh, keywords, values);
	if (nl_talk(nlh, phase_attrs, &reply))
		return STATUS_FAILED;
	nl_reply_free(&reply);
	return STATUS_OK;
}

static enum status do_del(int argc, char **argv)
{
	struct nl_reply reply;
	struct nlmsghdr *nlh;
	enum status status;
	uint32_t id;

	status = take_phase(&argc, &argv, &id) ?: no_more(argc, argv);
	if (status)
		return status;
	nlh = nl_request(DBLP_CMD_PHASE_DEL, 0);
	mnl_attr_put_u32(nlh, DBLP_A_PHASE_ID, id);
	if (nl_talk(nlh, phase_attrs, &reply))
		return STATUS_FAILED;
	nl_reply_free(&reply);
	return STATUS_OK;
}

static enum status do_help(int argc, char **argv)
{
	enum status status = no_more(argc, argv);

	if (status)
		return status;
	puts("Usage: dblpctl [OPTION...] phase [list]\n"
	     "       dblpctl [OPTION...] phase show PHASE\n"
	     "       dblpctl phase set PHASE [loss SHARE] [close POLICY] [order ORDER]\n"
	     "                               [fill FILL] [name NAME]\n"
	     "       dblpctl phase del PHASE\n"
	     "\n"
	     "  PHASE  number (0 to 7) or name\n"
	     "\n"
	     "  list   all phases of this network namespace\n"
	     "  show   one of them\n"
	     "  set    change a phase, or make one; sockets in it follow at once, as far\n"
	     "         as they have no settings of their own (needs CAP_NET_ADMIN):\n"
	     "         loss   share that may be missing in what they send\n"
	     "         close  when a receiver closes a message: full, eager or early\n"
	     "         order  in which segments go out: auto, sequential or shuffled\n"
	     "         fill   what a reader finds where bytes are missing: zero or keep\n"
	     "         name   what it is called; a new phase needs one\n"
	     "  del    forget a phase that no socket is in");
	return STATUS_OK;
}

enum status do_phase(int argc, char **argv)
{
	static const struct command verbs[] = {
		{ "list", do_list },
		{ "show", do_show },
		{ "set", do_set },
		{ "del", do_del },
		{ "help", do_help },
		{ NULL, NULL },
	};

	if (!argc)
		return do_list(0, argv);
	return run_command(verbs, argc, argv, "verb");
}
