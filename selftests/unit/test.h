/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the unit tests */
#ifndef _UNIT_TEST_H
#define _UNIT_TEST_H

#include <stdlib.h>
#include <string.h>

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/types.h>

#include "kselftest_harness.h"
#include "prng.h"

#endif /* _UNIT_TEST_H */
