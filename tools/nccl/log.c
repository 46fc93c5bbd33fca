// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The log.
 */

#include "plugin.h"

nccl_logger net_log;
