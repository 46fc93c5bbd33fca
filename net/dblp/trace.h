/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints: see "Tracing" in Documentation/admin.rst, whose table explains
 * each field. A disabled tracepoint costs nothing but a patched-out jump.
 *
 * The packets of one train are one event, with their number as @n. So the sum
 * of @n over all events equals the counter of the same name.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM dblp

#if !defined(_NET_DBLP_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _NET_DBLP_TRACE_H

#include <linux/tracepoint.h>

#include "dblp.h"

#ifndef _NET_DBLP_TRACE_ONCE
#define _NET_DBLP_TRACE_ONCE

/** enum dblp_trace_side - end of a connection at which a message is traced */
enum dblp_trace_side {
	DBLP_TRACE_SEND,
	DBLP_TRACE_RECV,
};

#endif

#define dblp_states					\
	EM(DBLP_STATE_CLOSED, "closed")			\
	EM(DBLP_STATE_LISTEN, "listen")			\
	EM(DBLP_STATE_INIT_SENT, "init-sent")		\
	EM(DBLP_STATE_COOKIE_SENT, "cookie-sent")	\
	EM(DBLP_STATE_ESTABLISHED, "established")	\
	EM_LAST(DBLP_STATE_CLOSING, "closing")

#define dblp_policies					\
	EM(DBLP_POLICY_FULL, "full")			\
	EM(DBLP_POLICY_EAGER, "eager")			\
	EM_LAST(DBLP_POLICY_EARLY, "early")

#define dblp_reasons					\
	EM(DBLP_REASON_COMPLETE, "complete")		\
	EM(DBLP_REASON_BUDGET, "budget")		\
	EM(DBLP_REASON_DEADLINE, "deadline")		\
	EM_LAST(DBLP_REASON_CANCELLED, "cancelled")

#define dblp_sides					\
	EM(DBLP_TRACE_SEND, "send")			\
	EM_LAST(DBLP_TRACE_RECV, "recv")

#define dblp_pkt_types					\
	EM(DBLP_PKT_INIT, "INIT")			\
	EM(DBLP_PKT_INIT_ACK, "INIT-ACK")		\
	EM(DBLP_PKT_COOKIE_ECHO, "COOKIE-ECHO")		\
	EM(DBLP_PKT_COOKIE_ACK, "COOKIE-ACK")		\
	EM(DBLP_PKT_DATA, "DATA")			\
	EM(DBLP_PKT_CTRL, "CTRL")			\
	EM(DBLP_PKT_ACK, "ACK")				\
	EM(DBLP_PKT_RST, "RST")				\
	EM(DBLP_PKT_VERSION, "VERSION")			\
	EM_LAST(DBLP_PKT_PROBE, "PROBE")

#define dblp_losses					\
	EM(DBLP_LOST_REORDERED, "reordering")		\
	EM(DBLP_LOST_OVERDUE, "time")			\
	EM(DBLP_LOST_TOO_LARGE, "too-large")		\
	EM(DBLP_LOST_PROBE, "probe")			\
	EM_LAST(DBLP_LOST_NO_ROOM, "no-room")

/*
 * Check that each value of an enum has a name: a list that lacks one does not
 * compile. The list of counters is generated.
 */
#ifndef _NET_DBLP_TRACE_NAMED
#define _NET_DBLP_TRACE_NAMED

#undef EM
#undef EM_LAST
#define EM(a, b)	case a:
#define EM_LAST(a, b)	case a:

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"

static inline void dblp_trace_named(enum dblp_state state,
				    enum dblp_policy policy,
				    enum dblp_reason reason,
				    enum dblp_pkt_type type,
				    enum dblp_lost_why lost)
{
	switch (state) { dblp_states break; }
	switch (policy) { dblp_policies break; }
	switch (reason) { dblp_reasons break; }
	switch (type) { case __DBLP_PKT_MAX: dblp_pkt_types break; }
	switch (lost) { dblp_losses break; }
}

#pragma GCC diagnostic pop

#endif

#undef EM
#undef EM_LAST
#define EM(a, b)	TRACE_DEFINE_ENUM(a);
#define EM_LAST(a, b)	TRACE_DEFINE_ENUM(a);

dblp_states
dblp_policies
dblp_reasons
dblp_sides
dblp_pkt_types
dblp_mib_items
dblp_losses

#undef EM
#undef EM_LAST
#define EM(a, b)	{ a, b },
#define EM_LAST(a, b)	{ a, b }

/* Fields of a socket: its number, as in dblpctl, and its namespace's inode */
#define DBLP_TRACE_SOCK						\
	__field(u32, netns)					\
	__field(u32, sock)

#define DBLP_TRACE_ASSIGN(dsk)					\
	do {							\
		__entry->netns = sock_net(&(dsk)->sk)->ns.inum;	\
		__entry->sock = (dsk)->id;			\
	} while (0)

#define DBLP_TRACE_FMT	"netns=%u sock=%#x "
#define DBLP_TRACE_ARGS	__entry->netns, __entry->sock

TRACE_EVENT(dblp_conn_state,
	TP_PROTO(const struct dblp_sock *dsk, u8 state, int err),

	TP_ARGS(dsk, state, err),

	TP_STRUCT__entry(
		DBLP_TRACE_SOCK
		__field(u8, from)
		__field(u8, to)
		__field(u16, lport)
		__field(u16, pport)
		__field(int, err)
		__array(u8, laddr, 16)
		__array(u8, paddr, 16)
	),

	TP_fast_assign(
		DBLP_TRACE_ASSIGN(dsk);
		__entry->from = dsk->state;
		__entry->to = state;
		__entry->err = err;
		__entry->lport = ntohs(dsk->local.sdblp_port);
		__entry->pport = ntohs(dsk->peer.sdblp_port);
		memcpy(__entry->laddr, &dsk->local.sdblp_addr, 16);
		memcpy(__entry->paddr, &dsk->peer.sdblp_addr, 16);
	),

	TP_printk(DBLP_TRACE_FMT
		  "from=%s to=%s err=%d local=[%pI6c]:%u peer=[%pI6c]:%u",
		  DBLP_TRACE_ARGS,
		  __print_symbolic(__entry->from, dblp_states),
		  __print_symbolic(__entry->to, dblp_states), __entry->err,
		  __entry->laddr, __entry->lport,
		  __entry->paddr, __entry->pport)
);

TRACE_EVENT(dblp_packet_sent,
	TP_PROTO(const struct dblp_sock *dsk, u8 type, u64 pn, u32 n,
		 u32 bytes, const struct dblp_tx_msg *msg, bool again, u8 port),

	TP_ARGS(dsk, type, pn, n, bytes, msg, again, port),

	TP_STRUCT__entry(
		DBLP_TRACE_SOCK
		__field(u64, pn)
		__field(u32, n)
		__field(u32, bytes)
		__field(u32, msg)
		__field(u8, type)
		__field(bool, again)
		__field(u8, port)
	),

	TP_fast_assign(
		DBLP_TRACE_ASSIGN(dsk);
		__entry->type = type;
		__entry->pn = pn;
		__entry->n = n;
		__entry->bytes = bytes;
		__entry->msg = msg ? msg->id : 0;
		__entry->again = again;
		__entry->port = port;
	),

	TP_printk(DBLP_TRACE_FMT "type=%s pn=%llu n=%u bytes=%u msg=%u again=%u port=%u",
		  DBLP_TRACE_ARGS,
		  __print_symbolic(__entry->type, dblp_pkt_types),
		  __entry->pn, __entry->n, __entry->bytes, __entry->msg,
		  __entry->again, __entry->port)
);

TRACE_EVENT(dblp_packet_received,
	TP_PROTO(const struct dblp_sock *dsk, const struct dblp_run *run,
		 u64 pn),

	TP_ARGS(dsk, run, pn),

	TP_STRUCT__entry(
		DBLP_TRACE_SOCK
		__field(u64, pn)
		__field(u32, n)
		__field(u32, len)
		__field(u8, type)
		__field(u8, ecn)
	),

	TP_fast_assign(
		DBLP_TRACE_ASSIGN(dsk);
		__entry->type = run->h.type;
		__entry->pn = pn;
		__entry->n = run->n;
		__entry->len = run->len;
		__entry->ecn = DBLP_SKB_CB(run->train->skb)->ecn;
	),

	TP_printk(DBLP_TRACE_FMT "type=%s pn=%llu n=%u len=%u ecn=%u",
		  DBLP_TRACE_ARGS,
		  __print_symbolic(__entry->type, dblp_pkt_types),
		  __entry->pn, __entry->n, __entry->len, __entry->ecn)
);

TRACE_EVENT(dblp_packet_dropped,
	TP_PROTO(const struct net *net, const struct dblp_sock *dsk,
		 enum dblp_mib_item why, u32 n),

	TP_ARGS(net, dsk, why, n),

	TP_STRUCT__entry(
		DBLP_TRACE_SOCK
		__field(u32, why)
		__field(u32, n)
	),

	TP_fast_assign(
		__entry->netns = net->ns.inum;
		__entry->sock = dsk ? dsk->id : 0;
		__entry->why = why;
		__entry->n = n;
	),

	TP_printk(DBLP_TRACE_FMT "why=%s n=%u", DBLP_TRACE_ARGS,
		  __print_symbolic(__entry->why, dblp_mib_items), __entry->n)
);

TRACE_EVENT(dblp_packet_lost,
	TP_PROTO(const struct dblp_sock *dsk, u64 pn,
		 const struct dblp_sent_pkt *pkt, enum dblp_lost_why why),

	TP_ARGS(dsk, pn, pkt, why),

	TP_STRUCT__entry(
		DBLP_TRACE_SOCK
		__field(u64, pn)
		__field(u64, largest)
		__field(u32, age_us)
		__field(u32, bytes)
		__field(u32, inflight)
		__field(u8, why)
	),

	TP_fast_assign(
		DBLP_TRACE_ASSIGN(dsk);
		__entry->pn = pn;
		__entry->largest = dsk->sent.largest_acked;
		__entry->age_us = div_u64(ktime_get_ns() - pkt->sent,
					  NSEC_PER_USEC);
		__entry->bytes = pkt->bytes;
		__entry->inflight = dsk->sent.inflight;
		__entry->why = why;
	),

	TP_printk(DBLP_TRACE_FMT
		  "pn=%llu why=%s largest=%llu age_us=%u bytes=%u inflight=%u",
		  DBLP_TRACE_ARGS, __entry->pn,
		  __print_symbolic(__entry->why, dblp_losses),
		  __entry->largest, __entry->age_us, __entry->bytes,
		  __entry->inflight)
);

TRACE_EVENT(dblp_pto,
	TP_PROTO(const struct dblp_sock *dsk),

	TP_ARGS(dsk),

	TP_STRUCT__entry(
		DBLP_TRACE_SOCK
		__field(u32, count)
		__field(u32, inflight)
		__field(u32, srtt_us)
		__field(u32, silent_us)
	),

	TP_fast_assign(
		DBLP_TRACE_ASSIGN(dsk);
		__entry->count = dsk->tx.pto_count;
		__entry->inflight = dsk->sent.inflight;
		__entry->srtt_us = div_u64(dsk->rtt.srtt, NSEC_PER_USEC);
		__entry->silent_us = div_u64(ktime_get_ns() - dsk->tx.last_sent,
					     NSEC_PER_USEC);
	),

	TP_printk(DBLP_TRACE_FMT
		  "count=%u inflight=%u srtt_us=%u silent_us=%u",
		  DBLP_TRACE_ARGS, __entry->count, __entry->inflight,
		  __entry->srtt_us, __entry->silent_us)
);

/* Both ends have the same fields, in different structures */
DECLARE_EVENT_CLASS(dblp_msg,
	TP_PROTO(const struct dblp_sock *dsk, const struct dblp_tx_msg *tx,
		 const struct dblp_rx_msg *rx),

	TP_ARGS(dsk, tx, rx),

	TP_STRUCT__entry(
		DBLP_TRACE_SOCK
		__field(u64, tag)
		__field(u32, msg)
		__field(u32, length)
		__field(u32, offset)
		__field(u32, total)
		__field(u32, missing)
		__field(u32, critical)
		__field(u32, budget)
		__field(u8, side)
		__field(u8, policy)
		__field(u8, phase)
		__field(u8, reason)
		__field(u8, flags)
	),

	TP_fast_assign(
		DBLP_TRACE_ASSIGN(dsk);
		__entry->side = tx ? DBLP_TRACE_SEND : DBLP_TRACE_RECV;
		__entry->tag = tx ? tx->tag : rx->tag;
		__entry->msg = tx ? tx->id : rx->id;
		__entry->length = tx ? tx->len : rx->len;
		__entry->offset = tx ? tx->offset : rx->offset;
		__entry->total = tx ? tx->total : rx->total;
		__entry->missing = tx ? tx->missing : rx->missing;
		__entry->critical = tx ? tx->critical : rx->critical;
		__entry->budget = tx ? tx->budget : rx->budget;
		__entry->policy = tx ? tx->policy : rx->policy;
		__entry->phase = tx ? tx->phase : rx->phase;
		__entry->reason = tx ? tx->reason : rx->reason;
		__entry->flags = tx ? tx->flags : rx->flags;
	),

	TP_printk(DBLP_TRACE_FMT
		  "side=%s msg=%u tag=%llu length=%u offset=%u total=%u missing=%u critical=%u budget=%u policy=%s phase=%u reason=%s over_budget=%u",
		  DBLP_TRACE_ARGS,
		  __print_symbolic(__entry->side, dblp_sides), __entry->msg,
		  __entry->tag, __entry->length, __entry->offset,
		  __entry->total, __entry->missing, __entry->critical,
		  __entry->budget,
		  __print_symbolic(__entry->policy, dblp_policies),
		  __entry->phase,
		  __print_symbolic(__entry->reason, dblp_reasons),
		  !!(__entry->flags & DBLP_RCV_OVER_BUDGET))
);

DEFINE_EVENT_PRINT(dblp_msg, dblp_msg_open,
	TP_PROTO(const struct dblp_sock *dsk, const struct dblp_tx_msg *tx,
		 const struct dblp_rx_msg *rx),

	TP_ARGS(dsk, tx, rx),

	TP_printk(DBLP_TRACE_FMT
		  "side=%s msg=%u tag=%llu length=%u offset=%u total=%u critical=%u budget=%u policy=%s phase=%u",
		  DBLP_TRACE_ARGS,
		  __print_symbolic(__entry->side, dblp_sides), __entry->msg,
		  __entry->tag, __entry->length, __entry->offset,
		  __entry->total, __entry->critical, __entry->budget,
		  __print_symbolic(__entry->policy, dblp_policies),
		  __entry->phase)
);

DEFINE_EVENT(dblp_msg, dblp_msg_close,
	TP_PROTO(const struct dblp_sock *dsk, const struct dblp_tx_msg *tx,
		 const struct dblp_rx_msg *rx),

	TP_ARGS(dsk, tx, rx)
);

TRACE_EVENT(dblp_phase_changed,
	TP_PROTO(const struct net *net, const struct dblp_sock *dsk,
		 const struct dblp_job *job, u8 from, u8 to),

	TP_ARGS(net, dsk, job, from, to),

	TP_STRUCT__entry(
		DBLP_TRACE_SOCK
		__field(u32, job)
		__field(u8, from)
		__field(u8, to)
	),

	TP_fast_assign(
		__entry->netns = net->ns.inum;
		__entry->sock = dsk ? dsk->id : 0;
		__entry->job = job ? job->id : 0;
		__entry->from = from;
		__entry->to = to;
	),

	TP_printk(DBLP_TRACE_FMT "job=%u from=%u to=%u", DBLP_TRACE_ARGS,
		  __entry->job, __entry->from, __entry->to)
);

TRACE_EVENT(dblp_cc,
	TP_PROTO(struct dblp_sock *dsk, const struct dblp_rate_sample *rs),

	TP_ARGS(dsk, rs),

	TP_STRUCT__entry(
		DBLP_TRACE_SOCK
		__array(char, name, DBLP_CC_NAME_MAX)
		__array(char, mode, DBLP_CC_NAME_MAX)
		__field(u64, pacing_rate)
		__field(u64, rate)
		__field(u32, cwnd)
		__field(u32, inflight)
		__field(u32, srtt_us)
		__field(u32, min_rtt_us)
		__field(u32, acked)
		__field(u32, lost)
		__field(u32, ce)
		__field(u32, share)
		__field(u32, rtt_us)
		__field(u32, queue_us)
	),

	TP_fast_assign(
		DBLP_TRACE_ASSIGN(dsk);
		strscpy(__entry->name, dsk->cc.ops->name, DBLP_CC_NAME_MAX);
		strscpy(__entry->mode, dsk->cc.ops->mode(&dsk->cc),
			DBLP_CC_NAME_MAX);
		__entry->cwnd = dsk->cc.cwnd;
		__entry->pacing_rate = dsk->cc.pacing_rate;
		__entry->rate = rs->rate;
		__entry->inflight = dsk->sent.inflight;
		__entry->srtt_us = div_u64(dsk->rtt.srtt, NSEC_PER_USEC);
		__entry->min_rtt_us = div_u64(dsk->rtt.min, NSEC_PER_USEC);
		__entry->acked = rs->acked;
		__entry->lost = rs->lost;
		__entry->ce = rs->ce;
		__entry->share = rs->share;
		__entry->rtt_us = div_u64(rs->rtt, NSEC_PER_USEC);
		__entry->queue_us = div_u64(rs->queue, NSEC_PER_USEC);
	),

	TP_printk(DBLP_TRACE_FMT
		  "name=%s mode=%s cwnd=%u pacing_rate=%llu rate=%llu inflight=%u srtt_us=%u min_rtt_us=%u acked=%u lost=%u ce=%u share=%u rtt_us=%u queue_us=%u",
		  DBLP_TRACE_ARGS, __entry->name, __entry->mode,
		  __entry->cwnd, __entry->pacing_rate, __entry->rate,
		  __entry->inflight, __entry->srtt_us, __entry->min_rtt_us,
		  __entry->acked, __entry->lost, __entry->ce, __entry->share,
		  __entry->rtt_us, __entry->queue_us)
);

TRACE_EVENT(dblp_cc_switched,
	TP_PROTO(const struct dblp_sock *dsk, const struct dblp_cc_ops *to),

	TP_ARGS(dsk, to),

	TP_STRUCT__entry(
		DBLP_TRACE_SOCK
		__array(char, from, DBLP_CC_NAME_MAX)
		__array(char, to, DBLP_CC_NAME_MAX)
		__field(u64, pacing_rate)
		__field(u32, cwnd)
	),

	TP_fast_assign(
		DBLP_TRACE_ASSIGN(dsk);
		strscpy(__entry->from, dsk->cc.ops->name, DBLP_CC_NAME_MAX);
		strscpy(__entry->to, to->name, DBLP_CC_NAME_MAX);
		__entry->pacing_rate = dsk->cc.pacing_rate;
		__entry->cwnd = dsk->cc.cwnd;
	),

	TP_printk(DBLP_TRACE_FMT "from=%s to=%s cwnd=%u pacing_rate=%llu",
		  DBLP_TRACE_ARGS, __entry->from, __entry->to,
		  __entry->cwnd, __entry->pacing_rate)
);

#endif /* _NET_DBLP_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace

/* This part must be outside protection */
#include <trace/define_trace.h>
