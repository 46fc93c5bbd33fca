/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: elements of a vector that a rank lacks, and their repair.
 *
 * Pure: no sockets. With %DBLP_OP_REPAIR a message has the elements that the last
 * message lost first, in its critical part, and then the others, which may be
 * lost. Both ends know the losses of the last message, so that neither needs a
 * list on the wire.
 */
#ifndef DBLP_REPAIR_H
#define DBLP_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "plan.h"
#include "rule.h"

/**
 * struct dblp_stale - elements of a vector that a rank lacks
 * @span: them, by rising number, without overlap
 * @n: entries of @span
 * @room: allocated entries of @span
 */
struct dblp_stale {
	struct dblp_span	*span;
	uint32_t		n;
	uint32_t		room;
};

/** dblp_stale_add() - add elements, none of which is in the list; 0 or -ENOMEM */
int dblp_stale_add(struct dblp_stale *s, struct dblp_span span);
/** dblp_stale_count() - number of elements in a range */
uint64_t dblp_stale_count(const struct dblp_stale *s, struct dblp_span range);
void dblp_stale_free(struct dblp_stale *s);

/**
 * enum dblp_piece - what has become of elements of a message
 * @DBLP_PIECE_END: the message has no more elements
 * @DBLP_PIECE_REPAIRED: they were in its critical part
 * @DBLP_PIECE_SENT: they have arrived
 * @DBLP_PIECE_LOST: they were lost
 */
enum dblp_piece {
	DBLP_PIECE_END,
	DBLP_PIECE_REPAIRED,
	DBLP_PIECE_SENT,
	DBLP_PIECE_LOST,
};

/**
 * struct dblp_pieces - the elements of a message, piece by piece
 * @old: elements that the last message lost
 * @loss: losses of this one
 * @at: position in @loss
 * @is_lost: @at has losses
 * @next: entry of @old
 * @span: the piece: elements of the vector
 * @end: end of the message's elements
 * @packed: position of @span among the elements in the message
 * @repaired: number of elements in its critical part
 * @sent: pieces of that part so far, and pieces behind it: elements
 */
struct dblp_pieces {
	const struct dblp_stale	*old;
	struct dblp_loss	loss;
	struct dblp_loss_at	at;
	bool			is_lost;
	uint32_t		next;
	struct dblp_span	span;
	uint64_t		end;
	uint64_t		packed;
	uint64_t		repaired;
	uint64_t		sent[2];
};

/**
 * dblp_pieces_begin() - before the first piece
 * @p: filled
 * @old: elements that the last message lost
 * @range: elements of the vector that this message carries
 * @loss: its losses as for a message without repaired elements, see &struct dblp_loss
 */
void dblp_pieces_begin(struct dblp_pieces *p, const struct dblp_stale *old,
		       struct dblp_span range, const struct dblp_loss *loss);

/** dblp_pieces_next() - set @span and @packed to the next piece; returns what it is */
enum dblp_piece dblp_pieces_next(struct dblp_pieces *p);

#endif /* DBLP_REPAIR_H */
