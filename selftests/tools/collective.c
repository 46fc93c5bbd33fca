// SPDX-License-Identifier: GPL-2.0-only
/*
 * libdblp: communicators over AF_DBLP. Tests that do not depend on the transport run over TCP in
 * unit/test_comm*.c.
 */
#define _GNU_SOURCE
#include "lib/ranks.h"
#include "lib/sock.h"

#include <ifaddrs.h>
#include <linux/if_link.h>

#define BUDGET	100000
#define ROUNDS	6

static void use_dblp(void)
{
	transport = "dblp";
	netns_new();
	netns_set_mtu(1500);
}

/* Lose a share of UDP packets only: with losses TCP would take a random time for the rendezvous */
static void lose(const char *share)
{
	run("tc qdisc add dev lo root handle 1: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
	run("tc qdisc add dev lo parent 1:2 netem limit 100000 loss %s", share);
	run("tc filter add dev lo parent 1: protocol ip u32 match ip protocol 17 0xff flowid 1:2");
}

static void expect_sums(struct __test_metadata *_metadata, int n)
{
	int i;

	run_all(n);
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, rank[i].opened);
		ASSERT_EQ(0, rank[i].err);
		ASSERT_TRUE(rank[i].good);
		ASSERT_EQ(0, rank[i].result.missing);
	}
}

TEST(all_ranks_get_the_sum_by_every_plan)
{
	static const u64 counts[] = { 1, 60001 };
	int n, algo, c;

	use_dblp();
	for (n = 2; n <= 5; n += 3)
		for (algo = DBLP_PS; algo < DBLP_AVERAGE; algo++)
			for (c = 0; c < 2; c++) {
				prepare(n, next_epoch(), counts[c], run_allreduce);
				EACH_RANK(n, r->op.algo = algo, r->attr.message_bytes = 80000);
				expect_sums(_metadata, n);
			}
}

TEST(without_a_budget_the_sum_is_exact_despite_losses)
{
	int algo, i;

	use_dblp();
	lose("3%");
	for (algo = DBLP_TRANSPOSE; algo <= DBLP_RING; algo++) {
		prepare(3, next_epoch(), 100000, run_allreduce);
		for (i = 0; i < 3; i++)
			rank[i].op.algo = algo;
		expect_sums(_metadata, 3);
	}
}

/* Vectors of all ranks after the last operation */
static int *vector[RANKS_MAX];

/* Run some rounds; each element is a sum of contributions, of which few are missing */
static void run_lossy(struct rank *r)
{
	struct dblp_result sum = { 0 };
	struct dblp_req *req;
	int *v, round;
	u64 i, wrong = 0;

	for (round = 0; round < 5; round++) {
		v = malloc(r->count * sizeof(*v));
		for (i = 0; i < r->count; i++)
			v[i] = 1 << r->attr.rank;
		r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req) ?:
			 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
		if (r->err)
			break;
		sum.missing += r->result.missing;
		sum.asked += r->result.asked;
		sum.budget_least = r->result.budget_least;
		sum.budget_most = r->result.budget_most;
		for (i = 0; i < r->count; i++)
			wrong += r->nranks - (u32)__builtin_popcount((u32)v[i]);
		free(vector[r->attr.rank]);
		vector[r->attr.rank] = v;
	}
	r->result = sum;
	/* Number of wrong bytes, compared by all ranks */
	r->nranks = (u32)(wrong * sizeof(*v));
	r->good = !r->err;
}

static void lossy(struct __test_metadata *_metadata, int algo, u32 policy)
{
	const u64 count = 300000;
	u64 missing = 0, i;
	int k;

	prepare(3, next_epoch(), count, run_lossy);
	EACH_RANK(3, r->op.algo = algo, r->op.flags = DBLP_OP_BUDGET | DBLP_OP_POLICY,
		     r->op.budget = BUDGET, r->op.policy = policy);
	run_all(3);
	for (k = 0; k < 3; k++) {
		ASSERT_EQ(0, rank[k].opened);
		ASSERT_EQ(0, rank[k].err);
		missing += rank[k].result.missing;
		/* Within the budget of the contributions that each rank was to receive */
		EXPECT_LE(rank[k].result.missing * 1000000,
			  rank[k].result.asked * BUDGET);
		/* Each receiving rank has losses; with ps only the root receives lossily */
		if (algo != DBLP_PS || !k)
			EXPECT_EQ(BUDGET, rank[k].result.budget_least);
		EXPECT_EQ(rank[k].result.budget_least, rank[k].result.budget_most);
		/* All ranks have the same vector, whatever was lost */
		EXPECT_EQ(0, memcmp(vector[0], vector[k], count * sizeof(int)));
	}
	EXPECT_LT(0, missing);
	/* If messages have single contributions, missing bytes equal missing contributions */
	if (algo != DBLP_RING)
		for (k = 0; k < 3; k++)
			EXPECT_EQ(missing, rank[k].nranks);
	for (i = 0; i < 3; i++) {
		free(vector[i]);
		vector[i] = NULL;
	}
}

TEST(missing_bytes_are_reported_and_within_the_budget)
{
	use_dblp();
	lose("3%");
	lossy(_metadata, DBLP_PS, DBLP_POLICY_EARLY);
	lossy(_metadata, DBLP_TRANSPOSE, DBLP_POLICY_EAGER);
	lossy(_metadata, DBLP_RING, DBLP_POLICY_EARLY);
}

/* Is element @i of a rank nonzero? In sparse vectors, 10 % are */
static bool is_there(const struct rank *r, u32 from, u64 i)
{
	return !(r->op.flags & DBLP_OP_SPARSE) || (i / 8 + from) % 10 == 0;
}

static int *thin_vector(const struct rank *r, u32 round)
{
	int *v = new_vector(r, round);
	u64 i;

	for (i = 0; i < r->count; i++)
		if (!is_there(r, r->attr.rank, i))
			v[i] = 0;
	return v;
}

static u32 thin_sum(const struct rank *r, u64 i, u32 round)
{
	u32 sum = 0, k;

	for (k = 0; k < r->nranks; k++)
		sum += is_there(r, k, i) ? (u32)value_of(k, i, round) : 0;
	return sum;
}

/*
 * Rounds with losses or pruning, and a last one without losses and new contributions
 */
static void run_feedback(struct rank *r)
{
	u32 *total = calloc(r->count, sizeof(*total)), want;
	u64 i, lost = 0, pruned = 0;
	struct dblp_req *req;
	int *v, round;

	for (round = 0; round <= ROUNDS && !r->err; round++) {
		v = thin_vector(r, round);
		if (round == ROUNDS) {
			memset(v, 0, r->count * sizeof(*v));
			r->op.budget = 0;
			r->op.prune = 0;
		}
		r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req) ?:
			 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
		lost += r->result.lost;
		pruned += r->result.pruned;
		for (i = 0; i < r->count; i++)
			total[i] += (u32)v[i];
		free(v);
	}
	r->good = !r->err;
	for (i = 0; i < r->count; i++) {
		for (want = 0, round = 0; round < ROUNDS; round++)
			want += thin_sum(r, i, round);
		r->good &= total[i] == want;
	}
	r->result.lost = lost;
	r->result.pruned = pruned;
	free(total);
}

/* By rank: elements that others have lacked, as it knows; its own ones at its number */
static u64 lacks[RANKS_MAX][RANKS_MAX];

static u64 stale_of(struct rank *r, u32 of)
{
	struct dblp_span span[1024];
	int i, n = dblp_comm_stale(r->comm, r->op.key, of, span, 1024);
	u64 count = 0;

	r->good &= n >= 0 && n <= 1024;
	for (i = 0; i < n; i++)
		count += span[i].end - span[i].first;
	return count;
}

/*
 * Owners send parameters; others keep their own values for missing bytes. With %DBLP_OP_REPAIR
 * these are one operation old, both ends know them, and the last operation loses nothing.
 */
static void run_kept(struct rank *r)
{
	const bool repairs = r->op.flags & DBLP_OP_REPAIR;
	int *v = malloc(r->count * sizeof(*v));
	struct dblp_span own = { 0 };
	struct dblp_result sum = { 0 };
	u64 i, old = 0, missing = 0;
	struct dblp_req *req;
	int round, oldest;

	r->op.flags &= ~(u32)DBLP_OP_REPAIR;
	r->good = dblp_comm_owned(r->comm, r->count, &r->op, &own, 1) <= 1;
	r->op.flags |= repairs ? DBLP_OP_REPAIR : 0;
	memset(v, 0xff, r->count * sizeof(*v));
	for (round = 0; round < 10 && !r->err; round++) {
		for (i = own.first; i < own.end; i++)
			v[i] = round;
		if (repairs && round == 9)
			r->op.budget = 0;
		r->err = dblp_allgather(r->comm, v, r->count, &r->op, &req) ?:
			 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
		for (i = 0, old = 0, oldest = round; i < r->count; i++) {
			old += v[i] != round;
			oldest = v[i] < oldest ? v[i] : oldest;
			r->good &= v[i] <= round;
		}
		r->good &= old * sizeof(*v) == r->result.missing;
		if (repairs) {
			r->good &= oldest >= round - 1 && (round < 9 || !old) &&
				   stale_of(r, r->attr.rank) == old;
			for (i = 0; i < r->nranks; i++)
				lacks[r->attr.rank][i] += i == r->attr.rank ? old : stale_of(r, i);
		}
		sum.missing += r->result.missing;
		sum.asked += r->result.asked;
		missing += old;
	}
	r->good &= !r->err && (own.end == r->count || missing) &&
		   sum.asked == 10 * (r->count - (own.end - own.first)) * sizeof(*v) &&
		   sum.missing * 1000000 <= sum.asked * BUDGET;
	free(v);
}

static void keep(struct __test_metadata *_metadata, int algo, u32 policy, u32 repair)
{
	u32 i, k, sent;

	memset(lacks, 0, sizeof(lacks));
	prepare(3, next_epoch(), 300000, run_kept);
	EACH_RANK(3, r->op.algo = algo, r->op.key = 7, r->op.policy = policy,
		     r->op.flags = DBLP_OP_BUDGET | DBLP_OP_POLICY | DBLP_OP_KEEP | repair,
		     r->op.budget = BUDGET);
	run_all(3);
	expect_good(_metadata, 3);
	/* What a rank has lacked, the owners have known */
	for (i = 0; i < 3; i++) {
		for (k = 0, sent = 0; k < 3; k++)
			sent += k == i ? 0 : lacks[k][i];
		EXPECT_EQ(lacks[i][i], sent);
	}
}

TEST(lost_parameters_keep_their_value)
{
	use_dblp();
	lose("3%");
	keep(_metadata, DBLP_PS, DBLP_POLICY_EARLY, 0);
}

TEST(lost_parameters_are_repaired_in_the_next_operation)
{
	use_dblp();
	lose("20%");
	keep(_metadata, DBLP_PS, DBLP_POLICY_EARLY, DBLP_OP_REPAIR);
	keep(_metadata, DBLP_TRANSPOSE, DBLP_POLICY_EAGER, DBLP_OP_REPAIR);
}

TEST(feedback_adds_losses_later)
{
	static const int algos[] = { DBLP_PS, DBLP_TRANSPOSE, DBLP_RING };
	u64 lost, pruned;
	int a, k;

	use_dblp();
	/* Packed vectors have few packets, of which some shall be lost */
	lose("20%");
	/* In the second run most elements are zero, and some others are pruned */
	for (a = 0; a < 6; a++) {
		prepare(3, next_epoch(), a < 3 ? 50000 : 200000, run_feedback);
		for (k = 0; k < 3; k++) {
			rank[k].op.algo = algos[a % 3];
			rank[k].op.rule = DBLP_FEEDBACK;
			rank[k].op.key = 7;
			rank[k].op.flags = DBLP_OP_BUDGET | DBLP_OP_POLICY;
			rank[k].op.budget = BUDGET;
			rank[k].op.policy = DBLP_POLICY_EARLY;
			if (a < 3)
				continue;
			rank[k].op.flags |= DBLP_OP_SPARSE;
			rank[k].op.prune = 10000;
		}
		run_all(3);
		for (k = 0, lost = 0, pruned = 0; k < 3; k++) {
			ASSERT_EQ(0, rank[k].err);
			EXPECT_TRUE(rank[k].good);
			lost += rank[k].result.lost;
			pruned += rank[k].result.pruned;
		}
		EXPECT_LT(0, lost);
		EXPECT_EQ(a >= 3, pruned > 0);
	}
}

/* All ranks contribute the same, so received contributions can replace missing ones */
static void run_rescale(struct rank *r)
{
	float *v = malloc(r->count * sizeof(*v));
	u64 i, missing = 0;
	struct dblp_req *req;
	int round;

	r->good = true;
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < r->count; i++)
			v[i] = is_there(r, 0, i) ? 0.5F : 0;
		r->err |= dblp_allreduce(r->comm, v, r->count, &r->op, &req) ?:
			  dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
		missing += r->result.missing;
		for (i = 0; i < r->count; i++)
			r->good &= v[i] == (is_there(r, 0, i) ?
					    0.5F * (float)r->nranks : 0);
	}
	r->result.missing = missing;
	free(v);
}

TEST(rescale_replaces_losses)
{
	static const int algos[] = { DBLP_PS, DBLP_TRANSPOSE, DBLP_RING, DBLP_TREE };
	int a, k;
	u64 missing;

	use_dblp();
	lose("3%");
	for (a = 0; a < 8; a++) {
		/* Sparse vectors have a tenth of the elements */
		prepare(4, next_epoch(), a < 4 ? 100000 : 500000, run_rescale);
		for (k = 0; k < 4; k++) {
			rank[k].op.algo = algos[a % 4];
			rank[k].op.rule = DBLP_RESCALE;
			rank[k].op.dtype = DBLP_FLOAT32;
			rank[k].op.flags = DBLP_OP_BUDGET | DBLP_OP_POLICY;
			rank[k].op.budget = 2 * BUDGET;
			rank[k].op.policy = DBLP_POLICY_EARLY;
			if (a >= 4)
				rank[k].op.flags |= DBLP_OP_SPARSE;
		}
		run_all(4);
		for (k = 0, missing = 0; k < 4; k++) {
			ASSERT_EQ(0, rank[k].err);
			EXPECT_TRUE(rank[k].good);
			missing += rank[k].result.missing;
		}
		EXPECT_LT(0, missing);
	}
}

/* Four hosts: eth0 connects all, n0 those that differ in digit 0, n1 in digit 1 */
static const char hosts[] =
	"set -e\n"
	"ip netns add sw\n"
	"ip -n sw link add name br0 up type bridge\n"
	"for i in 0 1 2 3; do\n"
	"	ip netns add c$i\n"
	"	ip link add eth0 netns c$i type veth peer name p$i netns sw\n"
	"	ip -n sw link set p$i master br0 up\n"
	"done\n"
	"ip link add n0 netns c0 type veth peer name n0 netns c1\n"
	"ip link add n0 netns c2 type veth peer name n0 netns c3\n"
	"ip link add n1 netns c0 type veth peer name n1 netns c2\n"
	"ip link add n1 netns c1 type veth peer name n1 netns c3\n"
	"for i in 0 1 2 3; do ip -n c$i -batch - <<END\n"
	"	addr add 10.0.0.$((i + 1))/24 dev eth0\n"
	"	addr add 10.1.$((i & 2)).$((1 + (i & 1)))/24 dev n0\n"
	"	addr add 10.2.$((i & 1)).$((1 + i / 2))/24 dev n1\n"
	"	link set lo up\n"
	"	link set eth0 up\n"
	"	link set n0 up\n"
	"	link set n1 up\n"
	"END\n"
	"done";

static void new_hosts(void)
{
	if (system(hosts))
		die("making hosts");
}

static void del_hosts(void)
{
	run("for name in c0 c1 c2 c3 sw; do ip netns del $name; done");
}

static void prepare_hosts(u64 count, void (*run)(struct rank *r))
{
	static const char *const names[] = { "c0", "c1", "c2", "c3" };
	int i;

	transport = "dblp";
	prepare(4, next_epoch(), count, run);
	for (i = 0; i < 4; i++) {
		rank[i].netns = names[i];
		rank[i].attr.rendezvous = "tcp://10.0.0.1:7100";
		rank[i].attr.devices = "n0,n1";
		rank[i].op.algo = DBLP_BCUBE;
		rank[i].op.levels = 2;
		rank[i].op.radix[0] = 2;
		rank[i].op.radix[1] = 2;
	}
}

/* Bytes that this thread's host has sent by a device */
static u64 sent_by(const char *device)
{
	struct ifaddrs *list, *i;
	u64 bytes = 0;

	if (getifaddrs(&list))
		die("getifaddrs()");
	for (i = list; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_PACKET &&
		    !strcmp(i->ifa_name, device))
			bytes = ((struct rtnl_link_stats *)i->ifa_data)->tx_bytes;
	freeifaddrs(list);
	return bytes;
}

static void run_devices(struct rank *r)
{
	u64 all = 3 * r->count * 4;

	run_allreduce(r);
	/* Each host sends 1.5 times three vectors, half of it by each device */
	r->good &= sent_by("eth0") < 20000 && sent_by("n0") > all / 2 &&
		   sent_by("n1") > all / 2;
}

TEST(each_level_has_its_device)
{
	int i;

	new_hosts();
	prepare_hosts(100000, run_devices);
	run_all(4);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(0, rank[i].opened);
	expect_good(_metadata, 4);
	del_hosts();
}

static u64 gone_at, failed_at[RANKS_MAX];

static void run_until_gone(struct rank *r)
{
	int *v = new_vector(r, 0), rounds = 0;
	struct dblp_req *req;

	do {
		if (r->attr.rank == 3 && ++rounds == 10) {
			run("ip link set n0 down; ip link set n1 down; ip link set eth0 down");
			gone_at = dblp_comm_now();
		}
		r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req) ?:
			 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	} while (!r->err);
	failed_at[r->attr.rank] = dblp_comm_now();
	free(v);
}

TEST(all_others_name_an_unreachable_host)
{
	int i;

	new_hosts();
	prepare_hosts(10000, run_until_gone);
	run_all(4);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(-ETIMEDOUT, rank[i].error);
		EXPECT_EQ(3, rank[i].failed);
		EXPECT_GT((virtual_time() ? 5100 : WAIT_MS) * MS_NS,
			  failed_at[i] - gone_at);
	}
	/* The isolated rank has an error, too */
	EXPECT_EQ(-ETIMEDOUT, rank[3].error);
	del_hosts();
}

#define SILENT_ROUNDS	70

static void run_silent(struct rank *r)
{
	int i;

	for (i = 0; i < SILENT_ROUNDS; i++) {
		if (r->attr.rank == 1 && i == 3)
			run("ip link set eth0 down");
		if (r->attr.rank == 1 && i == SILENT_ROUNDS - 3)
			run("ip link set eth0 up");
		usleep(100000);
		run_allreduce(r);
		if (r->err)
			return;
	}
}

/* Data connections show that a host is alive, even if TCP is silent */
TEST(a_host_unreachable_only_by_tcp_is_alive)
{
	int i;

	new_hosts();
	prepare_hosts(1000, run_silent);
	EACH_RANK(2, r->nranks = r->attr.nranks = 2, r->attr.devices = "n0",
		     r->op.algo = DBLP_TRANSPOSE, r->op.levels = 0);
	run_all(2);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, rank[i].error);
	expect_good(_metadata, 2);
	del_hosts();
}

/*
 * Operations with a budget, with the budget of a phase, with none, and with the first one again,
 * which do not affect each other
 */
static void run_budgets(struct rank *r)
{
	static const struct {
		u32	flags;
		u32	budget;
		u32	came;
	} op[] = {
		{ DBLP_OP_BUDGET, BUDGET, BUDGET },
		{ DBLP_OP_PHASE, 0, 408000 },
		{ DBLP_OP_BUDGET, 0, 0 },
		{ DBLP_OP_BUDGET, BUDGET, BUDGET },
	};
	struct dblp_req *req;
	size_t i;
	int *v;

	r->good = true;
	r->op.phase = 2;
	for (i = 0; i < sizeof(op) / sizeof(*op) && !r->err; i++) {
		v = new_vector(r, 0);
		r->op.flags = op[i].flags;
		r->op.budget = op[i].budget;
		r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req) ?:
			 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
		r->good &= r->result.budget_least == op[i].came &&
			   r->result.budget_most == op[i].came &&
			   (op[i].flags != DBLP_OP_PHASE || r->result.missing);
		free(v);
	}
}

TEST(operations_use_their_own_budgets)
{
	int k;

	use_dblp();
	lose("3%");
	prepare(2, next_epoch(), 300000, run_budgets);
	run_all(2);
	for (k = 0; k < 2; k++) {
		EXPECT_EQ(0, rank[k].err);
		EXPECT_TRUE(rank[k].good);
	}
}

TEST(all_others_name_a_killed_rank)
{
	char at[64];
	int i, killed;

	use_dblp();
	shared_new();
	for (killed = 0; killed < 4; killed += 3) {
		snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", free_port());
		kill_one(4, DBLP_TRANSPOSE, killed, at);
		for (i = 0; i < 4; i++) {
			if (i == killed)
				continue;
			EXPECT_EQ(-ECONNRESET, shared->rank[i].err);
			EXPECT_EQ(killed, shared->rank[i].failed);
			/* A busy host may take longer */
			EXPECT_GT((virtual_time() ? 200 : WAIT_MS) * MS_NS,
				  shared->rank[i].failed_at - shared->killed_at);
		}
	}
}

TEST(a_late_rank_is_left_out_and_returns)
{
	use_dblp();
	prepare_late(100000);
	run_all(3);
	expect_late(_metadata, 100000);
}

TEST_HARNESS_MAIN
