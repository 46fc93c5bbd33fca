/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _UNIT_FUZZ_H
#define _UNIT_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "prng.h"

#define CHECK(cond) do { if (!(cond)) abort(); } while (0)

/* One input; aborts if a promise is broken */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* An input that is well formed, of at most @max bytes, for mutations to begin
 * with; returns its length. A fuzzer whose inputs all are need not have it.
 */
size_t fuzz_seed(struct prng *r, u8 *p, size_t max);

#endif /* _UNIT_FUZZ_H */
