/* SPDX-License-Identifier: GPL-2.0-only */
/* Linux 6.13 added hrtimer_setup(): hrtimer_init(), and setting the function */
#ifndef _NET_DBLP_COMPAT_LINUX_HRTIMER_H
#define _NET_DBLP_COMPAT_LINUX_HRTIMER_H

#include_next <linux/hrtimer.h>

#ifdef DBLP_LACKS_HRTIMER_SETUP
static inline void
hrtimer_setup(struct hrtimer *timer,
	      enum hrtimer_restart (*function)(struct hrtimer *),
	      clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif

#endif
