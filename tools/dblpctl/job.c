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
#include "object.h"
#include "print.h"
#include "units.h"
#include "words.h"

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

static const struct object jobs = {
	.name		= "job",
	.attr_names	= job_attrs,
	.attr_max	= DBLP_A_JOB_MAX,
	.id_attr	= DBLP_A_JOB_ID,
	.name_attr	= DBLP_A_JOB_NAME,
	.get		= DBLP_CMD_JOB_GET,
	.fields		= fields,
	.n_fields	= N_FIELDS(fields),
};

/* A row for each phase that the job was in */
static void print_stats(const struct object *o, const struct nlmsghdr *nlh)
{
	const struct nlattr *tb[DBLP_A_JOB_PHASE_MAX + 1];
	struct values v = { job_phase_attrs, tb };
	const struct nlattr *nest, *attr;

	(void)o;
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

enum status find_job(const char *word, uint32_t *id)
{
	return object_find(&jobs, word, id);
}

static enum status do_list(int argc, char **argv)
{
	return object_list(&jobs, argc, argv);
}

static enum status do_show(int argc, char **argv)
{
	return object_show(&jobs, argc, argv);
}

static enum status do_job_stats(int argc, char **argv)
{
	return object_get(&jobs, argc, argv, print_stats);
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
	return object_change(&jobs, DBLP_CMD_JOB_ADD, id, keywords, values);
}

static enum status do_set(int argc, char **argv)
{
	return object_set(&jobs, DBLP_CMD_JOB_SET, keywords, argc, argv);
}

static enum status do_del(int argc, char **argv)
{
	return object_del(&jobs, DBLP_CMD_JOB_DEL, argc, argv);
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
