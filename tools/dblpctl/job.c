// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl job: list, show, stats, add, set, del.
 */

#include <linux/genetlink.h>
#include <string.h>

#include "dblpctl.h"
#include "field.h"
#include "job.h"
#include "names.h"
#include "nl.h"
#include "print.h"
#include "units.h"
#include "words.h"

#define N_FIELDS(fields)	(sizeof(fields) / sizeof((fields)[0]))
#define F(attr, column, print)	{ DBLP_A_JOB_##attr, column, print, NULL }

static const struct field fields[] = {
	F(ID, "ID", print_u32),
	F(NAME, "NAME", print_name),
	F(PHASE, "PHASE", print_u32),
	F(SOCKETS, "SOCKETS", print_u32),
};

static const struct field stats_fields[] = {
	F(PHASE_PHASE, "PHASE", print_u32),
	F(PHASE_MESSAGES, "MESSAGES", print_count),
	F(PHASE_BYTES, "BYTES", print_count),
	F(PHASE_FORGIVEN, "FORGIVEN", print_count),
	F(PHASE_TIME_MS, "MILLISECONDS", print_u64),
};

static const struct keyword keywords[] = {
	{ "phase", DBLP_A_JOB_PHASE, "a phase, such as tolerant", read_phase,
	  NULL },
	{ "name", DBLP_A_JOB_NAME, "a name", read_name, NULL },
	{ NULL, 0, NULL, NULL, NULL },
};

static void print_job(const struct nlmsghdr *nlh)
{
	const struct nlattr *tb[DBLP_A_JOB_MAX + 1];
	struct values v = { job_attrs, tb };

	nl_attrs(nlh, tb, DBLP_A_JOB_MAX);
	print_fields(fields, N_FIELDS(fields), &v);
}

/* A row for each phase that the job was in */
static void print_stats(const struct nlmsghdr *nlh)
{
	const struct nlattr *tb[DBLP_A_JOB_PHASE_MAX + 1];
	struct values v = { job_phase_attrs, tb };
	const struct nlattr *nest, *attr;

	print_array();
	mnl_attr_for_each(nest, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(nest) != DBLP_A_JOB_STATS)
			continue;
		memset(tb, 0, sizeof(tb));
		mnl_attr_for_each_nested(attr, nest)
			if (mnl_attr_get_type(attr) <= DBLP_A_JOB_PHASE_MAX)
				tb[mnl_attr_get_type(attr)] = attr;
		print_fields(stats_fields, N_FIELDS(stats_fields), &v);
	}
	print_array_end();
}

static bool has_name(const struct nlmsghdr *nlh, const char *name, uint32_t *id)
{
	const struct nlattr *tb[DBLP_A_JOB_MAX + 1];
	struct values v = { job_attrs, tb };

	nl_attrs(nlh, tb, DBLP_A_JOB_MAX);
	*id = get_u32(&v, DBLP_A_JOB_ID);
	return !strcmp(get_string(&v, DBLP_A_JOB_NAME), name);
}

enum status find_job(const char *word, uint32_t *id)
{
	const struct nlmsghdr *msg;
	struct nl_reply reply;
	bool found = false;
	int left;

	/* No name begins with a digit */
	if (*word >= '0' && *word <= '9') {
		if (!parse_id(word, id))
			return STATUS_OK;
		return usage_error("'%s' is not the number of a job", word);
	}
	if (nl_talk(nl_request(DBLP_CMD_JOB_GET, NLM_F_DUMP), job_attrs,
		    &reply))
		return STATUS_FAILED;
	left = (int)reply.len;
	for (msg = reply.msgs; *word && !found && mnl_nlmsg_ok(msg, left);
	     msg = mnl_nlmsg_next(msg, &left))
		found = has_name(msg, word, id);
	nl_reply_free(&reply);
	if (found)
		return STATUS_OK;
	usage_error("no job is called '%s' (see dblpctl job list)", word);
	return STATUS_FAILED;
}

/* Takes a job off the words */
static enum status take_job(int *argc, char ***argv, uint32_t *id)
{
	enum status status;

	if (!*argc)
		return usage_error("which job? (see dblpctl job list)");
	status = find_job(**argv, id);
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
	if (nl_talk(nl_request(DBLP_CMD_JOB_GET, NLM_F_DUMP), job_attrs,
		    &reply))
		return STATUS_FAILED;
	print_array();
	left = (int)reply.len;
	for (msg = reply.msgs; mnl_nlmsg_ok(msg, left);
	     msg = mnl_nlmsg_next(msg, &left))
		print_job(msg);
	print_array_end();
	nl_reply_free(&reply);
	return STATUS_OK;
}

static enum status get_one(int argc, char **argv,
			   void (*print)(const struct nlmsghdr *nlh))
{
	struct nl_reply reply;
	struct nlmsghdr *nlh;
	enum status status;
	uint32_t id;

	status = take_job(&argc, &argv, &id) ?: no_more(argc, argv);
	if (status)
		return status;
	nlh = nl_request(DBLP_CMD_JOB_GET, 0);
	mnl_attr_put_u32(nlh, DBLP_A_JOB_ID, id);
	if (nl_talk(nlh, job_attrs, &reply))
		return STATUS_FAILED;
	print(reply.msgs);
	nl_reply_free(&reply);
	return STATUS_OK;
}

static enum status do_show(int argc, char **argv)
{
	return get_one(argc, argv, print_job);
}

static enum status do_job_stats(int argc, char **argv)
{
	return get_one(argc, argv, print_stats);
}

static enum status change(uint8_t cmd, uint32_t id, const struct value *values)
{
	struct nl_reply reply;
	struct nlmsghdr *nlh;

	nlh = nl_request(cmd, 0);
	mnl_attr_put_u32(nlh, DBLP_A_JOB_ID, id);
	if (values)
		put_words(nlh, keywords, values);
	if (nl_talk(nlh, job_attrs, &reply))
		return STATUS_FAILED;
	nl_reply_free(&reply);
	return STATUS_OK;
}

static enum status do_add(int argc, char **argv)
{
	struct value values[WORDS_MAX] = { 0 };
	enum status status;
	uint32_t id;

	if (!argc)
		return usage_error("which number shall the job have?");
	if (parse_id(argv[0], &id))
		return usage_error("'%s' is not a number for a job", argv[0]);
	if (argc > 1) {
		status = read_words(keywords, argc - 1, argv + 1, values);
		if (status)
			return status;
	}
	return change(DBLP_CMD_JOB_ADD, id, values);
}

static enum status do_set(int argc, char **argv)
{
	struct value values[WORDS_MAX];
	enum status status;
	uint32_t id;

	status = take_job(&argc, &argv, &id) ?:
		 read_words(keywords, argc, argv, values);
	return status ?: change(DBLP_CMD_JOB_SET, id, values);
}

static enum status do_del(int argc, char **argv)
{
	enum status status;
	uint32_t id;

	status = take_job(&argc, &argv, &id) ?: no_more(argc, argv);
	return status ?: change(DBLP_CMD_JOB_DEL, id, NULL);
}

static enum status do_help(int argc, char **argv)
{
	enum status status = no_more(argc, argv);

	if (status)
		return status;
	puts("Usage: dblpctl [OPTION...] job [list]\n"
	     "       dblpctl [OPTION...] job { show | stats } JOB\n"
	     "       dblpctl job add NUMBER [phase PHASE] [name NAME]\n"
	     "       dblpctl job set JOB [phase PHASE] [name NAME]\n"
	     "       dblpctl job del JOB\n"
	     "\n"
	     "  JOB    number or name\n"
	     "\n"
	     "  list   all jobs of this network namespace\n"
	     "  show   one of them\n"
	     "  stats  what its sockets have sent, by phase, and how long it was in each\n"
	     "  add    make one (this and the rest need CAP_NET_ADMIN)\n"
	     "  set    name it, or move all its sockets to another phase at once\n"
	     "  del    forget a job that no socket is in\n"
	     "\n"
	     "A program puts its sockets in a job by DBLP_JOB; from outside it is\n"
	     "dblpctl socket set ID job JOB.");
	return STATUS_OK;
}

enum status do_job(int argc, char **argv)
{
	static const struct command verbs[] = {
		{ "list", do_list },
		{ "show", do_show },
		{ "set", do_set },
		{ "stats", do_job_stats },
		{ "add", do_add },
		{ "del", do_del },
		{ "help", do_help },
		{ NULL, NULL },
	};

	if (!argc)
		return do_list(0, argv);
	return run_command(verbs, argc, argv, "verb");
}
