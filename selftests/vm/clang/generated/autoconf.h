/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kernels that gcc builds take a named address space for what belongs to a CPU. The
 * headers do not do so for clang, which takes its name twice for the one of memory.
 */
#include_next <generated/autoconf.h>
#undef CONFIG_CC_HAS_NAMED_AS
#undef CONFIG_USE_X86_SEG_SUPPORT
