// SPDX-License-Identifier: GPL-2.0-only
/* Any text as a number: accepted numbers are printed so that they read the same */
#include <stdint.h>
#include <string.h>

#include <units.h>

#include "fuzz.h"

typedef const char *parse(const char *text, uint32_t *n);
typedef void format(uint32_t n, char buf[DBLP_VALUE_TEXT]);
typedef const char *parse_within(const char *text, uint64_t min, uint64_t max, uint64_t *n);

static void check(parse *from, format *to, const char *text)
{
	uint32_t n = 0xdead, again = ~0U;
	char buf[DBLP_VALUE_TEXT];
	const char *wrong = from(text, &n);

	if (wrong) {
		CHECK(*wrong && n == 0xdead);
		return;
	}
	to(n, buf);
	CHECK(memchr(buf, 0, sizeof(buf)));
	CHECK(!from(buf, &again) && again == n);
}

static void check_within(parse_within *from, const char *text, uint64_t min, uint64_t max)
{
	uint64_t n = 0xdead, again = ~0ULL;
	char buf[24];
	const char *wrong = from(text, min, max, &n);

	if (wrong) {
		CHECK(*wrong && n == 0xdead);
		return;
	}
	CHECK(n >= min && n <= max);
	snprintf(buf, sizeof(buf), "%llu", (unsigned long long)n);
	CHECK(!from(buf, min, max, &again) && again == n);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	char *text = malloc(len + 1), buf[DBLP_VALUE_TEXT];
	u64 n = 0;

	memcpy(text, data, len);
	text[len] = 0;
	check(dblp_share_parse, dblp_share_format, text);
	check(dblp_time_parse, dblp_time_format, text);
	check(dblp_ratio_parse, dblp_ratio_format, text);
	check_within(dblp_number_parse, text, 0, UINT64_MAX);
	check_within(dblp_number_parse, text, 1, UINT16_MAX);
	check_within(dblp_size_parse, text, 0, UINT64_MAX);
	check_within(dblp_size_parse, text, 8, UINT32_MAX);
	memcpy(&n, data, len < 8 ? len : 8);
	dblp_norm_format(n, buf);
	CHECK(memchr(buf, 0, sizeof(buf)));
	dblp_count_format(n, buf);
	CHECK(memchr(buf, 0, sizeof(buf)));
	dblp_us_format(n, buf);
	CHECK(memchr(buf, 0, sizeof(buf)));
	free(text);
	return 0;
}

size_t fuzz_seed(struct prng *r, u8 *p, size_t max)
{
	static const char *const texts[] = {
		"2%", "0.8%", "8000ppm", "429.4967295%", "500ms", "1.5s", "2min",
		"1h", "0.000000001s", "0.5", "4294.967295", "0x1f", "31", "64KiB",
		"1MB", "17179869184GiB",
	};
	const char *text = texts[prng_below(r, sizeof(texts) / sizeof(*texts))];

	memcpy(p, text, strlen(text));
	return strlen(text);
}
