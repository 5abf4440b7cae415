/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_NFT_H
#define NACRE_NET_NFT_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/buf.h"

/*
 * Batches of nf_tables' netlink messages (linux/netfilter/nf_tables.h): everything between the
 * first and the last becomes true at one instant, or nothing does. Numbers are big-endian there,
 * but for what is compared with a register.
 *
 * A batch is filled without looking at errors: what did not fit in memory is told by nft_commit().
 */
struct nft_batch {
	struct buf b;
	uint32_t seq;
	size_t message; /* where the one that is written begins */
	int failed;     /* a negative errno */
};

#define NFT_BATCH_INIT                                                                             \
	{                                                                                          \
		.b = BUF_INIT                                                                      \
	}

void nft_batch_done(struct nft_batch *b);
#define _cleanup_nft_batch_ _cleanup_(nft_batch_done)

/* A message NFT_MSG_* with flags NLM_F_* beside NLM_F_REQUEST; ends the one before. */
void nft_message(struct nft_batch *b, unsigned type, unsigned flags, uint8_t family);
void nft_put(struct nft_batch *b, unsigned type, const void *data, size_t len);
void nft_put_u32(struct nft_batch *b, unsigned type, uint32_t value); /* big-endian */
void nft_put_u64(struct nft_batch *b, unsigned type, uint64_t value); /* likewise */
void nft_put_str(struct nft_batch *b, unsigned type, const char *value);
/* Open and close an attribute of at most 65,535 bytes: all that is put in between is within it. */
size_t nft_open(struct nft_batch *b, unsigned type);
void nft_close(struct nft_batch *b, size_t at);

/* A socket of NETLINK_NETFILTER in the network namespace of the calling thread. -EPROTONOSUPPORT:
 * this kernel has no nf_tables. */
int nft_socket(struct error *err) _must_check_;
/* Sends the batch, which is empty afterwards, and hears what became of it: the first error of the
 * kernel, in `err` behind `what`. */
int nft_commit(struct nft_batch *b, int fd, const char *what, struct error *err) _must_check_;

#endif
