// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attaches an XDP program that passes all packets to a device, until it is killed.
 */
#define _GNU_SOURCE
#include "lib/testlib.h"

#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

int main(int argc, char **argv)
{
	const struct bpf_insn pass[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr load = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insns = (uint64_t)(uintptr_t)pass,
		.insn_cnt = 2,
		.license = (uint64_t)(uintptr_t)"GPL",
	};
	union bpf_attr link = { .link_create.attach_type = BPF_XDP };

	if (argc != 3)
		die("usage: dblp-xdp DEVICE generic|native");
	link.link_create.target_ifindex = if_nametoindex(argv[1]);
	link.link_create.flags = strcmp(argv[2], "native") ?
				 XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
	link.link_create.prog_fd = bpf(BPF_PROG_LOAD, &load);
	if ((int)link.link_create.prog_fd < 0)
		die("bpf(BPF_PROG_LOAD)");
	if (bpf(BPF_LINK_CREATE, &link) < 0)
		die("bpf(BPF_LINK_CREATE)");
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
