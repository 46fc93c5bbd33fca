// SPDX-License-Identifier: GPL-2.0-only
/*
 * A receiver gets no missing bytes unless its program or its operator has set a cap: the
 * cap, its sources, and which settings count as a socket's own. The sender is a scripted
 * peer, so that exactly the intended segments arrive.
 */
#define _GNU_SOURCE
#include "lib/nltest.h"
#include "lib/scripted.h"
#include "lib/sock.h"

#include "kselftest_harness.h"

#define WAIT_MS		10000

/* A message of four segments, whose budget is one segment */
#define SEG		600U
#define SEGS		4U
#define LENGTH		(SEG * SEGS)
#define BUDGET		(DBLP_PPM / SEGS)

#define JOB		7U
#define TOLERANT	2U

FIXTURE(holes) {
	PLAYED_CONNECTION;
	struct dblp_data d;
};

FIXTURE_SETUP(holes)
{
	struct nlmsghdr *nlh;

	one_cpu();
	netns_new();
	netns_set_mtu(1500);
	open_netlink();
	nlh = job_request(DBLP_CMD_JOB_ADD, JOB);
	ASSERT_EQ(0, result(nlh));
	self->listener = plain_socket();
	self->fd = -1;
	self->d = (struct dblp_data) {
		.msg_len = LENGTH, .budget = BUDGET,
		.policy = DBLP_POLICY_EAGER,
	};
	addr_parse(&self->addr, "127.0.0.1", 0);
	ASSERT_EQ(0, bind_to(self->listener, &self->addr));
	local_name(self->listener, &self->addr);
}

FIXTURE_ENDS_BY_EXIT(holes);

static void join(FIXTURE_DATA(holes) *self)
{
	if (listen(self->listener, 8))
		die("listen()");
	self->fd = peer_join(&self->peer, &self->addr, self->listener);
	if (self->fd < 0)
		die("accept()");
}

static void send_segs(FIXTURE_DATA(holes) *self, u32 first, u32 n,
		      const struct dblp_frame *f)
{
	send_data(&self->peer, &self->p, &self->d, SEG, first, n, f);
}

/* Send a message without one segment: is it delivered with a hole? */
static bool gets_a_hole(FIXTURE_DATA(holes) *self)
{
	char buf[LENGTH];
	struct message m;
	bool open;

	send_segs(self, 0, SEGS - 1, NULL);
	if (!peer_sync(&self->peer))
		die("the peer is not heard");
	open = !wait_for(self->fd, POLLIN, 0);
	if (open)
		send_segs(self, SEGS - 1, 1, NULL);
	self->d.msg_id++;
	if (!wait_for(self->fd, POLLIN, WAIT_MS) ||
	    message_recv(self->fd, buf, sizeof(buf), MSG_WAITALL, &m) <= 0)
		die("recvmsg()");
	message_free(&m);
	if (open == !!m.info.missing)
		die("%u bytes are missing", m.info.missing);
	return m.info.missing;
}

/* Send a command of an operator for object @id with one share */
static void set_share(struct nlmsghdr *nlh, uint16_t attr, u32 id,
		      uint16_t share, u32 ppm)
{
	if (attr)
		mnl_attr_put_u32(nlh, attr, id);
	mnl_attr_put_u32(nlh, share, ppm);
	if (result(nlh))
		die("netlink: %s", got.msg);
}

static void param_cap(u32 ppm)
{
	set_share(begin(family, DBLP_CMD_PARAM_SET, 0), 0, 0,
		  DBLP_A_PARAM_BUDGET_CAP, ppm);
}

static void phase_cap(u32 id, u32 ppm)
{
	set_share(begin(family, DBLP_CMD_PHASE_SET, 0), DBLP_A_PHASE_ID, id,
		  DBLP_A_PHASE_BUDGET_CAP, ppm);
}

static void job_cap(u32 ppm)
{
	set_share(begin(family, DBLP_CMD_JOB_SET, 0), DBLP_A_JOB_ID, JOB,
		  DBLP_A_JOB_BUDGET_CAP, ppm);
}

static void socket_cap(int fd, u32 ppm)
{
	set_share(begin(family, DBLP_CMD_SOCKET_SET, 0), DBLP_A_SOCKET_ID,
		  get_info(fd).id, DBLP_A_SOCKET_BUDGET_CAP, ppm);
}

/* The cap that the sender received last */
static u32 told_cap(FIXTURE_DATA(holes) *self)
{
	peer_sync(&self->peer);
	return self->peer.flow.flow.cap;
}

TEST_F(holes, none_by_default)
{
	char buf[LENGTH];

	EXPECT_EQ(0, get_u32(self->listener, DBLP_BUDGET_CAP));
	join(self);
	EXPECT_EQ(0, self->peer.theirs.cap);
	EXPECT_EQ(0, get_u32(self->fd, DBLP_BUDGET_CAP));
	EXPECT_EQ(0, get_info(self->fd).budget_cap);
	EXPECT_FALSE(gets_a_hole(self));

	/* With any budget of its peer */
	self->d.budget = DBLP_PPM;
	EXPECT_FALSE(gets_a_hole(self));
	/* And in any call */
	send_segs(self, 0, SEGS - 1, NULL);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_ERR(EAGAIN, recv(self->fd, buf, sizeof(buf), MSG_DONTWAIT));
	send_segs(self, SEGS - 1, 1, NULL);
	EXPECT_EQ(LENGTH, read(self->fd, buf, sizeof(buf)));
	EXPECT_EQ(-1, pattern_check(buf, LENGTH, 0, SCRIPTED_SEED,
				    self->d.msg_id));
}

/* The budget of a phase applies to sending, not to receiving */
TEST_F(holes, not_by_a_phase_or_job_without_a_cap)
{
	struct nlmsghdr *nlh = job_request(DBLP_CMD_JOB_SET, JOB);

	join(self);
	set_u32(self->fd, DBLP_PHASE, TOLERANT);
	EXPECT_EQ(0, get_u32(self->fd, DBLP_BUDGET_CAP));
	EXPECT_FALSE(gets_a_hole(self));
	set_u32(self->fd, DBLP_PHASE, DBLP_INHERIT);
	set_u32(self->fd, DBLP_JOB, JOB);
	mnl_attr_put_u32(nlh, DBLP_A_JOB_PHASE, TOLERANT);
	EXPECT_EQ(0, result(nlh));
	EXPECT_EQ(TOLERANT, get_u32(self->fd, DBLP_PHASE));
	EXPECT_FALSE(gets_a_hole(self));
	set_u32(self->fd, DBLP_BUDGET, DBLP_PPM);
	set_u32(self->fd, DBLP_CLOSE_POLICY, DBLP_POLICY_EARLY);
	EXPECT_FALSE(gets_a_hole(self));
}

TEST_F(holes, not_after_a_deadline_either)
{
	struct dblp_frame meta = FRAME(META, meta, .total = LENGTH, .deadline = 20000);
	char buf[LENGTH];
	struct message m;

	join(self);
	self->d.meta = true;
	self->d.budget = 0;
	send_segs(self, 0, SEGS - 1, &meta);
	EXPECT_FALSE(wait_for(self->fd, POLLIN, SHORT_MS));
	/* The deadline has passed when the cap is set */
	set_u32(self->fd, DBLP_BUDGET_CAP, 1);
	ASSERT_TRUE(wait_for(self->fd, POLLIN, WAIT_MS));
	EXPECT_EQ(LENGTH, message_recv(self->fd, buf, LENGTH, 0, &m));
	EXPECT_EQ(DBLP_REASON_DEADLINE, m.info.reason);
	EXPECT_EQ(DBLP_RCV_OVER_BUDGET, m.info.flags);
}

/* Ways to accept loss on one socket; DBLP_INHERIT undoes each */
struct way {
	const char *name;
	void (*ask)(int fd, bool on);
};

static void by_cap(int fd, bool on)
{
	set_u32(fd, DBLP_BUDGET_CAP, on ? DBLP_PPM : DBLP_INHERIT);
}

static void by_fill(int fd, bool on)
{
	set_u32(fd, DBLP_FILL, on ? DBLP_FILL_ZERO : DBLP_INHERIT);
}

static void by_operator(int fd, bool on)
{
	socket_cap(fd, on ? DBLP_PPM : DBLP_INHERIT);
}

static void by_job(int fd, bool on)
{
	set_u32(fd, DBLP_JOB, JOB);
	job_cap(on ? DBLP_PPM : DBLP_INHERIT);
}

static void by_joining(int fd, bool on)
{
	job_cap(DBLP_PPM);
	set_u32(fd, DBLP_JOB, on ? JOB : 0);
}

static void by_phase(int fd, bool on)
{
	set_u32(fd, DBLP_PHASE, TOLERANT);
	phase_cap(TOLERANT, on ? DBLP_PPM : DBLP_INHERIT);
}

static void by_phase_0(int fd, bool on)
{
	phase_cap(0, on ? DBLP_PPM : DBLP_INHERIT);
}

static const struct way ways[] = {
	{ "cap", by_cap }, { "fill", by_fill }, { "operator", by_operator },
	{ "job", by_job }, { "joining", by_joining }, { "phase", by_phase },
	{ "phase 0", by_phase_0 },
};

TEST_F(holes, each_way_to_accept_loss_on_a_connection)
{
	size_t i;

	join(self);
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		ways[i].ask(self->fd, true);
		EXPECT_EQ(DBLP_PPM, get_u32(self->fd, DBLP_BUDGET_CAP))
			TH_LOG("%s", ways[i].name);
		EXPECT_EQ(DBLP_PPM, told_cap(self)) TH_LOG("%s", ways[i].name);
		EXPECT_TRUE(gets_a_hole(self)) TH_LOG("%s", ways[i].name);
		ways[i].ask(self->fd, false);
		EXPECT_EQ(0, get_u32(self->fd, DBLP_BUDGET_CAP))
			TH_LOG("%s", ways[i].name);
		EXPECT_EQ(0, told_cap(self)) TH_LOG("%s", ways[i].name);
		EXPECT_FALSE(gets_a_hole(self)) TH_LOG("%s", ways[i].name);
		set_u32(self->fd, DBLP_PHASE, DBLP_INHERIT);
		set_u32(self->fd, DBLP_JOB, 0);
		job_cap(DBLP_INHERIT);
	}
}

/* A pending message is closed when the cap is set */
TEST_F(holes, a_new_cap_closes_pending_messages)
{
	join(self);
	send_segs(self, 0, SEGS - 1, NULL);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_FALSE(wait_for(self->fd, POLLIN, 0));
	set_u32(self->fd, DBLP_FILL, DBLP_FILL_KEEP);
	EXPECT_TRUE(wait_for(self->fd, POLLIN, WAIT_MS));
}

TEST_F(holes, connections_inherit_the_cap_of_their_listener)
{
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		ways[i].ask(self->listener, true);
		join(self);
		EXPECT_EQ(DBLP_PPM, self->peer.theirs.cap)
			TH_LOG("%s", ways[i].name);
		EXPECT_EQ(DBLP_PPM, get_u32(self->fd, DBLP_BUDGET_CAP))
			TH_LOG("%s", ways[i].name);
		EXPECT_TRUE(gets_a_hole(self)) TH_LOG("%s", ways[i].name);
		close(self->fd);
		peer_close(&self->peer);
		ways[i].ask(self->listener, false);
		set_u32(self->listener, DBLP_PHASE, DBLP_INHERIT);
		set_u32(self->listener, DBLP_JOB, 0);
		job_cap(DBLP_INHERIT);
		self->d.msg_id = 0;
	}
	join(self);
	EXPECT_EQ(0, self->peer.theirs.cap);
}

TEST_F(holes, placement_accepts_loss)
{
	set_u32(self->listener, DBLP_PLACEMENT, 1);
	EXPECT_EQ(DBLP_PPM, get_u32(self->listener, DBLP_BUDGET_CAP));
	set_u32(self->listener, DBLP_PLACEMENT, 0);
	EXPECT_EQ(0, get_u32(self->listener, DBLP_BUDGET_CAP));
	join(self);
	EXPECT_FALSE(gets_a_hole(self));
	set_u32(self->fd, DBLP_PLACEMENT, 1);
	EXPECT_EQ(DBLP_PPM, told_cap(self));
	EXPECT_TRUE(gets_a_hole(self));
}

/* The first cap that is set applies: socket, job, phase, namespace; then the program's */
TEST_F(holes, the_nearest_cap_applies)
{
	int fd;

	param_cap(40);
	fd = plain_socket();
	EXPECT_EQ(0, get_u32(self->listener, DBLP_BUDGET_CAP));
	EXPECT_EQ(40, get_u32(fd, DBLP_BUDGET_CAP));
	/* An operator's cap also applies to a program that accepts loss without a cap */
	set_u32(fd, DBLP_FILL, DBLP_FILL_KEEP);
	set_u32(fd, DBLP_PLACEMENT, 1);
	EXPECT_EQ(40, get_u32(fd, DBLP_BUDGET_CAP));
	phase_cap(0, 30);
	EXPECT_EQ(30, get_u32(fd, DBLP_BUDGET_CAP));
	job_cap(20);
	set_u32(fd, DBLP_JOB, JOB);
	EXPECT_EQ(20, get_u32(fd, DBLP_BUDGET_CAP));
	/* In any phase */
	set_u32(fd, DBLP_PHASE, TOLERANT);
	EXPECT_EQ(20, get_u32(fd, DBLP_BUDGET_CAP));
	set_u32(fd, DBLP_BUDGET_CAP, 10);
	EXPECT_EQ(10, get_u32(fd, DBLP_BUDGET_CAP));
	job_cap(0);
	EXPECT_EQ(10, get_u32(fd, DBLP_BUDGET_CAP));

	set_u32(fd, DBLP_BUDGET_CAP, DBLP_INHERIT);
	EXPECT_EQ(0, get_u32(fd, DBLP_BUDGET_CAP));
	job_cap(DBLP_INHERIT);
	EXPECT_EQ(40, get_u32(fd, DBLP_BUDGET_CAP));
	set_u32(fd, DBLP_PHASE, DBLP_INHERIT);
	EXPECT_EQ(30, get_u32(fd, DBLP_BUDGET_CAP));
	phase_cap(0, DBLP_INHERIT);
	EXPECT_EQ(40, get_u32(fd, DBLP_BUDGET_CAP));
	/* The cap of the namespace applies to new sockets */
	param_cap(DBLP_INHERIT);
	EXPECT_EQ(40, get_u32(fd, DBLP_BUDGET_CAP));
	close(fd);
	fd = plain_socket();
	EXPECT_EQ(0, get_u32(fd, DBLP_BUDGET_CAP));
}

/* Options that are inherited until they are set, each with a value */
static const struct {
	int option;
	u32 value;
} settings[] = {
	{ DBLP_BUDGET, 5 }, { DBLP_BUDGET_CAP, 6 },
	{ DBLP_CLOSE_POLICY, DBLP_POLICY_EARLY },
	{ DBLP_ORDER, DBLP_ORDER_SHUFFLED }, { DBLP_FILL, DBLP_FILL_KEEP },
	{ DBLP_PHASE, TOLERANT },
};

#define SETTINGS	(sizeof(settings) / sizeof(settings[0]))

TEST_F(holes, own_and_inherited_settings_are_distinguished)
{
	u32 all = 0, value[SETTINGS];
	size_t i;

	EXPECT_EQ(0, get_info(self->listener).own);
	for (i = 0; i < SETTINGS; i++) {
		set_u32(self->listener, settings[i].option, settings[i].value);
		all |= 1U << settings[i].option;
		EXPECT_EQ(all, get_info(self->listener).own);
	}
	/* An accepted connection has the settings of its listener as its own */
	join(self);
	EXPECT_EQ(all, get_info(self->fd).own);
	for (i = 0; i < SETTINGS; i++) {
		value[i] = get_u32(self->fd, settings[i].option);
		EXPECT_EQ(settings[i].value, value[i]);
		set_u32(self->fd, settings[i].option, DBLP_INHERIT);
		all &= ~(1U << settings[i].option);
		EXPECT_EQ(all, get_info(self->fd).own);
		EXPECT_NE(value[i], get_u32(self->fd, settings[i].option));
	}
	/* Settings by an operator count as the socket's own, too */
	socket_cap(self->fd, 0);
	EXPECT_EQ(1U << DBLP_BUDGET_CAP, get_info(self->fd).own);
	socket_cap(self->fd, DBLP_INHERIT);
	EXPECT_EQ(0, get_info(self->fd).own);
}

/* Restore settings from %DBLP_INFO, without setting inherited ones */
static void restore(int fd, const struct dblp_info *was, const u32 *value)
{
	size_t i;

	for (i = 0; i < SETTINGS; i++)
		set_u32(fd, settings[i].option,
			was->own & 1U << settings[i].option ? value[i] :
							      DBLP_INHERIT);
}

TEST_F(holes, saved_settings_can_be_restored)
{
	int fd = self->listener;
	struct dblp_info was;
	u32 value[SETTINGS];
	size_t i;

	set_u32(fd, DBLP_PHASE, TOLERANT);
	set_u32(fd, DBLP_ORDER, DBLP_ORDER_AUTO);
	was = get_info(fd);
	for (i = 0; i < SETTINGS; i++)
		value[i] = get_u32(fd, settings[i].option);
	for (i = 0; i < SETTINGS; i++)
		set_u32(fd, settings[i].option, settings[i].value);
	restore(fd, &was, value);
	EXPECT_EQ(was.own, get_info(fd).own);
	for (i = 0; i < SETTINGS; i++)
		EXPECT_EQ(value[i], get_u32(fd, settings[i].option));
	/* The socket still follows its phase */
	phase_cap(TOLERANT, 77);
	EXPECT_EQ(77, get_u32(fd, DBLP_BUDGET_CAP));
}

TEST_HARNESS_MAIN
