// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sockets, phases and jobs: what the kernel has many of, each with a number.
 */

#include <string.h>

#include "nl.h"
#include "object.h"
#include "print.h"
#include "units.h"

static void print_one(const struct object *o, const struct nlmsghdr *nlh)
{
	const struct nlattr *tb[o->attr_max + 1];
	struct values v = { o->attr_names, tb };

	nl_attrs(nlh, tb, o->attr_max);
	print_fields(o->fields, o->n_fields, &v);
}

static bool has_name(const struct object *o, const struct nlmsghdr *nlh,
		     const char *name, uint32_t *id)
{
	const struct nlattr *tb[o->attr_max + 1];
	struct values v = { o->attr_names, tb };

	nl_attrs(nlh, tb, o->attr_max);
	*id = get_u32(&v, o->id_attr);
	return !strcmp(get_string(&v, o->name_attr), name);
}

static enum status find_name(const struct object *o, const char *name,
			     uint32_t *id)
{
	const struct nlmsghdr *msg;
	struct nl_reply reply;
	bool found = false;
	int left;

	if (nl_talk(nl_request(o->get, NLM_F_DUMP), o->attr_names, &reply))
		return STATUS_FAILED;
	left = (int)reply.len;
	/* Those without a name are not found by none */
	for (msg = reply.msgs; *name && !found && mnl_nlmsg_ok(msg, left);
	     msg = mnl_nlmsg_next(msg, &left))
		found = has_name(o, msg, name, id);
	nl_reply_free(&reply);
	if (found)
		return STATUS_OK;
	usage_error("no %s is called '%s' (see dblpctl %s list)", o->name,
		    name, o->name);
	return STATUS_FAILED;
}

enum status object_find(const struct object *o, const char *word,
			uint32_t *id)
{
	const char *wrong;

	/* No name begins with a digit */
	if (o->name_attr && (*word < '0' || *word > '9'))
		return find_name(o, word, id);
	wrong = parse_id(word, id);
	if (!wrong)
		return STATUS_OK;
	if (!o->name_attr)
		return usage_error("'%s' %s", word, wrong);
	return usage_error("'%s' is not the number of a %s", word, o->name);
}

enum status object_take(const struct object *o, int *argc, char ***argv,
			uint32_t *id)
{
	enum status status;

	if (!*argc)
		return usage_error("which %s? (see dblpctl %s list)", o->name,
				   o->name);
	status = object_find(o, **argv, id);
	(*argc)--;
	(*argv)++;
	return status;
}

enum status object_list_if(const struct object *o,
			   bool (*wanted)(const struct values *v,
					  const void *arg),
			   const void *arg)
{
	const struct nlattr *tb[o->attr_max + 1];
	struct values v = { o->attr_names, tb };
	const struct nlmsghdr *msg;
	struct nl_reply reply;
	int left;

	if (nl_talk(nl_request(o->get, NLM_F_DUMP), o->attr_names, &reply))
		return STATUS_FAILED;
	print_array();
	left = (int)reply.len;
	for (msg = reply.msgs; mnl_nlmsg_ok(msg, left);
	     msg = mnl_nlmsg_next(msg, &left)) {
		nl_attrs(msg, tb, o->attr_max);
		if (!wanted || wanted(&v, arg))
			print_fields(o->fields, o->n_fields, &v);
	}
	print_array_end();
	nl_reply_free(&reply);
	return STATUS_OK;
}

enum status object_list(const struct object *o, int argc, char **argv)
{
	return no_more(argc, argv) ?: object_list_if(o, NULL, NULL);
}

/* Sends a request about an object; its answer is printed, if @print is there */
static enum status talk(const struct object *o, struct nlmsghdr *nlh,
			void (*print)(const struct object *o,
				      const struct nlmsghdr *nlh))
{
	struct nl_reply reply;

	if (nl_talk(nlh, o->attr_names, &reply))
		return STATUS_FAILED;
	if (print)
		print(o, reply.msgs);
	nl_reply_free(&reply);
	return STATUS_OK;
}

enum status object_get(const struct object *o, int argc, char **argv,
		       void (*print)(const struct object *o,
				     const struct nlmsghdr *nlh))
{
	struct nlmsghdr *nlh;
	enum status status;
	uint32_t id;

	status = object_take(o, &argc, &argv, &id) ?: no_more(argc, argv);
	if (status)
		return status;
	nlh = nl_request(o->get, 0);
	mnl_attr_put_u32(nlh, o->id_attr, id);
	return talk(o, nlh, print);
}

enum status object_show(const struct object *o, int argc, char **argv)
{
	return object_get(o, argc, argv, print_one);
}

enum status object_change(const struct object *o, uint8_t cmd, uint32_t id,
			  const struct keyword *keywords,
			  const struct value *values)
{
	struct nlmsghdr *nlh = nl_request(cmd, 0);

	mnl_attr_put_u32(nlh, o->id_attr, id);
	if (keywords)
		put_words(nlh, keywords, values);
	return talk(o, nlh, NULL);
}

enum status object_set(const struct object *o, uint8_t cmd,
		       const struct keyword *keywords, int argc, char **argv)
{
	struct value values[WORDS_MAX];
	enum status status;
	uint32_t id;

	status = object_take(o, &argc, &argv, &id) ?:
		 read_words(keywords, argc, argv, values);
	return status ?: object_change(o, cmd, id, keywords, values);
}

enum status object_del(const struct object *o, uint8_t cmd, int argc,
		       char **argv)
{
	enum status status;
	uint32_t id;

	status = object_take(o, &argc, &argv, &id) ?: no_more(argc, argv);
	return status ?: object_change(o, cmd, id, NULL, NULL);
}
