// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl doctor: known faults of kernels.
 */

#include <linux/dblp_netlink.h>
#include <stdint.h>
#include <stdio.h>

#include "doctor.h"
#include "field.h"
#include "finding.h"
#include "names.h"
#include "nl.h"

#define KERNEL(major, minor, patch) \
	((uint32_t)(major) << 16 | (uint32_t)(minor) << 8 | (patch))

/*
 * Kernels whose UDP GSO wrote a wrong length into the last segment of a train of
 * equal segments, or a wrong checksum, before some devices. Linux 7.0 brought the
 * fault (commit b10b446ce7ad), and 7.0.11 has two fixes (78effd896eee, 5f17ae0f595a).
 * Reports name all kernels up to 7.1.4.
 */
#define GSO_FAULT_FIRST	KERNEL(7, 0, 0)
#define GSO_FAULT_FIXED	KERNEL(7, 1, 5)

/* Version of a release such as "7.1.4-1-amd64" or "7.2-rc1"; 0 if it has none */
static uint32_t version_of(const char *release)
{
	uint32_t major = 0, minor = 0, patch = 0;

	if (sscanf(release, "%3u.%3u.%3u", &major, &minor, &patch) < 2)
		return 0;
	return KERNEL(major, minor, patch < 255 ? patch : 255);
}

/* Do packets form trains in this namespace? */
static bool gso_is_on(void)
{
	const struct nlattr *tb[DBLP_A_PARAM_MAX + 1];
	struct values v = { param_attrs, tb };
	struct nl_reply reply;
	bool on;

	if (nl_talk(nl_request(DBLP_CMD_PARAM_GET, 0), param_attrs,
		    DBLP_A_PARAM_MAX, &reply))
		return true;
	nl_attrs(reply.msgs, tb, DBLP_A_PARAM_MAX);
	/* A module without the parameter always makes trains */
	on = !tb[DBLP_A_PARAM_GSO] || get_u32(&v, DBLP_A_PARAM_GSO);
	nl_reply_free(&reply);
	return on;
}

void check_kernel(void)
{
	static const char check[] = "kernel";
	uint32_t version;
	char release[65];

	if (!read_line("/proc/sys/kernel/osrelease", release, sizeof(release)))
		return;
	version = version_of(release);
	if (version < GSO_FAULT_FIRST || version >= GSO_FAULT_FIXED)
		doctor_says(VERDICT_OK, check, "", "%s has no known fault",
			    release);
	else if (!gso_is_on())
		doctor_says(VERDICT_OK, check, "",
			    "%s: UDP GSO may be faulty, and gso is off", release);
	else
		doctor_says(VERDICT_NOTE, check, "sudo dblpctl param set gso off",
			    "%s: UDP GSO of Linux 7.0 to 7.1.4 may send wrong lengths or checksums, unless the distributor has fixed it: if many packets are lost, update, or turn gso off",
			    release);
}
