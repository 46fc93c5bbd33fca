/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fixtures of the tests of the plugin for NCCL: one for each version of the interface, and one
 * for the newest.
 */
#ifndef DBLP_TEST_NCCL_FIXTURES_H
#define DBLP_TEST_NCCL_FIXTURES_H

#include "lib/nccl.h"

#include "kselftest_harness.h"

FIXTURE(nccl) { };
FIXTURE_VARIANT(nccl) { int version; };
FIXTURE_VARIANT_ADD(nccl, v8) { .version = 8 };
FIXTURE_VARIANT_ADD(nccl, v10) { .version = 10 };
FIXTURE_VARIANT_ADD(nccl, v11) { .version = 11 };
FIXTURE_VARIANT_ADD(nccl, v12) { .version = 12 };

FIXTURE_SETUP(nccl)
{
	nccl_set_up(variant->version);
}

FIXTURE_TEARDOWN(nccl) { }

/* Tests that do not depend on the version */
FIXTURE(newest) { };
FIXTURE_SETUP(newest)
{
	nccl_set_up(NCCL_NEWEST);
}

FIXTURE_TEARDOWN(newest) { }

#endif /* DBLP_TEST_NCCL_FIXTURES_H */
