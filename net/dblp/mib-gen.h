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
	__DBLP_MIB_MAX
};

#endif /* _NET_DBLP_MIB_GEN_H */
