// SPDX-License-Identifier: GPL-2.0-only
/*
 * Findings of dblpctl doctor, and what its checks share.
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "finding.h"
#include "print.h"

bool found_bad;

void doctor_says(enum verdict verdict, const char *check, const char *command,
		 const char *fmt, ...)
{
	static const char *const names[] = { "ok", "note", "BAD" };
	static const char *const keys[] = { "ok", "note", "bad" };
	static const struct heading result = { "result", "RESULT" };
	static const struct heading what = { "check", "CHECK" };
	static const struct heading found = { "found", "FOUND" };
	static const struct heading mend = { "command", "FIX" };
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	found_bad |= verdict == VERDICT_BAD;
	print_object();
	print_string(result, keys[verdict], names[verdict]);
	print_string(what, check, NULL);
	print_string(found, text, NULL);
	print_string(mend, command, NULL);
	print_object_end();
}

bool read_line(const char *path, char *line, int size)
{
	FILE *f = fopen(path, "re");
	bool there;

	if (!f)
		return false;
	there = fgets(line, size, f);
	fclose(f);
	if (there)
		line[strcspn(line, "\n")] = '\0';
	return there;
}

void shell_quote(char *buf, size_t size, const char *word)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-";
	size_t n;

	if (*word && strspn(word, plain) == strlen(word)) {
		snprintf(buf, size, "%s", word);
		return;
	}
	n = (size_t)snprintf(buf, size, "$'");
	for (; *word && n + sizeof("\\xff'") <= size; word++) {
		if (*word == '\'' || *word == '\\')
			n += (size_t)snprintf(buf + n, size - n, "\\%c", *word);
		else if (*word < ' ' || *word > '~')
			n += (size_t)snprintf(buf + n, size - n, "\\x%02x",
					      (unsigned char)*word);
		else
			buf[n++] = *word;
	}
	strcpy(buf + n, "'");
}
