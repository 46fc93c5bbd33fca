// SPDX-License-Identifier: GPL-2.0-only
/* Events of a sender as bytes, compared with the model */
#include "fuzz.h"
#include "sent_model.h"

struct reader {
	const u8	*p;
	const u8	*end;
};

static u8 get(struct reader *r)
{
	return r->p < r->end ? *r->p++ : 0;
}

/* Mostly valid ranges, some invalid */
static void fuzz_ack(struct sent_model *m, struct reader *r)
{
	struct dblp_acked_range a[8];
	u32 n = get(r) % 9, i;
	u64 pn = m->next;

	for (i = 0; i < n; i++) {
		pn -= get(r) % 32;
		a[i].last = pn;
		pn -= get(r) % 32;
		a[i].first = pn--;
	}
	CHECK(model_ack(m, a, n, get(r) * 10000));
}

/* ACKs of all packets, and of packets never sent */
static void fuzz_ack_all(struct sent_model *m, u8 how)
{
	struct dblp_acked_range a = {
		.first = how & 1 ? 0 : m->s.base,
		.last = how & 2 ? m->next - 1 : how & 4 ? m->next : ~0ULL,
	};

	CHECK(model_ack(m, &a, 1, 0));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct reader r = { data, data + len };
	static struct sent_model m;
	u32 i, steps = 0, ports = 1 + get(&r) % DBLP_SPRAY_MAX;

	model_begin(&m);
	model_spray(&m, ports);
	while (r.p < r.end && steps++ < 48) {
		u8 op = get(&r);

		switch (op % 6) {
		case 0:
		case 1:
			m.port = op / 6 % ports;
			for (i = 1 + get(&r) % 24; i; i--)
				model_push(&m, 1 + op, op % 4);
			break;
		case 2:
			fuzz_ack(&m, &r);
			break;
		case 3:
			m.now += 1ULL << get(&r) % 32;
			CHECK(model_timeout(&m));
			break;
		case 4:
			fuzz_ack_all(&m, get(&r));
			break;
		case 5:
			CHECK(model_skip(&m, op));
			break;
		}
	}
	model_end(&m);
	return 0;
}

size_t fuzz_seed(struct prng *r, u8 *p, size_t max)
{
	return fuzz_any(r, p, max);
}
