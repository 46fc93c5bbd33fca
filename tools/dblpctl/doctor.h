/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What dblpctl doctor finds.
 */
#ifndef DBLPCTL_DOCTOR_H
#define DBLPCTL_DOCTOR_H

#include <libdblp.h>
#include <stdbool.h>

/* Only VERDICT_BAD makes the exit status 1 */
enum verdict {
	VERDICT_OK,
	VERDICT_NOTE,
	VERDICT_BAD,
};

/**
 * doctor_says() - print a finding
 * @verdict: how severe it is
 * @check: a word for what was checked
 * @command: what fixes it, "" if nothing needs to be fixed
 * @fmt: what was found
 */
void doctor_says(enum verdict verdict, const char *check, const char *command,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/**
 * read_line() - the first line of a file
 * @path: of the file
 * @line: filled, without the end of the line
 * @size: of @line
 *
 * Return: false if there is none.
 */
bool read_line(const char *path, char *line, int size);

/**
 * shell_quote() - a word of a command, as it is to be typed
 * @buf: filled; a word that is too long for it is cut off within its quotes
 * @size: of @buf, at least 8
 * @word: any bytes; what is not printable becomes $'\\x1b'
 */
void shell_quote(char *buf, size_t size, const char *word);

/**
 * check_module() - is the module loaded, and is it the one that belongs here?
 *
 * Return: true if it is loaded.
 */
bool check_module(void);

/** check_devices() - offloads and queues of all devices that are up */
void check_devices(void);

/**
 * check_peer() - MTU of the path to a peer, and whether UDP gets through
 * @addr: with the UDP port on which it listens, 0 if that is not to be checked
 * @address: the same, as the user typed it
 */
void check_peer(const struct sockaddr_dblp *addr, const char *address);

#endif /* DBLPCTL_DOCTOR_H */
