// SPDX-License-Identifier: GPL-2.0-only
/* Any text as a number: dblpctl writes accepted numbers so that they read the same */
#include <stdint.h>
#include <string.h>

#include "../../tools/dblpctl/units.h"
#include "fuzz.h"

typedef const char *parse(const char *text, uint32_t *n);
typedef void format(char buf[UNITS_TEXT], uint32_t n);

static void check(parse *from, format *to, const char *text)
{
	uint32_t n = 0xdead, again = ~0U;
	char buf[UNITS_TEXT];
	const char *wrong = from(text, &n);

	if (wrong) {
		CHECK(*wrong && n == 0xdead);
		return;
	}
	if (!to)
		return;
	to(buf, n);
	CHECK(memchr(buf, 0, sizeof(buf)));
	CHECK(!from(buf, &again) && again == n);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	char *text = malloc(len + 1), buf[UNITS_TEXT];
	u64 n = 0;

	memcpy(text, data, len);
	text[len] = 0;
	check(parse_share, format_share, text);
	check(parse_ms, format_ms, text);
	check(parse_ratio, format_ratio, text);
	check(parse_id, NULL, text);
	memcpy(&n, data, len < 8 ? len : 8);
	format_norm(buf, n);
	CHECK(memchr(buf, 0, sizeof(buf)));
	format_count(buf, n);
	CHECK(memchr(buf, 0, sizeof(buf)));
	format_us(buf, n);
	CHECK(memchr(buf, 0, sizeof(buf)));
	free(text);
	return 0;
}

size_t fuzz_seed(struct prng *r, u8 *p, size_t max)
{
	static const char *const texts[] = {
		"2%", "0.8%", "8000ppm", "429.4967295%", "500ms", "1.5s", "2min",
		"1h", "0.000000001s", "0.5", "4294.967295", "0x1f", "31",
	};
	const char *text = texts[prng_below(r, sizeof(texts) / sizeof(*texts))];

	memcpy(p, text, strlen(text));
	return strlen(text);
}
