// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any hosts and updates: each update is sent once or dropped, and as few as possible are
 * dropped. Runs are consecutive, keep their bounds, and use each joining host once.
 * Equal input gives equal output. Six bytes are the state, three each host and each
 * update.
 */
#include <order.h>
#include <string.h>

#include "fuzz.h"

#define HOSTS_MAX	16

/*
 * Maximum number of unit jobs with deadlines: each takes the last free place before its
 * own
 */
static u32 most_sent(const struct fab_state *s, const struct fab_update *u, u32 n)
{
	bool used[FAB_UPDATES_MAX] = { 0 };
	u32 sent = 0, i;
	s64 at;

	for (i = 0; i < n; i++) {
		at = (s64)(s->bound + u[i].version) - (s64)(s->version + s->ahead);
		if (at >= n)
			at = n - 1;
		while (at >= 0 && used[at])
			at--;
		if (at < 0)
			continue;
		used[at] = true;
		sent++;
	}
	return sent;
}

static void check(const struct fab_state *s, const struct fab_update *u, u32 n,
		  const struct fab_plan *plan)
{
	bool seen[FAB_UPDATES_MAX] = { 0 }, joins[HOSTS_MAX] = { 0 };
	u32 i, end = 0;

	CHECK(plan->sent == most_sent(s, u, n) && plan->runs <= plan->sent);
	for (i = 0; i < n; i++) {
		CHECK(plan->order[i] < n && !seen[plan->order[i]]);
		seen[plan->order[i]] = true;
	}
	for (i = 0; i < plan->sent; i++)
		CHECK((s64)(s->version + s->ahead + i - u[plan->order[i]].version) <= s->bound);
	for (i = 0; i < plan->runs; i++) {
		const struct fab_run *r = &plan->run[i];

		CHECK(r->first == end && r->n);
		end += r->n;
		if (r->at == FAB_DIRECT) {
			CHECK(r->n == 1);
			continue;
		}
		CHECK(r->at < s->hosts && r->at != s->server && s->host[r->at].joins && !joins[r->at]);
		joins[r->at] = true;
	}
	CHECK(end == plan->sent);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	static struct fab_plan plan, again;
	static struct fab_update u[FAB_UPDATES_MAX];
	struct fab_host host[HOSTS_MAX];
	struct fab_state s = { .host = host };
	u32 i, n;

	if (len < 6)
		return 0;
	s.version = data[0];
	s.ahead = data[1];
	s.bound = data[2];
	s.bytes = data[3];
	s.hosts = 1 + data[4] % HOSTS_MAX;
	s.server = data[5] % s.hosts;
	data += 6;
	len -= 6;
	for (i = 0; i < s.hosts; i++, data += 3, len -= 3) {
		if (len < 3)
			return 0;
		host[i] = (struct fab_host) { data[0] - 1., data[1] - 1., data[2] & 1 };
	}
	n = len / 3 < FAB_UPDATES_MAX ? len / 3 : FAB_UPDATES_MAX;
	for (i = 0; i < n; i++, data += 3)
		u[i] = (struct fab_update) { data[0] % s.hosts, data[1], data[2] };
	fab_order(&s, u, n, &plan);
	check(&s, u, n, &plan);
	fab_order(&s, u, n, &again);
	CHECK(plan.runs == again.runs && !memcmp(plan.order, again.order, n * sizeof(*plan.order)) &&
	      !memcmp(plan.run, again.run, plan.runs * sizeof(*plan.run)));
	return 0;
}

size_t fuzz_seed(struct prng *r, u8 *p, size_t max)
{
	size_t len = 6 + HOSTS_MAX * 3 + prng_below(r, 40) * 3, i;

	len = len < max ? len : max;
	for (i = 0; i < len; i++)
		p[i] = prng_any(r);
	return len;
}
