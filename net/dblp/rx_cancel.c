// SPDX-License-Identifier: GPL-2.0-only
/*
 * Incoming messages that their sender has cancelled.
 *
 * A cancelled message is closed with all of its bytes missing, and delivered in
 * order. recvmsg() then fails with ECANCELED, so that the bytes received cannot
 * be mistaken for the message. A cancelled piece cancels its message.
 */
#include "dblp.h"
#include "trace.h"

/* Set the fields of META from a CANCEL */
static void dblp_rx_set_meta(struct dblp_rx_msg *msg,
			     const struct dblp_frame *f)
{
	msg->meta_missing = 0;
	msg->tag = f->cancel.tag;
	msg->offset = f->cancel.offset;
	msg->total = f->cancel.total;
}

/* Open a cancelled message of which no segment has arrived */
static int dblp_rx_open_cancelled(struct dblp_sock *dsk,
				  const struct dblp_frame *f,
				  struct dblp_rx_msg **msg)
{
	const struct dblp_data d = {
		.msg_id = f->cancel.msg_id,
		.msg_len = f->cancel.len,
	};

	if (!dblp_rx_may_open(dsk, d.msg_id,
			      f->cancel.started ? d.msg_len : 0))
		return -EPROTO;
	*msg = dblp_rx_open(dsk, &d, d.msg_len);
	if (!*msg)
		return -ENOMEM;
	dblp_rx_set_meta(*msg, f);
	trace_dblp_msg_open(dsk, NULL, *msg);
	if (f->cancel.started)
		return 0;
	(*msg)->bare = 1;
	dsk->rx.opened -= d.msg_len;
	return 0;
}

/* Does a CANCEL match the packets received of its message? */
static bool dblp_rx_is_cancel_of(const struct dblp_frame *f,
				 const struct dblp_rx_msg *msg)
{
	return f->cancel.started == !msg->bare && f->cancel.len == msg->len &&
	       (msg->meta_missing || (f->cancel.tag == msg->tag &&
				      f->cancel.offset == msg->offset &&
				      f->cancel.total == msg->total));
}

/* Free the received bytes of a message, and close it as cancelled */
static int dblp_rx_give_up(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
			   const struct dblp_frame *f)
{
	int err;

	msg->reason = DBLP_REASON_CANCELLED;
	err = dblp_ctl_add_close(dsk, msg);
	if (err) {
		msg->reason = DBLP_REASON_COMPLETE;
		return err;
	}
	dblp_rx_free_bytes(msg, false);
	dblp_rx_set_meta(msg, f);
	msg->missing = msg->len;
	msg->ranges = 1;
	dblp_rx_closed(dsk, msg);
	return 0;
}

/**
 * dblp_rx_cancel() - process a CANCEL frame
 * @dsk: socket
 * @f: CANCEL frame
 * @pn: number of its packet
 *
 * A message closed before is not changed. If it was closed with bytes missing,
 * or is closed now, its CLOSE precedes the ACK of the CANCEL. Without a CLOSE,
 * this ACK tells the sender that the message was complete.
 *
 * Return: 0, -EPROTO if the CANCEL is invalid, or -ENOMEM without any change.
 */
int dblp_rx_cancel(struct dblp_sock *dsk, const struct dblp_frame *f, u64 pn)
{
	u32 id = f->cancel.msg_id;
	struct dblp_rx_msg *msg;
	bool opened;
	int err;

	sock_owned_by_me(&dsk->sk);
	if (dblp_before(id, dsk->rx.next)) {
		dblp_ctl_late(dsk, id, pn);
		return 0;
	}
	msg = dblp_rx_find(dsk, id);
	opened = !msg;
	err = opened ? dblp_rx_open_cancelled(dsk, f, &msg) : 0;
	if (err)
		return err;
	if (!dblp_rx_is_cancel_of(f, msg))
		return -EPROTO;
	err = msg->closed ? 0 : dblp_rx_give_up(dsk, msg, f);
	if (!err)
		dblp_ctl_late(dsk, id, pn);
	else if (opened)
		dblp_rx_unopen(dsk, msg);
	return err;
}
