/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Findings of dblpctl doctor, and what its checks share.
 */
#ifndef DBLPCTL_FINDING_H
#define DBLPCTL_FINDING_H

#include <stdbool.h>
#include <stddef.h>

/* Only VERDICT_BAD makes the exit status 1 */
enum verdict {
	VERDICT_OK,
	VERDICT_NOTE,
	VERDICT_BAD,
};

/** found_bad - a finding was VERDICT_BAD */
extern bool found_bad;

/**
 * doctor_says() - print a finding
 * @verdict: severity
 * @check: name of the check
 * @command: command that fixes the finding, or ""
 * @fmt: description of the finding
 */
void doctor_says(enum verdict verdict, const char *check, const char *command,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/**
 * read_line() - read the first line of a file
 * @path: path of the file
 * @line: filled, without the newline
 * @size: size of @line
 *
 * Return: false if the file cannot be read or is empty.
 */
bool read_line(const char *path, char *line, int size);

/**
 * shell_quote() - quote a word of a command for bash
 * @buf: filled; a word that is too long is truncated within its quotes
 * @size: size of @buf, at least 8
 * @word: any bytes; an unprintable byte becomes $'\\x1b'
 */
void shell_quote(char *buf, size_t size, const char *word);

#endif /* DBLPCTL_FINDING_H */
