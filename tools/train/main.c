// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <string.h>

#include "main.h"

static const char usage[] =
"Usage: dblp-train run [OPTION...] TEXT-FILE...\n"
"       dblp-train profile [OPTION...] TEXT-FILE...\n"
"       dblp-train async [OPTION...] TEXT-FILE...\n"
"       dblp-train report [--markdown] LOG-FILE...\n"
"Train a next-character model on text: each rank computes the gradient of its own\n"
"batch, all average their gradients, and each takes the same step, so that all have\n"
"the same parameters. All ranks get the same files and options, but for --rank,\n"
"--devices, --job, --progress, --log, --name and --hook.\n"
"\n"
"Ranks, see dblp_comm(3):\n"
"  --rank N, --nranks N\n"
"                      this rank and how many there are (default: RANK, WORLD_SIZE\n"
"                      or what Open MPI, PMI or Slurm have set)\n"
"  --rendezvous WHERE  tcp://HOST:PORT of rank 0, file:PATH, or env (default)\n"
"  --transport NAME    dblp (default), tcp or tcp:CC with that congestion control\n"
"  --devices A,B       network devices, one for each level of the plan\n"
"Exchange, see training.rst:\n"
"  --plan PLAN         transpose (default), ring, tree, bcube; ps: rank 0 is a server\n"
"                      that contributes nothing; average: parameters are averaged in\n"
"                      groups, another digit of the ranks' numbers each round, and\n"
"                      over all at the end\n"
"  --fanin N           children of a rank in a tree (default 2)\n"
"  --levels N          digits of bcube and average (default 2)\n"
"  --rule RULE         feedback (default): what was lost is added to the next gradient;\n"
"                      rescale (average: always): others stand for it; bubble: it is 0\n"
"  --wait-ms N         go on without contributions of which nothing has come for so\n"
"                      long (default: wait)\n"
"What may be lost (dblp):\n"
"  --budget PCT        share of all contributions (default 0)\n"
"  --policy POLICY     full, eager or early (default: that of the phase)\n"
"  --carry             save up budget that messages were too short for\n"
"  --phases LOW,HIGH   budget by phase: LOW in critical ones, else HIGH\n"
"  --job N             that of a job; its detector is told the norm of the gradient\n"
"  --eta R             --phases: relative change of the gradient norm from one epoch\n"
"                      to the next that makes a phase critical (default 0.5)\n"
"  --epoch N           rounds of an epoch (default 4)\n"
"Training:\n"
"  --rounds N          (default 60)\n"
"  --batch N           samples of each rank in a round (default 128)\n"
"  --context N         characters the model looks at (default 12)\n"
"  --hidden N          width of its hidden layer (default 64)\n"
"  --rate R            learning rate (default 0.02)\n"
"  --seed N            of all draws (default 1)\n"
"  --checkpoint FILE   rank 0 writes checkpoints there\n"
"  --checkpoint-rounds N\n"
"                      every so many rounds (default 10), and after the last one\n"
"  --resume            begin with the checkpoint, which only rank 0 needs\n"
"Output:\n"
"  --progress N        print a line every N rounds (default: rank 0 every 10)\n"
"  --log FILE          write a log, for report\n"
"  --name NAME         of this run in the report\n"
"  --hook NAME:ROUNDS:COMMAND\n"
"                      start COMMAND when each of ROUNDS (a,b,c) begins, and\n"
"                      mark them in the log as NAME\n"
"\n"
"profile finds the loss budget that a training bears (P_low): it trains in this\n"
"process, without a network, with each of several budgets and seeds, losing each\n"
"time all that the budget allows. It takes --plan (not average), --fanin, --levels,\n"
"--rule, --nranks (default 4), --eta, --epoch, the options of training but those of\n"
"checkpoints, and:\n"
"  --budgets A,B,...   percentages (default 0.8,2,5,10,20,40,80; 0 is always tried)\n"
"  --phases LOW,HIGH   instead: are these borne?\n"
"  --seeds N           trainings with each, from --seed on (default 5)\n"
"  --segment BYTES     what is lost together (default 1408, that of an MTU of 1500)\n"
"  --sparse            messages have no zeroes: budgets are shares of the rest\n"
"  --large SHARE       the same, and nothing is lost of so many elements of a message, the largest\n"
"  -j, --json          print one JSON object instead of a table\n"
"\n"
"async is a worker that waits for no other one: it pulls the model from a server, and\n"
"pushes the gradient of its batch to it, by way of a scheduler, see dblp-fabric(1). It\n"
"takes --transport, --rounds, --batch, --context, --hidden, --seed, and:\n"
"  --scheduler A:P     address and port of the scheduler\n"
"  --worker N          which worker this is (default 0)\n"
"  --seconds N         end after so long (default: only after --rounds)\n"
"  --pause-ms N, --pause-every N\n"
"                      pause for so long every so many rounds, as a straggler does\n"
"  --log FILE          a line for each update: microseconds, version pulled, version it\n"
"                      made, loss, whether it was dropped, how often it was tried\n"
"  --count             only print the number of parameters, for the scheduler\n";

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*main)(int argc, char **argv);
	} verbs[] = {
		{ "run", run_main },
		{ "profile", profile_main },
		{ "async", async_main },
		{ "report", report_main },
	};
	size_t i;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		fputs(usage, stdout);
		return 0;
	}
	for (i = 0; argc > 1 && i < sizeof(verbs) / sizeof(*verbs); i++)
		if (!strcmp(argv[1], verbs[i].name))
			return verbs[i].main(argc - 1, argv + 1);
	fputs(usage, stderr);
	return 2;
}
