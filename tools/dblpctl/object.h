/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects of the kernel that have numbers: sockets, phases and jobs.
 *
 * The verbs are the same for all kinds; struct object has the differences.
 */
#ifndef DBLPCTL_OBJECT_H
#define DBLPCTL_OBJECT_H

#include <libmnl/libmnl.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd.h"
#include "field.h"
#include "words.h"

/**
 * struct object - a kind of object
 * @name: name of the kind, for messages
 * @attr_names: names of its netlink attributes, by attribute
 * @attr_max: highest attribute
 * @id_attr: attribute of the object's number
 * @name_attr: attribute of the object's name, 0 if objects have no names
 * @owned: objects of other users are visible with CAP_NET_ADMIN only
 * @get: command that gets one object, or dumps all
 * @prepare: called before objects are printed, to read other data for @fields;
 *	optional
 * @fields: values to show
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
 * object_find() - find the number of an object
 * @o: kind
 * @word: number or name of the object
 * @id: filled
 *
 * The lookup of a name sends a request and overwrites the buffer of nl_request(). An
 * object given by number need not exist.
 */
enum status object_find(const struct object *o, const char *word,
			uint32_t *id);

/** object_take() - remove the first word and find its object, as object_find() */
enum status object_take(const struct object *o, int *argc, char ***argv,
			uint32_t *id);

/** object_list() - print all objects; @argc must be 0 */
enum status object_list(const struct object *o, int argc, char **argv);

/**
 * object_list_if() - print some objects
 * @o: kind
 * @wanted: shall the object with these values be printed? NULL: all
 * @arg: argument of @wanted
 */
enum status object_list_if(const struct object *o,
			   bool (*wanted)(const struct values *v,
					  const void *arg),
			   const void *arg);

/** object_get() - call @print with the message of the object that the words name */
enum status object_get(const struct object *o, int argc, char **argv,
		       enum status (*print)(const struct object *o,
					    const struct nlmsghdr *nlh));

/** object_show() - print the object that the words name */
enum status object_show(const struct object *o, int argc, char **argv);

/**
 * object_change() - send a command for an object
 * @o: kind
 * @cmd: DBLP_CMD_...
 * @id: number of the object
 * @keywords: settings that the command has, or NULL
 * @values: values of @keywords, by keyword
 */
enum status object_change(const struct object *o, uint8_t cmd, uint32_t id,
			  const struct keyword *keywords,
			  const struct value *values);

/** object_set() - object_change() of the object in the first word, with settings */
enum status object_set(const struct object *o, uint8_t cmd,
		       const struct keyword *keywords, int argc, char **argv);

/** object_add() - object_change() of the number in the first word, with settings if any */
enum status object_add(const struct object *o, uint8_t cmd,
		       const struct keyword *keywords, int argc, char **argv);

/** object_del() - object_change() of the object in the only word */
enum status object_del(const struct object *o, uint8_t cmd, int argc,
		       char **argv);

/**
 * object_flush() - delete all objects that are neither in use nor tracked
 * @o: kind
 * @del: command that deletes an object
 * @argc: number of words, must be 0
 * @argv: words
 */
enum status object_flush(const struct object *o, uint8_t del, int argc,
			 char **argv);

/**
 * object_track() - start or stop recording the objects that commands set or add
 * @on: true: start; false: stop, and free the records
 *
 * Records point to the names in the command lines, which must stay valid.
 */
void object_track(bool on);

/**
 * object_free_names() - rename objects whose names will be given to tracked objects
 * @o: kind
 * @set: command that changes an object
 */
enum status object_free_names(const struct object *o, uint8_t set);

/**
 * object_each() - call @each for each object until a call fails
 * @o: kind
 * @each: may send requests
 * @arg: argument of @each
 *
 * Return: STATUS_OK, the first error, or STATUS_TORN, see nl_talk().
 */
enum status object_each(const struct object *o,
			enum status (*each)(const struct values *v, void *arg),
			void *arg);

#endif /* DBLPCTL_OBJECT_H */
