// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl job: list, show, stats, add, set, del.
 */

#include <libdblp.h>
#include <linux/genetlink.h>
#include <stdlib.h>
#include <string.h>

#include "dblpctl.h"
#include "err.h"
#include "field.h"
#include "job.h"
#include "names.h"
#include "object.h"
#include "phase.h"
#include "print.h"
#include "units.h"
#include "words.h"

#define F(attr, column, print)	{ DBLP_A_JOB_##attr, column, print, NULL }

#define FE(attr, column, names)	\
	{ DBLP_A_JOB_##attr, column, print_enum, names }

/* JSON only: text has the name beside the number */
static void print_phase_name(const struct field *f, const struct values *v)
{
	static const struct heading h = { "phase_name", NULL };

	if (print_is_json())
		print_string(h, phase_name(get_u32(v, f->attr)), NULL);
}

static const struct field fields[] = {
	F(ID, "ID", print_u32),
	F(NAME, "NAME", print_name),
	F(PHASE, "PHASE", print_phase),
	F(SOCKETS, "SOCKETS", print_u32),
	FE(CLR, "CLR", dblp_clr_names),
	F(LOW, NULL, print_own_share),
	F(HIGH, NULL, print_own_share),
	F(LOW_PHASE, NULL, print_phase),
	F(HIGH_PHASE, NULL, print_phase),
	F(ETA, NULL, print_ratio),
	F(HOLD, NULL, print_u32),
	FE(REGIME, NULL, dblp_regime_names),
	F(NORM, NULL, print_norm),
	F(CHANGE, NULL, print_ratio),
	F(REPORTS, NULL, print_u32),
	F(OWNER, "OWNER", print_u32),
	F(BUDGET_CAP, "CAP", print_own_share),
	F(PHASE, NULL, print_phase_name),
};

/* Print the share of a phase's bytes that were forgiven; 0 without any bytes */
static void print_forgiven_share(const struct field *f, const struct values *v)
{
	uint64_t bytes = get_u64(v, DBLP_A_JOB_PHASE_BYTES);
	unsigned __int128 forgiven = get_u64(v, f->attr);
	const struct heading h = { "share", f->column };
	char text[DBLP_VALUE_TEXT];
	uint32_t ppm = 0;

	if (forgiven > bytes)
		forgiven = bytes;
	if (bytes)
		ppm = (uint32_t)(forgiven * DBLP_PPM / bytes);
	dblp_share_format(ppm, text);
	print_uint(h, ppm, text);
}

static const struct field stats_fields[] = {
	F(PHASE_PHASE, "PHASE", print_u32),
	F(PHASE_MESSAGES, "MESSAGES", print_count),
	F(PHASE_BYTES, "BYTES", print_count),
	F(PHASE_FORGIVEN, "FORGIVEN", print_count),
	F(PHASE_FORGIVEN, "SHARE", print_forgiven_share),
	F(PHASE_TIME_MS, "MILLISECONDS", print_u64),
};

/* Values of keyword clr */
static const char *const switch_names[] = {
	[DBLP_CLR_OFF] = "off",
	[DBLP_CLR_ON] = "on",
	NULL
};

static const struct keyword keywords[] = {
	{ "phase", DBLP_A_JOB_PHASE, "a phase, such as tolerant", read_phase,
	  NULL },
	{ "name", DBLP_A_JOB_NAME, "a name, or - for none",
	  read_name_or_none, NULL },
	{ "clr", DBLP_A_JOB_CLR, "on or off", read_enum, switch_names },
	{ "low", DBLP_A_JOB_LOW, "a share such as 0.8%, or inherit",
	  read_own_share, NULL },
	{ "high", DBLP_A_JOB_HIGH, "a share such as 40.8%, or inherit",
	  read_own_share, NULL },
	{ "low-phase", DBLP_A_JOB_LOW_PHASE, "a phase, such as critical",
	  read_phase, NULL },
	{ "high-phase", DBLP_A_JOB_HIGH_PHASE, "a phase, such as tolerant",
	  read_phase, NULL },
	{ "eta", DBLP_A_JOB_ETA, "a ratio such as 0.5", read_ratio, NULL },
	{ "hold", DBLP_A_JOB_HOLD, "a number of reports", read_number, NULL },
	{ "owner", DBLP_A_JOB_OWNER, "a user, by name or number", read_user,
	  NULL },
	{ "cap", DBLP_A_JOB_BUDGET_CAP, "a share such as 2%, or inherit",
	  read_own_share, NULL },
	{ NULL, 0, NULL, NULL, NULL },
};

static const struct object jobs = {
	.name		= "job",
	.attr_names	= job_attrs,
	.attr_max	= DBLP_A_JOB_MAX,
	.id_attr	= DBLP_A_JOB_ID,
	.name_attr	= DBLP_A_JOB_NAME,
	.owned		= true,
	.get		= DBLP_CMD_JOB_GET,
	.prepare	= read_phase_names,
	.fields		= fields,
	.n_fields	= N_FIELDS(fields),
};

/* Print a row for each phase of the job */
static enum status print_stats(const struct object *o,
			       const struct nlmsghdr *nlh)
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
	return STATUS_OK;
}

enum status read_job_or_none(const struct keyword *k, const char *word,
			     struct value *v)
{
	(void)k;
	v->n = 0;
	return strcmp(word, "none") ? object_find(&jobs, word, &v->n) : STATUS_OK;
}

enum status jobs_each(enum status (*each)(const struct values *v, void *arg),
		      void *arg)
{
	return object_each(&jobs, each, arg);
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
	return object_add(&jobs, DBLP_CMD_JOB_ADD, keywords, argc, argv);
}

static enum status do_set(int argc, char **argv)
{
	return object_set(&jobs, DBLP_CMD_JOB_SET, keywords, argc, argv);
}

static enum status do_del(int argc, char **argv)
{
	return object_del(&jobs, DBLP_CMD_JOB_DEL, argc, argv);
}

static enum status do_replace(int argc, char **argv)
{
	return object_add(&jobs, DBLP_CMD_JOB_REPLACE, keywords, argc, argv);
}

static enum status do_flush(int argc, char **argv)
{
	return object_flush(&jobs, DBLP_CMD_JOB_DEL, argc, argv);
}

static struct {
	struct job_id {
		uint32_t	id;
		char		name[DBLP_NAME_MAX];
	} *all;
	size_t	n;
} known;

static enum status note_name(const struct values *v, void *arg)
{
	struct job_id job = { .id = get_u32(v, DBLP_A_JOB_ID) };

	(void)arg;
	snprintf(job.name, sizeof(job.name), "%s", get_string(v, DBLP_A_JOB_NAME));
	known.all = checked(realloc(known.all, (known.n + 1) * sizeof(*known.all)));
	known.all[known.n++] = job;
	return STATUS_OK;
}

enum status read_job_names(void)
{
	known.n = 0;
	return jobs_each(note_name, NULL);
}

const char *job_name(uint32_t id)
{
	size_t i;

	for (i = 0; i < known.n; i++)
		if (known.all[i].id == id)
			return known.all[i].name;
	return "";
}

/* Restore the detector first: it chooses a phase when it is turned on. Setting the
 * phase after that holds the detector.
 */
static enum status save_job(const struct values *v, void *to)
{
	uint32_t id = get_u32(v, DBLP_A_JOB_ID);
	uint32_t clr = get_u32(v, DBLP_A_JOB_CLR);
	const struct nlattr *tb[DBLP_A_JOB_MAX + 1];
	struct values rest = { v->names, tb };
	enum status status;

	memcpy(tb, v->tb, sizeof(tb));
	tb[DBLP_A_JOB_CLR] = NULL;
	if (clr != DBLP_CLR_OFF)
		tb[DBLP_A_JOB_PHASE] = NULL;
	/* Omit phases that were deleted, which is possible while the detector is off */
	if (!phase_is_saved(get_u32(v, DBLP_A_JOB_LOW_PHASE)))
		tb[DBLP_A_JOB_LOW_PHASE] = NULL;
	if (!phase_is_saved(get_u32(v, DBLP_A_JOB_HIGH_PHASE)))
		tb[DBLP_A_JOB_HIGH_PHASE] = NULL;

	fprintf(to, "job replace %u clr %s", id,
		clr == DBLP_CLR_OFF ? "off" : "on");
	status = write_words(to, keywords, &rest);
	putc('\n', to);
	if (clr == DBLP_CLR_HELD)
		fprintf(to, "job set %u phase %u\n", id,
			get_u32(v, DBLP_A_JOB_PHASE));
	return status;
}

enum status save_jobs(FILE *to)
{
	return jobs_each(save_job, to);
}

enum status jobs_free_names(void)
{
	return object_free_names(&jobs, DBLP_CMD_JOB_SET);
}

enum status jobs_flush(void)
{
	return do_flush(0, NULL);
}

static enum status do_help(int argc, char **argv)
{
	return show_help(argc, argv,
		"Usage: dblpctl [OPTION...] job [list]\n"
		"       dblpctl [OPTION...] job { show | stats } JOB\n"
		"       dblpctl job add NUMBER [phase PHASE] [name NAME] [owner USER] [cap LOSS] [CLR]\n"
		"       dblpctl job set JOB [phase PHASE] [name NAME] [owner USER] [cap LOSS] [CLR]\n"
		"       dblpctl job replace NUMBER [phase PHASE] [name NAME] [owner USER]\n"
		"               [cap LOSS] [CLR]\n"
		"       dblpctl job del JOB\n"
		"       dblpctl job flush\n"
		"\n"
		"CLR := [clr { on | off }] [low LOSS] [high LOSS] [low-phase PHASE]\n"
		"       [high-phase PHASE] [eta RATIO] [hold REPORTS]\n"
		"\n"
		"  JOB    number or name\n"
		"  LOSS   share such as 0.8% or 8000ppm; inherit: as the phase has it\n"
		"\n"
		"  list   all jobs of this network namespace; without CAP_NET_ADMIN only your own\n"
		"  show   all values of one job\n"
		"  stats  messages and bytes that its sockets sent in each phase, and its duration\n"
		"  add    add a job (this and the rest need CAP_NET_ADMIN)\n"
		"  set    change its name (- removes it), owner or detector; change its phase and\n"
		"         that of all its sockets; cap: maximum loss that its sockets accept, in\n"
		"         any phase\n"
		"  replace  set if the job exists, else add\n"
		"  del    delete a job without sockets\n"
		"  flush  delete all jobs without sockets\n"
		"\n"
		"Programs of the job's owner, by default the user that added it, put their sockets\n"
		"in the job by DBLP_JOB; programs of others need CAP_NET_ADMIN. An operator does so\n"
		"by dblpctl socket set ID job JOB. With clr on, the detector chooses the phase from\n"
		"the norms that programs report by DBLP_NORM: low-phase (critical) with budget low\n"
		"while the norm changes by the ratio eta or more, and for hold reports after that;\n"
		"else high-phase (tolerant) with budget high. A phase set by an operator stays\n"
		"until clr is set to on again.");
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
		{ "replace", do_replace },
		{ "flush", do_flush },
		{ "help", do_help },
		{ NULL, NULL },
	};

	return run_verb(verbs, argc, argv);
}
