// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Do not edit directly, auto-generated from:
 *	Documentation/netlink/specs/dblp.yaml
 */

#include "libdblp.h"

#include <linux/dblp_netlink.h>

const char *const dblp_state_names[DBLP_NAMES] = {
	[DBLP_STATE_CLOSED] = "closed",
	[DBLP_STATE_LISTEN] = "listen",
	[DBLP_STATE_INIT_SENT] = "init-sent",
	[DBLP_STATE_COOKIE_SENT] = "cookie-sent",
	[DBLP_STATE_ESTABLISHED] = "established",
	[DBLP_STATE_CLOSING] = "closing",
	NULL
};

const char *const dblp_policy_names[DBLP_NAMES] = {
	[DBLP_POLICY_FULL] = "full",
	[DBLP_POLICY_EAGER] = "eager",
	[DBLP_POLICY_EARLY] = "early",
	NULL
};

const char *const dblp_order_names[DBLP_NAMES] = {
	[DBLP_ORDER_AUTO] = "auto",
	[DBLP_ORDER_SEQUENTIAL] = "sequential",
	[DBLP_ORDER_SHUFFLED] = "shuffled",
	NULL
};

const char *const dblp_fill_names[DBLP_NAMES] = {
	[DBLP_FILL_ZERO] = "zero",
	[DBLP_FILL_KEEP] = "keep",
	NULL
};

const char *const dblp_clr_names[DBLP_NAMES] = {
	[DBLP_CLR_OFF] = "off",
	[DBLP_CLR_ON] = "on",
	[DBLP_CLR_HELD] = "held",
	NULL
};

const char *const dblp_regime_names[DBLP_NAMES] = {
	[DBLP_REGIME_CRITICAL] = "critical",
	[DBLP_REGIME_TOLERANT] = "tolerant",
	NULL
};

const char *const dblp_reason_names[DBLP_NAMES] = {
	[DBLP_REASON_COMPLETE] = "complete",
	[DBLP_REASON_BUDGET] = "budget",
	[DBLP_REASON_DEADLINE] = "deadline",
	[DBLP_REASON_CANCELLED] = "cancelled",
	NULL
};

const char *const dblp_actor_names[DBLP_NAMES] = {
	[DBLP_ACTOR_OPERATOR] = "operator",
	[DBLP_ACTOR_DETECTOR] = "detector",
	NULL
};
