// SPDX-License-Identifier: GPL-2.0-only
/* Mode collective: command line, rendezvous of --spawn, output. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collective.h"
#include "conn.h"
#include "options.h"

struct collective coll = {
	.attr = {
		.size	= sizeof(coll.attr),
		.rank	= DBLP_COMM_RANK_ENV,
		.nranks	= DBLP_COMM_RANK_ENV,
	},
	.op = {
		.size	= sizeof(coll.op),
		.algo	= DBLP_TRANSPOSE,
		.policy	= DBLP_POLICY_FULL,
	},
	.density = DBLP_PPM,
	.cluster = 1,
	.vectors = -1,
};

static const char *const what_names[] = {
	[WHAT_ALLREDUCE]	= "allreduce",
	[WHAT_REDUCE_SCATTER]	= "reduce-scatter",
	[WHAT_ALLGATHER]	= "allgather",
	NULL
};

static const char *const dtype_names[] = {
	[DBLP_FLOAT32]		= "float32",
	[DBLP_FLOAT16]		= "float16",
	[DBLP_BFLOAT16]		= "bfloat16",
	[DBLP_INT32]		= "int32",
	NULL
};

/* @text: the number of ranks, or the namespace of each */
static void set_spawn(char *text)
{
	coll.spawn = true;
	if (strspn(text, "0123456789") == strlen(text))
		cfg.n_from = number("spawn", text, 1, MAX_HOSTS);
	else
		set_hosts("spawn", text);
}

static void join_option(int opt, char *text)
{
	struct dblp_comm_attr *a = &coll.attr;

	switch (opt) {
	case OPT_SPAWN: set_spawn(text); break;
	case OPT_RANK: a->rank = number("rank", text, 0, DBLP_RANKS_MAX - 1); break;
	case OPT_NRANKS: a->nranks = number("nranks", text, 1, DBLP_RANKS_MAX); break;
	case OPT_RENDEZVOUS:
		if (strncmp(text, "tcp://", 6) && strncmp(text, "file:", 5) &&
		    strcmp(text, "env"))
			wrong("--rendezvous takes tcp://ADDR:PORT, file:PATH or env, not '%s'",
			      text);
		a->rendezvous = text;
		break;
	case OPT_DEVICES: a->devices = text; break;
	case OPT_JOB: a->job = number("job", text, 1, UINT32_MAX); break;
	case OPT_MESSAGE:
		a->message_bytes = number("message", text, 8, DBLP_MSG_MAX / 2);
		if (a->message_bytes % 8)
			wrong("--message takes a multiple of 8");
		break;
	default: exit(EXIT_USAGE);
	}
}

static void plan_option(int opt, char *text)
{
	struct dblp_op *op = &coll.op;

	switch (opt) {
	case OPT_PLAN: op->algo = choice("plan", text, dblp_algo_names); break;
	case OPT_ROOT: op->root = number("root", text, 0, DBLP_RANKS_MAX - 1); break;
	case OPT_SERVER: op->plan_flags = DBLP_PLAN_SERVER; break;
	case OPT_FANIN: op->fanin = number("fanin", text, 1, DBLP_RANKS_MAX); break;
	case OPT_LEVELS:
		op->levels = number("levels", text, 1, DBLP_LEVELS_MAX);
		break;
	case OPT_RADIX:
		coll.radices = numbers("radix", text, DBLP_RANKS_MAX, op->radix,
				       DBLP_LEVELS_MAX);
		break;
	default: join_option(opt, text);
	}
}

static uint32_t block(const char *name, const char *text)
{
	uint64_t n = number(name, text, 1, DBLP_BLOCK_MAX);

	if (n & (n - 1))
		wrong("--%s takes a power of two, not '%s'", name, text);
	return (uint32_t)n;
}

void collective_option(int opt, char *text)
{
	struct dblp_op *op = &coll.op;

	switch (opt) {
	case 's':
		coll.n_sizes = numbers("size", text, DBLP_MSG_MAX, coll.size,
				       SIZES_MAX);
		break;
	case OPT_OP: coll.what = choice("op", text, what_names); break;
	case OPT_RULE: op->rule = choice("rule", text, dblp_rule_names); break;
	case OPT_DTYPE: op->dtype = choice("dtype", text, dtype_names); break;
	case OPT_CARRY: op->flags |= DBLP_OP_CARRY; break;
	case OPT_SPARSE:
		op->flags |= DBLP_OP_SPARSE;
		op->block = text ? block("sparse", text) : 0;
		break;
	case OPT_DENSITY: coll.density = share("density", text); break;
	case OPT_CLUSTER: coll.cluster = number("cluster", text, 1, UINT32_MAX); break;
	case OPT_VECTORS:
		coll.vectors = open(text, O_RDONLY | O_CLOEXEC);
		if (coll.vectors < 0)
			wrong("--vectors: %s: %s", text, strerror(errno));
		break;
	case OPT_PHASE:
		op->phase = number("phase", text, 0, DBLP_PHASES - 1);
		op->flags |= DBLP_OP_PHASE;
		break;
	case OPT_WAIT: op->wait_ms = number("wait", text, 1, 3600000); break;
	case OPT_LANE: lanes_option(text); break;
	case OPT_GAP: coll.gap_ms = number("gap", text, 1, 3600000); break;
	default: plan_option(opt, text);
	}
}

static void check_plan(void)
{
	const struct dblp_op *op = &coll.op;
	const bool rooted = op->algo == DBLP_PS || op->algo == DBLP_TREE;
	const bool digits = op->algo == DBLP_BCUBE || op->algo == DBLP_AVERAGE;

	if (!rooted && (op->root || op->plan_flags & DBLP_PLAN_SERVER))
		wrong("--root and --server are for --plan ps and tree");
	if (op->fanin && op->algo != DBLP_TREE)
		wrong("--fanin is for --plan tree");
	if (!digits && (op->levels || coll.radices))
		wrong("--levels and --radix are for --plan bcube and average");
	if (op->levels && coll.radices)
		wrong("--levels and --radix exclude each other");
	if (coll.what == WHAT_ALLGATHER &&
	    (cfg.has_budget || cfg.policy >= 0 || op->rule || op->wait_ms))
		wrong("--op allgather loses nothing: it has no --budget, --policy, --rule and --wait");
}

static void check_transport(void)
{
	static char name[32];

	if (!strcmp(cfg.main.proto->name, "sctp"))
		wrong("mode collective does not support sctp");
	if (cfg.main.cc && cfg.main.proto->lossy)
		wrong("--cc is for --proto tcp: dblp uses the default of the namespace");
	if (!cfg.main.proto->lossy && (coll.attr.job || coll.op.flags & DBLP_OP_PHASE))
		wrong("%s has no --job and --phase", cfg.main.proto->name);
	if (cfg.main.cc && (size_t)snprintf(name, sizeof(name), "tcp:%s",
					    cfg.main.cc) >= sizeof(name))
		wrong("--cc '%s' is too long", cfg.main.cc);
	coll.attr.transport = cfg.main.cc ? name : cfg.main.proto->name;
}

static void check_ranks_here(void)
{
	struct dblp_comm_attr *a = &coll.attr;

	if (coll.spawn && (a->rank >= 0 || a->nranks >= 0))
		wrong("--spawn starts all ranks: it excludes --rank and --nranks");
	if (!coll.spawn && (a->rank < 0) != (a->nranks < 0))
		wrong("--rank and --nranks go together");
	if (a->rank >= 0 && a->rank >= a->nranks)
		wrong("--rank %d: there are only %d ranks, counted from 0", a->rank,
		      a->nranks);
	if (coll.spawn)
		a->nranks = (int32_t)cfg.n_from;
	else if (!a->rendezvous && !getenv("MASTER_ADDR"))
		wrong("--spawn or --rendezvous is needed: the environment has no MASTER_ADDR");
	if (a->nranks >= 0)
		collective_check_ranks((uint32_t)a->nranks);
}

void collective_check_ranks(uint32_t nranks)
{
	struct dblp_op *op = &coll.op;
	uint64_t product = 1;
	unsigned int i;

	if (op->root >= nranks)
		wrong("--root %u: there are only %u ranks, counted from 0", op->root,
		      nranks);
	if (op->plan_flags & DBLP_PLAN_SERVER && nranks < 2)
		wrong("--server needs at least two ranks");
	if (op->levels && !coll.radices)
		dblp_plan_radix(nranks, op->levels, op->radix);
	for (i = 0; i < coll.radices && product <= nranks; i++)
		product *= op->radix[i];
	if (coll.radices && (product != nranks || i < coll.radices))
		wrong("--radix: the product is not the number of ranks, %u", nranks);
	op->levels = op->levels ?: coll.radices;
}

void collective_check(void)
{
	struct dblp_op *op = &coll.op;
	unsigned int i;

	cfg.listens = false;
	if (!coll.n_sizes)
		coll.size[coll.n_sizes++] = cfg.size;
	for (i = 0; i < coll.n_sizes; i++)
		if (coll.size[i] % vector_dtype_size())
			wrong("--size %u is not a multiple of a %s, which has %u bytes", coll.size[i],
			      dtype_names[op->dtype], vector_dtype_size());
	if (op->flags & DBLP_OP_CARRY && !cfg.has_budget)
		wrong("--carry needs a --budget");
	if (coll.cluster > 1 && coll.density == DBLP_PPM)
		wrong("--cluster needs a --density");
	if (coll.vectors >= 0 &&
	    (coll.n_sizes > 1 || coll.density < DBLP_PPM || op->dtype == DBLP_INT32 ||
	     coll.what == WHAT_ALLGATHER))
		wrong("--vectors needs one --size of floats, and excludes --density and --op allgather");
	check_plan();
	check_transport();
	lanes_check();
	check_ranks_here();
	if (cfg.has_budget)
		op->flags |= DBLP_OP_BUDGET;
	op->budget = cfg.budget;
	if (cfg.policy >= 0) {
		op->flags |= DBLP_OP_POLICY;
		op->policy = (uint32_t)cfg.policy;
	}
}

/* Rendezvous of --spawn: through shared memory */

static int tell_where(void *kv, const char *key, const void *v, size_t n)
{
	struct spawned *s = kv;

	(void)key;
	if (n > sizeof(s->where))
		return -E2BIG;
	memcpy(s->where, v, n);
	__atomic_store_n(&s->where_len, n, __ATOMIC_RELEASE);
	return 0;
}

static int ask_where(void *kv, const char *key, void *v, size_t *n)
{
	struct spawned *s = kv;
	size_t len = __atomic_load_n(&s->where_len, __ATOMIC_ACQUIRE);

	(void)key;
	if (!len)
		return -EAGAIN;
	if (len > *n)
		return -E2BIG;
	memcpy(v, s->where, len);
	*n = len;
	return 0;
}

static void prepare(void)
{
	pthread_barrierattr_t attr;

	if (!coll.spawn)
		return;
	coll.spawned = mmap(NULL, sizeof(*coll.spawned), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (coll.spawned == MAP_FAILED)
		fail("no memory for %u ranks", cfg.n_from);
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	errno = pthread_barrier_init(&coll.spawned->barrier, &attr, cfg.n_from);
	if (errno)
		fail("creating a barrier of %u ranks", cfg.n_from);
	if (coll.attr.rendezvous)
		return;
	coll.attr.rendezvous = "kv";
	coll.attr.kv = coll.spawned;
	coll.attr.kv_set = tell_where;
	coll.attr.kv_get = ask_where;
}

/* Output */

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

const struct mode mode_collective = {
	.name		= "collective",
	.summary	= "sum of a vector over all ranks: time of a round",
	.prepare	= prepare,
	.connect	= rounds,
};
