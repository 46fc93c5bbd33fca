// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl doctor: finds misconfigurations, and commands that fix them.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dblpctl.h"
#include "doctor.h"
#include "finding.h"
#include "print.h"
#include "units.h"

/* Packets; the kernel's default */
#define BACKLOG_MIN	1000
/* Bytes; SO_RCVBUF and SO_SNDBUF of programs with large messages */
#define BUFFER_MIN	(4 << 20)

/* Check a sysctl, if this namespace has it */
static void check_sysctl(const char *name, unsigned long least,
			 enum verdict verdict, const char *why)
{
	char path[128], line[64], command[128];
	unsigned long value;

	snprintf(path, sizeof(path), "/proc/sys/net/core/%s", name);
	if (!read_line(path, line, sizeof(line)))
		return;
	value = strtoul(line, NULL, 10);
	snprintf(command, sizeof(command), "sudo sysctl -w net.core.%s=%lu",
		 name, least);
	if (value >= least)
		doctor_says(VERDICT_OK, name, "", "%lu", value);
	else
		doctor_says(verdict, name, command, "%lu: %s", value, why);
}

static void check_host(void)
{
	check_sysctl("netdev_max_backlog", BACKLOG_MIN, VERDICT_BAD,
		     "bursts are dropped before they reach a socket");
	check_sysctl("rmem_max", BUFFER_MIN, VERDICT_NOTE,
		     "SO_RCVBUF is limited to this");
	check_sysctl("wmem_max", BUFFER_MIN, VERDICT_NOTE,
		     "SO_SNDBUF is limited to this");
}

static enum status examine(const char *peer, unsigned int port)
{
	struct sockaddr_dblp addr;
	const char *wrong = peer ? dblp_addr_alone(peer, &addr) : NULL;

	if (wrong)
		return usage_error("'%s' %s", peer, wrong);
	if (peer && addr.sdblp_scope_id)
		return usage_error("'%s' has a scope", peer);
	if (only_reading)
		return STATUS_OK;
	print_array();
	if (check_module()) {
		check_kernel();
		check_host();
		check_devices();
		if (peer) {
			addr.sdblp_port = htons((uint16_t)port);
			check_peer(&addr, peer);
		}
	}
	print_array_end();
	return found_bad ? STATUS_FAILED : STATUS_OK;
}

static enum status do_help(int argc, char **argv)
{
	return show_help(argc, argv,
		"Usage: dblpctl [OPTION...] doctor [ADDRESS [PORT]]\n"
		"\n"
		"Checks the module, the devices of this network namespace and limits of the kernel,\n"
		"and prints a command that fixes a problem where possible. With the ADDRESS of a\n"
		"peer it checks whether packets of full size reach the peer, and with a PORT\n"
		"whether a program accepts connections there. The exit status is 1 if a result\n"
		"is BAD.");
}

enum status do_doctor(int argc, char **argv)
{
	enum status status;
	uint32_t port = 0;

	if (!argc)
		return examine(NULL, 0);
	if (is_prefix(argv[0], "help"))
		return do_help(argc - 1, argv + 1);
	if (argc > 1 && (!is_number(argv[1], &port) || !port || port > 65535))
		return usage_error("'%s' is not a port", argv[1]);
	status = argc > 2 ? no_more(argc - 2, argv + 2) : STATUS_OK;
	return status ?: examine(argv[0], port);
}
