/* SPDX-License-Identifier: Apache-2.0 */
#include "net/filter/policy.h"

/* Before the kernel's headers, which leave out what libc has said. */
#include <arpa/inet.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <stdlib.h>

#include "net/filter/filter.h"
#include "net/netlink/bed_test.h"
#include "net/netlink/nft.h"

static void put_chain(struct nft_batch *b, const char *name, uint32_t hook, uint32_t policy)
{
	size_t at;

	nft_message(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE, NFPROTO_IPV4);
	nft_put_str(b, NFTA_CHAIN_TABLE, "filter");
	nft_put_str(b, NFTA_CHAIN_NAME, name);
	at = nft_open(b, NFTA_CHAIN_HOOK);
	nft_put_u32(b, NFTA_HOOK_HOOKNUM, hook);
	nft_put_u32(b, NFTA_HOOK_PRIORITY, 0);
	nft_close(b, at);
	nft_put_u32(b, NFTA_CHAIN_POLICY, policy);
	nft_put_str(b, NFTA_CHAIN_TYPE, "filter");
}

/* As iptables -P FORWARD has it. */
static int put_filter(uint32_t forward)
{
	_cleanup_nft_batch_ struct nft_batch b = NFT_BATCH_INIT;
	_cleanup_fd_ int fd = nft_socket(NULL);

	nft_message(&b, NFT_MSG_NEWTABLE, NLM_F_CREATE, NFPROTO_IPV4);
	nft_put_str(&b, NFTA_TABLE_NAME, "filter");
	put_chain(&b, "FORWARD", NF_INET_FORWARD, forward);
	put_chain(&b, "INPUT", NF_INET_LOCAL_IN, NF_DROP);
	return fd < 0 ? fd : nft_commit(&b, fd, "make a table", NULL);
}

static size_t count(struct policy_chain **ret)
{
	struct error err = ERROR_INIT;
	size_t n = 0;

	CHECK_INT(policy_list(ret, &n, &err), 0);
	return err.code ? 0 : n;
}

static void tells_what_drops(void)
{
	const struct filter_state none = { .networks = NULL };
	struct policy_chain *list = NULL;
	struct error err = ERROR_INIT;
	struct filter *f = NULL;

	bed_enter();
	CHECK_INT(count(&list), 0);
	free(list);
	if (put_filter(NF_ACCEPT) < 0)
		return;
	CHECK_INT(count(&list), 0);
	free(list);
	CHECK_INT(put_filter(NF_DROP), 0);
	/* Ours is none of others. */
	if (filter_new(&f, &err) == 0)
		CHECK_INT(filter_sync(f, &none, &err), 0);
	if (count(&list) == 1) {
		CHECK_STR(list->family, "ip");
		CHECK_STR(list->table, "filter");
		CHECK_STR(list->chain, "FORWARD");
	} else {
		CHECK(err.code);
	}
	free(list);
	(void)filter_free(f);
}

UNIT_MAIN({ "tells what drops", tells_what_drops })
