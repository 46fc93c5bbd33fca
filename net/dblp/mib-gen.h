/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Do not edit directly, auto-generated from:
 *	Documentation/netlink/specs/dblp.yaml
 */
#ifndef _NET_DBLP_MIB_GEN_H
#define _NET_DBLP_MIB_GEN_H

enum dblp_mib_item {
	/* connect() calls that began a handshake */
	DBLP_MIB_CONNACTIVE,
	/* Connections that a listener took in */
	DBLP_MIB_CONNPASSIVE,
	/* Handshakes that the peer answered with a reset */
	DBLP_MIB_CONNREFUSED,
	/* Connections and handshakes ended because the peer kept silent, or nothing could be sent */
	DBLP_MIB_CONNTIMEOUT,
	/* Connections ended by a reset from the peer */
	DBLP_MIB_CONNRESET,
	/* Cookies given to clients, without keeping state for them */
	DBLP_MIB_COOKIESENT,
	/* Cookies that came back and were not ours */
	DBLP_MIB_COOKIEBAD,
	/* Cookies that came back too late or a second time */
	DBLP_MIB_COOKIESTALE,
	/* Handshakes dropped because nobody accepted fast enough */
	DBLP_MIB_ACCEPTQUEUEFULL,
	/* Resets sent */
	DBLP_MIB_RSTSENT,
	/* Resets accepted */
	DBLP_MIB_RSTRECEIVED,
	/* Packets with a number that were sent */
	DBLP_MIB_PKTSENT,
	/* Packets accepted */
	DBLP_MIB_PKTRECEIVED,
	/* Packets declared lost */
	DBLP_MIB_PKTLOST,
	/* Packets declared lost that were acknowledged later */
	DBLP_MIB_PKTSPURIOUS,
	/* Probe timeouts */
	DBLP_MIB_PTOEXPIRED,
	/* Packets sent for their ACK alone */
	DBLP_MIB_ACKSENT,
	/* Segments sent for the first time */
	DBLP_MIB_SEGFIRST,
	/* Segments sent again */
	DBLP_MIB_SEGAGAIN,
	/* Message bytes sent for the first time */
	DBLP_MIB_BYTESFIRST,
	/* Message bytes sent again */
	DBLP_MIB_BYTESAGAIN,
	/* Bytes of messages received that were closed */
	DBLP_MIB_BYTESRECEIVED,
	/* Bytes missing in messages received */
	DBLP_MIB_BYTESMISSING,
	/* Bytes missing in messages sent, that were never sent */
	DBLP_MIB_BYTESFORGIVENUNSENT,
	/* Bytes missing in messages sent, that had been sent */
	DBLP_MIB_BYTESFORGIVENSENT,
	/* Messages sent that were closed */
	DBLP_MIB_MSGSENT,
	/* Messages sent that were closed with bytes missing */
	DBLP_MIB_MSGSENTEARLY,
	/* Messages received that were closed */
	DBLP_MIB_MSGRECEIVED,
	/* Messages received that were closed with bytes missing */
	DBLP_MIB_MSGRECEIVEDEARLY,
	/* Packets dropped: shorter than their header or a field says */
	DBLP_MIB_DROPSHORT,
	/* Packets dropped: a version that we do not speak */
	DBLP_MIB_DROPVERSION,
	/* Packets dropped: unknown type of packet or frame */
	DBLP_MIB_DROPTYPE,
	/* Packets dropped: a field has a value that it may not have */
	DBLP_MIB_DROPFIELD,
	/* Packets dropped: bytes behind the last frame */
	DBLP_MIB_DROPTRAILING,
	/* Packets dropped: of no connection that we know */
	DBLP_MIB_DROPUNKNOWNCONN,
	/* Packets dropped: not from the address of the peer */
	DBLP_MIB_DROPWRONGPEER,
	/* Packets dropped: their number came before */
	DBLP_MIB_DROPDUPLICATE,
	/* Packets dropped: too old to tell whether they came before */
	DBLP_MIB_DROPLATE,
	/* Packets dropped: beyond the credit we gave */
	DBLP_MIB_DROPWINDOW,
	/* Packets dropped: a segment that contradicts its message */
	DBLP_MIB_DROPMISMATCH,
	/* Packets dropped: no memory */
	DBLP_MIB_DROPMEMORY,
	/* Packets dropped: not expected in this state of the socket */
	DBLP_MIB_DROPSTATE,
	/* Packets dropped: nobody listens there */
	DBLP_MIB_DROPNOLISTENER,
	/* Packets that IP did not take */
	DBLP_MIB_XMITERROR,
	/* Times that the peer of an idle connection was asked whether it is alive */
	DBLP_MIB_KEEPALIVESENT,
	/* ICMP errors that quote no packet of a connection */
	DBLP_MIB_ICMPREFUSED,
	/* Times that ICMP made packets under way too large for their path */
	DBLP_MIB_MTUREDUCED,
	/* Packets sent to try whether a size passes the path */
	DBLP_MIB_MTUPROBE,
	/* Times that large packets were found to vanish on their path */
	DBLP_MIB_MTUBLACKHOLE,
	/* Connections on whose path ECN marks do not arrive */
	DBLP_MIB_ECNFAILED,
	/* Times that timeouts made a connection take another flow label */
	DBLP_MIB_REHASH,
	/* Messages sent that were closed with every byte arrived */
	DBLP_MIB_MSGSENTCOMPLETE,
	/* Messages sent that were closed as what is missing fits the budget */
	DBLP_MIB_MSGSENTBUDGET,
	/* Messages sent that were closed as their deadline had passed */
	DBLP_MIB_MSGSENTDEADLINE,
	/* Messages received that were closed with every byte arrived */
	DBLP_MIB_MSGRECEIVEDCOMPLETE,
	/* Messages received that were closed as what is missing fits the budget */
	DBLP_MIB_MSGRECEIVEDBUDGET,
	/* Messages received that were closed as their deadline had passed */
	DBLP_MIB_MSGRECEIVEDDEADLINE,
	/* Message bytes that were all zero, and described instead of sent */
	DBLP_MIB_BYTESELIDED,
	/* Connections reset after close() as messages did not get on for the user timeout */
	DBLP_MIB_ORPHANTIMEOUT,
	/* Connections reset after close() as messages did not get on while memory was short */
	DBLP_MIB_ORPHANMEMORY,
	/* Connections reset by close() as there were too many that nobody has */
	DBLP_MIB_ORPHANTOOMANY,
	/* Packets dropped: not made with a key that we have, or with one though we have none */
	DBLP_MIB_DROPAUTH,
	/* Connections reset as the peer acknowledged packets that were never sent */
	DBLP_MIB_ACKUNSENT,
	/* Messages sent that were cancelled */
	DBLP_MIB_MSGSENTCANCELLED,
	/* Messages received that their sender has cancelled */
	DBLP_MIB_MSGRECEIVEDCANCELLED,
	/* Packets dropped: from a port that was not announced, or for more ports than are taken */
	DBLP_MIB_DROPPORT,
	/* Packets dropped: of no connection, and not from one host to this one */
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
