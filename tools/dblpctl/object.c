// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sockets, phases and jobs: what the kernel has many of, each with a number.
 */

#include <errno.h>
#include <stdio.h>
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

typedef enum status each_fn(const struct object *o, const struct values *v,
			    void *arg);

/* Calls @each for each object of a dump, until one call fails */
static enum status walk(const struct object *o, const struct nl_reply *reply,
			each_fn *each, void *arg)
{
	const struct nlattr *tb[o->attr_max + 1];
	struct values v = { o->attr_names, tb };
	enum status status = STATUS_OK;
	const struct nlmsghdr *msg;
	int left = (int)reply->len;

	for (msg = reply->msgs; !status && mnl_nlmsg_ok(msg, left);
	     msg = mnl_nlmsg_next(msg, &left)) {
		nl_attrs(msg, tb, o->attr_max);
		status = each(o, &v, arg);
	}
	return status;
}

static enum status for_each(const struct object *o, each_fn *each, void *arg)
{
	struct nl_reply reply;
	enum status status;

	if (nl_talk(nl_request(o->get, NLM_F_DUMP), o->attr_names, o->attr_max,
		    &reply))
		return STATUS_FAILED;
	status = walk(o, &reply, each, arg);
	nl_reply_free(&reply);
	return status;
}

/* A search by name, and its result */
struct search {
	const char	*name;
	uint32_t	id;
	bool		found;
};

static enum status compare_one(const struct object *o, const struct values *v,
			       void *arg)
{
	struct search *search = arg;

	if (!search->found && !strcmp(get_string(v, o->name_attr),
				      search->name)) {
		search->id = get_u32(v, o->id_attr);
		search->found = true;
	}
	return STATUS_OK;
}

static enum status find_name(const struct object *o, const char *name,
			     uint32_t *id)
{
	struct search search = { .name = name };
	enum status status = STATUS_OK;

	/* An empty name does not match objects without a name */
	if (*name)
		status = for_each(o, compare_one, &search);
	if (status)
		return status;
	if (!search.found) {
		usage_error("no %s is called '%s' (see dblpctl %s list)",
			    o->name, name, o->name);
		return STATUS_FAILED;
	}
	*id = search.id;
	return STATUS_OK;
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

/* Which objects a list shows */
struct choice {
	bool		(*wanted)(const struct values *v, const void *arg);
	const void	*arg;
};

static enum status list_one(const struct object *o, const struct values *v,
			    void *arg)
{
	const struct choice *choice = arg;

	if (!choice->wanted || choice->wanted(v, choice->arg))
		print_fields(o->fields, o->n_fields, v);
	return STATUS_OK;
}

enum status object_list_if(const struct object *o,
			   bool (*wanted)(const struct values *v,
					  const void *arg),
			   const void *arg)
{
	struct choice choice = { wanted, arg };
	struct nl_reply reply;

	if (nl_talk(nl_request(o->get, NLM_F_DUMP), o->attr_names, o->attr_max,
		    &reply))
		return STATUS_FAILED;
	print_array();
	walk(o, &reply, list_one, &choice);
	print_array_end();
	nl_reply_free(&reply);
	return STATUS_OK;
}

enum status object_list(const struct object *o, int argc, char **argv)
{
	return no_more(argc, argv) ?: object_list_if(o, NULL, NULL);
}

/* Sends a request about an object; prints the reply unless @print is NULL */
static enum status talk(const struct object *o, struct nlmsghdr *nlh,
			void (*print)(const struct object *o,
				      const struct nlmsghdr *nlh))
{
	struct nl_reply reply;

	if (nl_talk(nlh, o->attr_names, o->attr_max, &reply))
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

bool object_exists(const struct object *o, uint32_t id)
{
	struct nlmsghdr *nlh = nl_request(o->get, 0);
	int refused;

	mnl_attr_put_u32(nlh, o->id_attr, id);
	return !nl_try(nlh, &refused) && !refused;
}

/* The words for a new object: its number, and perhaps keywords */
static enum status read_new(const struct object *o,
			    const struct keyword *keywords, int argc,
			    char **argv, uint32_t *id,
			    struct value values[WORDS_MAX])
{
	if (!argc)
		return usage_error("a new %s needs a number", o->name);
	if (parse_id(argv[0], id))
		return usage_error("'%s' is not a number for a %s", argv[0],
				   o->name);
	if (argc == 1)
		return STATUS_OK;
	return read_words(keywords, argc - 1, argv + 1, values);
}

enum status object_add(const struct object *o, uint8_t cmd,
		       const struct keyword *keywords, int argc, char **argv)
{
	struct value values[WORDS_MAX] = { 0 };
	enum status status;
	uint32_t id;

	status = read_new(o, keywords, argc, argv, &id, values);
	return status ?: object_change(o, cmd, id, keywords, values);
}

enum status object_replace(const struct object *o, uint8_t add, uint8_t set,
			   const struct keyword *keywords, int argc,
			   char **argv)
{
	struct value values[WORDS_MAX] = { 0 };
	enum status status;
	uint32_t id;

	status = read_new(o, keywords, argc, argv, &id, values);
	if (status)
		return status;
	if (!object_exists(o, id))
		return object_change(o, add, id, keywords, values);
	return argc > 1 ? object_change(o, set, id, keywords, values) :
			  STATUS_OK;
}

static enum status flush_one(const struct object *o, const struct values *v,
			     void *arg)
{
	const uint8_t *del = arg;
	struct nlmsghdr *nlh;
	int refused;

	nlh = nl_request(*del, 0);
	mnl_attr_put_u32(nlh, o->id_attr, get_u32(v, o->id_attr));
	if (nl_try(nlh, &refused))
		return STATUS_FAILED;
	if (!refused || refused == EBUSY || refused == ENOENT)
		return STATUS_OK;
	/* Repeat it to print the reason */
	return object_change(o, *del, get_u32(v, o->id_attr), NULL, NULL);
}

enum status object_flush(const struct object *o, uint8_t del, int argc,
			 char **argv)
{
	return no_more(argc, argv) ?: for_each(o, flush_one, &del);
}

static enum status save_one(const struct object *o, const struct values *v,
			    void *arg)
{
	void (**write)(const struct values *v) = arg;

	(void)o;
	(*write)(v);
	return STATUS_OK;
}

enum status object_save(const struct object *o,
			void (*write)(const struct values *v))
{
	return for_each(o, save_one, &write);
}
