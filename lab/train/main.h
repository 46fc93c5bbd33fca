/* SPDX-License-Identifier: GPL-2.0-only */
/* The subcommands of the program. */
#ifndef TRAIN_MAIN_H
#define TRAIN_MAIN_H

/* Each runs a subcommand with its arguments. */
int run_main(int argc, char **argv);
int profile_main(int argc, char **argv);
int async_main(int argc, char **argv);
int report_main(int argc, char **argv);

#endif /* TRAIN_MAIN_H */
