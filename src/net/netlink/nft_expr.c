/* SPDX-License-Identifier: Apache-2.0 */
#include "net/netlink/nft_expr.h"

#include <linux/netfilter/nf_tables.h>
#include <string.h>

/* The kernel's number of a register. */
static uint32_t nft_reg(unsigned reg)
{
	return NFT_REG32_00 + reg;
}

/* Two heads: that of the element, and that of what is said in it. */
struct nft_expr {
	size_t element, data;
};

static struct nft_expr nft_expr_begin(struct nft_batch *b, unsigned as, const char *name)
{
	struct nft_expr e = { .element = nft_open(b, as) };

	nft_put_str(b, NFTA_EXPR_NAME, name);
	e.data = nft_open(b, NFTA_EXPR_DATA);
	return e;
}

static void nft_expr_end(struct nft_batch *b, struct nft_expr e)
{
	nft_close(b, e.data);
	nft_close(b, e.element);
}

static void nft_put_value(struct nft_batch *b, unsigned type, const void *value, size_t len)
{
	const size_t at = nft_open(b, type);

	nft_put(b, NFTA_DATA_VALUE, value, len);
	nft_close(b, at);
}

void nft_expr_meta(struct nft_batch *b, unsigned key, unsigned reg)
{
	const struct nft_expr e = nft_expr_begin(b, NFTA_LIST_ELEM, "meta");

	nft_put_u32(b, NFTA_META_DREG, nft_reg(reg));
	nft_put_u32(b, NFTA_META_KEY, key);
	nft_expr_end(b, e);
}

void nft_expr_ct(struct nft_batch *b, unsigned key, unsigned reg)
{
	const struct nft_expr e = nft_expr_begin(b, NFTA_LIST_ELEM, "ct");

	nft_put_u32(b, NFTA_CT_DREG, nft_reg(reg));
	nft_put_u32(b, NFTA_CT_KEY, key);
	nft_expr_end(b, e);
}

void nft_expr_payload(struct nft_batch *b, unsigned base, unsigned offset, unsigned len,
		      unsigned reg)
{
	const struct nft_expr e = nft_expr_begin(b, NFTA_LIST_ELEM, "payload");

	nft_put_u32(b, NFTA_PAYLOAD_DREG, nft_reg(reg));
	nft_put_u32(b, NFTA_PAYLOAD_BASE, base);
	nft_put_u32(b, NFTA_PAYLOAD_OFFSET, offset);
	nft_put_u32(b, NFTA_PAYLOAD_LEN, len);
	nft_expr_end(b, e);
}

void nft_expr_fib_type(struct nft_batch *b, unsigned flags, unsigned reg)
{
	const struct nft_expr e = nft_expr_begin(b, NFTA_LIST_ELEM, "fib");

	nft_put_u32(b, NFTA_FIB_DREG, nft_reg(reg));
	nft_put_u32(b, NFTA_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
	nft_put_u32(b, NFTA_FIB_FLAGS, flags);
	nft_expr_end(b, e);
}

void nft_expr_mask(struct nft_batch *b, unsigned reg, const void *mask, unsigned len)
{
	static const uint8_t zero[16];
	const struct nft_expr e = nft_expr_begin(b, NFTA_LIST_ELEM, "bitwise");

	nft_put_u32(b, NFTA_BITWISE_SREG, nft_reg(reg));
	nft_put_u32(b, NFTA_BITWISE_DREG, nft_reg(reg));
	nft_put_u32(b, NFTA_BITWISE_LEN, len);
	nft_put_value(b, NFTA_BITWISE_MASK, mask, len);
	nft_put_value(b, NFTA_BITWISE_XOR, zero, len);
	nft_expr_end(b, e);
}

void nft_expr_cmp(struct nft_batch *b, unsigned reg, bool differs, const void *value, unsigned len)
{
	const struct nft_expr e = nft_expr_begin(b, NFTA_LIST_ELEM, "cmp");

	nft_put_u32(b, NFTA_CMP_SREG, nft_reg(reg));
	nft_put_u32(b, NFTA_CMP_OP, differs ? NFT_CMP_NEQ : NFT_CMP_EQ);
	nft_put_value(b, NFTA_CMP_DATA, value, len);
	nft_expr_end(b, e);
}

void nft_expr_lookup(struct nft_batch *b, const char *set, unsigned reg)
{
	const struct nft_expr e = nft_expr_begin(b, NFTA_LIST_ELEM, "lookup");

	nft_put_str(b, NFTA_LOOKUP_SET, set);
	nft_put_u32(b, NFTA_LOOKUP_SREG, nft_reg(reg));
	nft_expr_end(b, e);
}

void nft_expr_map(struct nft_batch *b, const char *map, unsigned reg, unsigned to)
{
	const struct nft_expr e = nft_expr_begin(b, NFTA_LIST_ELEM, "lookup");

	nft_put_str(b, NFTA_LOOKUP_SET, map);
	nft_put_u32(b, NFTA_LOOKUP_SREG, nft_reg(reg));
	nft_put_u32(b, NFTA_LOOKUP_DREG, nft_reg(to));
	nft_expr_end(b, e);
}

void nft_expr_count_over(struct nft_batch *b, const char *set, unsigned reg, uint32_t limit)
{
	const struct nft_expr e = nft_expr_begin(b, NFTA_LIST_ELEM, "dynset");
	struct nft_expr count;

	nft_put_str(b, NFTA_DYNSET_SET_NAME, set);
	nft_put_u32(b, NFTA_DYNSET_OP, NFT_DYNSET_OP_ADD);
	nft_put_u32(b, NFTA_DYNSET_SREG_KEY, nft_reg(reg));
	count = nft_expr_begin(b, NFTA_DYNSET_EXPR, "connlimit");
	nft_put_u32(b, NFTA_CONNLIMIT_COUNT, limit);
	nft_put_u32(b, NFTA_CONNLIMIT_FLAGS, NFT_CONNLIMIT_F_INV);
	nft_expr_end(b, count);
	nft_expr_end(b, e);
}

void nft_expr_value(struct nft_batch *b, unsigned reg, const void *value, unsigned len)
{
	const struct nft_expr e = nft_expr_begin(b, NFTA_LIST_ELEM, "immediate");

	nft_put_u32(b, NFTA_IMMEDIATE_DREG, nft_reg(reg));
	nft_put_value(b, NFTA_IMMEDIATE_DATA, value, len);
	nft_expr_end(b, e);
}

void nft_expr_verdict(struct nft_batch *b, int code, const char *chain)
{
	const struct nft_expr e = nft_expr_begin(b, NFTA_LIST_ELEM, "immediate");
	size_t data, verdict;

	nft_put_u32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = nft_open(b, NFTA_IMMEDIATE_DATA);
	verdict = nft_open(b, NFTA_DATA_VERDICT);
	nft_put_u32(b, NFTA_VERDICT_CODE, (uint32_t)code);
	if (chain)
		nft_put_str(b, NFTA_VERDICT_CHAIN, chain);
	nft_close(b, verdict);
	nft_close(b, data);
	nft_expr_end(b, e);
}

void nft_expr_reject(struct nft_batch *b)
{
	const struct nft_expr e = nft_expr_begin(b, NFTA_LIST_ELEM, "reject");
	const uint8_t code = NFT_REJECT_ICMPX_ADMIN_PROHIBITED;

	nft_put_u32(b, NFTA_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
	nft_put(b, NFTA_REJECT_ICMP_CODE, &code, sizeof(code));
	nft_expr_end(b, e);
}

void nft_expr_reset(struct nft_batch *b)
{
	const struct nft_expr e = nft_expr_begin(b, NFTA_LIST_ELEM, "reject");

	nft_put_u32(b, NFTA_REJECT_TYPE, NFT_REJECT_TCP_RST);
	nft_expr_end(b, e);
}

void nft_expr_masquerade(struct nft_batch *b)
{
	nft_expr_end(b, nft_expr_begin(b, NFTA_LIST_ELEM, "masq"));
}

void nft_expr_dnat(struct nft_batch *b, uint8_t family, unsigned address, unsigned port)
{
	const struct nft_expr e = nft_expr_begin(b, NFTA_LIST_ELEM, "nat");

	nft_put_u32(b, NFTA_NAT_TYPE, NFT_NAT_DNAT);
	nft_put_u32(b, NFTA_NAT_FAMILY, family);
	nft_put_u32(b, NFTA_NAT_REG_ADDR_MIN, nft_reg(address));
	nft_put_u32(b, NFTA_NAT_REG_PROTO_MIN, nft_reg(port));
	nft_expr_end(b, e);
}
