/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Generated code includes this header by its path in a kernel tree. Out of
 * tree, the include path has uapi/, but not its parent.
 */
#include <linux/dblp_netlink.h>
