// SPDX-License-Identifier: GPL-2.0-only
/* Packets of a connection on several ports: loss detection, and the choice of the port */
#include "sent_model.h"
#include "test.h"

#define MS	1000000ULL
#define S	(1000 * MS)

FIXTURE(spray) {
	struct sent_model m;
	struct dblp_port *p;
};

FIXTURE_SETUP(spray)
{
	model_begin(&self->m);
	model_spray(&self->m, 4);
	self->p = self->m.ports;
}

FIXTURE_TEARDOWN(spray)
{
	model_end(&self->m);
}

static void push(struct sent_model *m, u32 port, u32 n)
{
	m->port = port;
	while (n--)
		model_push(m, 1000, 0);
}

static bool ack(struct sent_model *m, u64 first, u64 last)
{
	struct dblp_acked_range r = { first, last };

	m->now += MS;
	return model_ack(m, &r, 1, 0);
}

TEST_F(spray, dblp_sent_ack__ports_overtake_each_other)
{
	struct sent_model *m = &self->m;

	push(m, 0, 50);
	push(m, 1, 50);
	EXPECT_TRUE(ack(m, 50, 99));
	EXPECT_EQ(50000, m->s.inflight);
	EXPECT_EQ(50, self->p[0].inflight_pkts);
	EXPECT_EQ(0, self->p[1].inflight_pkts);
	/* Within a port, reordering counts as usual */
	EXPECT_TRUE(ack(m, 40, 40));
	EXPECT_EQ(DBLP_SENT_LOST, m->pkt[37].state);
	EXPECT_EQ(DBLP_SENT_INFLIGHT, m->pkt[38].state);
	EXPECT_EQ(DBLP_SENT_INFLIGHT, m->pkt[41].state);
	EXPECT_EQ(0, self->p[0].missed);
}

/* A port's path fails: no later packet of the port is acknowledged, so time decides */
TEST_F(spray, dblp_sent_timeout__a_port_without_answer)
{
	struct sent_model *m = &self->m;

	push(m, 2, 10);
	push(m, 1, 1);
	EXPECT_TRUE(ack(m, 10, 10));
	EXPECT_EQ(10, self->p[2].inflight_pkts);
	m->now = m->s.loss_time;
	EXPECT_TRUE(model_timeout(m));
	EXPECT_EQ(0, m->s.inflight);
	EXPECT_EQ(DBLP_SPRAY_DEAD, self->p[2].missed);
	EXPECT_EQ(0, self->p[1].missed);
}

/* Each port has its own round-trip time */
TEST_F(spray, dblp_sent_ack__a_longer_path)
{
	struct sent_model *m = &self->m;
	u64 slow = 0;
	u32 i;

	for (i = 0; i < 100; i++) {
		push(m, 0, 2);
		push(m, 1, 2);
		EXPECT_TRUE(ack(m, 4 * i + 2, 4 * i + 3));
		m->now += 9 * MS;
		EXPECT_TRUE(ack(m, 4 * i, 4 * i + 1));
	}
	EXPECT_GT(self->p[0].srtt, 9 * MS);
	EXPECT_LT(self->p[1].srtt, 2 * MS);
	slow = m->s.spurious;
	EXPECT_LT(slow, 10);
}

/* Number of times that each port was picked out of @n */
static void pick(struct dblp_port *p, u32 n, u32 *got)
{
	memset(got, 0, 4 * sizeof(*got));
	while (n--)
		got[dblp_port_pick(p, 4, 10 * MS, 1000)]++;
}

TEST_F(spray, dblp_port_pick__parts)
{
	struct dblp_port *p = self->p;
	u32 got[4], i;

	/* Only the first port is announced */
	pick(p, 100, got);
	EXPECT_EQ(100, got[0]);
	for (i = 0; i < 4; i++)
		p[i].announced = true;
	/* New ports have not saved up shares */
	pick(p, 400, got);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(100, got[i]);
	p[1].srtt = 20 * MS;
	p[2].missed = 2;
	p[3].recent = 10000;
	p[3].recent_lost = 5000;
	/* Shares of 12 : 3 : 3 : 4 */
	pick(p, 2200, got);
	EXPECT_LE(1199, got[0]);
	EXPECT_LE(298, got[1]);
	EXPECT_LE(298, got[2]);
	EXPECT_LE(398, got[3]);
}

TEST_F(spray, dblp_port_pick__the_dead)
{
	struct dblp_port *p = self->p;
	u32 got[4], i;

	for (i = 0; i < 4; i++) {
		p[i].announced = true;
		p[i].missed = i == 1 ? DBLP_SPRAY_DEAD - 1 : DBLP_SPRAY_DEAD;
	}
	pick(p, 100, got);
	EXPECT_EQ(100, got[1]);
	/* If all ports are dead, one of them must be used */
	p[1].missed = DBLP_SPRAY_DEAD;
	pick(p, 400, got);
	for (i = 0; i < 4; i++)
		EXPECT_NE(0, got[i]);
	/* Never a port that was not announced */
	p[3].announced = false;
	pick(p, 100, got);
	EXPECT_EQ(0, got[3]);
}

/* Several packets in a row use one port, unless its path may have failed */
TEST_F(spray, dblp_port_next__a_part_of_the_window)
{
	struct dblp_sent *s = &self->m.s;
	u32 i, port, changes = 0;

	for (i = 0; i < 4; i++)
		self->p[i].announced = true;
	for (i = 0; i < 1000; i++) {
		port = s->port;
		changes += dblp_port_next(s, 1000, 320000, MS, false) != port;
	}
	EXPECT_LE(99, changes);
	EXPECT_GE(100, changes);
	/* A train uses one port, however small the window is */
	port = dblp_port_next(s, 60000, 1000, MS, false);
	EXPECT_NE(port, dblp_port_next(s, 1000, 1000, MS, false));
	for (i = 0; i < 100; i++) {
		port = s->port;
		EXPECT_NE(port, dblp_port_next(s, 100, 320000, MS, true));
	}
	port = dblp_port_next(s, 100, 320000, MS, true);
	EXPECT_EQ(port, dblp_port_next(s, 100, 320000, MS, false));
	self->p[port].missed = 1;
	EXPECT_NE(port, dblp_port_next(s, 100, 320000, MS, false));
}

/* No overflow at any path */
TEST_F(spray, dblp_port_pick__extremes)
{
	struct dblp_port *p = self->p;
	u32 got[4], i;

	for (i = 0; i < 4; i++) {
		p[i].announced = true;
		p[i].srtt = i ? U64_MAX >> i : 1;
		p[i].recent = 65536;
		p[i].recent_lost = 65536;
		p[i].pass = U64_MAX - 1000;
	}
	p[0].missed = DBLP_SPRAY_DEAD - 1;
	pick(p, 1000000, got);
	EXPECT_LT(990000, got[0]);
	for (i = 0; i < 4; i++)
		EXPECT_NE(0, got[i]);
}

TEST_F(spray, dblp_port_due__seldom)
{
	struct dblp_port *p = self->p;
	u64 now = S, probes = 0;
	u32 i;

	for (i = 1; i < 4; i++)
		EXPECT_EQ(i, dblp_port_due(p, 4, 10 * MS, now));
	EXPECT_EQ(4, dblp_port_due(p, 4, 10 * MS, now));
	for (i = 1; i < 4; i++)
		p[i].announced = true;
	p[3].missed = DBLP_SPRAY_DEAD;
	for (; now < 61 * S; now += MS)
		probes += dblp_port_due(p, 4, 10 * MS, now) == 3;
	/* After 10 ms, 20 ms, 40 ms, ... */
	EXPECT_GT(probes, 10);
	EXPECT_LT(probes, 16);
	p[3].missed = 0;
	EXPECT_EQ(4, dblp_port_due(p, 4, 10 * MS, now + S));
	/* With a longer round trip, not before an answer can arrive */
	p[3] = (struct dblp_port) { .announced = true, .missed = DBLP_SPRAY_DEAD, .acked_at = now };
	EXPECT_EQ(3, dblp_port_due(p, 4, 200 * MS, now));
	EXPECT_EQ(4, dblp_port_due(p, 4, 200 * MS, now + 199 * MS));
	EXPECT_EQ(3, dblp_port_due(p, 4, 200 * MS, now + 200 * MS));
}

TEST_HARNESS_MAIN
