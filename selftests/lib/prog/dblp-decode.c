// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decodes packets, UDP payloads in hexadecimal, one per line, by the module's codec, and
 * prints their fields: see usage(). Tests compare other decoders with it.
 */
#include <linux/dblp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "segmap.h"
#include "wire.h"

#define PACKET_MAX	65536

static const char * const drops[] = {
	[DBLP_WIRE_OK]		= "-",
	[DBLP_WIRE_SHORT]	= "DropShort",
	[DBLP_WIRE_VERSION]	= "DropVersion",
	[DBLP_WIRE_TYPE]	= "DropType",
	[DBLP_WIRE_FIELD]	= "DropField",
	[DBLP_WIRE_TRAILING]	= "DropTrailing",
};

static void show(const char *name, unsigned long long value)
{
	printf(" dblp.%s=%llu", name, value);
}

static void show_cookie(const u8 *p)
{
	struct dblp_cookie c;

	dblp_get_cookie(&c, p);
	show("cookie.cid", c.scid);
	show("cookie.features", c.features);
	show("cookie.born", c.born_ms);
	show("cookie.mac", c.mac);
}

/* The time follows the parameters */
static enum dblp_wire_error show_params(const u8 *p, bool server)
{
	struct dblp_params a;
	enum dblp_wire_error err = dblp_get_params(&a, p);

	if (server && a.features)
		err = DBLP_WIRE_FIELD;

	show("params.features", a.features);
	show("params.cap", a.cap);
	show("params.max_msg", a.max_msg);
	show("params.window", a.window);
	show("params.max_data", a.max_data);
	show("params.msg_max", a.msg_max);
	show("params.rtt", a.rtt_us);
	show("time", dblp_get_u64(p + DBLP_PARAMS_LEN));
	return err;
}

static bool is_zero(const u8 *p, u32 len)
{
	while (len--)
		if (*p++)
			return false;
	return true;
}

/* The checks that the module has in input.c and handshake.c instead of wire.c */
static enum dblp_wire_error show_rst(const u8 *p)
{
	u32 reason = dblp_load_u32(p + DBLP_HDR_LEN);

	show("rst.reason", reason);
	show("rst.echo", dblp_get_u64(p + DBLP_HDR_LEN + 8));
	return !reason || reason >= __DBLP_RST_MAX ||
	       dblp_load_u32(p + DBLP_HDR_LEN + 4) ?
	       DBLP_WIRE_FIELD : DBLP_WIRE_OK;
}

static enum dblp_wire_error show_init(const struct dblp_hdr *h, const u8 *p)
{
	u32 padding = DBLP_HDR_LEN + 8 + DBLP_TIME_LEN;
	u64 cid = dblp_get_u64(p + DBLP_HDR_LEN);

	show("cid", cid);
	show("time", dblp_get_u64(p + DBLP_HDR_LEN + 8));
	return h->dcid || !cid ||
	       !is_zero(p + padding, DBLP_INIT_LEN - padding) ?
	       DBLP_WIRE_FIELD : DBLP_WIRE_OK;
}

static void show_ack(const struct dblp_frame *f)
{
	u32 i;

	show("ack.more", f->ack.n - 1);
	show("ack.largest", f->ack.range[0].last);
	show("ack.delay", f->ack.delay_us);
	show("ack.below", f->ack.range[0].last - f->ack.range[0].first);
	for (i = 1; i < f->ack.n; i++) {
		show("ack.gap",
		     (u32)(f->ack.range[i - 1].first - f->ack.range[i].last - 2));
		show("ack.length",
		     (u32)(f->ack.range[i].last - f->ack.range[i].first));
	}
}

static void show_lossmap(const struct dblp_frame *f)
{
	u32 i;

	show("lossmap.words", f->lossmap.words);
	show("lossmap.msg", f->lossmap.msg_id);
	show("lossmap.first", f->lossmap.first);
	for (i = 0; i < f->lossmap.words; i++)
		show("lossmap.map", dblp_load_u32(f->lossmap.bits + 4 * i));
}

static void show_frame(const struct dblp_frame *f)
{
	show("frame", f->type);
	switch (f->type) {
	case DBLP_FRAME_ACK:
		return show_ack(f);
	case DBLP_FRAME_ECN:
		show("ecn.ect0", f->ecn.ect0);
		show("ecn.ect1", f->ecn.ect1);
		return show("ecn.ce", f->ecn.ce);
	case DBLP_FRAME_FLOW:
		show("flow.max_msg", f->flow.max_msg);
		show("flow.cap", f->flow.cap);
		return show("flow.max_data", f->flow.max_data);
	case DBLP_FRAME_PING:
		return show("ping.wanted", f->ping.wanted);
	case DBLP_FRAME_CLOSE:
		show("close.reason", f->close.reason);
		show("close.over", f->close.flags == DBLP_RCV_OVER_BUDGET);
		show("close.msg", f->close.msg_id);
		show("close.missing", f->close.missing);
		show("close.segments", f->close.missing_segs);
		return show("close.budget", f->close.budget);
	case DBLP_FRAME_LOSSMAP:
		return show_lossmap(f);
	case DBLP_FRAME_META:
		show("meta.msg", f->meta.msg_id);
		show("meta.critical", f->meta.critical);
		show("meta.deadline", f->meta.deadline);
		show("meta.offset", f->meta.offset);
		show("meta.total", f->meta.total);
		return show("meta.tag", f->meta.tag);
	case DBLP_FRAME_FIN:
		return show("fin.end", f->fin.end);
	case DBLP_FRAME_SHARE:
		show("share.n", f->share.n);
		return show("share.all", f->share.all);
	case DBLP_FRAME_BUDGET:
		show("budget.msg", f->budget.msg_id);
		return show("budget.ppm", f->budget.ppm);
	case DBLP_FRAME_AUTH:
		show("auth.key", f->auth.key);
		return show("auth.number", f->auth.number);
	case DBLP_FRAME_CANCEL:
		show("cancel.started", f->cancel.started);
		show("cancel.msg", f->cancel.msg_id);
		show("cancel.len", f->cancel.len);
		show("cancel.offset", f->cancel.offset);
		show("cancel.total", f->cancel.total);
		return show("cancel.tag", f->cancel.tag);
	case DBLP_FRAME_ARRIVAL:
		return show("arrival.at", f->arrival.at);
	}
}

/* As dblp_check_frames(), without checks that need a connection */
static const char *show_frames(u8 type, const u8 *p, u32 len,
			       const struct dblp_data *d)
{
	bool mismatch = false, meta = false;
	enum dblp_wire_error err;
	struct dblp_frame f;

	while (len) {
		err = dblp_get_frame(&f, &p, &len);
		if (err)
			return drops[err];
		if (f.type == DBLP_FRAME_META) {
			if (meta || !d)
				return drops[DBLP_WIRE_FIELD];
			meta = true;
			mismatch = f.meta.critical > d->msg_len ||
				   d->msg_len > f.meta.total - f.meta.offset;
		}
		if (type == DBLP_PKT_ACK && dblp_needs_ack(f.type))
			return drops[DBLP_WIRE_FIELD];
		if (f.type == DBLP_FRAME_AUTH ? len : type < DBLP_PKT_ACK ||
						      type == DBLP_PKT_PROBE)
			return drops[DBLP_WIRE_FIELD];
		show_frame(&f);
	}
	return mismatch ? "DropMismatch" : drops[DBLP_WIRE_OK];
}

static const char *show_data(const struct dblp_hdr *h, const u8 *p, u32 len)
{
	u32 at = DBLP_HDR_LEN + DBLP_DATA_HDR_LEN, i;
	enum dblp_wire_error err;
	struct dblp_zeromap z;
	struct dblp_data d;

	err = dblp_get_data(&d, h, p + DBLP_HDR_LEN, len - DBLP_HDR_LEN, len);
	if (err)
		return drops[err];
	show("msg", d.msg_id);
	show("offset", d.offset);
	show("msg_len", d.msg_len);
	show("budget", d.budget);
	show("policy", d.policy);
	show("phase", d.phase);
	show("repair", d.repair);
	show("meta", d.meta);
	show("zeros", d.zeros);
	if (d.zeros) {
		z.p = p + at + h->ctl_len;
		z.first = d.offset / h->seg_size;
		z.words = d.seg_len / 4;
		if (!dblp_zeromap_valid(&z, (d.msg_len - 1) / h->seg_size + 1))
			return drops[DBLP_WIRE_FIELD];
		for (i = 0; i < z.words; i++)
			show("zeromap", dblp_load_u32(z.p + 4 * i));
	}
	return show_frames(h->type, p + at, h->ctl_len, &d);
}

static enum dblp_wire_error show_body(const struct dblp_hdr *h, const u8 *p,
				      u32 len)
{
	u32 at;

	switch (h->type) {
	case DBLP_PKT_INIT:
		return show_init(h, p);
	case DBLP_PKT_INIT_ACK:
		show_cookie(p + DBLP_HDR_LEN);
		show("time", dblp_get_u64(p + DBLP_HDR_LEN + DBLP_COOKIE_LEN));
		return dblp_get_u64(p + DBLP_HDR_LEN) ? DBLP_WIRE_OK :
							DBLP_WIRE_FIELD;
	case DBLP_PKT_COOKIE_ECHO:
		show("cid", dblp_get_u64(p + DBLP_HDR_LEN));
		show_cookie(p + DBLP_HDR_LEN + 8);
		return show_params(p + DBLP_ECHO_PARAMS, false);
	case DBLP_PKT_COOKIE_ACK:
		return show_params(p + DBLP_HDR_LEN, true);
	case DBLP_PKT_VERSION:
		show("cid", dblp_get_u64(p + DBLP_HDR_LEN));
		for (at = DBLP_HDR_LEN + 8; at + 4 <= len; at += 4)
			show("spoken", dblp_load_u32(p + at));
		return DBLP_WIRE_OK;
	case DBLP_PKT_RST:
		return show_rst(p);
	default:
		return is_zero(p + DBLP_HDR_LEN + h->ctl_len,
			       len - DBLP_HDR_LEN - h->ctl_len) ?
		       DBLP_WIRE_OK : DBLP_WIRE_FIELD;
	}
}

static const char *show_other(const struct dblp_hdr *h, const u8 *p, u32 len)
{
	const char *drop = drops[DBLP_WIRE_OK];
	u32 auth = dblp_auth_at(h, len);

	if (auth)
		drop = show_frames(h->type, p + auth, DBLP_AUTH_LEN, NULL);
	if (drop != drops[DBLP_WIRE_OK])
		return drop;
	return drops[show_body(h, p, len)];
}

static void decode(const u8 *p, u32 len)
{
	struct dblp_hdr h;
	enum dblp_wire_error err = dblp_get_hdr(&h, p, len);
	const char *drop;

	if (!err) {
		show("type", h.type);
		show("ctl_len", h.ctl_len / 4);
		show("seg_size", h.seg_size);
		show("pn", h.pn);
		show("dcid", h.dcid);
	}
	if (err)
		drop = drops[err];
	else if (h.type == DBLP_PKT_DATA)
		drop = show_data(&h, p, len);
	else if (h.type == DBLP_PKT_ACK || h.type == DBLP_PKT_CTRL)
		drop = show_frames(h.type, p + DBLP_HDR_LEN, h.ctl_len, NULL);
	else
		drop = show_other(&h, p, len);
	printf(" %s\n", drop);
}

static void usage(void)
{
	fputs("Usage: dblp-decode < PACKETS\n"
	      "Decodes the UDP payload in hexadecimal of each line. Prints for each a\n"
	      "word NAME=VALUE for each field that the module reads, and as the last\n"
	      "word the counter under which a receiver drops the packet, or -.\n",
	      stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	static char line[2 * PACKET_MAX + 2];
	size_t len, i;

	if (argc != 1)
		usage();
	while (fgets(line, sizeof(line), stdin)) {
		/* Exactly as large as the packet, so that ASan finds reads beyond it */
		u8 *packet;

		len = strspn(line, "0123456789abcdefABCDEF") / 2;
		packet = malloc(len + !len);
		if (!packet)
			return 1;
		for (i = 0; i < len; i++)
			sscanf(line + 2 * i, "%2hhx", &packet[i]);
		decode(packet, len);
		free(packet);
	}
	return 0;
}
