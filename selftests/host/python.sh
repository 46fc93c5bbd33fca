#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The Python package, over TCP, without PyTorch: see selftests/host/python.

here=$(dirname "$(readlink -f "$0")")
make -s -C "$here/../../tools/libdblp" > /dev/null || exit 1
exec /usr/bin/python3 "$here/python/run"
