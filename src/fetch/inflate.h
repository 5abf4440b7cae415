/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_INFLATE_H
#define NACRE_FETCH_INFLATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "wire/digest.h"
#include "wire/fetchmsg.h"

/*
 * Reads a file that may be compressed, and hashes what is read. Its limits answer decompression
 * bombs (security.md C13, C14): the bytes that come out, their ratio to those that went in, and the
 * window of zstd, for which the core is asked. One thread at a time.
 */

#define INFLATE_RATIO_MAX 200
#define INFLATE_RATIO_FROM (UINT64_C(100) << 20)
/* 32 MiB: what skopeo and buildah of Debian 12 ask for with zstd:chunked. The window is most of the
 * memory that unpacking takes (SANDBOX_UNPACK_MEMORY of sandbox.c). */
#define INFLATE_ZSTD_WINDOW_LOG 25

struct follow;
struct inflate;
struct memory;

/* Reads fd (kept by the caller) from where it stands. follow (kept too): says how far it is good;
 * NULL: it is whole. memory (likewise): who is asked for a window; NULL: nobody. */
int inflate_new(struct inflate **ret, int fd, enum fetch_compression compression, uint64_t max_out,
		struct follow *follow, struct memory *memory, struct error *err);
struct inflate *inflate_free(struct inflate *i);
static inline void inflate_freep(struct inflate **i)
{
	*i = inflate_free(*i);
}

/* Bytes, or 0 at the end; ERROR_INVALID for data that is damaged or cut short, ERROR_EXHAUSTED at a
 * limit. */
ssize_t inflate_read(struct inflate *i, void *to, size_t size, struct error *err);

/* After the end: the digest of the file. */
void inflate_digest(struct inflate *i, char ret[DIGEST_SIZE]);
uint64_t inflate_n_in(const struct inflate *i);
uint64_t inflate_n_out(const struct inflate *i);

/* What the first bytes of a file look like. */
enum fetch_compression inflate_guess(const uint8_t *data, size_t len);

#endif
