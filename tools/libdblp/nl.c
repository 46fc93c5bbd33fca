// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Ends of netlink replies.
 */

#include "libdblp.h"

#include <libmnl/libmnl.h>
#include <string.h>

static void read_reason(const struct nlmsghdr *nlh, size_t skip,
			struct dblp_nl_end *end)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, skip) {
		switch (mnl_attr_get_type(attr)) {
		case NLMSGERR_ATTR_MSG:
			if (!mnl_attr_validate(attr, MNL_TYPE_NUL_STRING))
				end->msg = mnl_attr_get_str(attr);
			break;
		case NLMSGERR_ATTR_OFFS:
			if (!mnl_attr_validate(attr, MNL_TYPE_U32))
				end->offset = mnl_attr_get_u32(attr);
			break;
		case NLMSGERR_ATTR_MISS_TYPE:
			if (!mnl_attr_validate(attr, MNL_TYPE_U32))
				end->missing = mnl_attr_get_u32(attr);
			break;
		}
	}
}

bool dblp_nl_ended(const struct nlmsghdr *nlh, struct dblp_nl_end *end)
{
	const struct nlmsgerr *error = mnl_nlmsg_get_payload(nlh);
	size_t skip = sizeof(int);

	if (nlh->nlmsg_type != NLMSG_ERROR && nlh->nlmsg_type != NLMSG_DONE)
		return false;
	memset(end, 0, sizeof(*end));
	/* NLMSG_DONE also starts with an error */
	end->err = -error->error;
	if (nlh->nlmsg_type == NLMSG_ERROR) {
		skip = sizeof(*error);
		if (!(nlh->nlmsg_flags & NLM_F_CAPPED))
			skip += error->msg.nlmsg_len - sizeof(error->msg);
	}
	if (nlh->nlmsg_flags & NLM_F_ACK_TLVS)
		read_reason(nlh, skip, end);
	return true;
}
