#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dblpctl without the module: see dblpctl.py.

here=$(dirname "$(readlink -f "$0")")
make -s -C "$here/../../tools/dblpctl" > /dev/null &&
	make -s -C "$here/.." build/dblpctl-preload.so build/json-types > /dev/null || exit 1
exec /usr/bin/python3 "$here/dblpctl.py"
