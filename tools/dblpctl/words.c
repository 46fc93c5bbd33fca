// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keywords and values after a verb.
 */

#include <inttypes.h>
#include <linux/dblp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "prefix.h"
#include "units.h"
#include "words.h"

/* Print a message if @wrong, the result of a parser, is not NULL */
static enum status judge(const char *word, const char *wrong)
{
	return wrong ? usage_error("'%s' %s", word, wrong) : STATUS_OK;
}

enum status read_share(const struct keyword *k, const char *word,
		       struct value *v)
{
	(void)k;
	return judge(word, dblp_share_parse(word, &v->n));
}

enum status read_ms(const struct keyword *k, const char *word,
		    struct value *v)
{
	(void)k;
	return judge(word, dblp_time_parse(word, &v->n));
}

enum status read_ratio(const struct keyword *k, const char *word,
		       struct value *v)
{
	(void)k;
	return judge(word, dblp_ratio_parse(word, &v->n));
}

enum status read_number(const struct keyword *k, const char *word,
			struct value *v)
{
	if (!is_number(word, &v->n))
		return usage_error("'%s' is not %s", word, k->needs);
	return STATUS_OK;
}

enum status read_user(const struct keyword *k, const char *word,
		      struct value *v)
{
	const struct passwd *user = getpwnam(word);

	if (!user)
		return read_number(k, word, v);
	v->n = user->pw_uid;
	return STATUS_OK;
}

enum status read_enum(const struct keyword *k, const char *word,
		      struct value *v)
{
	for (v->n = 0; k->names[v->n]; v->n++)
		if (is_prefix(word, k->names[v->n]))
			return STATUS_OK;
	return usage_error("'%s' is not %s", word, k->needs);
}

enum status read_name(const struct keyword *k, const char *word,
		      struct value *v)
{
	(void)k;
	v->text = word;
	if (strlen(word) < DBLP_NAME_MAX)
		return STATUS_OK;
	return usage_error("'%.*s...' is too long for a name: %d characters at most",
			   DBLP_NAME_MAX, word, DBLP_NAME_MAX - 1);
}

enum status read_name_or_none(const struct keyword *k, const char *word,
			      struct value *v)
{
	return read_name(k, strcmp(word, "-") ? word : "", v);
}

enum status read_prefix(const struct keyword *k, const char *word,
			struct value *v)
{
	struct prefix prefix;

	(void)k;
	v->text = word;
	return judge(word, parse_prefix(word, &prefix));
}

bool is_inherit(const char *word, struct value *v)
{
	v->n = DBLP_INHERIT;
	return !strcmp(word, "inherit");
}

enum status read_own_share(const struct keyword *k, const char *word,
			   struct value *v)
{
	return is_inherit(word, v) ? STATUS_OK : read_share(k, word, v);
}

/* Names of all keywords: "loss, cap or phase" */
static const char *all_names(const struct keyword *keywords)
{
	static char text[128];
	const struct keyword *k;
	size_t n = 0;

	for (k = keywords; k->name; k++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s",
				      k == keywords ? "" :
				      k[1].name ? ", " : " or ", k->name);
	return text;
}

enum status read_words(const struct keyword *keywords, int argc, char **argv,
		       struct value values[WORDS_MAX])
{
	enum status status = STATUS_OK;
	const struct keyword *k;
	struct value *v;

	memset(values, 0, WORDS_MAX * sizeof(*values));
	if (!argc)
		return usage_error("nothing to set: %s", all_names(keywords));
	for (; !status && argc > 0; argc -= 2, argv += 2) {
		for (k = keywords; k->name && !is_prefix(argv[0], k->name); k++)
			;
		if (!k->name)
			return usage_error("'%s' is not %s", argv[0],
					   all_names(keywords));
		v = &values[k - keywords];
		if (v->given)
			return usage_error("'%s' is given twice", argv[0]);
		if (argc < 2)
			return usage_error("'%s' needs %s", argv[0], k->needs);
		v->given = true;
		status = k->read(k, argv[1], v);
	}
	return status;
}

void put_words(struct nlmsghdr *nlh, const struct keyword *keywords,
	       const struct value values[WORDS_MAX])
{
	int i;

	for (i = 0; keywords[i].name; i++) {
		if (!values[i].given)
			continue;
		if (values[i].text)
			mnl_attr_put_strz(nlh, keywords[i].attr,
					  values[i].text);
		else
			mnl_attr_put_u32(nlh, keywords[i].attr, values[i].n);
	}
}

static enum status write_word(FILE *to, const struct keyword *k, uint32_t n)
{
	const char *name = NULL;
	char text[DBLP_VALUE_TEXT];

	if (k->read == read_enum)
		name = enum_name(k->names, n);
	if (k->read == read_enum && !name) {
		complain("%s: this dblpctl does not know value %" PRIu32,
			 k->name, n);
		return STATUS_FAILED;
	}
	if (k->read == read_share || k->read == read_own_share)
		dblp_share_format(n, text);
	else if (k->read == read_ratio)
		dblp_ratio_format(n, text);
	else if (k->read == read_ms)
		dblp_time_format(n, text);
	else if (k->read == read_enum)
		snprintf(text, sizeof(text), "%s", name);
	else
		snprintf(text, sizeof(text), "%" PRIu32, n);
	fprintf(to, " %s %s", k->name, text);
	return STATUS_OK;
}

enum status write_words(FILE *to, const struct keyword *keywords,
			const struct values *v)
{
	enum status status = STATUS_OK;
	const struct keyword *k;

	for (k = keywords; !status && k->name; k++) {
		if (!v->tb[k->attr] && k->read == read_own_share)
			fprintf(to, " %s inherit", k->name);
		if (!v->tb[k->attr])
			continue;
		if (k->read != read_name && k->read != read_name_or_none)
			status = write_word(to, k, get_u32(v, k->attr));
		else
			fprintf(to, " %s %s", k->name,
				*get_string(v, k->attr) ?
				get_string(v, k->attr) : "-");
	}
	return status;
}
