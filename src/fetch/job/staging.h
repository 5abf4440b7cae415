/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_STAGING_H
#define NACRE_FETCH_STAGING_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/map.h"
#include "fetch/unpack/source.h"
#include "wire/message/fetchmsg.h"
#include "wire/name/digest.h"

/*
 * The directory that the core handed in: blobs are copied there under the hexadecimal digits of
 * their digest, hashed on the way, and told to the core when they are whole. Each is copied once.
 */
struct staging {
	int dir_fd;
	int sock_fd;
	uint64_t max_bytes; /* of all blobs together */
	uint64_t n_bytes;
	size_t n_blobs;
	struct map blobs; /* digest: struct staging_blob */
};

void staging_done(struct staging *s);

/* Copies a file of the archive that must have this digest and size. */
int staging_take(struct staging *s, struct source *source, const char *name, const char *digest,
		 uint64_t size, struct error *err);
/* Copies a file of which neither is known. *ret_compression: what its first bytes look like. */
int staging_take_any(struct staging *s, struct source *source, const char *name,
		     char ret_digest[DIGEST_SIZE], uint64_t *ret_size,
		     enum fetch_compression *ret_compression, struct error *err);
/* Copies all of a file that is open: as staging_take_any() does. */
int staging_take_file(struct staging *s, int fd, char ret_digest[DIGEST_SIZE], uint64_t *ret_size,
		      enum fetch_compression *ret_compression, struct error *err);
/* Stores a document that is in memory; expected (NULL: anything) is the digest that it must have.
 */
int staging_put(struct staging *s, const void *data, size_t len, const char *expected,
		char ret_digest[DIGEST_SIZE], struct error *err);

#endif
