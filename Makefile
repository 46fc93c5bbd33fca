# SPDX-License-Identifier: GPL-2.0-only
.PHONY: tools selftests-bin
tools:
	@ret=0; for d in tools/libdblp tools/dblpctl tools/dblp-perf tools/train; do \
		[ ! -e $$d/Makefile ] || $(MAKE) --no-print-directory -C $$d || ret=1; done; exit $$ret
selftests-bin:
	@[ ! -e selftests/Makefile ] || $(MAKE) --no-print-directory -C selftests
