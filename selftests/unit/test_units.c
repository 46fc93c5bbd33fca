// SPDX-License-Identifier: GPL-2.0-only
/* libdblp: numbers and addresses as text, with the table that all tests of parsers share */
#include <inttypes.h>
#include <stdio.h>
#include <units.h>

#include "test.h"

__asm__(".pushsection .rodata\n"
	"table:\n"
	".incbin \"units.cases\"\n"
	".byte 0\n"
	".popsection\n");
extern const char table[];

/* Value of a result before parsing: a refused text does not change it */
#define BEFORE	0xdeadbeef

struct value {
	const char	*why;
	uint64_t	n;
	char		again[DBLP_ADDR_TEXT];	/* printed, if it is accepted */
};

typedef const char *parse32(const char *text, uint32_t *n);
typedef void format32(uint32_t n, char text[DBLP_VALUE_TEXT]);
typedef const char *parse_address(const char *text, struct sockaddr_dblp *addr);

static void value_32(parse32 *parse, format32 *format, const char *text, struct value *v)
{
	uint32_t n = BEFORE;

	v->why = parse(text, &n);
	v->n = n;
	format(n, v->again);
}

static void value_address(parse_address *parse, const char *text, struct value *v)
{
	struct sockaddr_dblp addr = { .sdblp_family = 0 };

	v->why = parse(text, &addr);
	v->n = addr.sdblp_family ? 0 : BEFORE;
	dblp_addr_format(&addr, v->again);
}

static void value_of(const char *kind, const char *text, struct value *v)
{
	v->n = BEFORE;
	if (!strcmp(kind, "share"))
		value_32(dblp_share_parse, dblp_share_format, text, v);
	else if (!strcmp(kind, "time"))
		value_32(dblp_time_parse, dblp_time_format, text, v);
	else if (!strcmp(kind, "ratio"))
		value_32(dblp_ratio_parse, dblp_ratio_format, text, v);
	else if (!strcmp(kind, "number"))
		v->why = dblp_number_parse(text, 0, UINT32_MAX, &v->n);
	else if (!strcmp(kind, "port"))
		v->why = dblp_number_parse(text, 1, UINT16_MAX, &v->n);
	else if (!strcmp(kind, "size"))
		v->why = dblp_size_parse(text, 8, UINT32_MAX, &v->n);
	else if (!strcmp(kind, "address"))
		value_address(dblp_addr_alone, text, v);
	else if (!strcmp(kind, "addrport"))
		value_address(dblp_addr_port, text, v);
	else
		v->why = "has an unknown kind";
	if (!*v->again)
		snprintf(v->again, sizeof(v->again), "%" PRIu64, v->n);
}

TEST(texts_mean_what_the_table_says)
{
	char *rest = strdup(table), *line, *text, *wanted;
	unsigned int cases = 0;

	while ((line = strsep(&rest, "\n"))) {
		struct value v = { 0 }, again = { 0 };
		char why[128];

		if (!*line || *line == '#')
			continue;
		text = strchr(line, '\t');
		*text++ = 0;
		wanted = strchr(text, '\t');
		*wanted++ = 0;
		cases++;
		value_of(line, text, &v);
		if (*wanted == '!') {
			snprintf(why, sizeof(why), "! %s", v.why);
			EXPECT_STREQ(wanted, why)
				TH_LOG("%s '%s'", line, text);
			EXPECT_EQ(BEFORE, v.n);
			continue;
		}
		ASSERT_EQ(NULL, v.why)
			TH_LOG("%s '%s' %s", line, text, v.why);
		value_of(line, v.again, &again);
		EXPECT_EQ(NULL, again.why);
		EXPECT_EQ(v.n, again.n);
		if (!strncmp(line, "addr", 4)) {
			EXPECT_STREQ(wanted, v.again);
			continue;
		}
		EXPECT_EQ(strtoull(wanted, NULL, 10), v.n)
			TH_LOG("%s '%s'", line, text);
	}
	EXPECT_LT(150, cases);
	free(rest);
}

TEST(lists_are_split_at_commas)
{
	char two[] = "a,b", empty[] = ",", three[] = "a,b,c";
	const char *word[2];

	ASSERT_EQ(2, dblp_words(two, word, 2));
	EXPECT_STREQ("a", word[0]);
	EXPECT_STREQ("b", word[1]);
	ASSERT_EQ(2, dblp_words(empty, word, 2));
	EXPECT_STREQ("", word[0]);
	EXPECT_EQ(0, dblp_words(three, word, 2));
}

static const struct {
	uint64_t	n;
	const char	*text;
} counts[] = {
	{ 0, "0" },
	{ 9999, "9999" },
	{ 10000, "10.0k" },
	{ 99999, "99.9k" },
	{ 100000, "100k" },
	{ 999999, "999k" },
	{ 1000000, "1.0M" },
	{ 16777216, "16.7M" },
	{ 1000000000, "1.0G" },
	{ 18446744073709551615U, "18.4E" },
}, times[] = {
	{ 0, "0us" },
	{ 999, "999us" },
	{ 1000, "1.00ms" },
	{ 1059, "1.05ms" },
	{ 999999, "999.99ms" },
	{ 1000000, "1.00s" },
	{ 4294967295, "4294.96s" },
}, whole[] = {
	{ 0, "0ms" },
	{ 1, "1ms" },
	{ 1500, "1500ms" },
	{ 30000, "30s" },
	{ 60000, "1min" },
	{ 90000, "90s" },
	{ 3600000, "1h" },
	{ 4294967295, "4294967295ms" },
}, percents[] = {
	{ 0, "0%" },
	{ 1, "0.0001%" },
	{ 8000, "0.8%" },
	{ 408000, "40.8%" },
	{ 999999, "99.9999%" },
	{ 1000000, "100%" },
	/* A share of a newer kernel */
	{ 4294967295, "429496.7295%" },
}, norms[] = {
	{ 0, "0" },
	{ 1, "0" },
	{ 4295, "0.000001" },
	{ 1ULL << 31, "0.5" },
	{ 1ULL << 32, "1" },
	{ 10ULL << 32, "10" },
	{ UINT64_MAX, "4294967295.999999" },
};

#define EXPECT_PRINTED(list, format) do {			\
	char printed[DBLP_VALUE_TEXT];				\
	size_t i;						\
								\
	for (i = 0; i < ARRAY_SIZE(list); i++) {		\
		format(list[i].n, printed);			\
		EXPECT_STREQ(list[i].text, printed);		\
	}							\
} while (0)

TEST(numbers_are_printed_with_the_unit_that_fits)
{
	EXPECT_PRINTED(counts, dblp_count_format);
	EXPECT_PRINTED(times, dblp_us_format);
	EXPECT_PRINTED(whole, dblp_time_format);
	EXPECT_PRINTED(percents, dblp_share_format);
	EXPECT_PRINTED(norms, dblp_norm_format);
}

TEST_HARNESS_MAIN
