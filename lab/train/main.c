// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <string.h>

#include "main.h"

static const char usage[] =
"Usage: dblp-train run [OPTION...] TEXT-FILE...\n"
"       dblp-train profile [OPTION...] TEXT-FILE...\n"
"       dblp-train async [OPTION...] TEXT-FILE...\n"
"       dblp-train report [--markdown] LOG-FILE...\n"
"Train a next-character model on text. Each rank computes the gradient of a batch, all\n"
"ranks average their gradients, and each does the same step, so that their parameters\n"
"stay equal. All ranks get the same files and options, except --rank, --devices, --job,\n"
"--progress, --log, --name and --hook.\n"
"\n"
"Ranks, see dblp_comm(3):\n"
"  --rank N, --nranks N\n"
"                      this rank, from 0, and the number of ranks (default: RANK and\n"
"                      WORLD_SIZE, or the variables of Open MPI, PMI or Slurm)\n"
"  --rendezvous WHERE  tcp://HOST:PORT of rank 0, file:PATH, or env (default)\n"
"  --transport NAME    dblp (default), tcp, or tcp:CC with congestion control CC\n"
"  --devices A,B       network devices, one for each level of the plan\n"
"Exchange, see training.rst:\n"
"  --plan PLAN         transpose (default), ring, tree, bcube, ps or average.\n"
"                      ps: rank 0 is a server without gradients of its own.\n"
"                      average: average parameters in groups of ranks that differ in\n"
"                      one digit, another digit each round, and over all ranks at the\n"
"                      end\n"
"  --fanin N           tree: children of a rank (default 2)\n"
"  --levels N          bcube, average: digits of a rank's number (default 2)\n"
"  --rule RULE         feedback (default): add lost elements to the next gradient;\n"
"                      rescale: divide by the contributions that arrived;\n"
"                      bubble: lost elements count as 0. average always uses rescale\n"
"  --wait TIME         continue without a contribution if none of it arrives within\n"
"                      TIME (default: no limit)\n"
"Loss budget, with --transport dblp:\n"
"  --budget SHARE      loss budget of all contributions (default 0%)\n"
"  --budget auto[:CAP] find the budget of each round: hold the error that losses add at\n"
"                      15% of the gradient's noise between ranks, and never lose more\n"
"                      than CAP (default 40%), the budget of the phase or of the job\n"
"  --param-budget SHARE\n"
"                      ps, transpose: the owner of parameters does their step and sends\n"
"                      them, of which SHARE may be lost. A rank lacks no more than the\n"
"                      last step, which it replaces by the step before\n"
"  --policy POLICY     full, eager or early (default: the policy of the phase;\n"
"                      early with --budget auto)\n"
"  --carry             save unused budget of short messages for later ones\n"
"  --phases LOW,HIGH   budget LOW in critical phases of training, else HIGH\n"
"  --job N             use the budget of job N, and report gradient norms to it\n"
"  --eta R             --phases: relative change of the gradient norm between epochs\n"
"                      that makes a phase critical (default 0.5)\n"
"  --epoch N           rounds in an epoch (default 4)\n"
"Training:\n"
"  --rounds N          number of rounds (default 60)\n"
"  --batch N           samples of each rank in a round (default 128)\n"
"  --context N         characters that predict the next one (default 12)\n"
"  --hidden N          width of the hidden layer (default 64)\n"
"  --rate R            learning rate (default 0.02)\n"
"  --seed N            seed of all random numbers (default 1)\n"
"  --checkpoint FILE   checkpoint, written by rank 0\n"
"  --checkpoint-rounds N\n"
"                      rounds between checkpoints (default 10); the last round has one\n"
"  --resume            continue from the checkpoint; only rank 0 needs the file\n"
"Output:\n"
"  --progress N        print a line every N rounds (default: 10 at rank 0, else never)\n"
"  --log FILE          write a log for report\n"
"  --name NAME         name of the run in the report\n"
"  --hook NAME:ROUNDS:COMMAND\n"
"                      start COMMAND at the start of each of ROUNDS (a,b,c), and mark\n"
"                      them as NAME in the log\n"
"\n"
"profile measures the largest loss budget that does not harm a training (P_low). It\n"
"trains in one process, without a network, with several budgets and seeds. Each message\n"
"loses as much as the budget allows. profile takes --plan (except average), --fanin,\n"
"--levels, --rule, --nranks (default 4), --eta, --epoch, the options of training except\n"
"those of checkpoints, and:\n"
"  --budgets A,B,...   ascending shares (default 0.8%,2%,5%,10%,20%,40%,80%; 0% is\n"
"                      always included)\n"
"  --phases LOW,HIGH   test these budgets of phases instead\n"
"  --budget auto[:CAP] test budgets that are found instead\n"
"  --param-budget SHARE\n"
"                      with each budget, messages with parameters lose SHARE, too\n"
"  --seeds N           trainings with each budget, with seeds from --seed on (default 5)\n"
"  --segment BYTES     bytes that are lost together (default 1408, for an MTU of 1500)\n"
"  --sparse            do not send zeroes: a budget is a share of the other elements\n"
"  --large SHARE       --sparse, and never lose the SHARE largest elements of a message\n"
"  -j, --json          print one JSON object instead of a table\n"
"\n"
"async is a worker that does not wait for other workers: it pulls the model from a\n"
"server, computes the gradient of a batch and pushes the gradient, when its scheduler\n"
"permits; see dblp-fabric(1). async takes --transport, --rounds, --batch, --context,\n"
"--hidden, --seed, and:\n"
"  --scheduler A:P     address and port of the scheduler\n"
"  --worker N          number of this worker (default 0)\n"
"  --time TIME         stop after TIME (default: after --rounds rounds)\n"
"  --pause TIME, --pause-every N\n"
"                      pause for TIME every N rounds, as a straggler\n"
"  --log FILE          write a line for each update: time in us, version pulled,\n"
"                      version made, loss, 1 if it was dropped, number of attempts\n"
"  --count             only print the number of parameters, for the scheduler\n"
"\n"
"A SHARE, LOW and HIGH are 2% or 20000ppm, a TIME is 500ms, 1.5s, 2min or 1h, and BYTES\n"
"are 64000, 64kB or 64KiB.\n";

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
