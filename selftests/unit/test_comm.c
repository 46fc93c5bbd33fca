// SPDX-License-Identifier: GPL-2.0-only
/*
 * libdblp: operations of communicators, over TCP on the loopback interface. Ranks are
 * threads.
 */
#define _GNU_SOURCE
#include <math.h>
#include <sanitizer/lsan_interface.h>

#include "test.h"
#include "../lib/ranks.h"

TEST(all_ranks_get_the_sum_by_every_plan)
{
	static const u64 counts[] = { 0, 1, 5, 1000, 50001 };
	int n, algo, c, i;

	for (n = 1; n <= 5; n++)
		for (algo = DBLP_PS; algo < DBLP_AVERAGE; algo++)
			for (c = 0; c < 5; c++) {
				prepare(n, next_epoch(), counts[c], run_allreduce);
				EACH_RANK(n, r->op.algo = algo, r->attr.message_bytes = 16000);
				run_all(n);
				for (i = 0; i < n; i++) {
					ASSERT_EQ(0, rank[i].opened);
					ASSERT_EQ(0, rank[i].err);
					ASSERT_TRUE(rank[i].good);
				}
			}
}

TEST(reduce_scatter_and_allgather_make_an_allreduce)
{
	int algo, i;

	/* All plans, and a BCube with one and two levels */
	for (algo = DBLP_PS; algo <= DBLP_AVERAGE; algo++) {
		prepare(4, next_epoch(), 1001, run_halves);
		for (i = 0; i < 4; i++) {
			rank[i].op.algo = algo;
			if (algo < DBLP_AVERAGE)
				continue;
			rank[i].op.algo = DBLP_BCUBE;
			rank[i].op.levels = 2;
			rank[i].op.radix[0] = 2;
			rank[i].op.radix[1] = 2;
		}
		n_owned = 0;
		run_all(4);
		/* Each element has one owner */
		ASSERT_EQ(1001, n_owned);
		for (i = 0; i < 4; i++) {
			ASSERT_EQ(0, rank[i].err);
			ASSERT_TRUE(rank[i].good);
		}
	}
}

/* Contribution of a rank to an element of a vector that is mostly zero */
static int sparse_value(u32 r, u64 i)
{
	u32 hash = (u32)(i / 8 + r * 77) * 2654435761u >> 16;

	return hash % 50 ? 0 : 1 + (int)((r + 1) * 1000 + i % 1000);
}

static int sparse_sum(u32 n, u64 i)
{
	int sum = 0;
	u32 r;

	for (r = 0; r < n; r++)
		sum += sparse_value(r, i);
	return sum;
}

static int *sparse_vector(const struct rank *r)
{
	int *v = malloc(r->count * sizeof(*v) + 1);
	u64 i;

	for (i = 0; i < r->count; i++)
		v[i] = sparse_value(r->attr.rank, i);
	return v;
}

/* Two operations at a time, twice: the first time leaves nothing for the second */
static void run_sparse(struct rank *r)
{
	int *v[2] = { sparse_vector(r), sparse_vector(r) }, k;
	struct dblp_req *req[2];
	u64 i;

	for (k = 0; k < 2; k++)
		r->err |= dblp_allreduce(r->comm, v[k], r->count, &r->op, &req[k]);
	for (k = 0; k < 2 && !r->err; k++)
		r->err = dblp_wait(req[k], WAIT_MS, &r->result, sizeof(r->result));
	r->good = !r->err;
	for (k = 0; k < 2; k++) {
		for (i = 0; i < r->count; i++)
			r->good &= v[k][i] == sparse_sum(r->nranks, i);
		free(v[k]);
	}
}

/* Bytes that all ranks sent of one of the vectors */
static u64 sparse_sent(struct __test_metadata *_metadata, int n, u64 count, int algo,
		       u32 flags, u32 rule)
{
	u64 sent = 0;
	int i;

	prepare(n, next_epoch(), count, run_sparse);
	EACH_RANK(n, r->op.algo = algo, r->op.rule = rule, r->op.flags = flags,
		     r->attr.message_bytes = 16000);
	run_all(n);
	for (i = 0; i < n; i++) {
		EXPECT_EQ(0, rank[i].err);
		EXPECT_TRUE(rank[i].good);
		sent += rank[i].result.sent;
	}
	return sent;
}

TEST(zeroes_are_not_sent_by_any_plan)
{
	static const u64 counts[] = { 1, 5, 1000, 50001 };
	u64 sent, dense;
	int n, algo, c;

	for (n = 1; n <= 5; n++)
		for (algo = DBLP_PS; algo < DBLP_AVERAGE; algo++)
			for (c = 0; c < 4; c++) {
				sent = sparse_sent(_metadata, n, counts[c], algo,
						   DBLP_OP_SPARSE,
						   c % 2 ? DBLP_RESCALE : DBLP_BUBBLE);
				if (c < 3)
					continue;
				dense = sparse_sent(_metadata, n, counts[c], algo, 0, DBLP_RESCALE);
				/*
				 * 2 % of the contributions are not zero, more of the
				 * sums
				 */
				EXPECT_LE(sent * 6, dense);
			}
}

/* Two vectors: the best block size of the second one differs, but saves little */
#define N_THIN	1000

static int thin[2][N_THIN];
static u64 thin_bytes;

static void draw_thin(void)
{
	struct dblp_sparse_how how = { .dtype = DBLP_INT32 };
	u8 packed[N_THIN * 5];
	struct dblp_sparse s;
	struct prng rng = { 1 };
	u32 i, k, rare;

	do {
		for (k = 0; k < 2; k++) {
			rare = 2 + prng_below(&rng, 100);
			for (i = 0; i < N_THIN; i++)
				thin[k][i] = !prng_below(&rng, rare);
		}
		how.last = DBLP_SPARSE_SHIFTS;
		dblp_sparse_put(&how, thin[0], N_THIN, packed, &s);
		thin_bytes = dblp_sparse_put(&how, thin[1], N_THIN, packed, &(struct dblp_sparse) { 0 });
		how.last = s.shift;
	} while (dblp_sparse_put(&how, thin[1], N_THIN, packed, &s) == thin_bytes ||
		 s.shift != how.last);
	thin_bytes = DBLP_HEAD_LEN + dblp_sparse_put(&how, thin[1], N_THIN, packed, &s);
}

static void run_thin(struct rank *r)
{
	struct dblp_req *req;
	int v[N_THIN], k;

	for (k = 0; k < 2 && !r->err; k++) {
		memcpy(v, thin[k], sizeof(v));
		r->err = dblp_allreduce(r->comm, v, N_THIN, &r->op, &req) ?:
			 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	}
	r->good = !r->err;
}

TEST(the_block_size_stays_from_one_message_to_the_next)
{
	draw_thin();
	prepare(2, next_epoch(), N_THIN, run_thin);
	EACH_RANK(2, r->op.algo = DBLP_PS, r->op.flags = DBLP_OP_SPARSE);
	run_all(2);
	expect_good(_metadata, 2);
	EXPECT_EQ(thin_bytes, rank[1].result.sent);
}

/* Values with bits set, though they may be equal to 0, or to no value */
static void run_odd_floats(struct rank *r)
{
	static const u32 odd[] = {
		0x80000000, 0x7fc00000, 0x7f800000, 0xff800000, 1, 0,
	};
	u32 *v = calloc(r->count, sizeof(*v));
	struct dblp_req *req;
	u64 i;

	/*
	 * -0.0 if all ranks have it; otherwise one rank has a value, and the others
	 * have 0
	 */
	for (i = 0; i < r->count; i += 97)
		if (!(i / 97 % 6) || r->attr.rank == i % r->nranks)
			v[i] = odd[i / 97 % 6];
	r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	r->good = !r->err;
	for (i = 0; i < r->count; i++)
		r->good &= v[i] == (i % 97 ? 0 : odd[i / 97 % 6]);
	free(v);
}

TEST(only_zero_bits_are_zeroes)
{
	int algo, i;

	for (algo = DBLP_PS; algo < DBLP_AVERAGE; algo++) {
		prepare(3, next_epoch(), 10000, run_odd_floats);
		EACH_RANK(3, r->op.algo = algo, r->op.dtype = DBLP_FLOAT32,
			     r->op.flags = DBLP_OP_SPARSE);
		run_all(3);
		for (i = 0; i < 3; i++)
			ASSERT_EQ(0, rank[i].err);
		expect_good(_metadata, 3);
	}
}

/* Rounds with pruning, and a last one without, which delivers all kept elements */
static void run_pruned(struct rank *r)
{
	s64 *sum = calloc(r->count, sizeof(*sum));
	struct dblp_result result;
	struct dblp_req *req;
	u64 i, pruned = 0;
	int round;

	for (round = 0; round < 5 && !r->err; round++) {
		int *v = sparse_vector(r);

		/* Most contributions are small */
		for (i = 0; i < r->count; i++)
			v[i] = i % 64 > 7 ? v[i] % 7 : v[i];
		if (round == 4)
			r->op.prune = 0;
		r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req) ?:
			 dblp_wait(req, WAIT_MS, &result, sizeof(result));
		for (i = 0; i < r->count; i++)
			sum[i] += v[i];
		pruned += result.pruned;
		free(v);
	}
	r->good = !r->err && !result.pruned;
	for (i = 0; i < r->count; i++) {
		s64 all = 0;
		u32 k;

		for (k = 0; k < r->nranks; k++)
			all += i % 64 > 7 ? sparse_value(k, i) % 7 : sparse_value(k, i);
		r->good &= sum[i] == 5 * all;
	}
	r->result.pruned = pruned;
	free(sum);
}

TEST(pruned_elements_are_sent_later)
{
	u64 pruned;
	int algo, i;

	for (algo = DBLP_PS; algo < DBLP_AVERAGE; algo++) {
		prepare(4, next_epoch(), 50001, run_pruned);
		for (i = 0, pruned = 0; i < 4; i++) {
			rank[i].op.algo = algo;
			rank[i].op.flags = DBLP_OP_SPARSE;
			rank[i].op.rule = DBLP_FEEDBACK;
			rank[i].op.prune = 10000;
			rank[i].attr.message_bytes = 16000;
		}
		run_all(4);
		for (i = 0; i < 4; i++) {
			EXPECT_EQ(0, rank[i].err);
			EXPECT_TRUE(rank[i].good);
			pruned += rank[i].result.pruned;
		}
		EXPECT_LT(0, pruned);
	}
}

/* Mean of floats: averages of groups of two add up to that of all ranks */
static void run_average(struct rank *r)
{
	float *v = malloc(r->count * sizeof(*v));
	struct dblp_req *req;
	u64 i;

	for (i = 0; i < r->count; i++)
		v[i] = (float)((r->attr.rank + 1) * 12);
	do {
		r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req) ?:
			 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	} while (!r->err && ++r->op.turn < r->op.levels);
	r->good = !r->err;
	for (i = 0; i < r->count; i++)
		r->good &= v[i] == 30;
	free(v);
}

TEST(averages_include_all_ranks)
{
	int i, average;

	for (average = 0; average < 2; average++) {
		prepare(4, next_epoch(), 999, run_average);
		for (i = 0; i < 4; i++) {
			rank[i].op.dtype = DBLP_FLOAT32;
			rank[i].op.flags = DBLP_OP_AVERAGE;
			if (!average)
				continue;
			rank[i].op.algo = DBLP_AVERAGE;
			rank[i].op.levels = 2;
			rank[i].op.radix[0] = 2;
			rank[i].op.radix[1] = 2;
		}
		run_all(4);
		for (i = 0; i < 4; i++) {
			EXPECT_EQ(0, rank[i].err);
			EXPECT_TRUE(rank[i].good);
			EXPECT_EQ(0, rank[i].result.missing);
			EXPECT_EQ(-1, rank[i].result.failed_rank);
		}
	}
}

/* Averages in binary16 whose sum overflows; the mean is 30720 */
static void run_large_averages(struct rank *r)
{
	static const u16 value[] = { 0x7200, 0x7600, 0x7880, 0x7a00 };
	struct dblp_req *req;
	u16 v[100];
	int i;

	for (i = 0; i < 100; i++)
		v[i] = value[r->attr.rank];
	do {
		r->err = dblp_allreduce(r->comm, v, 100, &r->op, &req) ?:
			 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	} while (!r->err && ++r->op.turn < r->op.levels);
	r->good = !r->err;
	for (i = 0; i < 100; i++)
		r->good &= v[i] == 0x7780;
}

TEST(averages_of_16_bits_do_not_overflow)
{
	int algo, rule;

	for (algo = DBLP_PS; algo <= DBLP_AVERAGE; algo++)
		for (rule = DBLP_BUBBLE; rule < DBLP_RULES; rule++) {
			prepare(4, next_epoch(), 100, run_large_averages);
			EACH_RANK(4, r->op.algo = algo, r->op.rule = rule,
				     r->op.dtype = DBLP_FLOAT16,
				     r->op.flags = DBLP_OP_AVERAGE, r->op.key = 1);
			if (algo == DBLP_AVERAGE)
				EACH_RANK(4, r->op.levels = 2, r->op.radix[0] = 2,
					     r->op.radix[1] = 2);
			run_all(4);
			expect_good(_metadata, 4);
		}
}

/* Programs compiled with version 0.1, and with a longer result */
static void run_sizes(struct rank *r)
{
	struct {
		struct dblp_result	result;
		char			more[8];
	} longer;
	struct dblp_req *req[3];
	int v[3][2] = { 0 }, i;

	r->op.size = 128;
	for (i = 0; i < 3; i++)
		r->err |= dblp_allreduce(r->comm, v[i], 2, &r->op, &req[i]);
	if (r->err)
		return;
	memset(&longer, 1, sizeof(longer));
	r->err = dblp_wait(req[0], WAIT_MS, &longer.result, 40) |
		 dblp_wait(req[1], WAIT_MS, NULL, 0);
	r->good = longer.result.asked == 4 && longer.result.ns &&
		  longer.result.least == 0x01010101;
	r->err |= dblp_wait(req[2], WAIT_MS, &longer.result, sizeof(longer));
	r->good &= longer.result.failed_rank == -1 && !longer.more[0] &&
		   !longer.more[7];
}

TEST(structures_of_other_versions_are_accepted)
{
	prepare(2, next_epoch(), 1, run_sizes);
	EACH_RANK(2, r->attr.size = 40 + 6 * sizeof(void *), r->op.flags = DBLP_OP_AVERAGE);
	run_all(2);
	expect_good(_metadata, 2);
}

static void run_bad_ops(struct rank *r)
{
	struct dblp_op op[21];
	struct dblp_req *req;
	struct dblp_span part;
	int v, i, wrong = 0;

	for (i = 0; i < 21; i++)
		op[i] = r->op;
	op[0].size = 8;
	op[1].algo = DBLP_ALGOS;
	op[2].rule = DBLP_RULES;
	op[3].dtype = DBLP_DTYPES;
	op[4].budget = DBLP_PPM + 1;
	op[5].policy = DBLP_POLICY_EARLY + 1;
	op[6].phase = DBLP_PHASES;
	op[7].flags = 1U << 31;
	op[8].algo = DBLP_PS;
	op[8].root = 2;
	op[9].plan_flags = DBLP_PLAN_REDUCE;
	/* Pruning needs a sparse operation and a rule that keeps elements */
	op[10].rule = DBLP_FEEDBACK;
	op[10].prune = 1;
	op[11].flags = DBLP_OP_SPARSE;
	op[11].prune = 1;
	op[12].flags = DBLP_OP_SPARSE;
	op[12].rule = DBLP_FEEDBACK;
	op[12].prune = DBLP_PPM;
	op[13].block = 16;
	op[14].flags = DBLP_OP_SPARSE;
	op[14].block = 24;
	op[15].flags = DBLP_OP_SPARSE;
	op[15].block = 2 * DBLP_BLOCK_MAX;
	op[16].parts = 1;
	op[17].plan_flags = 1U << 31;
	/*
	 * Neither partial sums of a ring nor elements of a packed vector can keep
	 * their value
	 */
	op[18].flags = DBLP_OP_KEEP;
	op[18].algo = DBLP_RING;
	op[19].flags = DBLP_OP_KEEP | DBLP_OP_SPARSE;
	/* Only an owner's parameters can be repaired */
	op[20].flags = DBLP_OP_KEEP | DBLP_OP_REPAIR;
	for (i = 0; i < 21; i++)
		if (dblp_allreduce(r->comm, &v, 1, &op[i], &req) != -EINVAL ||
		    dblp_comm_owned(r->comm, 1, &op[i], &part, 1) != -EINVAL)
			wrong = i + 1;
	if (dblp_allreduce(r->comm, &v, DBLP_COUNT_MAX + 1, &r->op, &req) != -EINVAL)
		wrong = 100;
	/* A refused operation does not count: the ranks continue */
	run_allreduce(r);
	r->good &= !wrong;
}

TEST(invalid_operations_are_refused_and_change_nothing)
{
	prepare(2, next_epoch(), 1000, run_bad_ops);
	run_all(2);
	EXPECT_EQ(0, rank[0].err);
	EXPECT_EQ(0, rank[1].err);
	expect_good(_metadata, 2);
}

static bool readable(int fd, int ms)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, ms) == 1;
}

/* Two operations at a time, with each root in turn, and a broadcast of the sum */
static void run_rooted(struct rank *r)
{
	const u32 me = r->attr.rank;
	struct dblp_req *req[2];
	int *sum, *v;

	r->good = true;
	for (r->op.root = 0; r->op.root < r->nranks && !r->err; r->op.root++) {
		sum = new_vector(r, 0);
		v = new_vector(r, r->op.root);
		r->err = dblp_reduce(r->comm, sum, r->count, &r->op, &req[0]) ?:
			 dblp_broadcast(r->comm, v, r->count, &r->op, &req[1]) ?:
			 dblp_wait(req[1], WAIT_MS, NULL, 0) ?:
			 dblp_wait(req[0], WAIT_MS, &r->result, sizeof(r->result));
		r->good &= !r->err && (me != r->op.root || is_sum(r, sum, 0, r->count, 0));
		for (u64 i = 0; i < r->count; i++)
			r->good &= v[i] == value_of(r->op.root, i, r->op.root);
		r->err = r->err ?: dblp_broadcast(r->comm, sum, r->count, &r->op, &req[0]) ?:
			 dblp_wait(req[0], WAIT_MS, NULL, 0);
		r->good &= !r->err && is_sum(r, sum, 0, r->count, 0);
		free(sum);
		free(v);
	}
}

TEST(any_rank_can_be_the_root_of_a_reduction_or_a_broadcast)
{
	static const u64 counts[] = { 0, 1, 5, 50001 };
	int n, algo, c;

	for (n = 1; n <= 5; n++)
		for (algo = DBLP_PS; algo <= DBLP_TREE; algo += DBLP_TREE - DBLP_PS)
			for (c = 0; c < 4; c++) {
				prepare(n, next_epoch(), counts[c], run_rooted);
				EACH_RANK(n, r->op.algo = algo, r->attr.message_bytes = 16000);
				run_all(n);
				expect_good(_metadata, n);
			}
}

/* No rank leaves a barrier before all have begun it */
static u32 n_reached;

static void run_barriers(struct rank *r)
{
	struct dblp_req *req;
	u32 i;

	r->good = true;
	for (i = 1; i <= 100 && !r->err; i++) {
		__atomic_add_fetch(&n_reached, 1, __ATOMIC_SEQ_CST);
		r->err = dblp_barrier(r->comm, &req) ?: dblp_wait(req, WAIT_MS, NULL, 0);
		r->good &= __atomic_load_n(&n_reached, __ATOMIC_SEQ_CST) >= i * r->nranks;
	}
	r->good &= !r->err;
}

TEST(a_barrier_ends_when_all_have_begun_it)
{
	int n;

	for (n = 1; n <= 5; n++) {
		n_reached = 0;
		prepare(n, next_epoch(), 0, run_barriers);
		run_all(n);
		expect_good(_metadata, n);
	}
}

/*
 * Vectors go around in both directions, together with a sum: even ranks begin the sum
 * before they send, odd ranks after. Receives match sends in order.
 */
#define N_PAIRS	3

static void run_pairs(struct rank *r)
{
	const u32 n = r->nranks, me = r->attr.rank, peer[2] = { (me + 1) % n, (me + n - 1) % n };
	int *out = new_vector(r, 1), *in = calloc(r->count * 2 * N_PAIRS + 1, sizeof(*in)), k, d;
	int *sum = new_vector(r, 0);
	struct dblp_req *req[4 * N_PAIRS + 1];
	u32 used = 0;
	u64 i;

	if (!(me & 1))
		r->err = dblp_allreduce(r->comm, sum, r->count, &r->op, &req[used++]);
	for (k = 0; k < 2 * N_PAIRS && !r->err; k++) {
		/* Receive from the peer opposite to the one that this is sent to */
		d = k & 1;
		r->err = dblp_comm_recv(r->comm, in + k * r->count, r->count - (k / 2 && r->count),
					DBLP_INT32, peer[!d], &req[used++]) ?:
			 dblp_comm_send(r->comm, out, r->count - (k / 2 && r->count),
					DBLP_INT32, peer[d], &req[used++]);
	}
	if (me & 1)
		r->err |= dblp_allreduce(r->comm, sum, r->count, &r->op, &req[used++]);
	while (used--)
		r->err |= dblp_wait(req[used], WAIT_MS, &r->result, sizeof(r->result));
	r->good = !r->err && is_sum(r, sum, 0, r->count, 0);
	for (k = 0; k < 2 * N_PAIRS; k++)
		for (i = 0; i < r->count - (k / 2 && r->count); i++)
			r->good &= in[k * r->count + i] == value_of(peer[!(k & 1)], i, 1);
	free(sum);
	free(out);
	free(in);
}

TEST(messages_between_ranks_keep_their_order_beside_collectives)
{
	static const u64 counts[] = { 0, 1, 1000, 50001 };
	int n, c;

	for (n = 2; n <= 5; n++)
		for (c = 0; c < 4; c++) {
			prepare(n, next_epoch(), counts[c], run_pairs);
			EACH_RANK(n, r->attr.message_bytes = 16000);
			run_all(n);
			expect_good(_metadata, n);
		}
}

/* Lanes are for collectives; messages between two ranks have a lane of their own */
TEST(messages_between_ranks_need_no_lane)
{
	static const struct dblp_lane lanes[DBLP_LANES_MAX];

	prepare(3, next_epoch(), 1000, run_pairs);
	EACH_RANK(3, r->attr.lanes = DBLP_LANES_MAX, r->attr.lane = lanes);
	run_all(3);
	expect_good(_metadata, 3);
}

/* Elements that rank 0 sends and rank 1 receives */
static u64 n_sent, n_received;

static void run_mismatch(struct rank *r)
{
	struct dblp_req *req;
	int v[4] = { 0 };

	r->good = dblp_comm_send(r->comm, v, 1, DBLP_INT32, r->attr.rank, &req) == -EINVAL &&
		  dblp_comm_recv(r->comm, v, 1, DBLP_INT32, 2, &req) == -EINVAL &&
		  dblp_comm_recv(r->comm, v, 1, DBLP_DTYPES, !r->attr.rank, &req) == -EINVAL;
	r->op.algo = DBLP_RING;
	r->good &= dblp_broadcast(r->comm, v, 1, &r->op, &req) == -EINVAL &&
		   dblp_reduce(r->comm, v, 1, &r->op, &req) == -EINVAL;
	r->err = r->attr.rank ? dblp_comm_recv(r->comm, v, n_received, DBLP_INT32, 0, &req) :
				dblp_comm_send(r->comm, v, n_sent, DBLP_INT32, 1, &req);
	r->err = r->err ?: dblp_wait(req, WAIT_MS, NULL, 0);
	/* A rank may end the operation before its peer has detected the error */
	r->err = r->err ?: dblp_barrier(r->comm, &req) ?: dblp_wait(req, WAIT_MS, NULL, 0);
}

TEST(a_send_and_its_receive_must_have_the_same_size)
{
	static const u64 sizes[][2] = { { 4, 3 }, { 0, 4 }, { 4, 0 }, { 0, 1 }, { 1, 0 } };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		n_sent = sizes[i][0];
		n_received = sizes[i][1];
		prepare(2, next_epoch(), 0, run_mismatch);
		run_all(2);
		expect_good(_metadata, 2);
		expect_failed(_metadata, 2, -EPROTO, 0, WAIT_MS);
	}
}

/* Mask of ranks that do not begin the operation */
static u32 absent;

static void expect_absent(struct rank *r)
{
	u32 list[DBLP_ABSENT_RANKS], mask = 0;
	int n = dblp_comm_absent(r->comm, list, DBLP_ABSENT_RANKS), i;

	for (i = 0; i < n; i++)
		mask |= 1U << list[i];
	r->good &= mask == absent && dblp_comm_absent(r->comm, NULL, 0) == n;
	snprintf(r->text, sizeof(r->text), "%s", dblp_comm_why(r->comm));
}

static void await_failure(struct rank *r)
{
	while (!(r->err = dblp_comm_error(r->comm, NULL)))
		usleep(1000);
}

/* Only the last one that begins it has a limit, so that it is the only one that runs out */
static void begin_last(struct rank *r, u32 last)
{
	const u32 others = r->nranks - 1 - __builtin_popcount(absent);

	while (r->attr.rank == last && __atomic_load_n(&n_reached, __ATOMIC_SEQ_CST) < others)
		usleep(1000);
	if (r->attr.rank == last)
		return;
	r->attr.operation_ms = 0;
	r->op.limit_ms = 0;
}

static void run_out_of_time(struct rank *r)
{
	int *v = new_vector(r, 0);
	struct dblp_req *req[2];

	r->good = true;
	if (absent & 1U << r->attr.rank) {
		await_failure(r);
	} else {
		begin_last(r, __builtin_ctz(~absent));
		/* The second operation has no limit, and fails with the first */
		r->err = dblp_barrier(r->comm, &req[1]) |
			 dblp_allreduce(r->comm, v, r->count, &r->op, &req[0]);
		__atomic_add_fetch(&n_reached, 1, __ATOMIC_SEQ_CST);
		r->good &= !r->err && dblp_wait(req[1], WAIT_MS, NULL, 0) == -ETIMEDOUT;
		r->err = dblp_wait(req[0], WAIT_MS, &r->result, sizeof(r->result));
	}
	expect_absent(r);
	free(v);
}

TEST(an_operation_that_times_out_names_the_absent_ranks)
{
	static const u32 masks[] = { 1 << 1 | 1 << 3, 1, 1 << 4, 15 };
	u32 i;
	int algo;

	for (i = 0; i < ARRAY_SIZE(masks); i++)
		for (algo = DBLP_PS; algo <= DBLP_TREE; algo++) {
			absent = masks[i];
			n_reached = 0;
			prepare(5, next_epoch(), 1000, run_out_of_time);
			EACH_RANK(5, r->op.algo = algo, r->op.limit_ms = 100);
			run_all(5);
			expect_good(_metadata, 5);
			expect_failed(_metadata, 5, -ETIMEDOUT, __builtin_ctz(absent), WAIT_MS);
		}
	EXPECT_EQ(0, strcmp("operation 1 has not ended after 100 ms: ranks 0, 1, 2 and 3 have not begun it",
			    rank[4].text))
		TH_LOG("%s", rank[4].text);
}

/* Rank 0 begins after rank 1 has sent its contribution and left; rank 2 does not begin */
static void run_after_one_left(struct rank *r)
{
	struct dblp_req *req;
	int v = 0;

	r->good = true;
	while (!r->attr.rank && __atomic_load_n(&r->comm->ctl[1].fd, __ATOMIC_SEQ_CST) >= 0)
		usleep(1000);
	r->op.limit_ms = r->attr.rank ? 0 : 100;
	if (r->attr.rank == 2)
		await_failure(r);
	else
		r->err = dblp_reduce(r->comm, &v, 1, &r->op, &req) ?:
			 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	if (r->attr.rank != 1)
		expect_absent(r);
}

TEST(a_rank_that_did_its_part_and_left_has_begun_the_operation)
{
	absent = 1 << 2;
	prepare(3, next_epoch(), 0, run_after_one_left);
	EACH_RANK(3, r->op.algo = DBLP_PS);
	run_all(3);
	expect_good(_metadata, 3);
	EXPECT_EQ(0, rank[1].err);
	EXPECT_EQ(-ETIMEDOUT, rank[0].err);
	EXPECT_EQ(2, rank[0].failed);
}

static void run_unanswered(struct rank *r)
{
	struct dblp_req *req;
	int v;

	r->good = true;
	if (absent & 1U << r->attr.rank)
		await_failure(r);
	else
		r->err = dblp_comm_recv(r->comm, &v, 1, DBLP_INT32, __builtin_ctz(absent), &req) ?:
			 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	expect_absent(r);
}

TEST(a_receive_that_times_out_names_the_sender)
{
	int i;

	for (i = 0; i < 3; i++) {
		absent = 1U << i;
		prepare(3, next_epoch(), 0, run_unanswered);
		EACH_RANK(3, r->attr.operation_ms = 100);
		run_all(3);
		expect_good(_metadata, 3);
		expect_failed(_metadata, 3, -ETIMEDOUT, i, WAIT_MS);
	}
}

/* The limits of both requests of rank 0 pass between two looks of its engine */
static void run_two_unanswered(struct rank *r)
{
	struct dblp_req *req[2];
	int v[2], i;

	r->good = true;
	for (i = 0; !r->attr.rank && i < 2; i++)
		r->err |= dblp_comm_recv(r->comm, &v[i], 1, DBLP_INT32, 1 + i, &req[i]);
	for (i = 0; !r->attr.rank && !r->err && i < 2; i++)
		r->good &= dblp_wait(req[i], WAIT_MS, &r->result, sizeof(r->result)) == -ETIMEDOUT;
	await_failure(r);
	expect_absent(r);
}

TEST(of_two_failures_at_once_all_ranks_report_the_first)
{
	absent = 1 << 1;
	prepare(3, next_epoch(), 0, run_two_unanswered);
	EACH_RANK(3, r->attr.operation_ms = 100);
	run_all(3);
	expect_good(_metadata, 3);
	expect_failed(_metadata, 3, -ETIMEDOUT, 1, WAIT_MS);
}

/* All ranks begin the operation, but one cannot send */
static ssize_t send_nothing(int fd, const struct iovec *iov, const struct dblp_sndinfo *info)
{
	return -EAGAIN;
}

static void run_stuck(struct rank *r)
{
	struct dblp_transport stuck = dblp_transport_tcp;
	struct dblp_req *req;
	int v = 0;

	r->err = dblp_allreduce(r->comm, &v, 1, &r->op, &req) ?: dblp_wait(req, WAIT_MS, NULL, 0);
	stuck.send = send_nothing;
	if (r->attr.rank == 1)
		r->comm->transport = &stuck;
	r->op.limit_ms = 200;
	begin_last(r, 2);
	r->err = r->err ?: dblp_allreduce(r->comm, &v, 1, &r->op, &req);
	__atomic_add_fetch(&n_reached, 1, __ATOMIC_SEQ_CST);
	r->err = r->err ?: dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	r->comm->transport = &dblp_transport_tcp;
	r->good = true;
	expect_absent(r);
}

TEST(an_operation_that_all_ranks_have_begun_may_time_out)
{
	absent = 0;
	n_reached = 0;
	prepare(3, next_epoch(), 0, run_stuck);
	EACH_RANK(3, r->op.algo = DBLP_PS);
	run_all(3);
	expect_good(_metadata, 3);
	expect_failed(_metadata, 3, -ETIMEDOUT, 2, WAIT_MS);
	EXPECT_NE(NULL, strstr(rank[2].text, "though all ranks have begun it"))
		TH_LOG("%s", rank[2].text);
}

static void run_stopped(struct rank *r)
{
	const u32 me = r->attr.rank;
	struct dblp_req *req;
	int v = 0;

	r->err = dblp_allreduce(r->comm, &v, 1, &r->op, &req) ?: dblp_wait(req, WAIT_MS, NULL, 0);
	if (absent & 1U << me)
		raise(SIGSTOP);
	/*
	 * Of the others the last one has a limit, once the first one has begun it; both if
	 * there is no rank 0 that decides.
	 */
	if (absent & 1 || me == (absent & 4 ? 1 : 2))
		r->op.limit_ms = 100;
	while (!(absent & 1) && r->op.limit_ms && !shared->rank[3 - me - __builtin_ctz(absent)].rounds)
		usleep(1000);
	r->err = r->err ?: dblp_allreduce(r->comm, &v, 1, &r->op, &req);
	shared->rank[me].rounds = 1;
	r->err = r->err ?: dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	r->good = true;
	expect_absent(r);
	shared->rank[me].err = r->good ? r->err : 1;
	shared->rank[me].failed = r->result.failed_rank;
}

/* The kernel of a stopped process still acknowledges data */
TEST(an_operation_times_out_if_a_process_is_stopped)
{
	pid_t pid[3];
	char at[64];
	int stopped, i;

	shared_new();
	for (stopped = 0; stopped < 3; stopped++) {
		absent = 1U << stopped;
		snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", free_port());
		prepare(3, next_epoch(), 0, run_stopped);
		memset(shared, 0, sizeof(*shared));
		EACH_RANK(3, r->attr.rendezvous = at, r->attr.timeout_ms = 2000);
		fork_ranks(pid, 3);
		for (i = 0; i < 3; i++)
			if (i != stopped)
				waitpid(pid[i], NULL, 0);
		kill(pid[stopped], SIGKILL);
		waitpid(pid[stopped], NULL, 0);
		for (i = 0; i < 3; i++) {
			if (i == stopped)
				continue;
			EXPECT_EQ(-ETIMEDOUT, shared->rank[i].err);
			EXPECT_EQ(stopped, shared->rank[i].failed);
		}
	}
}

/* Rank 0 is stopped, while rank 1 waits for rank 2 */
static void run_receive_without_rank_0(struct rank *r)
{
	struct dblp_req *req;
	int v;

	if (!r->attr.rank)
		raise(SIGSTOP);
	while (r->attr.rank != 1)
		pause();
	r->err = dblp_comm_recv(r->comm, &v, 1, DBLP_INT32, 2, &req) ?:
		 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	shared->rank[1].err = r->err;
	shared->rank[1].rounds = !!strstr(dblp_comm_why(r->comm),
					  "for rank 2 to send or receive, and rank 0 does not answer");
}

TEST(a_receive_that_times_out_names_the_sender_and_a_stopped_rank_0)
{
	pid_t pid[3];
	char at[64];
	int i;

	shared_new();
	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", free_port());
	prepare(3, next_epoch(), 0, run_receive_without_rank_0);
	EACH_RANK(3, r->attr.rendezvous = at, r->attr.timeout_ms = 2000, r->attr.operation_ms = 100);
	fork_ranks(pid, 3);
	waitpid(pid[1], NULL, 0);
	for (i = 0; i < 3; i += 2) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	EXPECT_EQ(-ETIMEDOUT, shared->rank[1].err);
	EXPECT_EQ(1, shared->rank[1].rounds);
}

/* Time of the engine for each of @n outstanding operations, ns */
static u64 cost_of(struct rank *r, int n)
{
	struct dblp_req **req = calloc(n, sizeof(*req));
	int *v = calloc(n, sizeof(*v)), i;
	struct timespec before, after;
	clockid_t clock;

	pthread_getcpuclockid(r->comm->thread, &clock);
	clock_gettime(clock, &before);
	for (i = 0; i < n && !r->err; i++)
		r->err = dblp_allreduce(r->comm, &v[i], 1, &r->op, &req[i]);
	for (i = 0; i < n && !r->err; i++)
		r->err = dblp_wait(req[i], WAIT_MS, NULL, 0);
	clock_gettime(clock, &after);
	free(req);
	free(v);
	return ((after.tv_sec - before.tv_sec) * 1000000000ULL + after.tv_nsec -
		before.tv_nsec) / n;
}

/* The least of several measurements: other processes use the caches, too */
static u64 least_cost(struct rank *r, int n, int times)
{
	u64 least = ~0ULL, cost;

	while (times--) {
		cost = cost_of(r, n);
		least = cost < least ? cost : least;
	}
	return least;
}

static u64 cost_few, cost_many;

static void run_many(struct rank *r)
{
	u64 few = least_cost(r, 500, 8), many = least_cost(r, 32000, 2);

	r->good = !r->err;
	if (r->attr.rank)
		return;
	cost_few = few;
	cost_many = many;
}

TEST(an_operation_costs_no_more_among_many_than_among_few)
{
	prepare(2, next_epoch(), 1, run_many);
	run_all(2);
	expect_good(_metadata, 2);
	EXPECT_LT(cost_many, 6 * cost_few);
	TH_LOG("%llu ns each of 500, %llu ns of 32000", cost_few, cost_many);
}

static void run_polled(struct rank *r)
{
	struct dblp_req *req[2];
	int *v[2] = { new_vector(r, 0), new_vector(r, 1) };
	int fd = dblp_comm_fd(r->comm), i;
	struct timespec pause = { .tv_nsec = 50000000 };

	/* Rank 1 is late, so that the others wait */
	if (r->attr.rank == 1)
		nanosleep(&pause, NULL);
	r->good = !readable(fd, 0);
	for (i = 0; i < 2; i++)
		r->err |= dblp_allreduce(r->comm, v[i], r->count, &r->op, &req[i]);
	if (r->attr.rank != 1)
		r->good &= dblp_wait(req[0], 0, NULL, 0) == -EAGAIN;
	for (i = 0; i < 2; i++) {
		r->good &= readable(fd, WAIT_MS);
		r->err |= dblp_wait(req[i], WAIT_MS, &r->result, sizeof(r->result));
	}
	r->good &= !readable(fd, 0) && is_sum(r, v[0], 0, r->count, 0) &&
		   is_sum(r, v[1], 0, r->count, 1);
	free(v[0]);
	free(v[1]);
}

TEST(the_end_of_an_operation_can_be_polled_for)
{
	prepare(3, next_epoch(), 1000, run_polled);
	run_all(3);
	expect_good(_metadata, 3);
}

/* TCP, but every other element of a message with data counts as lost */
static int recv_holes(int fd, struct dblp_inbox *in)
{
	int n = dblp_transport_tcp.recv(fd, in);
	u32 i;

	if (n <= 0 || !in->closed || !in->iov[1].iov_len)
		return n;
	in->map.n = (u32)(in->iov[1].iov_len / 8);
	free(in->map.range);
	in->map.range = malloc(in->map.n * sizeof(*in->map.range));
	for (i = 0; i < in->map.n; i++)
		in->map.range[i] = (struct dblp_range) { DBLP_HEAD_LEN + 8 * i, 4 };
	return n;
}

/* A chain from rank 2 to 1, with losses, and to 0, with a run for each element */
static void run_holes(struct rank *r)
{
	struct dblp_transport holes = dblp_transport_tcp;
	float *v = malloc(r->count * sizeof(*v));
	struct dblp_req *req;
	u64 i;

	holes.recv = recv_holes;
	if (r->attr.rank == 1)
		r->comm->transport = &holes;
	for (i = 0; i < r->count; i++)
		v[i] = 2;
	r->err = dblp_reduce_scatter(r->comm, v, r->count, &r->op, &req) ?:
		 dblp_wait(req, WAIT_MS, &r->result, sizeof(r->result));
	r->good = !r->err;
	/* All is added, but half of the elements count as two contributions of three */
	for (i = 0; !r->attr.rank && i < r->count; i++)
		r->good &= v[i] == (i % 2 ? 6 : 9);
	r->comm->transport = &dblp_transport_tcp;
	free(v);
}

TEST(a_sum_may_have_as_many_runs_as_elements)
{
	int i;

	prepare(3, next_epoch(), 10000, run_holes);
	EACH_RANK(3, r->op.algo = DBLP_TREE, r->op.fanin = 1, r->op.rule = DBLP_RESCALE,
		     r->op.dtype = DBLP_FLOAT32, r->attr.message_bytes = 16000);
	run_all(3);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, rank[i].err);
	expect_good(_metadata, 3);
	EXPECT_EQ(2, rank[0].result.least);
}

/* Corrupts a received front: its first bytes, or those after them */
static bool is_late_garbled;

static int recv_garbled(int fd, struct dblp_inbox *in)
{
	int n = dblp_transport_tcp.recv(fd, in);
	u8 *front = in->iov[1].iov_base;

	if (n > 0 && in->closed && in->iov[1].iov_len &&
	    (in->iov[1].iov_len > DBLP_SPARSE_HEAD) == is_late_garbled)
		front[is_late_garbled ? DBLP_SPARSE_HEAD : 0] ^= 0xff;
	return n;
}

static void run_garbled(struct rank *r)
{
	struct dblp_transport garbled = dblp_transport_tcp;

	garbled.recv = recv_garbled;
	if (r->attr.rank == 1)
		r->comm->transport = &garbled;
	run_sparse(r);
	/* The engine uses the transport until here */
	r->error = dblp_comm_error(r->comm, &r->failed);
	r->comm->transport = &dblp_transport_tcp;
}

TEST(an_invalid_packed_vector_is_refused)
{
	int i, late;

	for (late = 0; late < 2; late++) {
		is_late_garbled = late;
		prepare(2, next_epoch(), 10000, run_garbled);
		for (i = 0; i < 2; i++)
			rank[i].op.flags = DBLP_OP_SPARSE;
		run_all(2);
		expect_failed(_metadata, 2, -EPROTO, 0, WAIT_MS / 2);
	}
}

/* In a BCube, a rank owns as many parts as there are levels */
TEST(a_result_covers_all_parts)
{
	static const u32 runs[][3] = {
		/*
		 * One element of each part: contributions, then result.none and
		 * result.least
		 */
		{ 4, 4, 0 << 8 | 4 }, { 3, 4, 0 << 8 | 3 }, { 4, 2, 0 << 8 | 2 },
		{ 0, 4, 1 << 8 | 0 }, { 4, 0, 1 << 8 | 0 }, { 0, 0, 2 << 8 | 0 },
	};
	struct dblp_plan plan = {
		.algo = DBLP_BCUBE, .nranks = 4, .levels = 2, .radix = { 2, 2 },
		.count = 8,
	};
	struct dblp_run memory[2][8];
	struct dblp_sched *sched;
	u32 i, k, part;

	ASSERT_EQ(0, dblp_sched_new(&plan, &dblp_layout_plain, &sched));
	for (i = 0; i < ARRAY_SIZE(runs); i++) {
		float v[8] = { 0 };
		struct dblp_req req = {
			.sched = sched, .buf = (char *)v, .esize = sizeof(*v),
			.op = { .rule = DBLP_RESCALE, .dtype = DBLP_FLOAT32 },
			.counts = { memory[0], memory[1], 0, 8 },
		};

		for (k = 0; k < 8; k++)
			memory[0][k] = (struct dblp_run) { k + 1, 4 };
		req.counts.n = 8;
		for (k = 0, part = 0; k < sched->n; k++) {
			struct dblp_task t = { .req = &req, .step = &sched->step[k] };

			if (t.step->op != DBLP_STEP_FINISH)
				continue;
			ASSERT_EQ(1, t.step->count);
			memory[0][t.step->offset].contributions = runs[i][part++];
			ASSERT_EQ(0, dblp_losses_finish(&t));
		}
		ASSERT_EQ(2, part);
		EXPECT_EQ(runs[i][2] >> 8, req.result.none);
		EXPECT_EQ(runs[i][2] & 255, req.result.least);
	}
	dblp_sched_put(sched);
}

static void run_keys(struct rank *r)
{
	struct dblp_op other = r->op, mean = r->op;
	struct dblp_req *req, *second;
	int *v = new_vector(r, 0), *w = new_vector(r, 1);

	other.key = 2;
	r->err = dblp_allreduce(r->comm, v, r->count, &r->op, &req);
	/* An error before the end of the first operation, and with another length */
	r->good = !r->err &&
		  dblp_allreduce(r->comm, w, r->count, &r->op, &second) == -EBUSY;
	r->err |= dblp_allreduce(r->comm, w, r->count, &other, &second);
	r->err |= dblp_wait(second, WAIT_MS, NULL, 0) | dblp_wait(req, WAIT_MS, NULL, 0);
	r->good &= is_sum(r, v, 0, r->count, 0) && is_sum(r, w, 0, r->count, 1) &&
		   dblp_allreduce(r->comm, w, 1, &r->op, &req) == -EINVAL;
	/* Residuals of a sum and of a mean have different units */
	mean.flags ^= DBLP_OP_AVERAGE;
	r->good &= dblp_allreduce(r->comm, w, r->count, &mean, &req) == -EINVAL &&
		   !dblp_residual_set(r->comm, 1, DBLP_INT32, v, r->count) &&
		   dblp_allreduce(r->comm, w, r->count, &mean, &req) == -EINVAL;
	/* A new key takes the unit of its first operation */
	mean.key = 3;
	r->err |= dblp_residual_set(r->comm, 3, DBLP_INT32, v, r->count) ?:
		  dblp_allreduce(r->comm, w, r->count, &mean, &req) ?:
		  dblp_wait(req, WAIT_MS, NULL, 0);
	mean.flags ^= DBLP_OP_AVERAGE;
	r->good &= dblp_allreduce(r->comm, w, r->count, &mean, &req) == -EINVAL;
	free(v);
	free(w);
}

TEST(a_key_belongs_to_one_vector)
{
	int i;

	prepare(1, next_epoch(), 1000, run_keys);
	prepare(2, next_epoch(), 200000, run_keys);
	EACH_RANK(2, r->op.rule = DBLP_FEEDBACK, r->op.key = 1);
	run_all(2);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, rank[i].err);
	expect_good(_metadata, 2);
}

/* A residual that a rank sets is in the next sum, and in no other */
static void run_residual(struct rank *r)
{
	const float set[3] = { 1, INFINITY, -3 }, sum[3] = { 2, 0, -6 };
	float got[3], v[3] = { 0 };
	const u32 f32 = DBLP_FLOAT32;
	struct dblp_req *req;

	r->good = dblp_residual_get(r->comm, 1, f32, got, 3) == -ENOENT &&
		  dblp_residual_set(r->comm, 1, DBLP_DTYPES, set, 3) == -EINVAL &&
		  !dblp_key_forget(r->comm, 1);
	r->err = dblp_residual_set(r->comm, 1, f32, set, 3) ?:
		 dblp_residual_get(r->comm, 1, f32, got, 3);
	/* An infinite element is dropped, because it would stay in all later sums */
	r->good &= got[0] == 1 && !got[1] && got[2] == -3 &&
		   dblp_residual_get(r->comm, 1, f32, got, 2) == -EINVAL &&
		   dblp_residual_set(r->comm, 1, DBLP_INT32, set, 3) == -EINVAL;
	r->err = r->err ?: dblp_allreduce(r->comm, v, 3, &r->op, &req);
	if (r->err)
		return;
	r->good &= dblp_residual_get(r->comm, 1, f32, got, 3) == -EBUSY &&
		   dblp_residual_set(r->comm, 1, f32, set, 3) == -EBUSY &&
		   dblp_key_forget(r->comm, 1) == -EBUSY;
	r->err = dblp_wait(req, WAIT_MS, NULL, 0) ?:
		 dblp_residual_get(r->comm, 1, f32, got, 3);
	r->good &= !memcmp(v, sum, sizeof(v)) && !got[0] && !got[1] && !got[2] &&
		   !dblp_key_forget(r->comm, 1) &&
		   dblp_residual_get(r->comm, 1, f32, got, 3) == -ENOENT && !r->comm->key;
}

TEST(residuals_are_copied_set_and_forgotten)
{
	prepare(2, next_epoch(), 3, run_residual);
	EACH_RANK(2, r->op.rule = DBLP_FEEDBACK, r->op.key = 1,
		     r->op.dtype = DBLP_FLOAT32);
	run_all(2);
	expect_good(_metadata, 2);
}

/* Keys are for reductions: operations that only distribute ignore them */
static void run_gathers(struct rank *r)
{
	struct dblp_req *req[2];
	int v[3] = { 0 }, i;

	for (i = 0; i < 2; i++)
		r->err |= dblp_allgather(r->comm, v + i, i + 1, &r->op, &req[i]);
	for (i = 0; i < 2 && !r->err; i++)
		r->err |= dblp_wait(req[i], WAIT_MS, NULL, 0);
	r->good = !r->comm->key;
}

TEST(operations_without_reduction_ignore_keys)
{
	int server;

	for (server = 0; server < 2; server++) {
		prepare(2, next_epoch(), 1, run_gathers);
		EACH_RANK(2, r->op.algo = DBLP_PS, r->op.rule = DBLP_FEEDBACK,
			     r->op.plan_flags = server ? DBLP_PLAN_SERVER : 0);
		run_all(2);
		expect_good(_metadata, 2);
	}
}

/* A rank that does not wait for the end leaves no memory behind */
static void run_away(struct rank *r)
{
	struct dblp_req *req;
	static int v[2];

	r->err = dblp_allreduce(r->comm, &v[r->attr.rank], 1, &r->op, &req);
	if (r->attr.rank)
		return;
	/* The request ends with the result, or because the other rank has left */
	r->good = readable(dblp_comm_fd(r->comm), WAIT_MS);
}

TEST(requests_are_freed_with_the_communicator)
{
	prepare(2, next_epoch(), 1000, run_away);
	rank[0].attr.timeout_ms = 2000;
	rank[1].attr.timeout_ms = 2000;
	run_all(2);
	EXPECT_TRUE(rank[0].good);
	/* The harness skips the leak check at the end of a program */
	EXPECT_EQ(0, __lsan_do_recoverable_leak_check());
}

TEST_HARNESS_MAIN
