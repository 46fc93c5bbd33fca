-- SPDX-License-Identifier: GPL-2.0-only
--
-- A dissector of AF_DBLP for Wireshark and tshark. Copy it to the personal or global
-- Lua plugin folder (Help, About, Folders), or run
--
--	tshark -X lua_script:dblp.lua -r capture.pcap
--
-- The protocol has no port of its own. A UDP packet that is valid in all its fields is
-- taken as AF_DBLP, and so are all packets after it between the same addresses and
-- ports. If that finds nothing, see "Captures" in Documentation/admin.rst.
--
-- Documentation/protocol.rst has the formats. Names and rules are those of
-- net/dblp/core/wire.h, which selftests/tools/dissector compares. A packet that a
-- receiver would drop is marked with the counter of that drop.
-- drop is marked with the counter under which it would.

local dblp = Proto("dblp", "AF_DBLP")

dblp.prefs.trains = Pref.bool("Packets in a row", true,
	"With segmentation offload (UDP GSO, GRO), a capture on the sending or receiving " ..
	"machine shows several packets as one. Show each of them; otherwise all bytes " ..
	"after the first packet are trailing bytes.")

local VERSION, PORTS_MAX = 3, 16
local HDR_LEN, DATA_HDR_LEN = 16, 16
local PPM, MSG_MAX, SEG_MIN, SEG_MAX = 1000000, 0x7fff0000, 224, 65528

local INIT, INIT_ACK, COOKIE_ECHO, COOKIE_ACK, VERSIONS = 1, 2, 3, 4, 5
local RST, ACK, CTRL, DATA, PROBE = 6, 7, 8, 9, 10
local types = {
	[INIT] = "INIT", [INIT_ACK] = "INIT-ACK", [COOKIE_ECHO] = "COOKIE-ECHO",
	[COOKIE_ACK] = "COOKIE-ACK", [VERSIONS] = "VERSION", [RST] = "RST",
	[ACK] = "ACK", [CTRL] = "CTRL", [DATA] = "DATA", [PROBE] = "PROBE",
}

local F_ACK, F_ECN, F_FLOW, F_CLOSE, F_LOSSMAP = 1, 2, 3, 4, 5
local F_META, F_FIN, F_PING, F_SHARE, F_BUDGET, F_AUTH = 6, 7, 8, 9, 10, 11
local F_CANCEL, F_ARRIVAL = 12, 13
local frame_types = {
	[F_ACK] = "ACK", [F_ECN] = "ECN", [F_FLOW] = "FLOW", [F_CLOSE] = "CLOSE",
	[F_LOSSMAP] = "LOSSMAP", [F_META] = "META", [F_FIN] = "FIN",
	[F_PING] = "PING", [F_SHARE] = "SHARE", [F_BUDGET] = "BUDGET",
	[F_AUTH] = "AUTH", [F_CANCEL] = "CANCEL", [F_ARRIVAL] = "ARRIVAL",
}

local rst_reasons = {
	[1] = "UNKNOWN", [2] = "REFUSED", [3] = "CLOSED", [4] = "PROTOCOL",
	[5] = "TIMEOUT", [6] = "AUTH", [7] = "SPRAY",
}
local policies = { [0] = "full", [1] = "eager", [2] = "early" }
local reasons = { [0] = "complete", [1] = "budget", [2] = "deadline", [3] = "cancelled" }

local u8, u16, u32, u64 = ProtoField.uint8, ProtoField.uint16, ProtoField.uint32,
			  ProtoField.uint64
local flag, bytes = ProtoField.bool, ProtoField.bytes
local f = {
	drop = ProtoField.string("dblp.drop", "Dropped by a receiver", base.ASCII,
		"The counter of dblpctl stats for this drop"),
	version = u8("dblp.version", "Version", base.DEC, nil, 0xf0),
	type = u8("dblp.type", "Type", base.DEC, types, 0x0f),
	ctl_len = u8("dblp.ctl_len", "Control frames, words of 4 bytes"),
	seg_size = u16("dblp.seg_size", "Segment size (DATA), number of ports (COOKIE-ECHO), or port (PROBE)"),
	pn = u32("dblp.pn", "Packet number (low 32 bits)"),
	dcid = u64("dblp.dcid", "Destination connection ID", base.HEX),
	cid = u64("dblp.cid", "Client connection ID", base.HEX),
	time = u64("dblp.time", "Timestamp, sent or echoed"),
	padding = bytes("dblp.padding", "Padding"),
	reserved = bytes("dblp.reserved", "Reserved"),
	rest = bytes("dblp.rest", "Undecoded bytes"),
	spoken = u32("dblp.spoken", "Supported version"),

	cookie_cid = u64("dblp.cookie.cid", "Server connection ID", base.HEX),
	cookie_features = u16("dblp.cookie.features", "Cookie: features of the server", base.HEX),
	cookie_born = u64("dblp.cookie.born", "Cookie: creation time, ms"),
	cookie_mac = u64("dblp.cookie.mac", "Cookie: authentication code", base.HEX),
	params_features = u32("dblp.params.features", "Features", base.HEX, nil, 0xfff00000),
	params_cap = u32("dblp.params.cap", "Receive budget cap, ppm", base.DEC, nil, 0xfffff),
	params_max_msg = u32("dblp.params.max_msg", "First message that may not be sent"),
	params_window = u32("dblp.params.window", "Maximum outstanding credit"),
	params_max_data = u32("dblp.params.max_data", "Credit"),
	params_msg_max = u32("dblp.params.msg_max", "Largest accepted message, bytes"),
	params_rtt = u32("dblp.params.rtt", "Measured round-trip time, us"),
	rst_reason = u32("dblp.rst.reason", "Reason", base.DEC, rst_reasons),
	rst_echo = u64("dblp.rst.echo", "Echo", base.HEX),

	msg = u32("dblp.msg", "Message"),
	offset = u32("dblp.offset", "Offset"),
	msg_len = u32("dblp.msg_len", "Message length"),
	budget = u32("dblp.budget", "Budget, ppm", base.DEC, nil, 0xfffff000),
	policy = u32("dblp.policy", "Close policy", base.DEC, policies, 0xc00),
	phase = u32("dblp.phase", "Phase", base.DEC, nil, 0x380),
	class = u32("dblp.class", "Class (reserved)", base.DEC, nil, 0x60),
	repair = flag("dblp.repair", "First pass is over", 32, nil, 0x10),
	meta = flag("dblp.meta", "Has a META frame", 32, nil, 0x08),
	zeros = flag("dblp.zeros", "Zero map, no segment", 32, nil, 0x04),
	bits = u32("dblp.bits", "Reserved", base.DEC, nil, 0x03),
	segment = bytes("dblp.segment", "Segment"),
	zeromap = u32("dblp.zeromap", "Zero map", base.HEX),

	frame_type = u8("dblp.frame", "Frame", base.DEC, frame_types),
	frame_len = u8("dblp.frame.len", "Length, words of 4 bytes"),
	frame_arg = u16("dblp.frame.arg", "Argument"),
	ack_more = u16("dblp.ack.more", "Further ranges"),
	ack_largest = u32("dblp.ack.largest", "Largest packet number"),
	ack_delay = u32("dblp.ack.delay", "Delay, us"),
	ack_below = u32("dblp.ack.below", "Packets below the largest"),
	ack_gap = u16("dblp.ack.gap", "Gap"),
	ack_length = u16("dblp.ack.length", "Length"),
	ecn_ect0 = u32("dblp.ecn.ect0", "ECT(0)"),
	ecn_ect1 = u32("dblp.ecn.ect1", "ECT(1)"),
	ecn_ce = u32("dblp.ecn.ce", "CE"),
	flow_max_msg = u32("dblp.flow.max_msg", "First message that may not be sent"),
	flow_cap = u32("dblp.flow.cap", "Receive budget cap, ppm"),
	flow_max_data = u64("dblp.flow.max_data", "Credit"),
	close_over = flag("dblp.close.over", "Over budget", 16, nil, 0x100),
	close_reason = u16("dblp.close.reason", "Reason", base.DEC, reasons, 0xff),
	close_flags = u16("dblp.close.flags", "Reserved", base.HEX, nil, 0xfe00),
	close_msg = u32("dblp.close.msg", "Message"),
	close_missing = u32("dblp.close.missing", "Missing bytes"),
	close_segments = u32("dblp.close.segments", "Missing segments"),
	close_budget = u32("dblp.close.budget", "Budget, ppm"),
	lossmap_words = u16("dblp.lossmap.words", "Words"),
	lossmap_msg = u32("dblp.lossmap.msg", "Message"),
	lossmap_first = u32("dblp.lossmap.first", "First segment"),
	lossmap_map = u32("dblp.lossmap.map", "Missing segments", base.HEX),
	meta_msg = u32("dblp.meta.msg", "Message"),
	meta_critical = u32("dblp.meta.critical", "Critical bytes"),
	meta_deadline = u32("dblp.meta.deadline", "Deadline, us"),
	meta_offset = u32("dblp.meta.offset", "Offset of this piece"),
	meta_total = u32("dblp.meta.total", "Bytes of all pieces"),
	meta_tag = u64("dblp.meta.tag", "Tag"),
	ping_wanted = u64("dblp.ping.wanted", "Credit wanted"),
	fin_end = u32("dblp.fin.end", "Number of messages sent"),
	share_n = u16("dblp.share.n", "Receiving connections"),
	share_all = u32("dblp.share.all", "Bytes received on this port, in units of 64"),
	budget_msg = u32("dblp.budget.msg", "Message"),
	budget_ppm = u32("dblp.budget.ppm", "Budget, ppm"),
	auth_key = u16("dblp.auth.key", "Name of the newest key", base.HEX),
	auth_number = u32("dblp.auth.number", "Number (low 32 bits), for packets without packet number"),
	auth_tag = bytes("dblp.auth.tag", "Tag (not checked)"),
	cancel_started = u16("dblp.cancel.started", "Its bytes use credit"),
	cancel_msg = u32("dblp.cancel.msg", "Message"),
	cancel_len = u32("dblp.cancel.len", "Bytes"),
	cancel_offset = u32("dblp.cancel.offset", "Offset of this piece"),
	cancel_total = u32("dblp.cancel.total", "Bytes of all pieces"),
	cancel_tag = u64("dblp.cancel.tag", "Tag"),
	arrival_at = u32("dblp.arrival.at", "Arrival of the packet, ns of the peer's clock"),
}
dblp.fields = f

local function malformed(name, text)
	return ProtoExpert.new(name, text, expert.group.MALFORMED, expert.severity.ERROR)
end

-- Reasons of drops, by counter
local drops = {
	DropShort = malformed("dblp.short", "Shorter than its lengths say"),
	DropVersion = ProtoExpert.new("dblp.other_version", "Unsupported version",
		expert.group.PROTOCOL, expert.severity.NOTE),
	DropType = malformed("dblp.unknown_type", "Unknown type of packet or frame"),
	DropField = malformed("dblp.bad_field", "Invalid value of a field"),
	DropTrailing = malformed("dblp.trailing", "Bytes after the end"),
	DropMismatch = malformed("dblp.mismatch", "META contradicts the data header"),
}
local is_reset = ProtoExpert.new("dblp.reset", "Connection ended",
	expert.group.SEQUENCE, expert.severity.WARN)
local is_over = ProtoExpert.new("dblp.over_budget", "Closed over budget, by its deadline",
	expert.group.SEQUENCE, expert.severity.NOTE)
local is_cut = ProtoExpert.new("dblp.cut", "Truncated in the capture",
	expert.group.UNDECODED, expert.severity.NOTE)
dblp.experts = {
	drops.DropShort, drops.DropVersion, drops.DropType, drops.DropField,
	drops.DropTrailing, drops.DropMismatch, is_reset, is_over, is_cut,
}

-- Checks of a receiver, in its order -------------------------------------------

local fixed_len = {
	[INIT] = 128, [INIT_ACK] = 48, [COOKIE_ECHO] = 80, [COOKIE_ACK] = 48, [RST] = 32,
}
-- A VERSIONS packet is no longer than the INIT that it answers
local most_len = { [VERSIONS] = fixed_len[INIT] }
local numbered = { [CTRL] = true, [DATA] = true, [PROBE] = true }
local not_in_ack = { [F_LOSSMAP] = true, [F_META] = true, [F_FIN] = true,
		     [F_PING] = true, [F_BUDGET] = true, [F_CANCEL] = true }

-- Packets of connections that may have no frame except AUTH
local only_auth = { [COOKIE_ECHO] = true, [COOKIE_ACK] = true, [RST] = true, [PROBE] = true }
local AUTH_LEN = 24

local function all_zero(tvb, at, len)
	for i = at, at + len - 1 do
		if tvb(i, 1):uint() ~= 0 then
			return false
		end
	end
	return true
end

local function get(tvb, at)
	return tvb(at, 4):uint()
end

local function check_params(tvb, at, features)
	local msg_max = get(tvb, at + 16)

	if get(tvb, at) % 0x100000 > PPM or get(tvb, at) >= features * 0x100000 or msg_max == 0 or msg_max > MSG_MAX or
	   get(tvb, at + 12) > get(tvb, at + 8) or get(tvb, at + 20) > 60000000 then
		return "DropField"
	end
end

local check_frame = {
	[F_ACK] = function(tvb, at, words, arg)
		local span = get(tvb, at + 12)

		for i = 1, arg do
			local word = at + 12 + 4 * i

			span = span + tvb(word, 2):uint() + 2 + tvb(word + 2, 2):uint()
		end
		return span <= 0x7fffffff
	end,
	[F_FLOW] = function(tvb, at)
		return get(tvb, at + 8) <= PPM
	end,
	[F_CLOSE] = function(tvb, at, words, arg)
		local reason, flags = arg % 256, math.floor(arg / 256)
		local missing, segments = get(tvb, at + 8), get(tvb, at + 12)

		-- A complete message has no CLOSE
		if reason == 0 or not reasons[reason] or flags > 1 or get(tvb, at + 16) > PPM or
		   flags == 1 and reason ~= 2 then
			return false
		end
		if reason == 3 then
			return missing == 0 and segments == 0 and get(tvb, at + 16) == 0
		end
		return segments > 0 and missing <= MSG_MAX and segments <= missing
	end,
	[F_LOSSMAP] = function(tvb, at)
		local first = get(tvb, at + 8)

		return first % 32 == 0 and first < math.floor(MSG_MAX / SEG_MIN) + 1
	end,
	[F_META] = function(tvb, at)
		local offset, total = get(tvb, at + 16), get(tvb, at + 20)

		return total <= MSG_MAX and offset < total and
		       get(tvb, at + 8) <= total - offset
	end,
	[F_BUDGET] = function(tvb, at)
		return get(tvb, at + 8) <= PPM
	end,
	[F_CANCEL] = function(tvb, at)
		local len, offset, total = get(tvb, at + 8), get(tvb, at + 12), get(tvb, at + 16)

		return len > 0 and total <= MSG_MAX and offset < total and len <= total - offset
	end,
}

-- Length of a frame with this argument in words, or nil if the argument is invalid
local function frame_words(type, arg)
	local plain = { [F_ECN] = 4, [F_FLOW] = 5, [F_META] = 8, [F_FIN] = 2, [F_PING] = 3,
			[F_BUDGET] = 3, [F_ARRIVAL] = 2 }

	if type == F_AUTH then
		return 6
	end

	if type == F_ACK then
		return arg < 64 and 4 + arg or nil
	elseif type == F_CLOSE then
		return 5
	elseif type == F_LOSSMAP then
		return arg >= 1 and arg <= 120 and 3 + arg or nil
	elseif type == F_SHARE then
		return arg >= 1 and 2 or nil
	elseif type == F_CANCEL then
		return arg <= 1 and 7 or nil
	end
	return arg == 0 and plain[type] or nil
end

local function check_frames(tvb, at, len, type, msg_len)
	local stop, mismatch, meta = at + len

	while at < stop do
		local kind, words = tvb(at, 1):uint(), tvb(at + 1, 1):uint()
		local arg = tvb(at + 2, 2):uint()

		if not frame_types[kind] then
			return "DropType"
		elseif words == 0 then
			return "DropField"
		elseif at + 4 * words > stop then
			return "DropShort"
		elseif words ~= frame_words(kind, arg) or
		       check_frame[kind] and not check_frame[kind](tvb, at, words, arg) or
		       type == ACK and not_in_ack[kind] or
		       kind == F_AUTH and at + 4 * words ~= stop or
		       only_auth[type] and kind ~= F_AUTH or
		       kind == F_META and (meta or type ~= DATA) then
			return "DropField"
		end
		if kind == F_META then
			meta = true
			mismatch = get(tvb, at + 8) > msg_len or
				   get(tvb, at + 16) + msg_len > get(tvb, at + 20)
		end
		at = at + 4 * words
	end
	return mismatch and "DropMismatch" or nil
end

-- Is bit i set? Bits are counted from the least significant one of each word
local function has_bit(tvb, at, i)
	return tvb(at + 4 * math.floor(i / 32), 4):bitfield(31 - i % 32, 1) == 1
end

local function check_zeromap(tvb, at, len, first, n)
	local found

	if first % 32 ~= 0 then
		return "DropField"
	elseif len % 4 ~= 0 then
		return "DropShort"
	elseif len / 4 > math.floor((n - first - 1) / 32) + 1 then
		return "DropTrailing"
	end
	for i = 0, len * 8 - 1 do
		if has_bit(tvb, at, i) then
			found = true
			if first + i >= n then
				return "DropField"
			end
		end
	end
	return not found and "DropField" or nil
end

local function check_data(tvb, len, ctl_len, seg_size)
	local before = HDR_LEN + DATA_HDR_LEN + ctl_len
	local drop

	if len <= before then
		return "DropShort"
	end
	local offset, msg_len, attr = get(tvb, 20), get(tvb, 24), tvb(28, 4)
	if attr:bitfield(0, 20) > PPM or attr:bitfield(20, 2) > 2 or
	   attr:bitfield(25, 2) ~= 0 or attr:bitfield(30, 2) ~= 0 or
	   msg_len == 0 or msg_len > MSG_MAX or seg_size == 0 or seg_size > SEG_MAX or
	   msg_len > seg_size and seg_size < SEG_MIN or
	   offset >= msg_len or offset % seg_size ~= 0 then
		return "DropField"
	end
	if attr:bitfield(29, 1) == 1 then
		drop = check_zeromap(tvb, before, len - before, offset / seg_size,
				     math.floor((msg_len - 1) / seg_size) + 1)
	else
		local want = math.min(seg_size, msg_len - offset)

		drop = len - before < want and "DropShort" or
		       len - before > want and "DropTrailing" or nil
	end
	return drop or check_frames(tvb, HDR_LEN + DATA_HDR_LEN, ctl_len, DATA, msg_len)
end

-- In other packets than DATA, the field is a number of ports or a port
local function may_be_seg_size(type, n)
	if type == COOKIE_ECHO then
		return n ~= 1 and n <= PORTS_MAX
	elseif type == PROBE then
		return n < PORTS_MAX
	end
	return n == 0 or type == DATA
end

-- Counter of the drop if a receiver drops the packet for any connection, or nil if it
-- accepts the packet
local function check(tvb)
	local len = tvb:len()

	if len < HDR_LEN then
		return "DropShort"
	end
	local type, ctl_len = tvb(0, 1):bitfield(4, 4), 4 * tvb(1, 1):uint()
	local seg_size, pn = tvb(2, 2):uint(), get(tvb, 4)
	if tvb(0, 1):bitfield(0, 4) ~= VERSION then
		return "DropVersion"
	elseif not types[type] then
		return "DropType"
	elseif pn ~= 0 and not numbered[type] or not may_be_seg_size(type, seg_size) then
		return "DropField"
	end
	if type == DATA then
		if len < HDR_LEN + DATA_HDR_LEN + ctl_len then
			return "DropShort"
		end
		return check_data(tvb, len, ctl_len, seg_size)
	elseif type == ACK or type == CTRL then
		if len ~= HDR_LEN + ctl_len then
			return len < HDR_LEN + ctl_len and "DropShort" or "DropTrailing"
		end
		return check_frames(tvb, HDR_LEN, ctl_len, type)
	elseif ctl_len ~= 0 and (not only_auth[type] or ctl_len ~= AUTH_LEN) then
		return "DropField"
	end
	local fixed = fixed_len[type] and fixed_len[type] + ctl_len
	if len < (fixed or HDR_LEN + ctl_len) or type == VERSIONS and len < HDR_LEN + 8 then
		return "DropShort"
	elseif len > (most_len[type] or fixed or len) then
		return "DropTrailing"
	end
	local drop = ctl_len ~= 0 and
		     check_frames(tvb, fixed_len[type] or HDR_LEN, ctl_len, type)
	if drop then
		return drop
	elseif type == INIT then
		return (not all_zero(tvb, 8, 8) or all_zero(tvb, 16, 8) or
			not all_zero(tvb, 32, 96)) and "DropField" or nil
	elseif type == INIT_ACK then
		return all_zero(tvb, 16, 8) and "DropField" or nil
	elseif type == COOKIE_ECHO then
		return check_params(tvb, 48, 0x1000)
	elseif type == COOKIE_ACK then
		return check_params(tvb, 16, 1)
	elseif type == RST then
		return (not rst_reasons[get(tvb, 16)] or get(tvb, 20) ~= 0) and "DropField" or nil
	elseif type == PROBE then
		return not all_zero(tvb, HDR_LEN + ctl_len, len - HDR_LEN - ctl_len) and "DropField" or nil
	end
end

-- Display ----------------------------------------------------------------------

-- Adds one field after the other. At a field that is cut off, the cursor shows the
-- remaining bytes as undecoded and stops.
local Cursor = {}
Cursor.__index = Cursor

local function cursor(tvb, tree, at, stop)
	return setmetatable({ tvb = tvb, tree = tree, at = at,
			      stop = math.min(stop, tvb:len()) }, Cursor)
end

-- Returns the value, or nil if there is none
function Cursor:add(field, n, value)
	local range

	if n <= 0 or self.at >= self.stop then
		return nil
	end
	if self.at + n > self.stop then
		self:rest(f.rest)
		return nil
	end
	range = self.tvb(self.at, n)
	self.item = self.tree:add(field, range)
	self.at = self.at + n
	if value == "u64" then
		return range:uint64()
	end
	return n <= 4 and range:uint() or true
end

function Cursor:rest(field)
	if self.at < self.stop then
		self.item = self.tree:add(field, self.tvb(self.at, self.stop - self.at))
		self.at = self.stop
	end
end

local function share(ppm)
	return string.format("%g%%", ppm / 10000)
end

-- Set bits of a map as text such as "3, 7-9", shortened after 16 ranges
local function runs(tvb, at, words, first)
	local list, begin = {}, nil

	for i = 0, 32 * words do
		local one = i < 32 * words and has_bit(tvb, at, i)

		if one and not begin then
			begin = i
		elseif begin and not one then
			if #list == 16 then
				list[#list + 1] = "..."
				break
			end
			list[#list + 1] = begin == i - 1 and tostring(first + begin) or
					  (first + begin) .. "-" .. (first + i - 1)
			begin = nil
		end
	end
	return table.concat(list, ", ")
end

local function show_ack(c)
	local more, largest = c:add(f.ack_more, 2), c:add(f.ack_largest, 4)
	local delay, below = c:add(f.ack_delay, 4), c:add(f.ack_below, 4)
	local first, text

	if not below then
		return
	end
	first = (largest - below) % 2^32
	text = below == 0 and tostring(largest) or string.format("%u-%u", first, largest)
	c.item:append_text(": " .. text)
	for i = 1, more do
		local gap, length = c:add(f.ack_gap, 2), c:add(f.ack_length, 2)

		if not length then
			return
		end
		local last = (first - gap - 2) % 2^32
		first = (last - length) % 2^32
		c.item:append_text(string.format(": %u-%u", first, last))
		if i < 8 then
			text = text .. (length == 0 and string.format(", %u", last) or
					string.format(", %u-%u", first, last))
		elseif i == 8 then
			text = text .. ", ..."
		end
	end
	return text
end

local show_frame = {
	[F_ACK] = show_ack,
	[F_ECN] = function(c)
		c:add(f.frame_arg, 2)
		local a, b, ce = c:add(f.ecn_ect0, 4), c:add(f.ecn_ect1, 4), c:add(f.ecn_ce, 4)

		return ce and string.format("%u/%u/%u", a, b, ce)
	end,
	[F_FLOW] = function(c)
		c:add(f.frame_arg, 2)
		local msg, cap = c:add(f.flow_max_msg, 4), c:add(f.flow_cap, 4)

		return c:add(f.flow_max_data, 8) and "to message " .. msg .. " cap " .. share(cap)
	end,
	[F_CLOSE] = function(c)
		local reason, over = 0

		if c.at + 2 <= c.stop then
			reason = c.tvb(c.at, 2):bitfield(8, 8)
			over = c.tvb(c.at, 2):bitfield(7, 1) == 1
			c.tree:add(f.close_flags, c.tvb(c.at, 2))
			c.tree:add(f.close_over, c.tvb(c.at, 2))
		end
		c:add(f.close_reason, 2)
		if over then
			c.item:add_proto_expert_info(is_over)
		end
		local msg, missing = c:add(f.close_msg, 4), c:add(f.close_missing, 4)
		c:add(f.close_segments, 4)
		return c:add(f.close_budget, 4) and
		       string.format("%u %s, %u missing", msg, reasons[reason] or reason, missing)
	end,
	[F_LOSSMAP] = function(c)
		local words, msg = c:add(f.lossmap_words, 2), c:add(f.lossmap_msg, 4)
		local first = c:add(f.lossmap_first, 4)

		if not first or c.at + 4 * words > c.stop then
			return
		end
		local text = runs(c.tvb, c.at, words, first)
		for i = 0, words - 1 do
			local at = c.at

			c:add(f.lossmap_map, 4)
			c.item:append_text(": " .. runs(c.tvb, at, 1, first + 32 * i))
		end
		return msg .. ": " .. text
	end,
	[F_META] = function(c)
		c:add(f.frame_arg, 2)
		local msg, critical = c:add(f.meta_msg, 4), c:add(f.meta_critical, 4)
		local deadline, offset = c:add(f.meta_deadline, 4), c:add(f.meta_offset, 4)
		local total, tag = c:add(f.meta_total, 4), c:add(f.meta_tag, 8, "u64")

		return tag and msg .. " tag " .. tostring(tag)
	end,
	[F_FIN] = function(c)
		c:add(f.frame_arg, 2)
		local n = c:add(f.fin_end, 4)

		return n and n .. " messages"
	end,
	[F_PING] = function(c)
		c:add(f.frame_arg, 2)
		local wanted = c:add(f.ping_wanted, 8, "u64")

		return wanted and (wanted == UInt64(0) and "" or "wants " .. tostring(wanted))
	end,
	[F_SHARE] = function(c)
		local n, all = c:add(f.share_n, 2), c:add(f.share_all, 4)

		return all and tostring(n)
	end,
	[F_BUDGET] = function(c)
		c:add(f.frame_arg, 2)
		local msg, ppm = c:add(f.budget_msg, 4), c:add(f.budget_ppm, 4)

		return ppm and msg .. " " .. share(ppm)
	end,
	[F_AUTH] = function(c)
		c:add(f.auth_key, 2)
		c:add(f.auth_number, 4)
		c:add(f.auth_tag, 16)
		return ""
	end,
	[F_CANCEL] = function(c)
		c:add(f.cancel_started, 2)
		local msg, len = c:add(f.cancel_msg, 4), c:add(f.cancel_len, 4)

		c:add(f.cancel_offset, 4)
		c:add(f.cancel_total, 4)
		local tag = c:add(f.cancel_tag, 8, "u64")

		return tag and string.format("%u, %u bytes, tag ", msg, len) .. tostring(tag)
	end,
	[F_ARRIVAL] = function(c)
		c:add(f.frame_arg, 2)
		return c:add(f.arrival_at, 4)
	end,
}

local function show_frames(tvb, tree, at, stop, words)
	stop = math.min(stop, tvb:len())
	while at < stop do
		local kind = tvb(at, 1):uint()
		local len = at + 1 < stop and 4 * tvb(at + 1, 1):uint() or 0
		local name = frame_types[kind] or "frame " .. kind
		local text, c

		-- A frame with an invalid length extends to the end of the frames
		if len == 0 or at + len > stop then
			len = stop - at
		end
		c = cursor(tvb, tree:add(dblp, tvb(at, len), "Frame: " .. name), at, at + len)
		c:add(f.frame_type, 1)
		c:add(f.frame_len, 1)
		if show_frame[kind] then
			text = show_frame[kind](c)
		end
		if text and text ~= "" then
			c.tree:append_text(" " .. text)
			text = " " .. text
		end
		c:rest(f.rest)
		words[#words + 1] = name .. (text or "")
		at = at + len
	end
	return at
end

local function show_cookie(c)
	c:add(f.cookie_cid, 8)
	c:add(f.cookie_features, 2)
	c:add(f.cookie_born, 6)
	c:add(f.cookie_mac, 8)
end

local function show_params(c)
	if c.at + 4 <= c.stop then
		c.tree:add(f.params_features, c.tvb(c.at, 4))
	end
	c:add(f.params_cap, 4)
	c:add(f.params_max_msg, 4)
	c:add(f.params_window, 4)
	c:add(f.params_max_data, 4)
	c:add(f.params_msg_max, 4)
	c:add(f.params_rtt, 4)
	c:add(f.time, 8)
end

local show = {
	[INIT] = function(c)
		c:add(f.cid, 8)
		c:add(f.time, 8)
		c:rest(f.padding)
	end,
	[INIT_ACK] = function(c)
		show_cookie(c)
		c:add(f.time, 8)
	end,
	[COOKIE_ECHO] = function(c)
		c:add(f.cid, 8)
		show_cookie(c)
		show_params(c)
	end,
	[COOKIE_ACK] = show_params,
	[VERSIONS] = function(c, words)
		c:add(f.cid, 8)
		while c.at + 4 <= c.stop do
			words[#words + 1] = tostring(c:add(f.spoken, 4))
		end
	end,
	[RST] = function(c, words)
		local reason = c:add(f.rst_reason, 4)

		if reason then
			words[#words + 1] = rst_reasons[reason] or tostring(reason)
			c.item:add_proto_expert_info(is_reset, "Connection ended: " .. words[#words])
		end
		c:add(f.reserved, 4)
		c:add(f.rst_echo, 8)
	end,
	[PROBE] = function(c, words)
		words[#words + 1] = c.stop .. " bytes"
		c:rest(f.padding)
	end,
}

local attributes = { "budget", "policy", "phase", "class", "repair", "meta", "zeros", "bits" }

local function show_data(c, ctl_len, seg_size, words)
	local msg, offset = c:add(f.msg, 4), c:add(f.offset, 4)
	local msg_len = c:add(f.msg_len, 4)
	local attr

	if not msg_len or c.at + 4 > c.stop then
		return c:rest(f.rest)
	end
	attr = c.tvb(c.at, 4)
	for _, name in ipairs(attributes) do
		c.item = c.tree:add(f[name], attr)
		if name == "budget" then
			c.item:append_text(" (" .. share(attr:bitfield(0, 20)) .. ")")
		end
	end
	c.at = c.at + 4
	words[#words + 1] = string.format("%u+%u/%u budget %s %s phase %u", msg, offset, msg_len,
		share(attr:bitfield(0, 20)), policies[attr:bitfield(20, 2)] or "?",
		attr:bitfield(22, 3))
	c.at = show_frames(c.tvb, c.tree, c.at, c.at + ctl_len, words)
	if attr:bitfield(29, 1) == 0 then
		return c:add(f.segment, math.min(c.stop - c.at, seg_size, math.max(0, msg_len - offset)))
	end
	words[#words + 1] = "zero map"
	while c.at + 4 <= c.stop do
		local at, first = c.at, seg_size > 0 and math.floor(offset / seg_size) or 0

		c:add(f.zeromap, 4)
		c.item:append_text(": " .. runs(c.tvb, at, 1,
						first + 8 * (at - HDR_LEN - DATA_HDR_LEN - ctl_len)))
	end
end

-- Length of the first packet in a buffer, or of the buffer if the packet has no length
local function own_len(tvb)
	local len = tvb:len()

	if len < HDR_LEN or tvb(0, 1):bitfield(0, 4) ~= VERSION then
		return len
	end
	local type, ctl_len = tvb(0, 1):bitfield(4, 4), 4 * tvb(1, 1):uint()
	if type == ACK or type == CTRL then
		return math.min(len, HDR_LEN + ctl_len)
	elseif type == DATA and len >= HDR_LEN + DATA_HDR_LEN and
	       tvb(28, 4):bitfield(29, 1) == 0 then
		local left = get(tvb, 24) - get(tvb, 20)

		if left > 0 then
			return math.min(len, HDR_LEN + DATA_HDR_LEN + ctl_len +
					     math.min(left, tvb(2, 2):uint()))
		end
	end
	return len
end

-- Does another packet of the same connection follow?
local function follows(tvb, at)
	return at + HDR_LEN <= tvb:len() and tvb(at, 1):bitfield(0, 4) == VERSION and
	       tvb(at, 1):bitfield(4, 4) >= ACK and tvb(at, 1):bitfield(4, 4) <= DATA and
	       tvb(at + 8, 8):bytes() == tvb(8, 8):bytes()
end

-- Shows one packet; returns its text for the packet list
local function show_packet(tvb, root, whole)
	local tree = root:add(dblp, tvb())
	local drop = whole and check(tvb)
	local c = cursor(tvb, tree, 0, tvb:len())
	local words, item = {}, nil

	if c.stop > 0 then
		tree:add(f.version, tvb(0, 1))
	end
	local version = c.stop > 0 and tvb(0, 1):bitfield(0, 4)
	local type = c:add(f.type, 1)
	type = type and type % 16
	words[1] = types[type] or "AF_DBLP"
	if version == VERSION then
		local ctl_len, seg_size = c:add(f.ctl_len, 1), c:add(f.seg_size, 2)
		local pn = c:add(f.pn, 4)

		ctl_len = 4 * (ctl_len or 0)
		if c:add(f.dcid, 8) then
			if numbered[type] then
				words[#words + 1] = "#" .. pn
			end
			if type == DATA then
				show_data(c, ctl_len, seg_size, words)
			elseif type == ACK or type == CTRL then
				c.at = show_frames(tvb, tree, c.at, c.at + ctl_len, words)
			elseif type == PROBE then
				c.at = show_frames(tvb, tree, c.at, c.at + ctl_len, words)
				show[type](c, words)
			elseif show[type] then
				show[type](c, words)
				c.at = show_frames(tvb, tree, c.at, c.at + ctl_len, words)
			end
		end
	elseif c.stop >= HDR_LEN then
		-- Fields with the same position in all versions
		words[#words + 1] = "of version " .. version
		c:add(f.reserved, 7)
		c:add(f.dcid, 8)
		if type == INIT or type == VERSIONS then
			c:add(f.cid, 8)
		end
	end
	c:rest(f.rest)
	tree:append_text(": " .. table.concat(words, " "))
	if drop then
		item = tree:add(f.drop, drop)
		item:set_generated()
		item:add_proto_expert_info(drops[drop])
		words[#words + 1] = "[" .. drop .. "]"
	elseif not whole then
		tree:add_proto_expert_info(is_cut)
	end
	return table.concat(words, " ")
end

function dblp.dissector(tvb, pinfo, root)
	local infos, at, len = {}, 0, tvb:len()
	local cut = len < tvb:reported_len()

	pinfo.cols.protocol = "DBLP"
	repeat
		local rest = tvb(at):tvb()
		local n = dblp.prefs.trains and own_len(rest) or rest:len()

		if not follows(tvb, at + n) then
			n = rest:len()
		end
		infos[#infos + 1] = show_packet(n < rest:len() and tvb(at, n):tvb() or rest, root,
						not cut or at + n < len)
		at = at + n
	until at >= len
	if #infos > 1 then
		infos[1] = #infos .. " packets: " .. infos[1]
	end
	pinfo.cols.info = infos[1]
	return len
end

-- A packet that is valid in all its fields is AF_DBLP: see the top of this file
local function heuristic(tvb, pinfo, root)
	local first = tvb:len() == tvb:reported_len() and tvb:len() >= HDR_LEN and
		      own_len(tvb)

	if not first then
		return false
	end
	if first < tvb:len() and not follows(tvb, first) or check(tvb(0, first):tvb()) or
	   tvb:len() == HDR_LEN then
		return false
	end
	pinfo.conversation = dblp
	dblp.dissector(tvb, pinfo, root)
	return true
end

dblp:register_heuristic("udp", heuristic)
DissectorTable.get("udp.port"):add_for_decode_as(dblp)
