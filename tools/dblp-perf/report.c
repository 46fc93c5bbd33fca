// SPDX-License-Identifier: GPL-2.0-only
/* The output: a line or two of text, or one JSON object. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Quantile by nearest rank of sorted samples */
static uint64_t quantile(const uint64_t *sorted, unsigned int permille)
{
	uint64_t rank = ((uint64_t)results->n * permille + 999) / 1000;

	return sorted[rank ? rank - 1 : 0];
}

static uint64_t *sorted_samples(const uint64_t *sample)
{
	uint64_t *sorted = xcalloc(results->n, sizeof(*sorted));

	memcpy(sorted, sample, results->n * sizeof(*sorted));
	qsort(sorted, results->n, sizeof(*sorted), by_value);
	return sorted;
}

static double goodput(void)
{
	if (!results->elapsed_ns)
		return 0;
	return results->delivered * 8e9 / results->elapsed_ns;
}

static uint64_t expirations(const struct timers *t, const char *prefix)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < t->n; i++)
		if (!strncmp(t->timer[i].name, prefix, strlen(prefix)))
			sum += t->timer[i].count;
	return sum;
}

static double per_connection(uint64_t before, uint64_t after)
{
	return ((double)after - before) / total_connections();
}

static double per_second(uint64_t count)
{
	return count * 1000.0 / cfg.time_ms;
}

static const char *flavour_name(unsigned int side)
{
	static char name[2][40];
	const struct flavour *f = side ? &cfg.other : &cfg.main;

	snprintf(name[side], sizeof(name[side]), "%s%s%s", f->proto->name,
		 *results->cc[side] ? " " : "", results->cc[side]);
	return name[side];
}

static void json_samples(const uint64_t *sample)
{
	uint64_t *sorted = sorted_samples(sample);
	uint32_t i;

	printf(",\"ns\":{\"n\":%u,\"min\":%" PRIu64 ",\"p50\":%" PRIu64
	       ",\"p90\":%" PRIu64 ",\"p99\":%" PRIu64 ",\"p999\":%" PRIu64
	       ",\"max\":%" PRIu64 "}", results->n, sorted[0],
	       quantile(sorted, 500), quantile(sorted, 900),
	       quantile(sorted, 990), quantile(sorted, 999),
	       sorted[results->n - 1]);
	free(sorted);
	if (!cfg.samples)
		return;
	printf(",\"samples\":[");
	for (i = 0; i < results->n; i++)
		printf("%s%" PRIu64, i ? "," : "", sample[i]);
	printf("]");
}

static void json_timers(const char *name, const struct timers *t)
{
	unsigned int i;

	printf(",\"%s\":", name);
	if (!t->known) {
		printf("null");
		return;
	}
	printf("{\"own\":%" PRIu64 ",\"all\":%" PRIu64 ",\"by_function\":{",
	       expirations(t, cfg.main.proto->timers), expirations(t, ""));
	for (i = 0; i < t->n; i++)
		printf("%s\"%s\":%" PRIu64, i ? "," : "", t->timer[i].name,
		       t->timer[i].count);
	printf("}}");
}

static void json_idle(void)
{
	const struct memory *m = results->memory;

	printf(",\"memory_bytes\":%" PRId64 ",\"slab_bytes\":%" PRId64,
	       (int64_t)(m[1].used - m[0].used),
	       (int64_t)(m[1].slab - m[0].slab));
	json_timers("timers_before", &results->timers[0]);
	json_timers("timers", &results->timers[1]);
}

static void json_number_or_null(const char *name, uint64_t value)
{
	if (value == UNKNOWN)
		printf(",\"%s\":null", name);
	else
		printf(",\"%s\":%" PRIu64, name, value);
}

static void report_json(void)
{
	printf("{\"mode\":\"%s\",\"proto\":\"%s\",\"cc\":\"%s\"",
	       cfg.mode->name, cfg.main.proto->name, results->cc[0]);
	if (cfg.other.proto)
		printf(",\"other\":\"%s\",\"other_cc\":\"%s\"",
		       cfg.other.proto->name, results->cc[1]);
	if (cfg.main.proto->lossy) {
		printf(",\"budget_ppm\":%u", cfg.budget);
		if (cfg.policy >= 0)
			printf(",\"policy\":\"%s\"",
			       dblp_policy_names[cfg.policy]);
	}
	printf(",\"connections\":%u,\"size\":%u,\"count\":%u,\"%s\":%u",
	       total_connections(), cfg.size, cfg.count,
	       cfg.mode == &mode_share ? "warmup_ms" : "warmup", cfg.warmup);
	printf(",\"started_ns\":%" PRIu64 ",\"elapsed_ns\":%" PRIu64,
	       results->started_ns, results->elapsed_ns);
	json_number_or_null("busy_ns", results->busy_ns);
	json_number_or_null("sent_bytes",
			    cfg.connects ? results->sent : UNKNOWN);
	printf(",\"delivered_bytes\":%" PRIu64 ",\"missing_bytes\":%" PRIu64
	       ",\"early_messages\":%" PRIu64 ",\"goodput_bps\":%.0f",
	       results->delivered, results->missing, results->early,
	       goodput());
	if (cfg.mode == &mode_share)
		printf(",\"side_bytes\":[%" PRIu64 ",%" PRIu64 "]",
		       results->side[0], results->side[1]);
	if (cfg.mode == &mode_idle)
		json_idle();
	if (results->n)
		json_samples(results->sample);
	printf("}\n");
}

static void text_samples(const uint64_t *sample)
{
	uint64_t *sorted = sorted_samples(sample);

	printf("  %u samples, ms: min %.4f p50 %.4f p90 %.4f p99 %.4f p99.9 %.4f max %.4f\n",
	       results->n, sorted[0] / 1e6, quantile(sorted, 500) / 1e6,
	       quantile(sorted, 900) / 1e6, quantile(sorted, 990) / 1e6,
	       quantile(sorted, 999) / 1e6, sorted[results->n - 1] / 1e6);
	free(sorted);
}

void report_samples(const uint64_t *sample)
{
	if (cfg.json)
		json_samples(sample);
	else
		text_samples(sample);
}

static void text_timers(const char *when, const struct timers *t)
{
	if (!t->known)
		printf("  timers %s: unknown (needs root and tracefs)\n", when);
	else
		printf("  timers %s: %.1f/s, of these %.1f/s by %s\n", when,
		       per_second(expirations(t, "")),
		       per_second(expirations(t, cfg.main.proto->timers)),
		       cfg.main.proto->name);
}

static void text_idle(void)
{
	const struct memory *m = results->memory;

	printf("%s: %u connections, kernel memory of each %.0f bytes (slab %.0f)\n",
	       flavour_name(0), total_connections(),
	       per_connection(m[0].used, m[1].used),
	       per_connection(m[0].slab, m[1].slab));
	text_timers("before", &results->timers[0]);
	text_timers("with them", &results->timers[1]);
}

static void text_share(void)
{
	double all = results->side[0] + results->side[1];
	unsigned int i;

	for (i = 0; i < 2; i++)
		printf("%s: %u flows, %.3f Mbit/s, share %.4f\n",
		       flavour_name(i), total_connections() / 2,
		       results->side[i] * 8e3 / results->elapsed_ns,
		       results->side[i] / all);
}

static void text_messages(void)
{
	printf("%s: %.6f MB delivered in %.6f s: %.3f Mbit/s",
	       flavour_name(0), results->delivered / 1e6,
	       results->elapsed_ns / 1e9, goodput() / 1e6);
	if (results->busy_ns != UNKNOWN && results->delivered)
		printf(", %.4f ns of CPU per byte",
		       (double)results->busy_ns / results->delivered);
	if (cfg.budget)
		printf(", %" PRIu64 " bytes missing of %" PRIu64 " messages",
		       results->missing, results->early);
	printf("\n");
}

void report(void)
{
	if (cfg.json) {
		report_json();
		return;
	}
	if (cfg.mode == &mode_idle)
		text_idle();
	else if (cfg.mode == &mode_share)
		text_share();
	else
		text_messages();
	if (results->n)
		text_samples(results->sample);
}
