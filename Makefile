# SPDX-License-Identifier: GPL-2.0-only
#
# What people call; the module's objects are in Kbuild.

KERNELRELEASE ?= $(shell uname -r)
KERNELDIR ?= /lib/modules/$(KERNELRELEASE)/build
PREFIX ?= /usr/local
DKMS ?= dkms
DEPMOD ?= depmod
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)

tool_dirs := $(patsubst %/Makefile,%,$(wildcard $(addsuffix /Makefile,\
	tools/libdblp tools/dblpctl tools/dblp-perf tools/train)))

# V=1 shows the commands.
ifneq ($(V),1)
Q := @
endif

.PHONY: all module tools selftests-bin unit cc check check-all robustness demo bench \
	lint install dkms-install clean help $(tool_dirs)

all: module tools	## the module for this machine's kernel, and the tools

module:			## dblp.ko for KERNELDIR (default: the running kernel)
	$(Q)[ -e $(KERNELDIR)/Makefile ] || { \
		echo "No kernel headers in $(KERNELDIR): install linux-headers-$(KERNELRELEASE) or set KERNELDIR=" >&2; \
		exit 1; }
	$(Q)$(MAKE) -C $(KERNELDIR) M=$(CURDIR) $(if $(V),V=$(V)) modules

tools: $(tool_dirs)	## libdblp, dblpctl, dblp-perf, dblp-train

$(tool_dirs):
	$(Q)$(MAKE) --no-print-directory -C $@

tools/dblpctl tools/dblp-perf tools/train: $(filter tools/libdblp,$(tool_dirs))

selftests-bin:		## the test programs
	$(Q)$(MAKE) --no-print-directory -C selftests

unit:			## unit tests of the pure parts, in user space
	$(Q)$(MAKE) --no-print-directory -C selftests/unit check

cc:			## congestion control on simulated paths: Documentation/results/cc.md (CELLS="alone 10G": only these)
	$(Q)selftests/cc/run $(CELLS) $(if $(CELLS),,--out Documentation/results)

check:			## everything: builds, unit tests, lint, tests in VMs (TESTS="a b", KERNELS="6.1 6.12 7.x", DEBUG=1, CLANG=1)
	$(Q)TESTS="$(TESTS)" KERNELS="$(KERNELS)" DEBUG="$(DEBUG)" CLANG="$(CLANG)" V="$(V)" selftests/check

check-all:		## what takes hours: check with all kernels and compilers, also the debug kernel, then robustness
	$(Q)KERNELS="6.1 6.12 7.x" DEBUG=1 CLANG=1 V="$(V)" selftests/check
	$(Q)$(MAKE) --no-print-directory robustness

robustness:		## try to break it: Documentation/results/robustness.md (PARTS="a b": only these)
	$(Q)selftests/deps
	$(Q)PARTS="$(PARTS)" selftests/robustness/run

demo:			## what the loss budget is good for, shown in a VM
	$(Q)selftests/deps
	$(Q)selftests/demo/run

bench:			## the figures of Documentation/results, in virtual and real time (BENCH="fanin rr": only these)
	$(Q)selftests/deps
	$(Q)BENCH="$(BENCH)" selftests/bench/run

lint:			## checkpatch, sparse, kernel-doc, shellcheck
	$(Q)selftests/lint

install: all		## module, tools, libdblp, manual pages (DESTDIR, PREFIX)
	$(Q)$(MAKE) -C $(KERNELDIR) M=$(CURDIR) $(if $(DESTDIR),INSTALL_MOD_PATH=$(DESTDIR)) modules_install
	$(if $(DESTDIR),,$(Q)$(DEPMOD) $(KERNELRELEASE))
	$(Q)for dir in $(tool_dirs); do \
		$(MAKE) --no-print-directory -C $$dir install DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) || exit 1; done
	$(Q)for page in $(wildcard Documentation/man/*.[1-9]); do \
		install -D -m 644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/} || exit 1; done
	$(Q)install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/linux uapi/linux/*.h

dkms-install:		## the module by way of DKMS, rebuilt for each new kernel
	$(Q)rm -rf $(DESTDIR)/usr/src/dblp-$(VERSION)
	$(Q)mkdir -p $(DESTDIR)/usr/src/dblp-$(VERSION)
	$(Q)tar -c --exclude='.*' --exclude='*.o' --exclude='*.mod' Kbuild dkms.conf $(wildcard COPYING) net uapi | \
		tar -x -C $(DESTDIR)/usr/src/dblp-$(VERSION)
	$(if $(DESTDIR),,$(Q)$(DKMS) install --force dblp/$(VERSION))

clean:			## remove what was built here (not the cache of the VM)
	$(Q)rm -rf build *.ko *.mod *.mod.c *.o .*.cmd .tmp_versions Module.symvers modules.order
	$(Q)find net \( -name '*.o' -o -name '*.mod' -o -name '.*.cmd' -o -name '*.o.d' \) -delete
	$(Q)for dir in $(tool_dirs) $(patsubst %/Makefile,%,$(wildcard selftests/Makefile \
		selftests/unit/Makefile selftests/cc/Makefile)); do $(MAKE) --no-print-directory -C $$dir clean; done

help:			## this list
	@sed -n 's/^\([a-z-]*\):.*##/\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16
