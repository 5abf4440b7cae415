/* SPDX-License-Identifier: Apache-2.0 */
#include "net/filter/policy.h"

/* Before the kernel's headers, which leave out what libc has said. */
#include <arpa/inet.h>

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "net/filter/filter_rules.h"
#include "net/netlink/netlink.h"
#include "net/netlink/netmsg.h"

struct policy_found {
	struct policy_chain *chain;
	bool is_forward, drops;
};

static const char *policy_family(uint8_t family)
{
	static const struct {
		uint8_t family;
		const char *word;
	} words[] = {
		{ NFPROTO_IPV4, "ip" },
		{ NFPROTO_IPV6, "ip6" },
		{ NFPROTO_INET, "inet" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].family == family)
			return words[i].word;
	return NULL;
}

static int policy_read_hook(const struct netattr *hook, struct policy_found *f)
{
	struct netmsg_bytes rest = hook->value;
	struct netattr a;
	uint32_t number = 0;
	int r;

	while ((r = netattr_next(&rest, &a)) > 0) {
		if (a.type != NFTA_HOOK_HOOKNUM)
			continue;
		r = netattr_u32(&a, &number);
		if (r < 0)
			return r;
		f->is_forward = ntohl(number) == NF_INET_FORWARD;
	}
	return r;
}

static int policy_read_attr(const struct netattr *a, struct policy_found *f)
{
	uint32_t policy;
	int r;

	if (a->type == NFTA_CHAIN_TABLE)
		return netattr_str(a, f->chain->table, sizeof(f->chain->table));
	if (a->type == NFTA_CHAIN_NAME)
		return netattr_str(a, f->chain->chain, sizeof(f->chain->chain));
	if (a->type == NFTA_CHAIN_HOOK)
		return policy_read_hook(a, f);
	if (a->type != NFTA_CHAIN_POLICY)
		return 0;
	r = netattr_u32(a, &policy);
	f->drops = r == 0 && ntohl(policy) == NF_DROP;
	return r;
}

static int policy_read(const struct netmsg_head *answer, void *element)
{
	struct policy_found f = { .chain = element };
	struct netmsg_bytes rest = answer->body;
	struct nfgenmsg info;
	struct netattr a;
	int r;

	if (answer->type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN))
		return 0;
	r = netmsg_take(&rest, &info, sizeof(info));
	if (r < 0)
		return r;
	f.chain->family = policy_family(info.nfgen_family);
	while ((r = netattr_next(&rest, &a)) > 0) {
		r = policy_read_attr(&a, &f);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	return f.is_forward && f.drops && f.chain->family && !str_eq(f.chain->table, FILTER_TABLE);
}

int policy_list(struct policy_chain **ret, size_t *ret_n, struct error *err)
{
	const struct nfgenmsg info = { .nfgen_family = NFPROTO_UNSPEC, .version = NFNETLINK_V0 };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct error own = ERROR_INIT;
	void *list = NULL;
	struct netmsg m;
	int r;

	*ret = NULL;
	*ret_n = 0;
	r = netlink_open_for(&nl, NETLINK_NETFILTER, &own);
	if (r == 0) {
		netmsg_begin(&m, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN,
			     NLM_F_REQUEST | NLM_F_DUMP, &info, sizeof(info));
		r = netlink_list(&nl, &m, policy_read, sizeof(struct policy_chain), &list, ret_n,
				 "list the chains of nf_tables", &own);
	}
	/* A kernel without them. */
	if (r == -EPROTONOSUPPORT || r == -EOPNOTSUPP || r == -EINVAL)
		return 0;
	if (r < 0)
		return error_copy(err, &own);
	*ret = list;
	return 0;
}
