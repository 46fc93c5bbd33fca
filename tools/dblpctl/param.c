// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl param: list, show, set: defaults of new sockets in the namespace, and
 * whether packets form trains.
 */

#include <stdio.h>

#include "dblpctl.h"
#include "field.h"
#include "names.h"
#include "nl.h"
#include "param.h"
#include "print.h"
#include "words.h"

#define F(attr, print)	{ DBLP_A_PARAM_##attr, NULL, print, NULL }

static const char *const switch_names[] = { "off", "on", NULL };

/* By keyword */
static const struct field fields[] = {
	F(CONGESTION, print_name),
	F(BUDGET_CAP, print_own_share),
	F(USER_TIMEOUT_MS, print_ms),
	F(KEEPALIVE_MS, print_ms),
	{ DBLP_A_PARAM_GSO, NULL, print_enum, switch_names },
};

static const struct keyword keywords[] = {
	{ "congestion", DBLP_A_PARAM_CONGESTION,
	  "a congestion control, such as lossy", read_name, NULL },
	{ "cap", DBLP_A_PARAM_BUDGET_CAP, "a share such as 2%, or inherit",
	  read_own_share, NULL },
	{ "timeout", DBLP_A_PARAM_USER_TIMEOUT_MS, "a time, such as 30s",
	  read_ms, NULL },
	{ "keepalive", DBLP_A_PARAM_KEEPALIVE_MS, "a time, such as 15s",
	  read_ms, NULL },
	{ "gso", DBLP_A_PARAM_GSO, "on or off", read_enum, switch_names },
	{ NULL, 0, NULL, NULL, NULL },
};

_Static_assert(sizeof(keywords) / sizeof(keywords[0]) ==
	       N_FIELDS(fields) + 1, "a keyword for each field");

/* Read all parameters; on success the caller frees @reply */
static enum status get_params(struct nl_reply *reply, const struct nlattr **tb)
{
	if (nl_talk(nl_request(DBLP_CMD_PARAM_GET, 0), param_attrs,
		    DBLP_A_PARAM_MAX, reply))
		return STATUS_FAILED;
	nl_attrs(reply->msgs, tb, DBLP_A_PARAM_MAX);
	return STATUS_OK;
}

/* Print @n parameters from number @first on */
static enum status print_params(size_t first, size_t n)
{
	const struct nlattr *tb[DBLP_A_PARAM_MAX + 1];
	struct values v = { param_attrs, tb };
	struct nl_reply reply;
	enum status status;

	if (only_reading)
		return STATUS_OK;
	status = get_params(&reply, tb);
	if (status)
		return status;
	print_fields(fields + first, n, &v);
	nl_reply_free(&reply);
	return STATUS_OK;
}

enum status save_params(FILE *to)
{
	const struct nlattr *tb[DBLP_A_PARAM_MAX + 1];
	struct values v = { param_attrs, tb };
	struct nl_reply reply;
	enum status status = get_params(&reply, tb);

	if (status)
		return status;
	fputs("param set", to);
	status = write_words(to, keywords, &v);
	putc('\n', to);
	nl_reply_free(&reply);
	return status;
}

static enum status do_list(int argc, char **argv)
{
	return no_more(argc, argv) ?: print_params(0, N_FIELDS(fields));
}

static enum status do_show(int argc, char **argv)
{
	enum status status;
	size_t i;

	if (!argc)
		return usage_error("which parameter? (see dblpctl param list)");
	status = no_more(argc - 1, argv + 1);
	if (status)
		return status;
	for (i = 0; i < N_FIELDS(fields); i++)
		if (is_prefix(argv[0], keywords[i].name))
			return print_params(i, 1);
	return usage_error("no parameter is called '%s' (see dblpctl param help)",
			   argv[0]);
}

static enum status do_set(int argc, char **argv)
{
	struct value values[WORDS_MAX];
	struct nl_reply reply;
	struct nlmsghdr *nlh;
	enum status status;

	status = read_words(keywords, argc, argv, values);
	if (status || only_reading)
		return status;
	nlh = nl_request(DBLP_CMD_PARAM_SET, 0);
	put_words(nlh, keywords, values);
	if (nl_talk(nlh, param_attrs, DBLP_A_PARAM_MAX, &reply))
		return STATUS_FAILED;
	nl_reply_free(&reply);
	return STATUS_OK;
}

static enum status do_help(int argc, char **argv)
{
	return show_help(argc, argv,
		"Usage: dblpctl [OPTION...] param [list]\n"
		"       dblpctl [OPTION...] param show NAME\n"
		"       dblpctl param set [congestion CC] [cap SHARE] [timeout TIME]\n"
		"                         [keepalive TIME] [gso on|off]\n"
		"\n"
		"  list   defaults of new sockets in this network namespace, and gso\n"
		"  show   one parameter\n"
		"  set    change parameters (needs CAP_NET_ADMIN); existing sockets, and connections\n"
		"         that they accept, keep their settings:\n"
		"         congestion  congestion control, see dblpctl cc list\n"
		"         cap         maximum loss that sockets accept if neither they nor their job\n"
		"                     nor their phase has a cap; inherit (default): 0 until the\n"
		"                     program asks for messages with bytes missing\n"
		"         timeout     time without an answer after which a connection ends\n"
		"                     (DBLP_USER_TIMEOUT)\n"
		"         keepalive   idle time before a keepalive probe (SO_KEEPALIVE)\n"
		"         gso         off: pass each packet to IP separately, for all sockets at once;\n"
		"                     for kernels whose UDP GSO is faulty, see dblpctl doctor");
}

enum status do_param(int argc, char **argv)
{
	static const struct command verbs[] = {
		{ "list", do_list },
		{ "show", do_show },
		{ "set", do_set },
		{ "help", do_help },
		{ NULL, NULL },
	};

	return run_verb(verbs, argc, argv);
}
