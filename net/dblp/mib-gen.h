/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Do not edit directly, auto-generated from:
 *	Documentation/netlink/specs/dblp.yaml
 */
#ifndef _NET_DBLP_MIB_GEN_H
#define _NET_DBLP_MIB_GEN_H

enum dblp_mib_item {
	/* connect() calls that started a handshake */
	DBLP_MIB_CONNACTIVE,
	/* Connections that a listener established */
	DBLP_MIB_CONNPASSIVE,
	/* Handshakes refused by a reset from the peer */
	DBLP_MIB_CONNREFUSED,
	/* Connections and handshakes ended because the peer did not answer or sending failed */
	DBLP_MIB_CONNTIMEOUT,
	/* Connections ended by a reset from the peer */
	DBLP_MIB_CONNRESET,
	/* Cookies sent to clients */
	DBLP_MIB_COOKIESENT,
	/* Cookies received that this host did not make for the client */
	DBLP_MIB_COOKIEBAD,
	/* Cookies received too late or a second time */
	DBLP_MIB_COOKIESTALE,
	/* Handshakes dropped because too many connections wait for accept() */
	DBLP_MIB_ACCEPTQUEUEFULL,
	/* Resets sent */
	DBLP_MIB_RSTSENT,
	/* Resets accepted */
	DBLP_MIB_RSTRECEIVED,
	/* Packets sent that have a packet number */
	DBLP_MIB_PKTSENT,
	/* Packets accepted */
	DBLP_MIB_PKTRECEIVED,
	/* Packets declared lost */
	DBLP_MIB_PKTLOST,
	/* Packets declared lost that were acknowledged later */
	DBLP_MIB_PKTSPURIOUS,
	/* Probe timeouts */
	DBLP_MIB_PTOEXPIRED,
	/* Packets sent that carry only an ACK */
	DBLP_MIB_ACKSENT,
	/* Segments sent for the first time */
	DBLP_MIB_SEGFIRST,
	/* Segments sent again */
	DBLP_MIB_SEGAGAIN,
	/* Message bytes sent for the first time */
	DBLP_MIB_BYTESFIRST,
	/* Message bytes sent again */
	DBLP_MIB_BYTESAGAIN,
	/* Bytes of closed incoming messages, including missing ones */
	DBLP_MIB_BYTESRECEIVED,
	/* Missing bytes of closed incoming messages */
	DBLP_MIB_BYTESMISSING,
	/* Missing bytes of closed outgoing messages that were never sent */
	DBLP_MIB_BYTESFORGIVENUNSENT,
	/* Missing bytes of closed outgoing messages that had been sent */
	DBLP_MIB_BYTESFORGIVENSENT,
	/* Closed outgoing messages */
	DBLP_MIB_MSGSENT,
	/* Closed outgoing messages with bytes missing */
	DBLP_MIB_MSGSENTEARLY,
	/* Closed incoming messages */
	DBLP_MIB_MSGRECEIVED,
	/* Closed incoming messages with bytes missing */
	DBLP_MIB_MSGRECEIVEDEARLY,
	/* Packets dropped: shorter than their headers say */
	DBLP_MIB_DROPSHORT,
	/* Packets dropped: unsupported version of the protocol */
	DBLP_MIB_DROPVERSION,
	/* Packets dropped: unknown type of packet or frame */
	DBLP_MIB_DROPTYPE,
	/* Packets dropped: invalid value of a field */
	DBLP_MIB_DROPFIELD,
	/* Packets dropped: bytes after the last frame */
	DBLP_MIB_DROPTRAILING,
	/* Packets dropped: unknown connection */
	DBLP_MIB_DROPUNKNOWNCONN,
	/* Packets dropped: source is not the address of the peer */
	DBLP_MIB_DROPWRONGPEER,
	/* Packets dropped: packet number received before */
	DBLP_MIB_DROPDUPLICATE,
	/* Segments dropped: arrived before, or of a closed message */
	DBLP_MIB_DROPLATE,
	/* Packets dropped: segment beyond the credit granted to the peer */
	DBLP_MIB_DROPWINDOW,
	/* Packets dropped: segment or zero map contradicts its message */
	DBLP_MIB_DROPMISMATCH,
	/* Packets dropped: lack of memory */
	DBLP_MIB_DROPMEMORY,
	/* Packets dropped: unexpected in this state of the socket */
	DBLP_MIB_DROPSTATE,
	/* Packets dropped: no socket listens on the port */
	DBLP_MIB_DROPNOLISTENER,
	/* Packets that IP refused to send */
	DBLP_MIB_XMITERROR,
	/* Keepalive probes sent on idle connections */
	DBLP_MIB_KEEPALIVESENT,
	/* ICMP errors ignored because the quoted packet is of no connection */
	DBLP_MIB_ICMPREFUSED,
	/* Reductions of a path MTU below the size of packets in flight */
	DBLP_MIB_MTUREDUCED,
	/* Path MTU probes sent */
	DBLP_MIB_MTUPROBE,
	/* Path MTU black holes detected */
	DBLP_MIB_MTUBLACKHOLE,
	/* Connections that stopped using ECN because validation failed */
	DBLP_MIB_ECNFAILED,
	/* Changes of the flow label of connections after timeouts */
	DBLP_MIB_REHASH,
	/* Outgoing messages closed because every byte has arrived */
	DBLP_MIB_MSGSENTCOMPLETE,
	/* Outgoing messages closed because the missing bytes fit the budget */
	DBLP_MIB_MSGSENTBUDGET,
	/* Outgoing messages closed because their deadline had passed */
	DBLP_MIB_MSGSENTDEADLINE,
	/* Incoming messages closed because every byte has arrived */
	DBLP_MIB_MSGRECEIVEDCOMPLETE,
	/* Incoming messages closed because the missing bytes fit the budget */
	DBLP_MIB_MSGRECEIVEDBUDGET,
	/* Incoming messages closed because their deadline had passed */
	DBLP_MIB_MSGRECEIVEDDEADLINE,
	/* Bytes of all-zero segments, which were described instead of sent */
	DBLP_MIB_BYTESELIDED,
	/* Connections reset after close() because messages made no progress for the user timeout */
	DBLP_MIB_ORPHANTIMEOUT,
	/* Connections reset after close() because messages made no progress while memory was short */
	DBLP_MIB_ORPHANMEMORY,
	/* Connections reset by close() because there were too many orphans */
	DBLP_MIB_ORPHANTOOMANY,
	/* Packets dropped: authentication failed */
	DBLP_MIB_DROPAUTH,
	/* Connections reset because the peer acknowledged packets that were never sent */
	DBLP_MIB_ACKUNSENT,
	/* Outgoing messages that were cancelled */
	DBLP_MIB_MSGSENTCANCELLED,
	/* Incoming messages that their sender has cancelled */
	DBLP_MIB_MSGRECEIVEDCANCELLED,
	/* Packets dropped: unknown source port, or more ports than accepted */
	DBLP_MIB_DROPPORT,
	/* Packets dropped: unknown connection, broadcast or multicast address */
	DBLP_MIB_DROPNOTUNICAST,
	__DBLP_MIB_MAX
};

/* All of them with their names, for trace.h */
#define dblp_mib_items \
	EM(DBLP_MIB_CONNACTIVE, "ConnActive") \
	EM(DBLP_MIB_CONNPASSIVE, "ConnPassive") \
	EM(DBLP_MIB_CONNREFUSED, "ConnRefused") \
	EM(DBLP_MIB_CONNTIMEOUT, "ConnTimeout") \
	EM(DBLP_MIB_CONNRESET, "ConnReset") \
	EM(DBLP_MIB_COOKIESENT, "CookieSent") \
	EM(DBLP_MIB_COOKIEBAD, "CookieBad") \
	EM(DBLP_MIB_COOKIESTALE, "CookieStale") \
	EM(DBLP_MIB_ACCEPTQUEUEFULL, "AcceptQueueFull") \
	EM(DBLP_MIB_RSTSENT, "RstSent") \
	EM(DBLP_MIB_RSTRECEIVED, "RstReceived") \
	EM(DBLP_MIB_PKTSENT, "PktSent") \
	EM(DBLP_MIB_PKTRECEIVED, "PktReceived") \
	EM(DBLP_MIB_PKTLOST, "PktLost") \
	EM(DBLP_MIB_PKTSPURIOUS, "PktSpurious") \
	EM(DBLP_MIB_PTOEXPIRED, "PtoExpired") \
	EM(DBLP_MIB_ACKSENT, "AckSent") \
	EM(DBLP_MIB_SEGFIRST, "SegFirst") \
	EM(DBLP_MIB_SEGAGAIN, "SegAgain") \
	EM(DBLP_MIB_BYTESFIRST, "BytesFirst") \
	EM(DBLP_MIB_BYTESAGAIN, "BytesAgain") \
	EM(DBLP_MIB_BYTESRECEIVED, "BytesReceived") \
	EM(DBLP_MIB_BYTESMISSING, "BytesMissing") \
	EM(DBLP_MIB_BYTESFORGIVENUNSENT, "BytesForgivenUnsent") \
	EM(DBLP_MIB_BYTESFORGIVENSENT, "BytesForgivenSent") \
	EM(DBLP_MIB_MSGSENT, "MsgSent") \
	EM(DBLP_MIB_MSGSENTEARLY, "MsgSentEarly") \
	EM(DBLP_MIB_MSGRECEIVED, "MsgReceived") \
	EM(DBLP_MIB_MSGRECEIVEDEARLY, "MsgReceivedEarly") \
	EM(DBLP_MIB_DROPSHORT, "DropShort") \
	EM(DBLP_MIB_DROPVERSION, "DropVersion") \
	EM(DBLP_MIB_DROPTYPE, "DropType") \
	EM(DBLP_MIB_DROPFIELD, "DropField") \
	EM(DBLP_MIB_DROPTRAILING, "DropTrailing") \
	EM(DBLP_MIB_DROPUNKNOWNCONN, "DropUnknownConn") \
	EM(DBLP_MIB_DROPWRONGPEER, "DropWrongPeer") \
	EM(DBLP_MIB_DROPDUPLICATE, "DropDuplicate") \
	EM(DBLP_MIB_DROPLATE, "DropLate") \
	EM(DBLP_MIB_DROPWINDOW, "DropWindow") \
	EM(DBLP_MIB_DROPMISMATCH, "DropMismatch") \
	EM(DBLP_MIB_DROPMEMORY, "DropMemory") \
	EM(DBLP_MIB_DROPSTATE, "DropState") \
	EM(DBLP_MIB_DROPNOLISTENER, "DropNoListener") \
	EM(DBLP_MIB_XMITERROR, "XmitError") \
	EM(DBLP_MIB_KEEPALIVESENT, "KeepaliveSent") \
	EM(DBLP_MIB_ICMPREFUSED, "IcmpRefused") \
	EM(DBLP_MIB_MTUREDUCED, "MtuReduced") \
	EM(DBLP_MIB_MTUPROBE, "MtuProbe") \
	EM(DBLP_MIB_MTUBLACKHOLE, "MtuBlackHole") \
	EM(DBLP_MIB_ECNFAILED, "EcnFailed") \
	EM(DBLP_MIB_REHASH, "Rehash") \
	EM(DBLP_MIB_MSGSENTCOMPLETE, "MsgSentComplete") \
	EM(DBLP_MIB_MSGSENTBUDGET, "MsgSentBudget") \
	EM(DBLP_MIB_MSGSENTDEADLINE, "MsgSentDeadline") \
	EM(DBLP_MIB_MSGRECEIVEDCOMPLETE, "MsgReceivedComplete") \
	EM(DBLP_MIB_MSGRECEIVEDBUDGET, "MsgReceivedBudget") \
	EM(DBLP_MIB_MSGRECEIVEDDEADLINE, "MsgReceivedDeadline") \
	EM(DBLP_MIB_BYTESELIDED, "BytesElided") \
	EM(DBLP_MIB_ORPHANTIMEOUT, "OrphanTimeout") \
	EM(DBLP_MIB_ORPHANMEMORY, "OrphanMemory") \
	EM(DBLP_MIB_ORPHANTOOMANY, "OrphanTooMany") \
	EM(DBLP_MIB_DROPAUTH, "DropAuth") \
	EM(DBLP_MIB_ACKUNSENT, "AckUnsent") \
	EM(DBLP_MIB_MSGSENTCANCELLED, "MsgSentCancelled") \
	EM(DBLP_MIB_MSGRECEIVEDCANCELLED, "MsgReceivedCancelled") \
	EM(DBLP_MIB_DROPPORT, "DropPort") \
	EM_LAST(DBLP_MIB_DROPNOTUNICAST, "DropNotUnicast")

#endif /* _NET_DBLP_MIB_GEN_H */
