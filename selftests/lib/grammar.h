/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets of a peer that knows the protocol, some of them corrupted: the sender of one
 * direction of a connection, which keeps the connection alive if possible.
 */
#ifndef DBLP_TEST_GRAMMAR_H
#define DBLP_TEST_GRAMMAR_H

#include "scripted.h"

#define OUT_MAX		6
#define IN_MAX		16
#define MAP_WORDS	32
#define HISTORY		16
#define PNS		4096

/**
 * struct outgoing - message that is being sent
 * @used: this entry is used
 * @taken: a valid packet of the message was sent
 * @d: data header of its packets, with the offset of the last segment made
 * @seg_size: size of its segments, bytes
 * @segs: number of its segments
 * @next: next segment to send
 * @frames: bytes of frames in each packet
 * @meta: META frame, if @d.meta
 */
struct outgoing {
	bool			used;
	bool			taken;
	struct dblp_data	d;
	u32			seg_size;
	u32			segs;
	u32			next;
	u32			frames;
	struct dblp_frame	meta;
};

/**
 * struct incoming - message of the other end
 * @d: data header of its last packet
 * @seg_size: size of its segments, bytes
 * @critical: critical bytes at its start
 * @closed: a CLOSE was sent
 * @cancelled: a CANCEL was received
 * @words: number of words of @map
 * @map: the loss map, big-endian
 */
struct incoming {
	struct dblp_data	d;
	u32			seg_size;
	u32			critical;
	bool			closed;
	bool			cancelled;
	u32			words;
	u8			map[4 * MAP_WORDS];
};

/**
 * struct talker - a sender of random packets
 * @peer: the connection
 * @random: state of random_next()
 * @fill: value of all message bytes that it sends
 * @stride: size of the packets of a train, bytes
 * @zeros: zero maps are sent, or one was made by chance
 * @spoils: one in @spoils packets is spoiled
 * @lies: one in @lies frames is false and ends the connection
 * @lied: a false frame may have been sent
 * @placement: messages may be large
 * @next_id: ID of the next message
 * @spent: credit used
 * @chain: pieces of a message: bytes so far, in all, tag
 * @fin: a FIN was sent
 * @out: messages being sent
 * @in: messages of the other end
 * @n_in: number of messages of the other end
 * @over: the other end has ended the connection
 * @got: numbers of received packets that may be acknowledged
 * @past: earlier packets
 * @n_past: number of earlier packets
 * @n_spoiled: packets that were spoiled
 */
struct talker {
	struct peer		peer;
	u64			*random;
	u8			fill;
	u32			stride;
	volatile bool		zeros;
	u32			spoils;
	u32			lies;
	bool			lied;
	bool			placement;
	u32			next_id;
	u64			spent;
	struct {
		u32		offset;
		u32		total;
		u64		tag;
	} chain;
	bool			fin;
	struct outgoing		out[OUT_MAX];
	struct incoming		in[IN_MAX];
	u32			n_in;
	bool			over;
	bool			got[PNS];
	struct {
		u32		len;
		u8		byte[1500];
	} past[HISTORY];
	u32			n_past;
	u64			n_spoiled;
};

/** talker_begin() - reset all fields except @random and @n_spoiled; set @peer next */
void talker_begin(struct talker *t, u8 fill);

/** talker_listen() - record packets for the talker's peer from now on */
void talker_listen(struct talker *t);

/**
 * talker_train() - make packets of one length, except the last, or a single packet
 * @t: the talker
 * @twin: another talker, whose packets are mixed in, or NULL
 * @p: filled
 * @most: maximum number of packets
 *
 * Return: number of packets.
 */
u32 talker_train(struct talker *t, struct talker *twin, struct packet *p,
		 u32 most);

/** talker_below() - a random number smaller than @n */
u32 talker_below(struct talker *t, u32 n);

#endif /* DBLP_TEST_GRAMMAR_H */
