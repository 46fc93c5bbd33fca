// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any text as an address: libdblp accepts the same text as the C library. An accepted
 * address keeps its value when it is written and read again, as does any address.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <libdblp.h>
#include <string.h>

#include "fuzz.h"

static void check_written(const struct sockaddr_dblp *a)
{
	struct sockaddr_dblp again;
	char text[DBLP_ADDR_TEXT];

	memset(text, 0xff, sizeof(text));
	dblp_addr_format(a, text);
	CHECK(memchr(text, 0, sizeof(text)));
	CHECK(!dblp_addr_parse(text, &again));
	CHECK(!memcmp(a, &again, sizeof(again)));
}

static void check_text(const char *text)
{
	struct sockaddr_dblp a, before;
	struct in6_addr in6 = { 0 };
	int err;

	memset(&a, 0x5a, sizeof(a));
	before = a;
	err = dblp_addr_parse(text, &a);
	if (inet_pton(AF_INET6, text, &in6) == 1) {
		CHECK(!err && !a.sdblp_port && !a.sdblp_scope_id);
		CHECK(!memcmp(&in6, &a.sdblp_addr, sizeof(in6)));
	} else if (inet_pton(AF_INET, text, &in6.s6_addr[12]) == 1) {
		memset(&in6.s6_addr[10], 0xff, 2);
		CHECK(!err && !a.sdblp_port && !a.sdblp_scope_id);
		CHECK(!memcmp(&in6, &a.sdblp_addr, sizeof(in6)));
	}
	if (err) {
		CHECK(err == -EINVAL || err == -ENODEV);
		CHECK(!memcmp(&a, &before, sizeof(a)));
		return;
	}
	CHECK(a.sdblp_family == AF_DBLP && !a.sdblp_flowinfo);
	CHECK(!a.sdblp_scope_id || IN6_IS_ADDR_LINKLOCAL(&a.sdblp_addr));
	check_written(&a);
}

static void check_address(const u8 *data)
{
	struct sockaddr_dblp a = { .sdblp_family = AF_DBLP };

	memcpy(&a.sdblp_addr, data, 16);
	memcpy(&a.sdblp_port, data + 16, 2);
	if (IN6_IS_ADDR_LINKLOCAL(&a.sdblp_addr)) {
		memcpy(&a.sdblp_scope_id, data + 18, 4);
		a.sdblp_scope_id &= INT32_MAX;
	}
	check_written(&a);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	char *text = malloc(len + 1);

	memcpy(text, data, len);
	text[len] = 0;
	check_text(text);
	free(text);
	if (len >= 22)
		check_address(data);
	return 0;
}

size_t fuzz_seed(struct prng *r, u8 *p, size_t max)
{
	static const char *const texts[] = {
		"192.0.2.1", "192.0.2.1:7018", "2001:db8::1", "::", "::1",
		"[2001:db8::1]:7018", "[::ffff:192.0.2.1]:1", "fe80::1%lo",
		"[fe80::1%lo]:65535", "fe80::1%7", "::192.0.2.1",
		"2001:db8:0:1:2:3:192.0.2.1",
		"2001:db8:ffff:ffff:ffff:ffff:255.255.255.255",
		"\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\1\0\0\0",
		"\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\1\1\1\0\0\0\0",
	};
	u32 i = prng_below(r, sizeof(texts) / sizeof(*texts));
	size_t len = *texts[i] && i < 13 ? strlen(texts[i]) : 22;

	memcpy(p, texts[i], len);
	return len;
}
