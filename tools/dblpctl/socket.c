// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl socket: list, show, set.
 */

#include <inttypes.h>
#include <libdblp.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "dblpctl.h"
#include "err.h"
#include "field.h"
#include "job.h"
#include "names.h"
#include "object.h"
#include "phase.h"
#include "prefix.h"
#include "print.h"
#include "process.h"
#include "socket.h"
#include "units.h"
#include "words.h"

/* Print forgiven bytes, sent or not */
static void print_forgiven(const struct field *f, const struct values *v)
{
	struct heading sum = { NULL, f->column };
	char text[DBLP_VALUE_TEXT];
	uint64_t n;

	n = get_u64(v, DBLP_A_SOCKET_BYTES_FORGIVEN_UNSENT) +
	    get_u64(v, DBLP_A_SOCKET_BYTES_FORGIVEN_SENT);
	dblp_count_format(n, text);
	print_uint(sum, n, text);
}

/* Names of settings that a socket may have set itself, by option */
static const char *const settings[] = {
	[DBLP_BUDGET] = "budget",
	[DBLP_BUDGET_CAP] = "budget_cap",
	[DBLP_CLOSE_POLICY] = "policy",
	[DBLP_ORDER] = "order",
	[DBLP_FILL] = "fill",
	[DBLP_PHASE] = "phase",
};

/* Print the settings that the socket has set itself */
static void print_own(const struct field *f, const struct values *v)
{
	uint32_t own = get_u32(v, f->attr), i;
	char text[128] = "";

	for (i = 0; i < N_FIELDS(settings); i++)
		if (settings[i] && own & 1U << i)
			snprintf(text + strlen(text),
				 sizeof(text) - strlen(text), "%s%s",
				 *text ? "," : "", settings[i]);
	print_string(heading(f, v), text, *text ? text : "nothing");
}

/* Print a reason; text omits an empty one */
static void print_reason(const char *key, const char *reason)
{
	struct heading h = { key, NULL };

	if (*reason || print_is_json())
		print_string(h, reason, NULL);
}

/* Print the reason why no byte can be missing in messages that the socket sends */
static void print_sends_all(const struct field *f, const struct values *v)
{
	const char *reason = "";

	(void)f;
	if (!get_u32(v, DBLP_A_SOCKET_BUDGET))
		reason = "its budget is 0";
	else if (get_u32(v, DBLP_A_SOCKET_POLICY) == DBLP_POLICY_FULL)
		reason = "its close policy is full, which does not use the budget";
	else if (get_u32(v, DBLP_A_SOCKET_STATE) == DBLP_STATE_ESTABLISHED &&
		 !get_u32(v, DBLP_A_SOCKET_PEER_BUDGET_CAP))
		reason = "the cap of its peer is 0: neither the program nor an operator there accepts missing bytes";
	print_reason("sends_all", reason);
}

/* Print the reason why no byte can be missing in messages that it receives */
static void print_receives_all(const struct field *f, const struct values *v)
{
	uint32_t own = get_u32(v, DBLP_A_SOCKET_OWN);
	const char *reason = "";

	if (!get_u32(v, f->attr))
		reason = own & 1U << DBLP_BUDGET_CAP ?
			 "its own cap is 0" :
			 "its cap is 0: neither its program nor an operator accepts missing bytes";
	print_reason("receives_all", reason);
}

static void print_process(const struct process *p)
{
	static const struct heading pid = { "pid", NULL };
	static const struct heading name = { "name", NULL };
	static const struct heading rank = { "rank", NULL };

	print_object();
	print_uint(pid, p->pid, NULL);
	print_string(name, p->name, NULL);
	if (p->rank >= 0)
		print_uint(rank, (uint32_t)p->rank, NULL);
	print_object_end();
}

/* "1234/train,1235/train" */
static void print_process_names(const char *column, const struct process *p,
				size_t n)
{
	const struct heading h = { NULL, column };
	char *text = NULL;
	size_t len, i;
	FILE *to = checked(open_memstream(&text, &len));

	for (i = 0; i < n; i++)
		fprintf(to, "%s%" PRIu32 "/%s", i ? "," : "", p[i].pid,
			p[i].name);
	checked(fclose(to) ? NULL : text);
	print_string(h, *text ? text : "-", NULL);
	free(text);
}

/* Print the number of a job, in text with its name: "7 (resnet)" */
static void print_job(const struct field *f, const struct values *v)
{
	uint32_t id = get_u32(v, f->attr);
	char text[DBLP_NAME_MAX + 16];

	snprintf(text, sizeof(text), *job_name(id) ? "%u (%s)" : "%u", id, job_name(id));
	print_uint(heading(f, v), id, text);
}

/* JSON only: text has the name beside the number */
static void print_job_name(const struct field *f, const struct values *v)
{
	static const struct heading h = { "job_name", NULL };

	if (print_is_json())
		print_string(h, job_name(get_u32(v, f->attr)), NULL);
}

/* Print the name of a job, or its number if it has none */
static void print_job_column(const struct field *f, const struct values *v)
{
	const struct heading h = { NULL, f->column };
	uint32_t id = get_u32(v, f->attr);
	char number[16] = "-";

	if (id)
		snprintf(number, sizeof(number), "%" PRIu32, id);
	print_string(h, *job_name(id) ? job_name(id) : number, NULL);
}

/* Print "3", or "3,4" if processes of several ranks have the socket open */
static void print_ranks(const struct field *f, const struct values *v)
{
	const struct heading h = { NULL, f->column };
	const struct process *p;
	char text[128] = "";
	size_t n, i;

	p = processes_of(get_u64(v, f->attr), &n);
	for (i = 0; i < n; i++)
		if (p[i].rank >= 0 && strlen(text) + 16 < sizeof(text))
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%" PRId32,
				 *text ? "," : "", p[i].rank);
	print_string(h, *text ? text : "-", NULL);
}

/* Print the processes that have the socket open, if this user may see them */
static void print_processes(const struct field *f, const struct values *v)
{
	const struct process *p;
	size_t n, i;

	p = processes_of(get_u64(v, f->attr), &n);
	if (!print_is_json()) {
		print_process_names(f->column, p, n);
		return;
	}
	print_list("processes");
	for (i = 0; i < n; i++)
		print_process(&p[i]);
	print_list_end();
}

/* Names in JSON and in ss, by SK_MEMINFO_* */
static const struct {
	const char *key, *in_ss;
} memory_names[] = {
	[SK_MEMINFO_RMEM_ALLOC] = { "rmem", "r" },
	[SK_MEMINFO_RCVBUF] = { "rcvbuf", "rb" },
	[SK_MEMINFO_WMEM_ALLOC] = { "wmem", "t" },
	[SK_MEMINFO_SNDBUF] = { "sndbuf", "tb" },
	[SK_MEMINFO_FWD_ALLOC] = { "fwd_alloc", "f" },
	[SK_MEMINFO_WMEM_QUEUED] = { "wmem_queued", "w" },
	[SK_MEMINFO_OPTMEM] = { "optmem", "o" },
	[SK_MEMINFO_BACKLOG] = { "backlog", "bl" },
	[SK_MEMINFO_DROPS] = { "drops", "d" },
};

/* Value of an array of u32; 0 if the kernel does not send it */
static uint32_t memory_at(const struct values *v, uint16_t attr, size_t i)
{
	const struct nlattr *a = v->tb[attr];
	uint32_t n = 0;

	if (a && mnl_attr_get_payload_len(a) >= (i + 1) * sizeof(n))
		memcpy(&n, (const char *)mnl_attr_get_payload(a) + i * sizeof(n),
		       sizeof(n));
	return n;
}

/* JSON and single objects: a value for each kind of memory */
static void print_memory(const struct field *f, const struct values *v)
{
	struct heading h = { NULL, NULL };
	size_t i;

	for (i = 0; i < N_FIELDS(memory_names); i++) {
		h.key = memory_names[i].key;
		print_uint(h, memory_at(v, f->attr, i), NULL);
	}
}

/* Table: as by ss -m */
static void print_skmem(const struct field *f, const struct values *v)
{
	const struct heading h = { NULL, f->column };
	char text[192] = "";
	size_t i, n = 0;

	for (i = 0; i < N_FIELDS(memory_names); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s%" PRIu32,
				      i ? "," : "", memory_names[i].in_ss,
				      memory_at(v, f->attr, i));
	print_string(h, text, NULL);
}

/* Table: what ss -i shows of TCP, in its words, but cwnd and unacked in bytes */
static void print_internals(const struct field *f, const struct values *v)
{
	char srtt[DBLP_VALUE_TEXT], var[DBLP_VALUE_TEXT], least[DBLP_VALUE_TEXT];
	const struct heading h = { NULL, f->column };
	char text[320];

	dblp_us_format(get_u32(v, DBLP_A_SOCKET_SRTT_US), srtt);
	dblp_us_format(get_u32(v, DBLP_A_SOCKET_RTTVAR_US), var);
	dblp_us_format(get_u32(v, DBLP_A_SOCKET_MIN_RTT_US), least);
	snprintf(text, sizeof(text),
		 "%s rtt:%s/%s minrtt:%s mss:%" PRIu32 " cwnd:%" PRIu32 " unacked:%" PRIu32
		 " lost:%" PRIu64 " reordering:%" PRIu32 " pacing_rate %" PRIu64
		 "bps delivery_rate %" PRIu64 "bps",
		 get_string(v, DBLP_A_SOCKET_CONGESTION), srtt, var, least,
		 get_u32(v, DBLP_A_SOCKET_SEG_SIZE),
		 get_u32(v, DBLP_A_SOCKET_CWND),
		 get_u32(v, DBLP_A_SOCKET_INFLIGHT),
		 get_u64(v, DBLP_A_SOCKET_PKTS_LOST),
		 get_u32(v, DBLP_A_SOCKET_REORDERING),
		 8 * get_u64(v, DBLP_A_SOCKET_PACING_RATE),
		 8 * get_u64(v, DBLP_A_SOCKET_DELIVERY_RATE));
	print_string(h, text, NULL);
}

/* print_addr() needs port and scope after the address */
_Static_assert(DBLP_A_SOCKET_LOCAL_PORT == DBLP_A_SOCKET_LOCAL_ADDR + 1 &&
	       DBLP_A_SOCKET_LOCAL_SCOPE == DBLP_A_SOCKET_LOCAL_ADDR + 2 &&
	       DBLP_A_SOCKET_PEER_PORT == DBLP_A_SOCKET_PEER_ADDR + 1 &&
	       DBLP_A_SOCKET_PEER_SCOPE == DBLP_A_SOCKET_PEER_ADDR + 2,
	       "order of the attributes of an address");

/* Names by bits of enum dblp_auth_state */
static const char *const auth_names[] = {
	[0] = "no", [DBLP_AUTH_ON] = "yes", [2] = "2",
	[DBLP_AUTH_ON | DBLP_AUTH_OLD] = "both-keys",
	[4] = "4", [5] = "5", [6] = "6",
	[DBLP_AUTH_ON | DBLP_AUTH_OLD | DBLP_AUTH_SENDS_OLD] = "old-key",
	NULL
};

/* Values of a socket, in this order */
#define F(attr, column, print)	{ DBLP_A_SOCKET_##attr, column, print, NULL }
#define ENUM(attr, column, names) \
	{ DBLP_A_SOCKET_##attr, column, print_enum, names }

static const struct field fields[] = {
	F(ID, "ID", print_id),
	ENUM(STATE, "STATE", dblp_state_names),
	F(RECV_QUEUE, "RECV-Q", print_count),
	F(SEND_QUEUE, "SEND-Q", print_count),
	F(LOCAL_ADDR, "LOCAL", print_addr),
	F(LOCAL_PORT, NULL, print_port),
	F(LOCAL_SCOPE, NULL, print_u32),
	F(PEER_ADDR, "PEER", print_addr),
	F(PEER_PORT, NULL, print_port),
	F(PEER_SCOPE, NULL, print_u32),
	F(UID, NULL, print_u32),
	F(INODE, NULL, print_u64),
	F(BUDGET, "BUDGET", print_share),
	F(BUDGET_CAP, "CAP", print_share),
	F(PEER_BUDGET_CAP, NULL, print_share),
	ENUM(POLICY, NULL, dblp_policy_names),
	ENUM(ORDER, NULL, dblp_order_names),
	ENUM(FILL, NULL, dblp_fill_names),
	F(CONGESTION, NULL, print_name),
	ENUM(AUTH, NULL, auth_names),
	F(PEER_MSG_MAX, NULL, print_u32),
	F(SEG_SIZE, NULL, print_u32),
	F(SRTT_US, "RTT", print_us),
	F(RTTVAR_US, NULL, print_us),
	F(MIN_RTT_US, NULL, print_us),
	F(CWND, NULL, print_u32),
	F(INFLIGHT, NULL, print_u32),
	F(PTO_COUNT, NULL, print_u32),
	F(REORDERING, NULL, print_u32),
	F(PACING_RATE, NULL, print_u64),
	F(DELIVERY_RATE, NULL, print_u64),
	F(BYTES_FIRST, "SENT", print_count),
	F(BYTES_AGAIN, "AGAIN", print_count),
	F(BYTES_DELIVERED, NULL, print_count),
	F(BYTES_FORGIVEN_UNSENT, NULL, print_count),
	F(BYTES_FORGIVEN_SENT, NULL, print_count),
	F(BYTES_FORGIVEN_SENT, "FORGIVEN", print_forgiven),
	F(BYTES_RECEIVED, "RECEIVED", print_count),
	F(BYTES_MISSING, "MISSING", print_count),
	F(MSGS_SENT, NULL, print_u64),
	F(MSGS_SENT_EARLY, NULL, print_u64),
	F(MSGS_RECEIVED, NULL, print_u64),
	F(MSGS_RECEIVED_EARLY, NULL, print_u64),
	F(PKTS_SENT, NULL, print_u64),
	F(PKTS_LOST, NULL, print_u64),
	F(PKTS_RECEIVED, NULL, print_u64),
	F(SPURIOUS, NULL, print_u64),
	F(PHASE, NULL, print_u32),
	F(JOB, NULL, print_job),
	F(MSGS_SENT_COMPLETE, NULL, print_u64),
	F(MSGS_SENT_BUDGET, NULL, print_u64),
	F(MSGS_SENT_DEADLINE, NULL, print_u64),
	F(MSGS_RECEIVED_COMPLETE, NULL, print_u64),
	F(MSGS_RECEIVED_BUDGET, NULL, print_u64),
	F(MSGS_RECEIVED_DEADLINE, NULL, print_u64),
	F(BYTES_ELIDED, NULL, print_count),
	F(OWN, NULL, print_own),
	F(WHOLE_MAX, NULL, print_u32),
	F(REPORTS, NULL, print_u32),
	F(MSGS_SENT_CANCELLED, NULL, print_u64),
	F(MSGS_RECEIVED_CANCELLED, NULL, print_u64),
	F(BUDGET, NULL, print_sends_all),
	F(BUDGET_CAP, NULL, print_receives_all),
	F(JOB, NULL, print_job_name),
	F(MEMINFO, NULL, print_memory),
};

/* Values that options of list add */
static const struct field fields_of_p[] = {
	F(JOB, "JOB", print_job_column),
	F(INODE, "RANK", print_ranks),
	F(INODE, "PROCESSES", print_processes),
};

static const struct field fields_of_m[] = {
	F(MEMINFO, "SKMEM", print_skmem),
};

static const struct field fields_of_i[] = {
	F(SRTT_US, "INFO", print_internals),
};

static const struct {
	char			letter;
	const struct field	*fields;
	size_t			n;
} list_options[] = {
	{ 'p', fields_of_p, N_FIELDS(fields_of_p) },
	{ 'm', fields_of_m, N_FIELDS(fields_of_m) },
	{ 'i', fields_of_i, N_FIELDS(fields_of_i) },
};

#define FIELDS_MAX	(N_FIELDS(fields) + N_FIELDS(fields_of_p) + \
			 N_FIELDS(fields_of_m) + N_FIELDS(fields_of_i))

static const struct object sockets = {
	.name		= "socket",
	.attr_names	= socket_attrs,
	.attr_max	= DBLP_A_SOCKET_MAX,
	.id_attr	= DBLP_A_SOCKET_ID,
	.get		= DBLP_CMD_SOCKET_GET,
	.fields		= fields,
	.n_fields	= N_FIELDS(fields),
	.prepare	= read_job_names,
};

static const struct keyword keywords[] = {
	{ "loss", DBLP_A_SOCKET_BUDGET, "a share, such as 2%", read_own_share,
	  NULL },
	{ "cap", DBLP_A_SOCKET_BUDGET_CAP, "a share, such as 2%",
	  read_own_share, NULL },
	{ "phase", DBLP_A_SOCKET_PHASE, "a phase, such as tolerant",
	  read_own_phase, NULL },
	{ "job", DBLP_A_SOCKET_JOB, "a job, such as 7", read_job_or_none,
	  NULL },
	{ NULL, 0, NULL, NULL, NULL },
};

/* Read a state as a set of states, also by words of ss */
static enum status read_states(const struct keyword *k, const char *word,
			       struct value *v)
{
	static const uint32_t unconnected = 1U << DBLP_STATE_CLOSED |
					    1U << DBLP_STATE_LISTEN;
	enum status status;

	if (!strcmp(word, "all")) {
		v->n = UINT32_MAX;
		return STATUS_OK;
	}
	if (!strcmp(word, "connected")) {
		v->n = ~unconnected;
		return STATUS_OK;
	}
	status = read_enum(k, strcmp(word, "listening") ? word : "listen", v);
	v->n = 1U << v->n;
	return status;
}

/* Read a port, with the colon that ss has before it or without */
static enum status read_port(const struct keyword *k, const char *word,
			     struct value *v)
{
	uint64_t port;

	if (dblp_number_parse(word + (*word == ':'), 1, UINT16_MAX, &port))
		return usage_error("'%s' is not %s", word, k->needs);
	v->n = (uint32_t)port;
	return STATUS_OK;
}

/* Filters of a list. Words of ss: state, sport, dport, src, dst */
#define PREFIX		"a prefix, such as 10.0.0.0/24"
#define PORT		"a port, such as :7000"

static const struct keyword filters[] = {
	{ "job", DBLP_A_SOCKET_JOB, "a job, such as 7", read_job_or_none, NULL },
	{ "phase", DBLP_A_SOCKET_PHASE, "a phase, such as tolerant",
	  read_phase, NULL },
	{ "state", DBLP_A_SOCKET_STATE, "a state, such as established",
	  read_states, dblp_state_names },
	{ "peer", DBLP_A_SOCKET_PEER_ADDR, PREFIX, read_prefix, NULL },
	{ "local", DBLP_A_SOCKET_LOCAL_ADDR, PREFIX, read_prefix, NULL },
	{ "dst", DBLP_A_SOCKET_PEER_ADDR, PREFIX, read_prefix, NULL },
	{ "src", DBLP_A_SOCKET_LOCAL_ADDR, PREFIX, read_prefix, NULL },
	{ "dport", DBLP_A_SOCKET_PEER_PORT, PORT, read_port, NULL },
	{ "sport", DBLP_A_SOCKET_LOCAL_PORT, PORT, read_port, NULL },
	{ NULL, 0, NULL, NULL, NULL },
};

/* Is an address of the socket in a prefix? Without a port the address is not set. */
static bool is_at(const struct values *v, uint16_t attr, const char *text)
{
	struct in6_addr addr = get_addr(v, attr);
	struct prefix prefix;

	return get_port(v, attr + 1) && !parse_prefix(text, &prefix) &&
	       prefix_has(&prefix, &addr);
}

/* Does the socket pass a filter? */
static bool passes(const struct values *v, const struct keyword *filter,
		   const struct value *value)
{
	if (filter->read == read_prefix)
		return is_at(v, filter->attr, value->text);
	if (filter->read == read_port)
		return get_port(v, filter->attr) == value->n;
	if (filter->read == read_states)
		return get_u32(v, filter->attr) < 32 &&
		       value->n & 1U << get_u32(v, filter->attr);
	return get_u32(v, filter->attr) == value->n;
}

static bool is_wanted(const struct values *v, const void *arg)
{
	const struct value *value = arg;
	int i;

	for (i = 0; filters[i].name; i++)
		if (value[i].given && !passes(v, &filters[i], &value[i]))
			return false;
	return true;
}

/* Set the bits of options in a word such as "-pm"; returns false if it is another word */
static bool take_options(const char *word, uint32_t *options)
{
	uint32_t found = 0;
	size_t i;

	if (*word++ != '-' || !*word)
		return false;
	for (; *word; word++) {
		for (i = 0; i < N_FIELDS(list_options) &&
			    list_options[i].letter != *word; i++)
			;
		if (i == N_FIELDS(list_options) || (*options | found) & 1U << i)
			return false;
		found |= 1U << i;
	}
	*options |= found;
	return true;
}

/*
 * Copy the words except options, "and" between filters, and "=" or "eq" between a filter
 * and its value; returns their number
 */
static int leave_out_options(char **to, int argc, char **argv,
			     uint32_t *options)
{
	int i, n = 0;

	for (i = 0; i < argc; i++) {
		bool keyword = n % 2 == 0;

		if (keyword && (take_options(argv[i], options) ||
				(n && i + 1 < argc && !strcmp(argv[i], "and"))))
			continue;
		if (!keyword && (!strcmp(argv[i], "=") || !strcmp(argv[i], "eq")))
			continue;
		to[n++] = argv[i];
	}
	return n;
}

static enum status read_jobs_and_processes(void)
{
	return read_job_names() ?: read_processes();
}

static enum status do_list(int argc, char **argv)
{
	struct value values[WORDS_MAX] = { 0 };
	struct field with_options[FIELDS_MAX];
	enum status status = STATUS_OK;
	struct object shown = sockets;
	uint32_t options = 0, i;
	char *words[argc + 1];
	int n;

	n = leave_out_options(words, argc, argv, &options);
	memcpy(with_options, fields, sizeof(fields));
	shown.fields = with_options;
	for (i = 0; i < N_FIELDS(list_options); i++) {
		if (!(options & 1U << i))
			continue;
		memcpy(&with_options[shown.n_fields], list_options[i].fields,
		       list_options[i].n * sizeof(*with_options));
		shown.n_fields += list_options[i].n;
		if (list_options[i].fields == fields_of_p)
			shown.prepare = read_jobs_and_processes;
	}
	if (n)
		status = read_words(filters, n, words, values);
	return status ?: object_list_if(&shown, is_wanted, values);
}

enum status sockets_each(enum status (*each)(const struct values *v, void *arg),
			 void *arg)
{
	return object_each(&sockets, each, arg);
}

static enum status do_show(int argc, char **argv)
{
	return object_show(&sockets, argc, argv);
}

static enum status do_set(int argc, char **argv)
{
	return object_set(&sockets, DBLP_CMD_SOCKET_SET, keywords, argc, argv);
}

static enum status do_help(int argc, char **argv)
{
	return show_help(argc, argv,
		"Usage: dblpctl [OPTION...] socket [list [-p] [-m] [-i] [job JOB] [phase PHASE]\n"
		"                                        [state STATE] [src PREFIX] [dst PREFIX]\n"
		"                                        [sport PORT] [dport PORT]]\n"
		"       dblpctl [OPTION...] socket show ID\n"
		"       dblpctl socket set ID [loss SHARE] [cap SHARE] [phase PHASE] [job JOB]\n"
		"\n"
		"  list   sockets of this network namespace (without CAP_NET_ADMIN only your own), or\n"
		"         only those with this job, phase, state and ports, and with addresses in\n"
		"         prefixes such as 10.0.0.0/24, fd00::/8 or 10.0.0.1; STATE is also all,\n"
		"         connected or listening, 'local' is src and 'peer' is dst. Options as of ss:\n"
		"         -p     also their jobs, the processes that have them open, and their ranks\n"
		"         -m     also their memory\n"
		"         -i     also RTT, window, losses and rates\n"
		"  show   all values of one socket\n"
		"  set    change a live socket (needs CAP_NET_ADMIN):\n"
		"         loss   loss budget of messages that it sends, also of those in flight\n"
		"         cap    maximum loss that it accepts\n"
		"         phase  number or name of its phase\n"
		"         job    number or name of its job, or none\n"
		"         'inherit' unsets loss, cap and phase");
}

enum status do_socket(int argc, char **argv)
{
	static const struct command verbs[] = {
		{ "list", do_list },
		{ "show", do_show },
		{ "set", do_set },
		{ "help", do_help },
		{ NULL, NULL },
	};

	return run_verb(verbs, argc, argv);
}
