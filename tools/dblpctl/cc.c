// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl cc: list of congestion controls.
 */

#include "dblpctl.h"
#include "field.h"
#include "names.h"
#include "object.h"
#include "print.h"

static void print_yes_no(const struct field *f, const struct values *v)
{
	print_bool(heading(f, v), get_u32(v, f->attr));
}

static const struct field fields[] = {
	{ DBLP_A_CC_NAME, "NAME", print_name, NULL },
	{ DBLP_A_CC_DEFAULT, "DEFAULT", print_yes_no, NULL },
};

/* @id_attr is not set: congestion controls have names only */
static const struct object controls = {
	.name		= "congestion control",
	.attr_names	= cc_attrs,
	.attr_max	= DBLP_A_CC_MAX,
	.name_attr	= DBLP_A_CC_NAME,
	.get		= DBLP_CMD_CC_GET,
	.fields		= fields,
	.n_fields	= N_FIELDS(fields),
};

static enum status do_list(int argc, char **argv)
{
	return object_list(&controls, argc, argv);
}

static enum status do_help(int argc, char **argv)
{
	return show_help(argc, argv,
		"Usage: dblpctl [OPTION...] cc [list]\n"
		"\n"
		"  list   the congestion controls, and which one is the default of new sockets\n"
		"         (change the default by dblpctl param set congestion NAME)");
}

enum status do_cc(int argc, char **argv)
{
	static const struct command verbs[] = {
		{ "list", do_list },
		{ "help", do_help },
		{ NULL, NULL },
	};

	return run_verb(verbs, argc, argv);
}
