// SPDX-License-Identifier: GPL-2.0-only
/* Mode collective: output. */
#include <inttypes.h>

#include "collective.h"
#include "conn.h"

static double bytes_per_second(uint32_t size)
{
	return size * 1e9 * results->n / (results->elapsed_ns ?: 1);
}

static void json_plan(void)
{
	const struct dblp_op *op = &coll.op;
	uint32_t i;

	printf(",\"plan\":\"%s\"", dblp_algo_names[op->algo]);
	if (op->algo == DBLP_PS || op->algo == DBLP_TREE)
		printf(",\"root\":%u,\"server\":%s", op->root,
		       op->plan_flags & DBLP_PLAN_SERVER ? "true" : "false");
	if (op->algo == DBLP_TREE)
		printf(",\"fanin\":%u", op->fanin ?: 2);
	if (!op->levels)
		return;
	for (i = 0; i < op->levels; i++)
		printf("%s%u", i ? "," : ",\"radix\":[", op->radix[i]);
	printf("]");
}

/* Budget and policy of a job or phase are not known here */
static void json_losses(void)
{
	const struct dblp_op *op = &coll.op;

	printf(",\"rule\":\"%s\"", dblp_rule_names[op->rule]);
	if (op->flags & DBLP_OP_BUDGET)
		printf(",\"budget_ppm\":%u,\"carry\":%s", op->budget,
		       op->flags & DBLP_OP_CARRY ? "true" : "false");
	if (op->flags & DBLP_OP_POLICY)
		printf(",\"policy\":\"%s\"", dblp_policy_names[op->policy]);
	if (op->flags & DBLP_OP_PHASE)
		printf(",\"phase\":%u", op->phase);
	if (coll.attr.job)
		printf(",\"job\":%u", coll.attr.job);
	printf(",\"wait_ms\":%u", op->wait_ms);
}

static void report_json(uint32_t size, uint32_t nranks, const struct lane_record *lane,
			const uint64_t *ns)
{
	printf("{\"mode\":\"%s\",\"op\":\"%s\"", cfg.mode->name,
	       what_names[coll.what]);
	json_plan();
	printf(",\"proto\":\"%s\",\"cc\":\"%s\",\"devices\":\"%s\"",
	       cfg.main.proto->name, cfg.main.cc ?: "", coll.attr.devices ?: "");
	json_losses();
	printf(",\"dtype\":\"%s\",\"message_bytes\":%u,\"gap_ms\":%u",
	       dtype_names[coll.op.dtype],
	       coll.attr.message_bytes ?: DBLP_COMM_BYTES, coll.gap_ms);
	printf(",\"sparse\":%s,\"block\":%u,\"density_ppm\":%u,\"cluster\":%u",
	       coll.op.flags & DBLP_OP_SPARSE ? "true" : "false", coll.op.block,
	       coll.density, coll.cluster);
	printf(",\"ranks\":%u,\"size\":%u,\"count\":%u,\"warmup\":%u", nranks, size,
	       cfg.count, cfg.warmup);
	printf(",\"started_ns\":%" PRIu64 ",\"elapsed_ns\":%" PRIu64,
	       results->started_ns, results->elapsed_ns);
	printf(",\"sent_bytes\":%" PRIu64 ",\"asked_bytes\":%" PRIu64
	       ",\"missing_bytes\":%" PRIu64 ",\"late_ranks\":%" PRIu64,
	       results->sent, results->asked, results->missing,
	       results->late_ranks);
	printf(",\"bytes_per_second\":%.0f,\"verified\":%s", bytes_per_second(size),
	       coll.op.dtype == DBLP_INT32 ? "true" : "false");
	report_samples(results->sample);
	lanes_report(lane, ns);
	printf("}\n");
}

static void report_text(uint32_t size, uint32_t nranks)
{
	printf("%s, %s, %s, %u ranks, %u bytes of %s%s: %.6f MB/s",
	       what_names[coll.what], dblp_algo_names[coll.op.algo],
	       coll.attr.transport, nranks, size, dtype_names[coll.op.dtype],
	       coll.op.dtype == DBLP_INT32 ? ", verified" : "",
	       bytes_per_second(size) / 1e6);
	printf(", %" PRIu64 " bytes sent", results->sent);
	if (results->missing)
		printf(", %" PRIu64 " bytes missing of %" PRIu64 ", %" PRIu64
		       " ranks late", results->missing, results->asked,
		       results->late_ranks);
	printf("\n");
	report_samples(results->sample);
}

void collective_report(uint32_t size, uint32_t nranks, const struct lane_record *lane,
		       const uint64_t *ns)
{
	if (cfg.json) {
		report_json(size, nranks, lane, ns);
	} else {
		report_text(size, nranks);
		lanes_report(lane, ns);
	}
	fflush(stdout);
}
