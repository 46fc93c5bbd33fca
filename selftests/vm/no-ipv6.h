/* SPDX-License-Identifier: GPL-2.0-only */
/* Included after the kernel's configuration, to remove IPv6: see build */
#undef CONFIG_IPV6
#undef CONFIG_IPV6_MULTIPLE_TABLES
#undef CONFIG_IPV6_SUBTREES
#undef CONFIG_MPTCP_IPV6
