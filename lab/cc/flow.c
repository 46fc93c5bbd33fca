// SPDX-License-Identifier: GPL-2.0-only
/*
 * Simulates one flow on a path whose loss and rate change. Prints window, queueing delay and
 * loss, one line per interval, which 'plot' plots. The sender is the module's own net/dblp/core
 * and net/dblp/cc.
 */
#include <stdio.h>

#include "sim.h"

#define MBIT		100
#define RTT		(10 * SIM_MS)
#define QUEUE		82		/* packets: the capacity of the path */
#define INTERVAL	(20 * SIM_MS)
#define END		(9 * SIM_S)

/* Changes of the path by time; loss after the link, ppm */
static const struct {
	u64	at;
	u32	loss;
	u64	mbit;
} phases[] = {
	{ 0, 0, MBIT },
	{ 2 * SIM_S, 20000, MBIT },		/* random loss of 2 % */
	{ 3500 * SIM_MS, 0, MBIT },
	{ 5 * SIM_S, 600000, MBIT },		/* a burst of loss */
	{ 5500 * SIM_MS, 0, MBIT },
	{ 7 * SIM_S, 0, MBIT / 2 },		/* half of the rate */
};

int main(void)
{
	struct sim s;
	struct sim_flow *f;
	u64 sent = 0, lost = 0, dropped = 0;
	double time;
	u32 i = 0;

	sim_wire(&s, 1, MBIT, RTT, 0);
	s.queue_max = QUEUE;
	s.phase = true;
	s.skips = true;
	s.rng = 1;
	f = &s.flow[0];
	printf("# seconds; packets: window, path, sent in a round trip; ms of queueing delay;\n"
	       "# packets: dropped by the queue, declared lost\n");
	while (s.now < END) {
		for (; i < sizeof(phases) / sizeof(phases[0]) && phases[i].at <= s.now; i++) {
			s.loss_behind = phases[i].loss;
			s.rate = phases[i].mbit * SIM_MBIT;
		}
		s.queue_area = 0;
		sim_run(&s, s.now + INTERVAL);
		time = sim_packet_time(&s);
		printf("%.2f %u %.1f %.1f %.3f %llu %llu\n", (double)s.now / SIM_S, f->cc.cwnd / s.mss,
		       RTT / time, (double)(f->sent_pkts - sent) * RTT / INTERVAL,
		       (double)s.queue_area / INTERVAL * time / SIM_MS,
		       (unsigned long long)(f->dropped_pkts - dropped),
		       (unsigned long long)(f->lost_pkts - lost));
		sent = f->sent_pkts;
		dropped = f->dropped_pkts;
		lost = f->lost_pkts;
	}
	sim_free(&s);
	return 0;
}
