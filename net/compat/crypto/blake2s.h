/* SPDX-License-Identifier: GPL-2.0-only */
/* Linux 6.19 renamed struct blake2s_state to blake2s_ctx */
#ifndef _NET_DBLP_COMPAT_CRYPTO_BLAKE2S_H
#define _NET_DBLP_COMPAT_CRYPTO_BLAKE2S_H

#include_next <crypto/blake2s.h>

#ifdef DBLP_LACKS_BLAKE2S_CTX
#define blake2s_ctx	blake2s_state
#endif

#endif
