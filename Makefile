# SPDX-License-Identifier: GPL-2.0-only
.PHONY: tools selftests-bin
tools:
	@for d in tools/libdblp tools/dblpctl tools/dblp-perf tools/train; do \
		[ ! -e $$d/Makefile ] || $(MAKE) --no-print-directory -C $$d || exit 1; done
selftests-bin:
	@[ ! -e selftests/Makefile ] || $(MAKE) --no-print-directory -C selftests
