// SPDX-License-Identifier: GPL-2.0-only
/*
 * Output as text and JSON.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "err.h"
#include "print.h"

#define COLUMNS_MAX	32

static bool json, pretty, timestamps, in_array, on_line;
/* Maximum length of a table's lines, -1: unlimited */
static int line_max = -1;
/* JSON: number of open levels; does the innermost have a value yet? */
static int depth;
static bool begun;

/*
 * A table is buffered until its end, because the widths of its columns depend on all
 * rows. All objects of an array have the same values; the first gives the headings.
 */
static struct {
	unsigned int	columns;
	const char	*heading[COLUMNS_MAX];
	bool		number[COLUMNS_MAX];
	char		**cells;
	size_t		n_cells;
	size_t		n_rows;
} table;

static void json_separate(void)
{
	if (begun)
		putchar(',');
	if (pretty && depth)
		printf("\n%*s", 4 * depth, "");
	begun = true;
}

static void json_open(char bracket)
{
	json_separate();
	putchar(bracket);
	depth++;
	begun = false;
}

static void json_close(char bracket)
{
	depth--;
	if (pretty && begun)
		printf("\n%*s", 4 * depth, "");
	putchar(bracket);
	begun = true;
}

/* Replace unprintable bytes by escapes such as \x1b, to protect the terminal */
static char *printable(const char *text)
{
	char *clean = checked(malloc(4 * strlen(text) + 1)), *to = clean;

	for (; *text; text++) {
		if (*text >= ' ' && *text <= '~')
			*to++ = *text;
		else
			to += sprintf(to, "\\x%02x", (unsigned char)*text);
	}
	*to = '\0';
	return clean;
}

/* Decode the UTF-8 character at @s; sets @len to its bytes, 0 if it is invalid */
static uint32_t utf8_char(const char *s, int *len)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *at = (const unsigned char *)s;
	uint32_t c = at[0];
	int i, n;

	n = c < 0x80 ? 1 : c < 0xc0 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 :
	    c < 0xf8 ? 4 : 0;
	if (n > 1)
		c &= 0xffU >> (n + 1);
	for (i = 1; i < n && (at[i] & 0xc0) == 0x80; i++)
		c = c << 6 | (at[i] & 0x3f);
	*len = n && i >= n && c >= least[n] && c <= 0x10ffff &&
	       (c < 0xd800 || c > 0xdfff) ? n : 0;
	return c;
}

/* Print a JSON string in ASCII; invalid UTF-8 becomes replacement characters */
static void json_quoted(const char *s)
{
	uint32_t c;
	int len;

	putchar('"');
	for (; *s; s += len ?: 1) {
		c = utf8_char(s, &len);
		if (!len)
			c = 0xfffd;
		if (c == '"' || c == '\\')
			printf("\\%c", (char)c);
		else if (c >= ' ' && c <= '~')
			putchar((char)c);
		else if (c < 0x10000)
			printf("\\u%04x", c);
		else
			printf("\\u%04x\\u%04x", 0xd7c0 + (c >> 10),
			       0xdc00 + (c & 0x3ff));
	}
	putchar('"');
}

static void json_key(const char *key)
{
	json_separate();
	json_quoted(key);
	printf(pretty ? ": " : ":");
}

static void table_cell(const char *column, const char *text, bool number)
{
	if (!table.n_rows) {
		if (table.columns == COLUMNS_MAX)
			abort();
		table.number[table.columns] = number;
		table.heading[table.columns++] = column;
	}
	table.cells = checked(realloc(table.cells, (table.n_cells + 1) *
						   sizeof(*table.cells)));
	table.cells[table.n_cells++] = printable(text);
}

static void table_line(const char *const *cells, const int *width)
{
	char *line = NULL;
	unsigned int i;
	size_t len;
	FILE *to = checked(open_memstream(&line, &len));

	for (i = 0; i < table.columns; i++) {
		if (i)
			fputs("  ", to);
		/* Print no spaces at the end of a line */
		if (i + 1 == table.columns && !table.number[i])
			fputs(cells[i], to);
		else
			fprintf(to, "%*s", table.number[i] ? width[i] :
				-width[i], cells[i]);
	}
	checked(fclose(to) ? NULL : line);
	printf("%.*s\n", line_max, line);
	free(line);
}

static void table_flush(void)
{
	int width[COLUMNS_MAX], len;
	size_t i;

	for (i = 0; i < table.columns; i++)
		width[i] = (int)strlen(table.heading[i]);
	for (i = 0; i < table.n_cells; i++) {
		len = (int)strlen(table.cells[i]);
		if (len > width[i % table.columns])
			width[i % table.columns] = len;
	}

	if (table.n_rows)
		table_line(table.heading, width);
	for (i = 0; i < table.n_cells; i += table.columns)
		table_line((const char *const *)table.cells + i, width);

	for (i = 0; i < table.n_cells; i++)
		free(table.cells[i]);
	free(table.cells);
	memset(&table, 0, sizeof(table));
}

/* Print a value of an object on one line; omit an empty value */
static void line_value(const char *column, const char *text)
{
	char *clean;

	if (!column || !*text)
		return;
	if (begun)
		putchar(' ');
	begun = true;
	clean = printable(text);
	printf("%s%s%s", column, *column ? " " : "", clean);
	free(clean);
}

/* Print the text of a value: in a table, within a line, or on its own line */
static void text_value(struct heading h, const char *text, bool number)
{
	char label[32], *clean;
	size_t i;

	if (on_line) {
		line_value(h.column, text);
		return;
	}
	if (in_array) {
		if (h.column)
			table_cell(h.column, text, number);
		return;
	}
	if (!h.key)
		return;
	snprintf(label, sizeof(label), "%s", h.key);
	/* Text has the unit in the value */
	i = strlen(label);
	if (i > 3 && (!strcmp(label + i - 3, "_us") ||
		      !strcmp(label + i - 3, "_ms")))
		label[i - 3] = '\0';
	for (i = 0; label[i]; i++)
		if (label[i] == '_')
			label[i] = ' ';
	clean = printable(text);
	printf("%-24s%s\n", label, clean);
	free(clean);
}

void print_begin(bool want_json, bool want_pretty, bool want_timestamps)
{
	json = want_json;
	pretty = want_pretty;
	timestamps = want_timestamps;
	on_line = false;
	line_max = -1;
}

int print_end(void)
{
	if ((json || on_line) && begun)
		putchar('\n');
	begun = false;
	if (fflush(stdout) || ferror(stdout)) {
		complain("cannot write: %s", strerror(errno));
		return 1;
	}
	return 0;
}

void print_line(void)
{
	on_line = true;
}

void print_width(int columns)
{
	line_max = columns ?: -1;
}

void print_gap(void)
{
	if (!json)
		putchar('\n');
}

bool print_is_json(void)
{
	return json;
}

bool print_is_table(void)
{
	return !json && in_array;
}

void print_array(void)
{
	in_array = true;
	if (json)
		json_open('[');
}

void print_array_end(void)
{
	in_array = false;
	if (json)
		json_close(']');
	else
		table_flush();
}

void print_list(const char *key)
{
	if (!json)
		return;
	json_key(key);
	putchar('[');
	depth++;
	begun = false;
}

void print_list_end(void)
{
	if (json)
		json_close(']');
}

void print_object(void)
{
	if (json)
		json_open('{');
}

void print_object_end(void)
{
	if (json)
		json_close('}');
	else if (in_array)
		table.n_rows++;
}

void print_uint(struct heading h, uint64_t n, const char *text)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, n);
	if (!json) {
		text_value(h, text ?: digits, true);
	} else if (h.key) {
		json_key(h.key);
		fputs(digits, stdout);
	}
}

void print_bits(struct heading h, uint64_t n, const char *text)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, n);
	if (json)
		print_string(h, digits, NULL);
	else
		text_value(h, text ?: digits, true);
}

void print_bool(struct heading h, bool b)
{
	if (!json) {
		text_value(h, b ? "yes" : "no", false);
	} else if (h.key) {
		json_key(h.key);
		fputs(b ? "true" : "false", stdout);
	}
}

void print_real(struct heading h, double x)
{
	char digits[64];

	snprintf(digits, sizeof(digits), "%.1f", x);
	if (!json) {
		text_value(h, digits, true);
	} else if (h.key) {
		json_key(h.key);
		fputs(digits, stdout);
	}
}

void print_timestamp(void)
{
	const struct heading h = { "time", on_line ? "" : "TIME" };
	char date[32], zone[8], text[64];
	struct timeval now;

	if (!timestamps)
		return;
	gettimeofday(&now, NULL);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S",
		 localtime(&now.tv_sec));
	strftime(zone, sizeof(zone), "%z", localtime(&now.tv_sec));
	snprintf(text, sizeof(text), "%s.%06ld%s", date, (long)now.tv_usec,
		 zone);
	print_string(h, text, NULL);
}

void print_string(struct heading h, const char *s, const char *text)
{
	if (!json) {
		text_value(h, text ?: s, false);
	} else if (h.key) {
		json_key(h.key);
		json_quoted(s);
	}
}
