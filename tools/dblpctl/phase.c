// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl phase: list, show, set, del.
 */

#include <libdblp.h>
#include <string.h>

#include "dblpctl.h"
#include "field.h"
#include "names.h"
#include "object.h"
#include "phase.h"
#include "units.h"
#include "words.h"

#define F(attr, column, print)	{ DBLP_A_PHASE_##attr, column, print, NULL }
#define ENUM(attr, column, names) \
	{ DBLP_A_PHASE_##attr, column, print_enum, names }

static const struct field fields[] = {
	F(ID, "ID", print_u32),
	F(NAME, "NAME", print_name),
	F(BUDGET, "LOSS", print_share),
	ENUM(POLICY, "CLOSE", dblp_policy_names),
	ENUM(ORDER, "ORDER", dblp_order_names),
	ENUM(FILL, "FILL", dblp_fill_names),
	F(SOCKETS, "SOCKETS", print_u32),
	F(BUDGET_CAP, "CAP", print_own_share),
};

static const struct keyword keywords[] = {
	{ "loss", DBLP_A_PHASE_BUDGET, "a share, such as 2%", read_share,
	  NULL },
	{ "close", DBLP_A_PHASE_POLICY, "a policy: full, eager or early",
	  read_enum, dblp_policy_names },
	{ "order", DBLP_A_PHASE_ORDER,
	  "an order: auto, sequential or shuffled", read_enum, dblp_order_names },
	{ "fill", DBLP_A_PHASE_FILL, "a fill: zero or keep", read_enum,
	  dblp_fill_names },
	{ "cap", DBLP_A_PHASE_BUDGET_CAP, "a share such as 2%, or inherit",
	  read_own_share, NULL },
	{ "name", DBLP_A_PHASE_NAME, "a name", read_name, NULL },
	{ NULL, 0, NULL, NULL, NULL },
};

static const struct object phases = {
	.name		= "phase",
	.attr_names	= phase_attrs,
	.attr_max	= DBLP_A_PHASE_MAX,
	.id_attr	= DBLP_A_PHASE_ID,
	.name_attr	= DBLP_A_PHASE_NAME,
	.get		= DBLP_CMD_PHASE_GET,
	.fields		= fields,
	.n_fields	= N_FIELDS(fields),
};

enum status read_phase(const struct keyword *k, const char *word,
		       struct value *v)
{
	(void)k;
	return object_find(&phases, word, &v->n);
}

enum status read_own_phase(const struct keyword *k, const char *word,
			   struct value *v)
{
	return is_inherit(word, v) ? STATUS_OK : read_phase(k, word, v);
}

static enum status do_list(int argc, char **argv)
{
	return object_list(&phases, argc, argv);
}

static enum status do_show(int argc, char **argv)
{
	return object_show(&phases, argc, argv);
}

static enum status do_set(int argc, char **argv)
{
	return object_set(&phases, DBLP_CMD_PHASE_SET, keywords, argc, argv);
}

static enum status do_del(int argc, char **argv)
{
	return object_del(&phases, DBLP_CMD_PHASE_DEL, argc, argv);
}

static enum status do_flush(int argc, char **argv)
{
	return object_flush(&phases, DBLP_CMD_PHASE_DEL, argc, argv);
}

enum status phases_free_names(void)
{
	return object_free_names(&phases, DBLP_CMD_PHASE_SET);
}

enum status phases_flush(void)
{
	return do_flush(0, NULL);
}

static char names[DBLP_PHASES][DBLP_NAME_MAX];

static enum status note_name(const struct values *v, void *arg)
{
	uint32_t id = get_u32(v, DBLP_A_PHASE_ID);

	(void)arg;
	if (id < DBLP_PHASES)
		snprintf(names[id], sizeof(names[id]), "%s",
			 get_string(v, DBLP_A_PHASE_NAME));
	return STATUS_OK;
}

enum status read_phase_names(void)
{
	memset(names, 0, sizeof(names));
	return object_each(&phases, note_name, NULL);
}

const char *phase_name(uint32_t id)
{
	return id < DBLP_PHASES ? names[id] : "";
}

void print_phase_id(struct heading h, uint32_t id)
{
	const char *name = phase_name(id);
	char text[DBLP_VALUE_TEXT];

	snprintf(text, sizeof(text), *name ? "%u (%s)" : "%u", id, name);
	if (print_is_json())
		print_uint(h, id, NULL);
	else
		print_string(h, text, NULL);
}

void print_phase(const struct field *f, const struct values *v)
{
	print_phase_id(heading(f, v), get_u32(v, f->attr));
}

static uint32_t saved;

bool phase_is_saved(uint32_t id)
{
	return id < DBLP_PHASES && (saved & 1U << id);
}

static enum status save_phase(const struct values *v, void *to)
{
	uint32_t id = get_u32(v, DBLP_A_PHASE_ID);
	enum status status;

	if (id < DBLP_PHASES)
		saved |= 1U << id;
	fprintf(to, "phase set %u", id);
	status = write_words(to, keywords, v);
	putc('\n', to);
	return status;
}

enum status save_phases(FILE *to)
{
	saved = 0;
	return object_each(&phases, save_phase, to);
}

static enum status do_help(int argc, char **argv)
{
	return show_help(argc, argv,
		"Usage: dblpctl [OPTION...] phase [list]\n"
		"       dblpctl [OPTION...] phase show PHASE\n"
		"       dblpctl phase set PHASE [loss SHARE] [close POLICY] [order ORDER]\n"
		"                               [fill FILL] [cap SHARE] [name NAME]\n"
		"       dblpctl phase del PHASE\n"
		"       dblpctl phase flush\n"
		"\n"
		"  PHASE  number (0 to 7) or name\n"
		"\n"
		"  list   all phases of this network namespace\n"
		"  show   all values of one phase\n"
		"  set    change or create a phase (needs CAP_NET_ADMIN); it applies to its sockets\n"
		"         at once, except settings of their own:\n"
		"         loss   loss budget of the messages that they send\n"
		"         close  close policy: full, eager or early\n"
		"         order  order of segments: auto, sequential or shuffled\n"
		"         fill   contents of missing bytes in a reader's buffer: zero or keep\n"
		"         cap    maximum loss that they accept; inherit: as the namespace has it\n"
		"         name   name; required for a new phase\n"
		"  del    delete a phase that no socket and no job is in, and that no detector of a\n"
		"         job can choose (needs CAP_NET_ADMIN); phase 0 cannot be deleted\n"
		"  flush  delete all such phases (needs CAP_NET_ADMIN)");
}

enum status do_phase(int argc, char **argv)
{
	static const struct command verbs[] = {
		{ "list", do_list },
		{ "show", do_show },
		{ "set", do_set },
		{ "del", do_del },
		{ "flush", do_flush },
		{ "help", do_help },
		{ NULL, NULL },
	};

	return run_verb(verbs, argc, argv);
}
