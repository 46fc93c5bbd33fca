# SPDX-License-Identifier: GPL-2.0-only
#
# What people call; the module's objects are in net/dblp/Makefile.

KERNELRELEASE ?= $(shell uname -r)
KERNELDIR ?= /lib/modules/$(KERNELRELEASE)/build
PREFIX ?= /usr/local
# What installs into DESTDIR changes nothing here
DKMS ?= $(if $(DESTDIR),,dkms)
DEPMOD ?= $(if $(DESTDIR),,depmod)
VERSION := $(shell ./version)
export DBLP_BUILD := $(VERSION)
# A kernel built by clang needs modules built by clang and its linker
LLVM ?= 1
llvm = $(if $(shell grep -s '^CONFIG_CC_IS_CLANG=y' $(KERNELDIR)/.config $(KERNELDIR)/include/config/auto.conf),LLVM=$(LLVM))
# root has these in PATH, others may not
export PATH := $(PATH):/usr/sbin:/sbin
modules := $(DESTDIR)/lib/modules
sources := $(DESTDIR)/usr/src/dblp-$(VERSION)
# Each version of dblp that DKMS knows
dkms_versions = $(DKMS) status dblp | sed -n 's,^dblp/\([^,: ]*\).*,\1,p' | sort -u
# Does DKMS have the module for this kernel?
in_dkms = $(or $(DKMS),:) status dblp 2> /dev/null | grep -q -F ' $(KERNELRELEASE),'

tool_dirs := $(patsubst %/Makefile,%,$(wildcard $(addsuffix /Makefile,\
	tools/libdblp tools/dblpctl tools/dblp-perf tools/nccl python)))
# Measurements and experiments, which are not installed
lab_dirs := $(patsubst %/Makefile,%,$(wildcard $(addsuffix /Makefile,lab/fabric lab/train lab/baseline)))

# V=1 shows the commands.
ifneq ($(V),1)
Q := @
endif

.PHONY: all module tools lab selftests-bin unit coverage cc check check-all robustness demo demo-torch bench experiments \
	deb rpm series wheel release lint install install-module install-tools dkms-install uninstall clean help $(tool_dirs) $(lab_dirs)

all: module tools	## the module for this machine's kernel, and the tools

module:			## dblp.ko for KERNELDIR (default: the running kernel)
	$(Q)[ -e $(KERNELDIR)/Makefile ] || { \
		echo "No kernel headers in $(KERNELDIR): install linux-headers-$(KERNELRELEASE) or set KERNELDIR=" >&2; \
		exit 1; }
	$(Q)$(MAKE) -C $(KERNELDIR) M=$(CURDIR) $(if $(V),V=$(V)) $(llvm) modules

tools: $(tool_dirs)	## libdblp, dblpctl, dblp-perf, the plugin for NCCL

lab: $(lab_dirs)	## dblp-train, dblp-fabric and dblp-baseline, for measurements

$(tool_dirs) $(lab_dirs):
	$(Q)$(MAKE) --no-print-directory -C $@

tools/dblpctl tools/dblp-perf tools/nccl $(lab_dirs): $(filter tools/libdblp,$(tool_dirs))
lab/train: $(filter lab/fabric,$(lab_dirs))

selftests-bin:		## the test programs
	$(Q)$(MAKE) --no-print-directory -C selftests

unit:			## unit tests of the pure parts, in user space (FUZZ=full: with ten times the inputs)
	$(Q)$(MAKE) --no-print-directory -C selftests/unit check

coverage:		## lines and branches of net/dblp/core and cc that the unit tests run
	$(Q)selftests/coverage

cc:			## congestion control on simulated paths: Documentation/results/cc.md, build/cc.json (CELLS="alone 10G": only these)
	$(Q)lab/cc/run $(CELLS) $(if $(CELLS),,--out Documentation/results)

check:			## what each push has to keep: builds, unit tests, lint, tests in VMs (TESTS="a b", PARTS="um 6.1")
	$(Q)TESTS="$(TESTS)" PARTS="$(PARTS)" JOBS="$(JOBS)" selftests/check

check-all:		## what takes hours, part by part (PARTS="7.x-all debug": only these): Documentation/results/check-all.md
	$(Q)TESTS= PARTS="$(PARTS)" JOBS="$(JOBS)" selftests/check --record

robustness:		## try to break it: Documentation/results/robustness.md (PARTS="a b": only these)
	$(Q)selftests/deps
	$(Q)PARTS="$(PARTS)" lab/robustness/run

demo:			## what the loss budget is good for, shown in a VM
	$(Q)selftests/deps demo
	$(Q)lab/demo/run

demo-torch:		## the same for a script of PyTorch that knows nothing of it
	$(Q)selftests/deps demo
	$(Q)selftests/deps torch
	$(Q)lab/demo/run --torch

bench:			## the figures of Documentation/results, in virtual and real time (BENCH="fanin rr": only these)
	$(Q)selftests/deps
	$(Q)BENCH="$(BENCH)" lab/bench/run

experiments:		## those of the papers: Documentation/results/experiments.md (EXPERIMENTS="ltp bml": only these)
	$(Q)selftests/deps
	$(Q)selftests/deps pictures
	$(Q)EXPERIMENTS="$(EXPERIMENTS)" lab/experiments/run

lint:			## checkpatch, sparse, kernel-doc, shellcheck
	$(Q)selftests/lint

wheel: $(filter tools/libdblp,$(tool_dirs))	## the Python package with libdblp, in one file for pip: build/wheel
	$(Q)$(MAKE) --no-print-directory -C python wheel

install: install-module install-tools	## module, tools, libdblp, manual pages, as make has built them (DESTDIR, PREFIX)

install-module:		## only the module, for the kernel it was built for (KERNELRELEASE)
	$(Q)[ -e dblp.ko ] && [ "$$(modinfo -F version ./dblp.ko)" = "$(VERSION)" ] || { \
		echo "dblp.ko of this version is not built: run make first, without sudo" >&2; exit 1; }
	$(Q)case "$$(modinfo -F vermagic ./dblp.ko)" in "$(KERNELRELEASE) "*) ;; *) \
		echo "dblp.ko is for Linux $$(modinfo -F vermagic ./dblp.ko), not $(KERNELRELEASE): run make first" >&2; exit 1 ;; esac
	$(Q)$(in_dkms) || rm -f $(modules)/$(KERNELRELEASE)/extra/dblp.ko*
	$(Q)install -D -m 644 dblp.ko $(modules)/$(KERNELRELEASE)/updates/dblp.ko
	$(if $(DEPMOD),$(Q)$(DEPMOD) $(KERNELRELEASE))
	$(warn_both)

install-tools:		## all but the module
	$(Q)for dir in $(tool_dirs); do \
		$(MAKE) --no-print-directory -C $$dir install DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) || exit 1; done
	$(Q)for page in $(wildcard Documentation/man/*.[1-9]); do \
		install -D -m 644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/} || exit 1; done
	$(Q)install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/linux uapi/linux/*.h

# Of several versions DKMS takes one for the next kernel as it thinks fit: leave only this
dkms-install:		## the module by way of DKMS, rebuilt for each new kernel
	$(Q)rm -rf $(sources)
	$(Q)mkdir -p $(sources)
	$(Q)tar -c --exclude='.*' --exclude='*.o' --exclude='*.mod' Kbuild version dkms.conf $(wildcard COPYING) net uapi | \
		tar -x -C $(sources) --no-same-owner
	$(Q)sed -i 's/^PACKAGE_VERSION=.*/PACKAGE_VERSION="$(VERSION)"/' $(sources)/dkms.conf
	$(if $(DKMS),$(Q)$(DKMS) build --force dblp/$(VERSION))
	$(if $(DKMS),$(Q)$(DKMS) install --force dblp/$(VERSION))
	$(if $(DKMS),$(Q)for version in $$($(dkms_versions)); do [ $$version = $(VERSION) ] || { \
		$(DKMS) remove dblp/$$version --all && rm -rf $(DESTDIR)/usr/src/dblp-$$version; } || exit 1; done)
	$(warn_both)

# DKMS installs into extra on Fedora and RHEL, where earlier versions of 'make install' did, too
define warn_both
$(Q)plain=$$(ls $(modules)/*/updates/dblp.ko 2> /dev/null); \
	dkms=$$(find $(modules) -path '*/updates/dkms/dblp.ko*' -o -path '*/extra/dblp.ko*' 2> /dev/null); \
	[ -z "$$plain" ] || [ -z "$$dkms" ] || printf '%s\n' "Warning: the module is installed in two ways, and modprobe takes either:" \
		$$plain $$dkms "'make uninstall' removes both; then install it in one way." >&2
endef

release:		## checks that this commit can be released, and makes its tag
	$(Q)selftests/release

deb:			## packages for Debian 12, built in a clean root, in build/deb (SUITE=trixie: for Debian 13)
	$(Q)debian/build $(SUITE)

rpm:			## packages in RPM's format, in build/rpm (none of them was installed on such a system)
	$(Q)selftests/deps packages
	$(Q)rpm/build

series:			## patches that add AF_DBLP to the kernel in TREE, in build/series
	$(Q)net/series "$(TREE)" build/series

uninstall:		## remove what install and dkms-install have installed, in whatever version
	$(if $(DKMS),$(Q)! type $(firstword $(DKMS)) > /dev/null 2>&1 || \
		for version in $$($(dkms_versions)); do $(DKMS) remove dblp/$$version --all || exit 1; done)
	$(Q)for conf in $(DESTDIR)/usr/src/dblp-*/dkms.conf; do \
		! grep -q -s -x 'PACKAGE_NAME="dblp"' $$conf || rm -rf $${conf%/dkms.conf} || exit 1; done
	$(Q)for file in $(modules)/*/updates/dblp.ko $(modules)/*/extra/dblp.ko; do \
		[ -e $$file ] || continue; \
		release=$${file#$(modules)/} && rm -f $$file && \
			$(if $(DEPMOD),$(DEPMOD) $${release%%/*},:) || exit 1; done
	$(Q)for dir in $(tool_dirs); do \
		$(MAKE) --no-print-directory -C $$dir uninstall DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) || exit 1; done
	$(Q)rm -f $(foreach page,$(notdir $(wildcard Documentation/man/*.[1-9])),\
		$(DESTDIR)$(PREFIX)/share/man/man$(patsubst .%,%,$(suffix $(page)))/$(page)) \
		$(addprefix $(DESTDIR)$(PREFIX)/include/linux/,$(notdir $(wildcard uapi/linux/*.h)))
	$(Q)[ -n "$(DESTDIR)" ] || [ ! -e /sys/module/dblp ] || echo "dblp is still loaded: sudo rmmod dblp" >&2

clean:			## remove what was built here (not the cache of the VM)
	$(Q)rm -rf build *.ko *.mod *.mod.c *.o .*.cmd .tmp_versions Module.symvers modules.order
	$(Q)find net \( -name '*.o' -o -name '*.mod' -o -name '.*.cmd' -o -name '*.o.d' \) -delete
	$(Q)for dir in $(tool_dirs) $(lab_dirs) $(patsubst %/Makefile,%,$(wildcard selftests/Makefile \
		selftests/unit/Makefile lab/cc/Makefile)); do $(MAKE) --no-print-directory -C $$dir clean; done

help:			## this list
	@sed -n 's/^\([a-z-]*\):.*##/\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16
