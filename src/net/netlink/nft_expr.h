/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_NFT_EXPR_H
#define NACRE_NET_NFT_EXPR_H

#include <stdbool.h>

#include "net/netlink/nft.h"

/*
 * The expressions of rules (nft(8), "EXPRESSIONS"), each one attribute of the list
 * NFTA_RULE_EXPRESSIONS. Registers are counted in words of four bytes, 0 to 15; a value of several
 * words begins in one and takes the next ones along.
 */

void nft_expr_meta(struct nft_batch *b, unsigned key, unsigned reg);
void nft_expr_ct(struct nft_batch *b, unsigned key, unsigned reg);
void nft_expr_payload(struct nft_batch *b, unsigned base, unsigned offset, unsigned len,
		      unsigned reg);
/* Whether the address of destination (or source) is one of the host: RTN_LOCAL into the register.
 */
void nft_expr_fib_type(struct nft_batch *b, unsigned flags, unsigned reg);
/* reg &= mask */
void nft_expr_mask(struct nft_batch *b, unsigned reg, const void *mask, unsigned len);
/* The rule ends here where they differ, or where they are equal (differs). */
void nft_expr_cmp(struct nft_batch *b, unsigned reg, bool differs, const void *value, unsigned len);
/* In a set; in a map its value goes into the register `to`. */
void nft_expr_lookup(struct nft_batch *b, const char *set, unsigned reg);
void nft_expr_map(struct nft_batch *b, const char *map, unsigned reg, unsigned to);
/* An element of the set for that key counts its connections, and matches above the limit. */
void nft_expr_count_over(struct nft_batch *b, const char *set, unsigned reg, uint32_t limit);

/* A value into registers from `reg` on. */
void nft_expr_value(struct nft_batch *b, unsigned reg, const void *value, unsigned len);

/* Verdicts. chain is NULL but for NFT_JUMP and NFT_GOTO. */
void nft_expr_verdict(struct nft_batch *b, int code, const char *chain);
void nft_expr_reject(struct nft_batch *b);
/* The same for TCP alone: the sender's connect() fails at once, where an ICMP message that comes
 * while it is still in the call would be looked at with the next attempt, a second later. */
void nft_expr_reset(struct nft_batch *b);
void nft_expr_masquerade(struct nft_batch *b);
/* To the address and port in these registers. */
void nft_expr_dnat(struct nft_batch *b, uint8_t family, unsigned address, unsigned port);

#endif
