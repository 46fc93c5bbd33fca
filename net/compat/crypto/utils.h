/* SPDX-License-Identifier: GPL-2.0-only */
/* Before Linux 6.6, crypto/algapi.h declared crypto_memneq() */
#ifndef _NET_DBLP_COMPAT_CRYPTO_UTILS_H
#define _NET_DBLP_COMPAT_CRYPTO_UTILS_H

#if __has_include_next(<crypto/utils.h>)
#include_next <crypto/utils.h>
#else
#include <crypto/algapi.h>
#endif

#endif
