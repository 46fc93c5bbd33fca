// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl stats --prometheus: counters, sockets and jobs in Prometheus' text format, for
 * the textfile collector of its node_exporter.
 */

#include <ctype.h>
#include <inttypes.h>
#include <libdblp.h>
#include <linux/genetlink.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "job.h"
#include "names.h"
#include "netns.h"
#include "nl.h"
#include "prometheus.h"
#include "socket.h"
#include "version.h"

/**
 * struct metric - a metric with several samples
 * @name: its name, without "dblp_"
 * @type: counter or gauge
 * @help: its meaning
 * @attr: attribute of struct job_phase with the value of a sample
 * @text: the samples
 */
struct metric {
	const char	*name;
	const char	*type;
	const char	*help;
	uint16_t	attr;
	char		*text;
	size_t		len;
	FILE		*to;
};

static struct metric job_metrics[] = {
	{ "job_messages_total", "counter",
	  "Messages that the sockets of a job sent in a phase and that were closed.",
	  DBLP_A_JOB_PHASE_MESSAGES, NULL, 0, NULL },
	{ "job_bytes_total", "counter", "Bytes of these messages.",
	  DBLP_A_JOB_PHASE_BYTES, NULL, 0, NULL },
	{ "job_forgiven_bytes_total", "counter", "Missing bytes of these messages.",
	  DBLP_A_JOB_PHASE_FORGIVEN, NULL, 0, NULL },
};

/* Print the value of a label, with backslash, quote and newline escaped */
static void put_label(FILE *to, const char *name, const char *value,
		      const char *before)
{
	fprintf(to, "%s%s=\"", before, name);
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", to);
		else if (*value == '\\' || *value == '"')
			fprintf(to, "\\%c", *value);
		else
			putc(*value, to);
	}
	putc('"', to);
}

static void put_head(const char *name, const char *type, const char *help)
{
	printf("# HELP dblp_%s %s\n# TYPE dblp_%s %s\n", name, help, name, type);
}

/* Begin a sample with the label of -N; further labels follow @separator */
static const char *put_name(FILE *to, const char *name)
{
	fprintf(to, "dblp_%s{", name);
	if (!netns_name)
		return "";
	put_label(to, "netns", netns_name, "");
	return ",";
}

/* "ConnActive" to "conn_active_total" */
static void counter_name(char *to, size_t size, const char *name)
{
	size_t n = 0;

	for (; *name && n + sizeof("_total") + 2 < size; name++) {
		if (isupper((unsigned char)*name) && n)
			to[n++] = '_';
		to[n++] = (char)tolower((unsigned char)*name);
	}
	strcpy(to + n, "_total");
}

static enum status put_counters(void)
{
	const struct nlattr *tb[DBLP_A_STATS_MAX + 1];
	struct nl_reply reply;
	char name[64];
	int i;

	if (nl_talk(nl_request(DBLP_CMD_STATS_GET, 0), NULL, 0, &reply))
		return STATUS_FAILED;
	nl_attrs(reply.msgs, tb, DBLP_A_STATS_MAX);
	for (i = 0; i <= DBLP_A_STATS_MAX; i++) {
		if (!counters[i].name || !tb[i] || mnl_attr_validate(tb[i], MNL_TYPE_U64))
			continue;
		counter_name(name, sizeof(name), counters[i].name);
		put_head(name, "counter", counters[i].meaning);
		put_name(stdout, name);
		printf("} %" PRIu64 "\n", mnl_attr_get_u64(tb[i]));
	}
	nl_reply_free(&reply);
	return STATUS_OK;
}

static enum status count_state(const struct values *v, void *arg)
{
	uint32_t state = get_u32(v, DBLP_A_SOCKET_STATE), *n = arg;

	if (state <= DBLP_STATE_CLOSING)
		n[state]++;
	return STATUS_OK;
}

/* Sockets by state; also 0, so that a series does not end */
static enum status put_sockets(void)
{
	uint32_t n[DBLP_STATE_CLOSING + 1] = { 0 }, i;
	enum status status = sockets_each(count_state, n);

	if (status)
		return status;
	put_head("sockets", "gauge", "Sockets by state.");
	for (i = 0; i <= DBLP_STATE_CLOSING; i++) {
		put_label(stdout, "state", dblp_state_names[i],
			  put_name(stdout, "sockets"));
		printf("} %" PRIu32 "\n", n[i]);
	}
	return STATUS_OK;
}

/* Append a sample of a job in a phase to each metric */
static void put_phase(const struct values *job, const struct values *phase)
{
	struct metric *m;
	char number[16];

	for (m = job_metrics; m < job_metrics + N_FIELDS(job_metrics); m++) {
		const char *before = put_name(m->to, m->name);

		snprintf(number, sizeof(number), "%" PRIu32, get_u32(job, DBLP_A_JOB_ID));
		/* Prometheus itself sets "job" on each sample, and would rename this label */
		put_label(m->to, "dblp_job", number, before);
		put_label(m->to, "name", get_string(job, DBLP_A_JOB_NAME), ",");
		snprintf(number, sizeof(number), "%" PRIu32,
			 get_u32(phase, DBLP_A_JOB_PHASE_PHASE));
		put_label(m->to, "phase", number, ",");
		fprintf(m->to, "} %" PRIu64 "\n", get_u64(phase, m->attr));
	}
}

/* A dump has all phases of a job, but its table of attributes only the last one */
static enum status put_job(const struct values *v, void *arg)
{
	struct nlmsghdr *nlh = nl_request(DBLP_CMD_JOB_GET, 0);
	const struct nlattr *tb[DBLP_A_JOB_PHASE_MAX + 1], *nest, *attr;
	struct values phase = { job_phase_attrs, tb };
	struct nl_reply reply;

	(void)arg;
	mnl_attr_put_u32(nlh, DBLP_A_JOB_ID, get_u32(v, DBLP_A_JOB_ID));
	if (nl_talk(nlh, job_attrs, DBLP_A_JOB_MAX, &reply))
		return STATUS_FAILED;
	mnl_attr_for_each(nest, reply.msgs, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(nest) != DBLP_A_JOB_STATS)
			continue;
		memset(tb, 0, sizeof(tb));
		mnl_attr_for_each_nested(attr, nest)
			if (mnl_attr_get_type(attr) <= DBLP_A_JOB_PHASE_MAX)
				tb[mnl_attr_get_type(attr)] = attr;
		put_phase(v, &phase);
	}
	nl_reply_free(&reply);
	return STATUS_OK;
}

/* The format wants all samples of a metric together */
static enum status put_jobs(void)
{
	enum status status;
	struct metric *m, *end = job_metrics + N_FIELDS(job_metrics);

	for (m = job_metrics; m < end; m++)
		m->to = checked(open_memstream(&m->text, &m->len));
	status = jobs_each(put_job, NULL);
	for (m = job_metrics; m < end; m++) {
		checked(fclose(m->to) ? NULL : m->text);
		if (!status && m->len) {
			put_head(m->name, m->type, m->help);
			fputs(m->text, stdout);
		}
		free(m->text);
	}
	return status;
}

enum status print_prometheus(void)
{
	put_head("build_info", "gauge", "Version of dblpctl, with the value 1.");
	put_label(stdout, "version", DBLP_BUILD, put_name(stdout, "build_info"));
	puts("} 1");
	return put_counters() ?: put_sockets() ?: put_jobs();
}
