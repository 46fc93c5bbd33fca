// SPDX-License-Identifier: GPL-2.0-only
/* Any losses of packets and probes: the packet size stays valid */
#include "fuzz.h"
#include "pmtu.h"

static void check(const struct dblp_pmtu *p)
{
	CHECK(p->min <= p->base && p->min <= p->max);
	CHECK(p->min <= p->mtu && p->mtu <= p->max);
	CHECK(p->high > p->mtu && p->high <= p->max + 1);
	CHECK(p->tries < DBLP_PMTU_PROBES);
	CHECK(!dblp_pmtu_known(p) || (p->mtu == p->max && !p->suspected));
}

/* Each step has two bytes: an event, and the size of the packet */
int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	u32 size, probe[2] = {}, i, count = 0;
	struct dblp_pmtu p;
	u64 now = 1;

	if (len < 2)
		return 0;
	dblp_pmtu_init(&p, DBLP_PMTU_MIN, DBLP_PMTU_BASE,
		       DBLP_PMTU_MIN + (data[0] << 8 | data[1]) % 9000);
	check(&p);
	for (data += 2, len -= 2; len >= 2; data += 2, len -= 2) {
		size = data[1] * 40;
		/* Mostly sizes in use */
		if (data[0] & 0x80)
			size = p.mtu;
		switch (data[0] % 8) {
		case 0:
			dblp_pmtu_route(&p, DBLP_PMTU_MIN + size);
			break;
		case 1:
			/* At most two probes are in flight */
			size = dblp_pmtu_next(&p, now);
			if (!size)
				break;
			CHECK(size <= p.max);
			i = !!probe[0];
			CHECK(!probe[i]);
			probe[i] = size;
			if (data[1] == 255) {
				dblp_pmtu_unsent(&p, size);
				probe[i] = 0;
			}
			break;
		case 2:
		case 3:
			i = data[1] & 1;
			if (probe[i] && data[0] % 8 == 2)
				dblp_pmtu_acked(&p, probe[i], true, now);
			else if (probe[i])
				dblp_pmtu_lost(&p, probe[i], true, now);
			probe[i] = 0;
			break;
		case 4:
			dblp_pmtu_acked(&p, size, false, now);
			count = 0;
			break;
		case 5:
			dblp_pmtu_lost(&p, size, false, now);
			break;
		case 6:
			dblp_pmtu_timeout(&p, ++count);
			break;
		case 7:
			now += 1ULL << data[1] % 42;
			break;
		}
		check(&p);
	}
	return 0;
}

size_t fuzz_seed(struct prng *r, u8 *p, size_t max)
{
	return fuzz_any(r, p, max);
}
