/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/join.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>
#include <string.h>
#include <sys/socket.h>

/* A filter that every frame fits: u32 and not matchall, which fewer kernels have. */
#define JOIN_PRIORITY 1
#define JOIN_INGRESS TC_H_MAKE(TC_H_INGRESS, 0)

static int join_add_ingress(struct netlink *nl, uint32_t link, struct error *err)
{
	const struct tcmsg info = { .tcm_family = AF_UNSPEC,
				    .tcm_ifindex = (int)link,
				    .tcm_parent = TC_H_INGRESS,
				    .tcm_handle = JOIN_INGRESS };
	struct netmsg m;

	netmsg_begin(&m, RTM_NEWQDISC, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &info,
		     sizeof(info));
	netmsg_put_str(&m, TCA_KIND, "ingress");
	return netlink_ask(nl, &m, NULL, NULL, "take what arrives on a link (sch_ingress)", err);
}

static void join_put_action(struct netmsg *m, uint32_t to)
{
	const struct tc_mirred redirect = { .action = TC_ACT_STOLEN,
					    .eaction = TCA_EGRESS_REDIR,
					    .ifindex = to };
	const size_t actions = netmsg_open(m, TCA_U32_ACT), first = netmsg_open(m, 1);
	size_t options;

	netmsg_put_str(m, TCA_ACT_KIND, "mirred");
	options = netmsg_open(m, TCA_ACT_OPTIONS);
	netmsg_put(m, TCA_MIRRED_PARMS, &redirect, sizeof(redirect));
	netmsg_close(m, options);
	netmsg_close(m, first);
	netmsg_close(m, actions);
}

static int join_add_filter(struct netlink *nl, uint32_t from, uint32_t to, struct error *err)
{
	const struct tcmsg info = { .tcm_family = AF_UNSPEC,
				    .tcm_ifindex = (int)from,
				    .tcm_parent = JOIN_INGRESS,
				    .tcm_info = TC_H_MAKE(JOIN_PRIORITY << 16, htons(ETH_P_ALL)) };
	const struct tc_u32_sel head = { .flags = TC_U32_TERMINAL, .nkeys = 1 };
	/* Behind it one key, of no bits. */
	uint8_t all[sizeof(head) + sizeof(struct tc_u32_key)] = { 0 };
	struct netmsg m;
	size_t options;

	memcpy(all, &head, sizeof(head));
	netmsg_begin(&m, RTM_NEWTFILTER, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
		     &info, sizeof(info));
	netmsg_put_str(&m, TCA_KIND, "u32");
	options = netmsg_open(&m, TCA_OPTIONS);
	netmsg_put(&m, TCA_U32_SEL, all, sizeof(all));
	join_put_action(&m, to);
	netmsg_close(&m, options);
	return netlink_ask(nl, &m, NULL, NULL, "lead frames to another link (cls_u32, act_mirred)",
			   err);
}

/* What it was joined to before. */
static int join_remove_ingress(struct netlink *nl, uint32_t link)
{
	const struct tcmsg info = { .tcm_family = AF_UNSPEC,
				    .tcm_ifindex = (int)link,
				    .tcm_parent = TC_H_INGRESS,
				    .tcm_handle = JOIN_INGRESS };
	struct netmsg m;

	netmsg_begin(&m, RTM_DELQDISC, NLM_F_REQUEST | NLM_F_ACK, &info, sizeof(info));
	return netlink_ask(nl, &m, NULL, NULL, "take nothing more that arrives on a link", NULL);
}

static int join_lead(struct netlink *nl, uint32_t from, uint32_t to, struct error *err)
{
	int r;

	(void)join_remove_ingress(nl, from);
	r = join_add_ingress(nl, from, err);

	return r < 0 ? r : join_add_filter(nl, from, to, err);
}

int join_links(struct netlink *nl, uint32_t a, uint32_t b, struct error *err)
{
	int r = join_lead(nl, a, b, err);

	return r < 0 ? r : join_lead(nl, b, a, err);
}
