// SPDX-License-Identifier: GPL-2.0-only
/*
 * A deterministic driver for the fuzzers. Its inputs are made from seeds, from corpus/
 * and from each other. It has no guidance by coverage, but runs in every check;
 * FUZZ=full runs it ten times as long. With files as arguments, it tries only those.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

#define INPUTS		10000
#define INPUTS_FULL	100000
#define POOL	256
#define MAX_LEN	1500

struct input {
	u32	len;
	u8	data[MAX_LEN];
};

static struct input pool[POOL], now;
/* File for an input that fails */
static char crash[64];

static const u8 favourites[] = {
	0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 63, 64, 127, 128, 254, 255,
};

static void mutate_once(struct input *in, struct prng *r)
{
	const struct input *other = &pool[prng_below(r, POOL)];
	u32 at = prng_below(r, in->len + 1), n;

	switch (prng_below(r, 7)) {
	case 0:
		in->data[at % MAX_LEN] = prng_u64(r);
		break;
	case 1:
		in->data[at % MAX_LEN] =
			favourites[prng_below(r, sizeof(favourites))];
		break;
	case 2:
		in->data[at % MAX_LEN] ^= 1 << prng_below(r, 8);
		break;
	case 3:
		in->len = at;
		break;
	case 4:
		n = prng_below(r, MAX_LEN - in->len + 1) % 32;
		memset(in->data + in->len, 0, n);
		in->len += n;
		break;
	case 5:
		n = other->len < MAX_LEN - at ? other->len : MAX_LEN - at;
		memcpy(in->data + at, other->data, n);
		in->len = at + n > in->len ? at + n : in->len;
		break;
	case 6:
		for (n = prng_below(r, 16); n && at < in->len; n--)
			in->data[at++] += prng_below(r, 3) - 1;
		break;
	}
}

/* Make an input from a seed or an earlier input, with a few or no changes */
static void next_input(struct prng *r)
{
	u32 n = prng_below(r, 8);

	if (prng_below(r, 2))
		now = pool[prng_below(r, POOL)];
	else
		now.len = fuzz_seed(r, now.data, MAX_LEN);
	while (n--)
		mutate_once(&now, r);
	pool[prng_below(r, POOL)] = now;
}

static bool read_input(struct input *in, const char *name)
{
	FILE *f = fopen(name, "rb");

	if (!f) {
		perror(name);
		return false;
	}
	in->len = fread(in->data, 1, MAX_LEN, f);
	fclose(f);
	return true;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_input(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* Add the inputs that libFuzzer found, see "make fuzz" */
static bool fill_pool(struct prng *r, const char *program)
{
	const char *name = strrchr(program, '_') + 1;
	/* Not freed: used until the end */
	static struct dirent **files;
	char path[512];
	int n, i;

	snprintf(path, sizeof(path), "corpus/%s", name);
	n = scandir(path, &files, is_input, by_name);
	if (n <= 0) {
		fprintf(stderr, "# no inputs in %s\n", path);
		return false;
	}
	for (i = 0; i < POOL; i++) {
		if (i >= n) {
			pool[i].len = fuzz_seed(r, pool[i].data, MAX_LEN);
			continue;
		}
		snprintf(path, sizeof(path), "corpus/%s/%s", name,
			 files[i]->d_name);
		if (!read_input(&pool[i], path))
			return false;
		now = pool[i];
		LLVMFuzzerTestOneInput(now.data, now.len);
	}
	return true;
}

/* Save the input that failed */
static void on_abort(int sig)
{
	FILE *f = fopen(crash, "wb");

	if (f) {
		fwrite(now.data, 1, now.len, f);
		fclose(f);
		fprintf(stderr, "# the input is in %s\n", crash);
	}
	signal(sig, SIG_DFL);
	raise(sig);
}

static int try_files(int n, char **names)
{
	for (; n; n--, names++) {
		if (!read_input(&now, *names))
			return 1;
		LLVMFuzzerTestOneInput(now.data, now.len);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *fuzz = getenv("FUZZ");
	bool full = fuzz && !strcmp(fuzz, "full");
	u32 inputs = full ? INPUTS_FULL : INPUTS, i;
	struct prng r = { 0x5eed };

	snprintf(crash, sizeof(crash), "build/crash%s", strrchr(argv[0], '_'));
	signal(SIGABRT, on_abort);
	if (argc > 1)
		return try_files(argc - 1, argv + 1);
	printf("TAP version 13\n1..1\n");
	fflush(stdout);
	if (!fill_pool(&r, argv[0]))
		return 1;
	for (i = 0; i < inputs; i++) {
		u8 *exact;

		next_input(&r);
		exact = malloc(now.len ?: 1);
		memcpy(exact, now.data, now.len);
		LLVMFuzzerTestOneInput(exact, now.len);
		free(exact);
	}
	printf("ok 1 %u inputs\n", inputs);
	return 0;
}
