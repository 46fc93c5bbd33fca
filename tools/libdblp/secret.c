// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The secret of a job, and MACs that prove its knowledge: SipHash-2-4 with 128
 * bits (https://www.aumasson.jp/siphash/).
 */

#include "join.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t rotate(uint64_t v, int bits)
{
	return v << bits | v >> (64 - bits);
}

static void rounds(uint64_t v[4], int n)
{
	while (n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

/* Load at most 8 bytes, little-endian */
static uint64_t load(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

static void store(uint8_t *p, uint64_t v)
{
	int i;

	for (i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static void absorb(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	rounds(v, 2);
	v[0] ^= word;
}

void dblp_mac(const uint8_t key[DBLP_MAC], const void *data, size_t len,
	      uint8_t mac[DBLP_MAC])
{
	const uint64_t k0 = load(key, 8), k1 = load(key + 8, 8);
	const uint8_t *p = data, *end = p + len / 8 * 8;
	uint64_t v[4] = {
		k0 ^ 0x736f6d6570736575ULL, k1 ^ 0x646f72616e646f6dULL ^ 0xee,
		k0 ^ 0x6c7967656e657261ULL, k1 ^ 0x7465646279746573ULL,
	};

	for (; p < end; p += 8)
		absorb(v, load(p, 8));
	absorb(v, (uint64_t)len << 56 | load(p, len % 8));
	v[2] ^= 0xee;
	rounds(v, 4);
	store(mac, v[0] ^ v[1] ^ v[2] ^ v[3]);
	v[1] ^= 0xdd;
	rounds(v, 4);
	store(mac + 8, v[0] ^ v[1] ^ v[2] ^ v[3]);
}

uint64_t dblp_mac_64(const uint8_t key[DBLP_MAC], const void *data, size_t len)
{
	uint8_t mac[DBLP_MAC];

	dblp_mac(key, data, len, mac);
	return load(mac, 8);
}

bool dblp_is_equal(const void *a, const void *b, size_t len)
{
	const volatile uint8_t *x = a, *y = b;
	uint8_t differs = 0;

	while (len--)
		differs |= *x++ ^ *y++;
	return !differs;
}

void dblp_prove(const struct dblp_comm *comm, const char *who, const struct dblp_hello *h,
		const uint8_t nonce[DBLP_MAC], uint8_t mac[DBLP_MAC])
{
	struct {
		char			who[8];
		uint8_t			nonce[DBLP_MAC];
		struct dblp_hello	hello;
	} all;

	memset(&all, 0, sizeof(all));
	memcpy(all.who, who, strlen(who));
	memcpy(all.nonce, nonce, sizeof(all.nonce));
	memcpy(&all.hello, h, dblp_hello_length(h));
	dblp_mac(comm->secret, &all, sizeof(all), mac);
}

static int digit(char c)
{
	const char digits[] = "0123456789abcdef", *at;

	at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
	return at ? (int)(at - digits) : -1;
}

static int parse(const char *text, uint8_t secret[DBLP_MAC])
{
	size_t i;

	for (i = 0; i < 2 * DBLP_MAC; i++) {
		int d = digit(text[i]);

		if (d < 0)
			return -EINVAL;
		secret[i / 2] = (uint8_t)(secret[i / 2] << 4 | d);
	}
	return text[i] && text[i] != '\n' ? -EINVAL : 0;
}

/* Read the start of a file of this user or root that only its owner may read */
static int read_file(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	ssize_t n;
	int err = 0;

	if (fd < 0 || fstat(fd, &st)) {
		err = dblp_why(-errno, "DBLP_SECRET_FILE=%s cannot be read: %m", path);
	} else if (st.st_mode & 077) {
		err = dblp_why(-EACCES, "others may read DBLP_SECRET_FILE=%s: its mode should be 600",
			       path);
	} else if (st.st_uid && st.st_uid != geteuid()) {
		err = dblp_why(-EACCES, "DBLP_SECRET_FILE=%s belongs to another user", path);
	} else {
		n = read(fd, text, room - 1);
		text[n < 0 ? 0 : n] = '\0';
	}
	if (fd >= 0)
		close(fd);
	return err;
}

/* Derive the key of data connections, so that each key has one purpose */
static void derive(struct dblp_comm *comm)
{
	struct {
		char		purpose[12];
		uint32_t	epoch;
	} data = { "data", comm->attr.epoch };

	dblp_mac(comm->secret, &data, sizeof(data), comm->data_key);
}

int dblp_lock_data(const struct dblp_comm *comm, int fd)
{
	struct dblp_auth_key key = { .length = DBLP_MAC };

	if (!comm->attr.authenticate)
		return 0;
	memcpy(key.key, comm->data_key, DBLP_MAC);
	return setsockopt(fd, SOL_DBLP, DBLP_AUTH_KEY, &key, sizeof(key)) ? -errno : 0;
}

int dblp_secret_take(struct dblp_comm *comm)
{
	const char *given = comm->attr.secret, *path = getenv("DBLP_SECRET_FILE");
	char text[2 * DBLP_MAC + 2] = "";
	int err = 0;

	comm->has_secret = given || (path && *path);
	if (comm->has_secret && !given)
		err = read_file(path, text, sizeof(text));
	if (!err && comm->has_secret && parse(given ?: text, comm->secret))
		err = dblp_why(-EINVAL, "the secret is not 32 hexadecimal digits");
	if (!err && comm->attr.authenticate && (!comm->has_secret || comm->transport->protocol))
		err = dblp_why(-EINVAL, "data can be authenticated only %s",
			       comm->has_secret ? "over transport dblp" : "with a secret");
	derive(comm);
	explicit_bzero(text, sizeof(text));
	return err;
}
