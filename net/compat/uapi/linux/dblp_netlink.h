/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Generated code names this header as it is called inside a kernel tree. Out
 * of tree, uapi/ is in the include path and its parent is not.
 */
#include <linux/dblp_netlink.h>
