/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Number of values of each enum in uapi/linux/dblp.h. They are private, because
 * the enums grow. Documentation/netlink/regenerate compares the enums with the
 * specification.
 */
#ifndef _NET_DBLP_VALUES_H
#define _NET_DBLP_VALUES_H

#include <linux/dblp.h>

/** enum dblp_values - one more than the last value of each list */
enum dblp_values {
	__DBLP_POLICY_MAX	= DBLP_POLICY_EARLY + 1,
	__DBLP_ORDER_MAX	= DBLP_ORDER_SHUFFLED + 1,
	__DBLP_FILL_MAX		= DBLP_FILL_KEEP + 1,
	__DBLP_CLR_MAX		= DBLP_CLR_HELD + 1,
	__DBLP_REASON_MAX	= DBLP_REASON_CANCELLED + 1,
};

#endif /* _NET_DBLP_VALUES_H */
