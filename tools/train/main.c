// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <string.h>

#include "train.h"

static const char usage[] =
"Usage: dblp-train server [OPTION...] TEXT-FILE...\n"
"       dblp-train worker [OPTION...] TEXT-FILE...\n"
"       dblp-train report [--markdown] LOG-FILE...\n"
"Train a next-character model on text: workers send gradients to a server,\n"
"which averages them and sends back the parameters.\n"
"\n"
"Both:\n"
"  --transport NAME    tcp (default) or dblp\n"
"  --address ADDRESS   of the server, IPv4 or IPv6 (default 127.0.0.1)\n"
"  --port N            (default 7000)\n"
"worker:\n"
"  --worker N          number of this worker, from 0\n"
"server:\n"
"  --workers N         number of workers (default 3)\n"
"  --rounds N          (default 60)\n"
"  --batch N           samples of each worker in a round (default 128)\n"
"  --context N         characters the model looks at (default 12)\n"
"  --hidden N          width of its hidden layer (default 64)\n"
"  --rate R            learning rate (default 0.02)\n"
"  --seed N            of all draws (default 1)\n"
"  --budget PCT        loss budget of the workers' sockets (default 0)\n"
"  --phases LOW,HIGH   budget by phase: LOW in critical ones, else HIGH\n"
"  --eta R             relative change of the gradient norm from one epoch to\n"
"                      the next that makes a phase critical (default 0.5)\n"
"  --epoch N           rounds of an epoch (default 4)\n"
"  --no-feedback       the server averages over what arrived; otherwise workers\n"
"                      add missing elements to their next gradient\n"
"  --hook NAME:ROUNDS:COMMAND\n"
"                      start COMMAND when each of ROUNDS (a,b,c) begins, and\n"
"                      mark them in the log as NAME\n"
"  --log FILE          write a log, for report\n"
"  --name NAME         of this run in the report\n"
"  --progress N        print a line every N rounds (default 10)\n";

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*main)(int argc, char **argv);
	} verbs[] = {
		{ "server", server_main },
		{ "worker", worker_main },
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
