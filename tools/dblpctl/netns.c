// SPDX-License-Identifier: GPL-2.0-only
/*
 * Network namespaces.
 */

#include <errno.h>
#include <libdblp.h>
#include <string.h>

#include "err.h"
#include "netns.h"

static enum status failed(const char *name, int err)
{
	if (err == ENOENT)
		complain("there is no network namespace '%s' (see ip netns list)",
			 name);
	else if (err == EPERM)
		complain("no permission: entering network namespace '%s' needs CAP_SYS_ADMIN (sudo)",
			 name);
	else if (err == EINVAL)
		complain("'%s' is not a network namespace", name);
	else
		complain("cannot enter network namespace '%s': %s", name,
			 strerror(err));
	return STATUS_FAILED;
}

const char *netns_name;

enum status netns_enter(const char *name)
{
	int err;

	if (!*name)
		return usage_error("a network namespace needs a name");
	err = dblp_netns_enter(name);
	netns_name = name;
	return err ? failed(name, -err) : STATUS_OK;
}
