// SPDX-License-Identifier: GPL-2.0-only
/*
 * Do not edit directly, auto-generated from:
 *	Documentation/netlink/specs/dblp.yaml
 */

#include "names.h"

const struct counter counters[DBLP_A_STATS_MAX + 1] = {
	[DBLP_A_STATS_CONN_ACTIVE] = {
		"ConnActive",
		"connect() calls that started a handshake",
	},
	[DBLP_A_STATS_CONN_PASSIVE] = {
		"ConnPassive",
		"Connections that a listener established",
	},
	[DBLP_A_STATS_CONN_REFUSED] = {
		"ConnRefused",
		"Handshakes refused by a reset from the peer",
	},
	[DBLP_A_STATS_CONN_TIMEOUT] = {
		"ConnTimeout",
		"Connections and handshakes ended because the peer did not answer or sending failed",
	},
	[DBLP_A_STATS_CONN_RESET] = {
		"ConnReset",
		"Connections ended by a reset from the peer",
	},
	[DBLP_A_STATS_COOKIE_SENT] = {
		"CookieSent",
		"Cookies sent to clients",
	},
	[DBLP_A_STATS_COOKIE_BAD] = {
		"CookieBad",
		"Cookies received that this host did not make for the client",
	},
	[DBLP_A_STATS_COOKIE_STALE] = {
		"CookieStale",
		"Cookies received too late or a second time",
	},
	[DBLP_A_STATS_ACCEPT_QUEUE_FULL] = {
		"AcceptQueueFull",
		"Handshakes dropped because too many connections wait for accept()",
	},
	[DBLP_A_STATS_RST_SENT] = {
		"RstSent",
		"Resets sent",
	},
	[DBLP_A_STATS_RST_RECEIVED] = {
		"RstReceived",
		"Resets accepted",
	},
	[DBLP_A_STATS_PKT_SENT] = {
		"PktSent",
		"Packets sent that have a packet number",
	},
	[DBLP_A_STATS_PKT_RECEIVED] = {
		"PktReceived",
		"Packets accepted",
	},
	[DBLP_A_STATS_PKT_LOST] = {
		"PktLost",
		"Packets declared lost",
	},
	[DBLP_A_STATS_PKT_SPURIOUS] = {
		"PktSpurious",
		"Packets declared lost that were acknowledged later",
	},
	[DBLP_A_STATS_PTO_EXPIRED] = {
		"PtoExpired",
		"Probe timeouts",
	},
	[DBLP_A_STATS_ACK_SENT] = {
		"AckSent",
		"Packets sent that carry only an ACK",
	},
	[DBLP_A_STATS_SEG_FIRST] = {
		"SegFirst",
		"Segments sent for the first time",
	},
	[DBLP_A_STATS_SEG_AGAIN] = {
		"SegAgain",
		"Segments sent again",
	},
	[DBLP_A_STATS_BYTES_FIRST] = {
		"BytesFirst",
		"Message bytes sent for the first time",
	},
	[DBLP_A_STATS_BYTES_AGAIN] = {
		"BytesAgain",
		"Message bytes sent again",
	},
	[DBLP_A_STATS_BYTES_RECEIVED] = {
		"BytesReceived",
		"Bytes of closed incoming messages, including missing ones",
	},
	[DBLP_A_STATS_BYTES_MISSING] = {
		"BytesMissing",
		"Missing bytes of closed incoming messages",
	},
	[DBLP_A_STATS_BYTES_FORGIVEN_UNSENT] = {
		"BytesForgivenUnsent",
		"Missing bytes of closed outgoing messages that were never sent",
	},
	[DBLP_A_STATS_BYTES_FORGIVEN_SENT] = {
		"BytesForgivenSent",
		"Missing bytes of closed outgoing messages that had been sent",
	},
	[DBLP_A_STATS_MSG_SENT] = {
		"MsgSent",
		"Closed outgoing messages",
	},
	[DBLP_A_STATS_MSG_SENT_EARLY] = {
		"MsgSentEarly",
		"Closed outgoing messages with bytes missing",
	},
	[DBLP_A_STATS_MSG_RECEIVED] = {
		"MsgReceived",
		"Closed incoming messages",
	},
	[DBLP_A_STATS_MSG_RECEIVED_EARLY] = {
		"MsgReceivedEarly",
		"Closed incoming messages with bytes missing",
	},
	[DBLP_A_STATS_DROP_SHORT] = {
		"DropShort",
		"Packets dropped: shorter than their headers say",
	},
	[DBLP_A_STATS_DROP_VERSION] = {
		"DropVersion",
		"Packets dropped: unsupported version of the protocol",
	},
	[DBLP_A_STATS_DROP_TYPE] = {
		"DropType",
		"Packets dropped: unknown type of packet or frame",
	},
	[DBLP_A_STATS_DROP_FIELD] = {
		"DropField",
		"Packets dropped: invalid value of a field",
	},
	[DBLP_A_STATS_DROP_TRAILING] = {
		"DropTrailing",
		"Packets dropped: bytes after the last frame",
	},
	[DBLP_A_STATS_DROP_UNKNOWN_CONN] = {
		"DropUnknownConn",
		"Packets dropped: unknown connection",
	},
	[DBLP_A_STATS_DROP_WRONG_PEER] = {
		"DropWrongPeer",
		"Packets dropped: source is not the address of the peer",
	},
	[DBLP_A_STATS_DROP_DUPLICATE] = {
		"DropDuplicate",
		"Packets dropped: packet number received before",
	},
	[DBLP_A_STATS_DROP_LATE] = {
		"DropLate",
		"Segments dropped: arrived before, or of a closed message",
	},
	[DBLP_A_STATS_DROP_WINDOW] = {
		"DropWindow",
		"Packets dropped: segment beyond the credit granted to the peer",
	},
	[DBLP_A_STATS_DROP_MISMATCH] = {
		"DropMismatch",
		"Packets dropped: segment or zero map contradicts its message",
	},
	[DBLP_A_STATS_DROP_MEMORY] = {
		"DropMemory",
		"Packets dropped: lack of memory",
	},
	[DBLP_A_STATS_DROP_STATE] = {
		"DropState",
		"Packets dropped: unexpected in this state of the socket",
	},
	[DBLP_A_STATS_DROP_NO_LISTENER] = {
		"DropNoListener",
		"Packets dropped: no socket listens on the port",
	},
	[DBLP_A_STATS_XMIT_ERROR] = {
		"XmitError",
		"Packets that IP refused to send",
	},
	[DBLP_A_STATS_KEEPALIVE_SENT] = {
		"KeepaliveSent",
		"Keepalive probes sent on idle connections",
	},
	[DBLP_A_STATS_ICMP_REFUSED] = {
		"IcmpRefused",
		"ICMP errors ignored because the quoted packet is of no connection",
	},
	[DBLP_A_STATS_MTU_REDUCED] = {
		"MtuReduced",
		"Reductions of a path MTU below the size of packets in flight",
	},
	[DBLP_A_STATS_MTU_PROBE] = {
		"MtuProbe",
		"Path MTU probes sent",
	},
	[DBLP_A_STATS_MTU_BLACK_HOLE] = {
		"MtuBlackHole",
		"Path MTU black holes detected",
	},
	[DBLP_A_STATS_ECN_FAILED] = {
		"EcnFailed",
		"Connections that stopped using ECN because validation failed",
	},
	[DBLP_A_STATS_REHASH] = {
		"Rehash",
		"Changes of the flow label of connections after timeouts",
	},
	[DBLP_A_STATS_MSG_SENT_COMPLETE] = {
		"MsgSentComplete",
		"Outgoing messages closed because every byte has arrived",
	},
	[DBLP_A_STATS_MSG_SENT_BUDGET] = {
		"MsgSentBudget",
		"Outgoing messages closed because the missing bytes fit the budget",
	},
	[DBLP_A_STATS_MSG_SENT_DEADLINE] = {
		"MsgSentDeadline",
		"Outgoing messages closed because their deadline had passed",
	},
	[DBLP_A_STATS_MSG_RECEIVED_COMPLETE] = {
		"MsgReceivedComplete",
		"Incoming messages closed because every byte has arrived",
	},
	[DBLP_A_STATS_MSG_RECEIVED_BUDGET] = {
		"MsgReceivedBudget",
		"Incoming messages closed because the missing bytes fit the budget",
	},
	[DBLP_A_STATS_MSG_RECEIVED_DEADLINE] = {
		"MsgReceivedDeadline",
		"Incoming messages closed because their deadline had passed",
	},
	[DBLP_A_STATS_BYTES_ELIDED] = {
		"BytesElided",
		"Bytes of all-zero segments, which were described instead of sent",
	},
	[DBLP_A_STATS_ORPHAN_TIMEOUT] = {
		"OrphanTimeout",
		"Connections reset after close() because messages made no progress for the user timeout",
	},
	[DBLP_A_STATS_ORPHAN_MEMORY] = {
		"OrphanMemory",
		"Connections reset after close() because messages made no progress while memory was short",
	},
	[DBLP_A_STATS_ORPHAN_TOO_MANY] = {
		"OrphanTooMany",
		"Connections reset by close() because there were too many orphans",
	},
	[DBLP_A_STATS_DROP_AUTH] = {
		"DropAuth",
		"Packets dropped: authentication failed",
	},
	[DBLP_A_STATS_ACK_UNSENT] = {
		"AckUnsent",
		"Connections reset because the peer acknowledged packets that were never sent",
	},
	[DBLP_A_STATS_MSG_SENT_CANCELLED] = {
		"MsgSentCancelled",
		"Outgoing messages that were cancelled",
	},
	[DBLP_A_STATS_MSG_RECEIVED_CANCELLED] = {
		"MsgReceivedCancelled",
		"Incoming messages that their sender has cancelled",
	},
	[DBLP_A_STATS_DROP_PORT] = {
		"DropPort",
		"Packets dropped: unknown source port, or more ports than accepted",
	},
	[DBLP_A_STATS_DROP_NOT_UNICAST] = {
		"DropNotUnicast",
		"Packets dropped: unknown connection, broadcast or multicast address",
	},
};

const char *const socket_attrs[DBLP_A_SOCKET_MAX + 1] = {
	[DBLP_A_SOCKET_PAD] = "pad",
	[DBLP_A_SOCKET_ID] = "id",
	[DBLP_A_SOCKET_STATE] = "state",
	[DBLP_A_SOCKET_LOCAL_ADDR] = "local_addr",
	[DBLP_A_SOCKET_LOCAL_PORT] = "local_port",
	[DBLP_A_SOCKET_LOCAL_SCOPE] = "local_scope",
	[DBLP_A_SOCKET_PEER_ADDR] = "peer_addr",
	[DBLP_A_SOCKET_PEER_PORT] = "peer_port",
	[DBLP_A_SOCKET_PEER_SCOPE] = "peer_scope",
	[DBLP_A_SOCKET_UID] = "uid",
	[DBLP_A_SOCKET_INODE] = "inode",
	[DBLP_A_SOCKET_CONGESTION] = "congestion",
	[DBLP_A_SOCKET_BUDGET] = "budget",
	[DBLP_A_SOCKET_BUDGET_CAP] = "budget_cap",
	[DBLP_A_SOCKET_PEER_BUDGET_CAP] = "peer_budget_cap",
	[DBLP_A_SOCKET_POLICY] = "policy",
	[DBLP_A_SOCKET_ORDER] = "order",
	[DBLP_A_SOCKET_FILL] = "fill",
	[DBLP_A_SOCKET_PEER_MSG_MAX] = "peer_msg_max",
	[DBLP_A_SOCKET_SEG_SIZE] = "seg_size",
	[DBLP_A_SOCKET_SRTT_US] = "srtt_us",
	[DBLP_A_SOCKET_RTTVAR_US] = "rttvar_us",
	[DBLP_A_SOCKET_MIN_RTT_US] = "min_rtt_us",
	[DBLP_A_SOCKET_CWND] = "cwnd",
	[DBLP_A_SOCKET_INFLIGHT] = "inflight",
	[DBLP_A_SOCKET_PTO_COUNT] = "pto_count",
	[DBLP_A_SOCKET_REORDERING] = "reordering",
	[DBLP_A_SOCKET_PACING_RATE] = "pacing_rate",
	[DBLP_A_SOCKET_DELIVERY_RATE] = "delivery_rate",
	[DBLP_A_SOCKET_BYTES_FIRST] = "bytes_first",
	[DBLP_A_SOCKET_BYTES_AGAIN] = "bytes_again",
	[DBLP_A_SOCKET_BYTES_DELIVERED] = "bytes_delivered",
	[DBLP_A_SOCKET_BYTES_FORGIVEN_UNSENT] = "bytes_forgiven_unsent",
	[DBLP_A_SOCKET_BYTES_FORGIVEN_SENT] = "bytes_forgiven_sent",
	[DBLP_A_SOCKET_BYTES_RECEIVED] = "bytes_received",
	[DBLP_A_SOCKET_BYTES_MISSING] = "bytes_missing",
	[DBLP_A_SOCKET_MSGS_SENT] = "msgs_sent",
	[DBLP_A_SOCKET_MSGS_SENT_EARLY] = "msgs_sent_early",
	[DBLP_A_SOCKET_MSGS_RECEIVED] = "msgs_received",
	[DBLP_A_SOCKET_MSGS_RECEIVED_EARLY] = "msgs_received_early",
	[DBLP_A_SOCKET_PKTS_SENT] = "pkts_sent",
	[DBLP_A_SOCKET_PKTS_LOST] = "pkts_lost",
	[DBLP_A_SOCKET_PKTS_RECEIVED] = "pkts_received",
	[DBLP_A_SOCKET_SPURIOUS] = "spurious",
	[DBLP_A_SOCKET_PHASE] = "phase",
	[DBLP_A_SOCKET_JOB] = "job",
	[DBLP_A_SOCKET_MSGS_SENT_COMPLETE] = "msgs_sent_complete",
	[DBLP_A_SOCKET_MSGS_SENT_BUDGET] = "msgs_sent_budget",
	[DBLP_A_SOCKET_MSGS_SENT_DEADLINE] = "msgs_sent_deadline",
	[DBLP_A_SOCKET_MSGS_RECEIVED_COMPLETE] = "msgs_received_complete",
	[DBLP_A_SOCKET_MSGS_RECEIVED_BUDGET] = "msgs_received_budget",
	[DBLP_A_SOCKET_MSGS_RECEIVED_DEADLINE] = "msgs_received_deadline",
	[DBLP_A_SOCKET_BYTES_ELIDED] = "bytes_elided",
	[DBLP_A_SOCKET_AUTH] = "auth",
	[DBLP_A_SOCKET_OWN] = "own",
	[DBLP_A_SOCKET_WHOLE_MAX] = "whole_max",
	[DBLP_A_SOCKET_REPORTS] = "reports",
	[DBLP_A_SOCKET_MSGS_SENT_CANCELLED] = "msgs_sent_cancelled",
	[DBLP_A_SOCKET_MSGS_RECEIVED_CANCELLED] = "msgs_received_cancelled",
	[DBLP_A_SOCKET_MEMINFO] = "meminfo",
	[DBLP_A_SOCKET_RECV_QUEUE] = "recv_queue",
	[DBLP_A_SOCKET_SEND_QUEUE] = "send_queue",
};

const char *const phase_attrs[DBLP_A_PHASE_MAX + 1] = {
	[DBLP_A_PHASE_ID] = "id",
	[DBLP_A_PHASE_NAME] = "name",
	[DBLP_A_PHASE_BUDGET] = "budget",
	[DBLP_A_PHASE_POLICY] = "policy",
	[DBLP_A_PHASE_ORDER] = "order",
	[DBLP_A_PHASE_FILL] = "fill",
	[DBLP_A_PHASE_SOCKETS] = "sockets",
	[DBLP_A_PHASE_BUDGET_CAP] = "budget_cap",
};

const char *const job_attrs[DBLP_A_JOB_MAX + 1] = {
	[DBLP_A_JOB_ID] = "id",
	[DBLP_A_JOB_NAME] = "name",
	[DBLP_A_JOB_PHASE] = "phase",
	[DBLP_A_JOB_SOCKETS] = "sockets",
	[DBLP_A_JOB_STATS] = "stats",
	[DBLP_A_JOB_PAD] = "pad",
	[DBLP_A_JOB_CLR] = "clr",
	[DBLP_A_JOB_LOW] = "low",
	[DBLP_A_JOB_HIGH] = "high",
	[DBLP_A_JOB_LOW_PHASE] = "low_phase",
	[DBLP_A_JOB_HIGH_PHASE] = "high_phase",
	[DBLP_A_JOB_ETA] = "eta",
	[DBLP_A_JOB_HOLD] = "hold",
	[DBLP_A_JOB_REGIME] = "regime",
	[DBLP_A_JOB_NORM] = "norm",
	[DBLP_A_JOB_CHANGE] = "change",
	[DBLP_A_JOB_REPORTS] = "reports",
	[DBLP_A_JOB_OWNER] = "owner",
	[DBLP_A_JOB_BUDGET_CAP] = "budget_cap",
};

const char *const job_phase_attrs[DBLP_A_JOB_PHASE_MAX + 1] = {
	[DBLP_A_JOB_PHASE_PAD] = "pad",
	[DBLP_A_JOB_PHASE_PHASE] = "phase",
	[DBLP_A_JOB_PHASE_MESSAGES] = "messages",
	[DBLP_A_JOB_PHASE_BYTES] = "bytes",
	[DBLP_A_JOB_PHASE_FORGIVEN] = "forgiven",
	[DBLP_A_JOB_PHASE_TIME_MS] = "time_ms",
};

const char *const param_attrs[DBLP_A_PARAM_MAX + 1] = {
	[DBLP_A_PARAM_INITIAL] = "initial",
	[DBLP_A_PARAM_CONGESTION] = "congestion",
	[DBLP_A_PARAM_BUDGET_CAP] = "budget_cap",
	[DBLP_A_PARAM_USER_TIMEOUT_MS] = "user_timeout_ms",
	[DBLP_A_PARAM_KEEPALIVE_MS] = "keepalive_ms",
	[DBLP_A_PARAM_GSO] = "gso",
};

const char *const cc_attrs[DBLP_A_CC_MAX + 1] = {
	[DBLP_A_CC_NAME] = "name",
	[DBLP_A_CC_DEFAULT] = "default",
};

const char *const event_attrs[DBLP_A_EVENT_MAX + 1] = {
	[DBLP_A_EVENT_PAD] = "pad",
	[DBLP_A_EVENT_JOB] = "job",
	[DBLP_A_EVENT_NAME] = "name",
	[DBLP_A_EVENT_OLD_PHASE] = "old_phase",
	[DBLP_A_EVENT_PHASE] = "phase",
	[DBLP_A_EVENT_BY] = "by",
	[DBLP_A_EVENT_NORM] = "norm",
	[DBLP_A_EVENT_PREVIOUS] = "previous",
	[DBLP_A_EVENT_CHANGE] = "change",
	[DBLP_A_EVENT_ETA] = "eta",
	[DBLP_A_EVENT_BUDGET] = "budget",
	[DBLP_A_EVENT_POLICY] = "policy",
	[DBLP_A_EVENT_ORDER] = "order",
	[DBLP_A_EVENT_FILL] = "fill",
	[DBLP_A_EVENT_SOCKET] = "socket",
	[DBLP_A_EVENT_LOCAL_ADDR] = "local_addr",
	[DBLP_A_EVENT_LOCAL_PORT] = "local_port",
	[DBLP_A_EVENT_LOCAL_SCOPE] = "local_scope",
	[DBLP_A_EVENT_PEER_ADDR] = "peer_addr",
	[DBLP_A_EVENT_PEER_PORT] = "peer_port",
	[DBLP_A_EVENT_PEER_SCOPE] = "peer_scope",
	[DBLP_A_EVENT_STATE] = "state",
	[DBLP_A_EVENT_ERROR] = "error",
	[DBLP_A_EVENT_MSG_ID] = "msg_id",
	[DBLP_A_EVENT_TAG] = "tag",
	[DBLP_A_EVENT_LENGTH] = "length",
	[DBLP_A_EVENT_MISSING] = "missing",
	[DBLP_A_EVENT_REASON] = "reason",
	[DBLP_A_EVENT_BUDGET_CAP] = "budget_cap",
};

const char *const event_names[DBLP_CMD_MAX + 1] = {
	[DBLP_CMD_JOB_ADD_NTF] = "job-add",
	[DBLP_CMD_JOB_DEL_NTF] = "job-del",
	[DBLP_CMD_JOB_PHASE_NTF] = "job-phase",
	[DBLP_CMD_PHASE_SET_NTF] = "phase-set",
	[DBLP_CMD_PHASE_DEL_NTF] = "phase-del",
	[DBLP_CMD_CONN_BEGIN_NTF] = "conn-begin",
	[DBLP_CMD_CONN_END_NTF] = "conn-end",
	[DBLP_CMD_MSG_CLOSED_NTF] = "msg-closed",
};
