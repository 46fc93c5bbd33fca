/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checks of dblpctl doctor.
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

/**
 * check_module() - check that the right module is loaded
 *
 * Return: true if the module is loaded.
 */
bool check_module(void);

/** check_devices() - check offloads and queues of all devices that are up */
void check_devices(void);

/**
 * check_peer() - check the route and path MTU to a peer, and its port
 * @addr: address of the peer, and UDP port to connect to, or 0
 * @address: the address as the user typed it
 */
void check_peer(const struct sockaddr_dblp *addr, const char *address);

#endif /* DBLPCTL_DOCTOR_H */
