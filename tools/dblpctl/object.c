// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects of the kernel that have numbers: sockets, phases and jobs.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "nl.h"
#include "object.h"
#include "print.h"
#include "units.h"

static enum status prepare(const struct object *o)
{
	return o->prepare ? o->prepare() : STATUS_OK;
}

static enum status print_one(const struct object *o, const struct nlmsghdr *nlh)
{
	const struct nlattr *tb[o->attr_max + 1];
	struct values v = { o->attr_names, tb };
	enum status status = prepare(o);

	if (status)
		return status;
	nl_attrs(nlh, tb, o->attr_max);
	print_fields(o->fields, o->n_fields, &v);
	return STATUS_OK;
}

typedef enum status each_fn(const struct object *o, const struct values *v,
			    void *arg);

/* Call @each for each object of a dump until a call fails */
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
	if (reply.torn)
		status = status ?: STATUS_TORN;
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

/* Say if the object may exist but be invisible to this user */
static enum status not_found(const struct object *o, const char *name)
{
	bool sees_all = true;

	if (o->owned && nl_see_right(&sees_all))
		return STATUS_FAILED;
	if (sees_all)
		complain("no %s is called '%s' (see dblpctl %s list)", o->name,
			 name, o->name);
	else
		complain("you have no %s called '%s': to see those of other users you need CAP_NET_ADMIN in the network namespace (sudo)",
			 o->name, name);
	return STATUS_FAILED;
}

static enum status find_name(const struct object *o, const char *name,
			     uint32_t *id)
{
	struct search search = { .name = name };
	enum status status = STATUS_OK;

	/* An empty name does not match objects without a name */
	if (*name)
		status = for_each(o, compare_one, &search);
	if (status && !search.found)
		return status;
	if (!search.found)
		return not_found(o, name);
	*id = search.id;
	return STATUS_OK;
}

/* No object has this number */
#define NO_ID	UINT32_MAX

enum status object_find(const struct object *o, const char *word,
			uint32_t *id)
{
	/* A word that begins with a digit is a number: names do not */
	if (o->name_attr && (*word < '0' || *word > '9')) {
		/* An earlier command of the batch may give this name to an object */
		*id = NO_ID;
		return only_reading ? STATUS_OK : find_name(o, word, id);
	}
	if (is_number(word, id))
		return STATUS_OK;
	return usage_error("'%s' is not the number of a %s%s", word, o->name,
			   o->name_attr ? "" : ", such as 0x1f or 31");
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

/* Filter of a list */
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
	enum status status;

	if (only_reading)
		return STATUS_OK;
	if (nl_talk(nl_request(o->get, NLM_F_DUMP), o->attr_names, o->attr_max,
		    &reply))
		return STATUS_FAILED;
	status = prepare(o);
	if (!status) {
		print_array();
		walk(o, &reply, list_one, &choice);
		print_array_end();
	}
	if (reply.torn)
		status = status ?: STATUS_TORN;
	nl_reply_free(&reply);
	return status;
}

enum status object_list(const struct object *o, int argc, char **argv)
{
	return no_more(argc, argv) ?: object_list_if(o, NULL, NULL);
}

/* Send a request about an object; print the reply unless @print is NULL */
static enum status talk(const struct object *o, struct nlmsghdr *nlh,
			enum status (*print)(const struct object *o,
					     const struct nlmsghdr *nlh))
{
	enum status status = STATUS_OK;
	struct nl_reply reply;

	if (nl_talk(nlh, o->attr_names, o->attr_max, &reply))
		return STATUS_FAILED;
	if (print)
		status = print(o, reply.msgs);
	nl_reply_free(&reply);
	return status;
}

enum status object_get(const struct object *o, int argc, char **argv,
		       enum status (*print)(const struct object *o,
					    const struct nlmsghdr *nlh))
{
	struct nlmsghdr *nlh;
	enum status status;
	uint32_t id;

	status = object_take(o, &argc, &argv, &id) ?: no_more(argc, argv);
	if (status || only_reading)
		return status;
	nlh = nl_request(o->get, 0);
	mnl_attr_put_u32(nlh, o->id_attr, id);
	return talk(o, nlh, print);
}

enum status object_show(const struct object *o, int argc, char **argv)
{
	return object_get(o, argc, argv, print_one);
}

/* Objects of a restored state, see object_track() */
static struct {
	bool		on;
	size_t		n;
	struct tracked {
		const struct object	*o;
		uint32_t		id;
		const char		*name;
	} *all;
} tracked;

void object_track(bool on)
{
	free(tracked.all);
	memset(&tracked, 0, sizeof(tracked));
	tracked.on = on;
}

static bool is_tracked(const struct object *o, uint32_t id)
{
	size_t i;

	for (i = 0; i < tracked.n; i++)
		if (tracked.all[i].o == o && tracked.all[i].id == id)
			return true;
	return false;
}

/* Will a tracked object other than @id get this name? */
static bool name_is_taken(const struct object *o, uint32_t id,
			  const char *name)
{
	const struct tracked *t;

	/* The empty name is not unique */
	for (t = tracked.all; *name && t < tracked.all + tracked.n; t++)
		if (t->o == o && t->id != id && !strcmp(t->name, name))
			return true;
	return false;
}

static const char *given_name(const struct object *o,
			      const struct keyword *keywords,
			      const struct value *values)
{
	const struct keyword *k;

	for (k = keywords; o->name_attr && k->name; k++)
		if (k->attr == o->name_attr && values[k - keywords].given)
			return values[k - keywords].text;
	return "";
}

static void track(const struct object *o, uint32_t id,
		  const struct keyword *keywords, const struct value *values)
{
	if (!tracked.on || id == NO_ID || is_tracked(o, id))
		return;
	tracked.all = checked(realloc(tracked.all, (tracked.n + 1) *
						   sizeof(*tracked.all)));
	tracked.all[tracked.n++] = (struct tracked){
		o, id, given_name(o, keywords, values)
	};
}

enum status object_change(const struct object *o, uint8_t cmd, uint32_t id,
			  const struct keyword *keywords,
			  const struct value *values)
{
	struct nlmsghdr *nlh;

	if (keywords)
		track(o, id, keywords, values);
	if (only_reading)
		return STATUS_OK;
	nlh = nl_request(cmd, 0);
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

/* Parse the words of a new object: a number, and settings if any */
static enum status read_new(const struct object *o,
			    const struct keyword *keywords, int argc,
			    char **argv, uint32_t *id,
			    struct value values[WORDS_MAX])
{
	if (!argc)
		return usage_error("a new %s needs a number", o->name);
	if (!is_number(argv[0], id))
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

/* Delete an object unless it is in use or tracked */
static enum status flush_one(const struct object *o, const struct values *v,
			     void *arg)
{
	const uint8_t *del = arg;
	struct nlmsghdr *nlh;
	int refused;

	if (is_tracked(o, get_u32(v, o->id_attr)))
		return STATUS_OK;
	nlh = nl_request(*del, 0);
	mnl_attr_put_u32(nlh, o->id_attr, get_u32(v, o->id_attr));
	if (nl_try(nlh, &refused))
		return STATUS_FAILED;
	if (!refused || refused == EBUSY || refused == ENOENT)
		return STATUS_OK;
	/* Repeat the request to print the reason */
	return object_change(o, *del, get_u32(v, o->id_attr), NULL, NULL);
}

enum status object_flush(const struct object *o, uint8_t del, int argc,
			 char **argv)
{
	enum status status = no_more(argc, argv);

	if (status || only_reading)
		return status;
	/* Without the right, objects of other users would be skipped silently */
	if (nl_need_right())
		return STATUS_FAILED;
	return for_each(o, flush_one, &del);
}

/* Rename an object whose name a tracked object will get */
static enum status free_name(const struct object *o, const struct values *v,
			     void *arg)
{
	const uint8_t *set = arg;
	uint32_t id = get_u32(v, o->id_attr);
	struct nlmsghdr *nlh;
	char name[16];

	if (!name_is_taken(o, id, get_string(v, o->name_attr)))
		return STATUS_OK;
	snprintf(name, sizeof(name), "was-%" PRIu32, id);
	nlh = nl_request(*set, 0);
	mnl_attr_put_u32(nlh, o->id_attr, id);
	mnl_attr_put_strz(nlh, o->name_attr, name);
	return talk(o, nlh, NULL);
}

enum status object_free_names(const struct object *o, uint8_t set)
{
	return for_each(o, free_name, &set);
}

struct call {
	enum status	(*each)(const struct values *v, void *arg);
	void		*arg;
};

static enum status call_one(const struct object *o, const struct values *v,
			    void *arg)
{
	const struct call *call = arg;

	(void)o;
	return call->each(v, call->arg);
}

enum status object_each(const struct object *o,
			enum status (*each)(const struct values *v, void *arg),
			void *arg)
{
	struct call call = { each, arg };

	return for_each(o, call_one, &call);
}
