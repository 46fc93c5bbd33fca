/* SPDX-License-Identifier: GPL-2.0-only */
/* Before Linux 6.6, what we need of it is in crypto/algapi.h */
#ifndef _NET_DBLP_COMPAT_CRYPTO_UTILS_H
#define _NET_DBLP_COMPAT_CRYPTO_UTILS_H

#if __has_include_next(<crypto/utils.h>)
#include_next <crypto/utils.h>
#else
#include <crypto/algapi.h>
#endif

#endif
