/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The objects of dblpctl, each with its verbs.
 */
#ifndef DBLPCTL_H
#define DBLPCTL_H

#include "cmd.h"

enum status do_cc(int argc, char **argv);
enum status do_doctor(int argc, char **argv);
enum status do_job(int argc, char **argv);
enum status do_monitor(int argc, char **argv);
enum status do_param(int argc, char **argv);
enum status do_phase(int argc, char **argv);
enum status do_save(int argc, char **argv);
enum status do_socket(int argc, char **argv);
enum status do_stats(int argc, char **argv);
enum status do_top(int argc, char **argv);

#endif /* DBLPCTL_H */
