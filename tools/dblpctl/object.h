/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sockets, phases and jobs: what the kernel has many of, each with a number.
 *
 * Every verb is the same for all of them; struct object has what differs.
 */
#ifndef DBLPCTL_OBJECT_H
#define DBLPCTL_OBJECT_H

#include <libmnl/libmnl.h>
#include <stddef.h>
#include <stdint.h>

#include "dblpctl.h"
#include "field.h"
#include "words.h"

/**
 * struct object - a kind of object
 * @name: for users
 * @attr_names: names of its attributes, by attribute
 * @attr_max: highest attribute
 * @id_attr: attribute with its number
 * @name_attr: attribute with its name, 0 if it has none
 * @owned: those of other users are not seen without CAP_NET_ADMIN
 * @get: command that gets one, or dumps all
 * @prepare: reads what @fields show beside the object, NULL for nothing; called before
 *	objects are printed
 * @fields: what is shown of it
 * @n_fields: number of @fields
 */
struct object {
	const char		*name;
	const char *const	*attr_names;
	uint16_t		attr_max;
	uint16_t		id_attr;
	uint16_t		name_attr;
	bool			owned;
	uint8_t			get;
	enum status		(*prepare)(void);
	const struct field	*fields;
	size_t			n_fields;
};

/**
 * object_find() - the number of an object
 * @o: kind
 * @word: its number or its name
 * @id: filled
 *
 * Looking up a name sends a request, so no other request may have been begun. The
 * object need not exist if @word is a number.
 */
enum status object_find(const struct object *o, const char *word,
			uint32_t *id);

/** object_take() - take an object from the words, as object_find() */
enum status object_take(const struct object *o, int *argc, char ***argv,
			uint32_t *id);

/** object_list() - print all; there must be no word left */
enum status object_list(const struct object *o, int argc, char **argv);

/**
 * object_list_if() - print some objects
 * @o: kind
 * @wanted: is an object to be printed?
 * @arg: for @wanted
 */
enum status object_list_if(const struct object *o,
			   bool (*wanted)(const struct values *v,
					  const void *arg),
			   const void *arg);

/** object_get() - call @print with the message about the object in the words */
enum status object_get(const struct object *o, int argc, char **argv,
		       enum status (*print)(const struct object *o,
					    const struct nlmsghdr *nlh));

/** object_show() - print the object in the words */
enum status object_show(const struct object *o, int argc, char **argv);

/**
 * object_change() - send a command about an object
 * @o: kind
 * @cmd: DBLP_CMD_...
 * @id: its number
 * @keywords: what can be set, NULL for nothing
 * @values: what is set, by keyword
 */
enum status object_change(const struct object *o, uint8_t cmd, uint32_t id,
			  const struct keyword *keywords,
			  const struct value *values);

/** object_set() - object_change() of an object, with keywords, in the words */
enum status object_set(const struct object *o, uint8_t cmd,
		       const struct keyword *keywords, int argc, char **argv);

/** object_add() - object_change() of a number in the words, then keywords if any */
enum status object_add(const struct object *o, uint8_t cmd,
		       const struct keyword *keywords, int argc, char **argv);

/** object_del() - object_change() of an object alone in the words */
enum status object_del(const struct object *o, uint8_t cmd, int argc,
		       char **argv);

/**
 * object_flush() - delete all objects that are not in use, nor tracked
 * @o: kind
 * @del: command that deletes one
 * @argc: no word may be left
 * @argv: words
 */
enum status object_flush(const struct object *o, uint8_t del, int argc,
			 char **argv);

/**
 * object_track() - from now on, keep in mind which objects are set or added
 * @on: false: forget them, and track no more
 *
 * Names that are set must stay where they are until then.
 */
void object_track(bool on);

/**
 * object_free_names() - rename objects whose names tracked ones are to have
 * @o: kind
 * @set: command that changes one
 */
enum status object_free_names(const struct object *o, uint8_t set);

/**
 * object_each() - call @each for each object, until one call fails
 * @o: kind
 * @each: may send requests
 * @arg: for @each
 *
 * Return: also STATUS_TORN, see nl_talk().
 */
enum status object_each(const struct object *o,
			enum status (*each)(const struct values *v, void *arg),
			void *arg);

#endif /* DBLPCTL_OBJECT_H */
