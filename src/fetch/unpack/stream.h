/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_STREAM_H
#define NACRE_FETCH_STREAM_H

#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "wire/message/fetchmsg.h"
#include "wire/name/digest.h"

/*
 * The decompressed bytes of a blob, with the digests of both: one thread reads and decompresses
 * (inflate.h), a second one hashes what went in and what came out, and the caller takes it block by
 * block meanwhile. The read-ahead is bounded, whatever the blob is.
 *
 * Decompressing takes longest with large files and the caller with small ones: the blocks are what
 * one may be ahead of the other, so that neither waits where they alternate.
 */

#define STREAM_BLOCK ((size_t)256 * 1024)
#define STREAM_BLOCKS 16
#define STREAM_PIECES 4 /* of the blob, INFLATE_INPUT each */

struct stream_config {
	int fd; /* of the blob, read from where it stands; the caller's */
	enum fetch_compression compression;
	uint64_t max_out; /* bytes that may come out */
	/* The blob grows while it is read: a pipe that tells how far it is good (follow.h), the
	 * caller's. -1: it is whole. */
	int pipe_fd;
	uint64_t size; /* of the blob, where pipe_fd is given */
	int sock_fd;   /* to the core, which is asked for memory (memory.h), the caller's; or -1 */
};

struct stream;

int stream_new(struct stream **ret, const struct stream_config *config, struct error *err);
/* Ends the threads, wherever they are. */
struct stream *stream_free(struct stream *s);
static inline void stream_freep(struct stream **s)
{
	*s = stream_free(*s);
}

/*
 * The next block: its length, and *ret, which is good until the next call. 0 at the end. Errors as
 * those of inflate_read() and follow_wait(), with what came before them not handed out any more.
 */
ssize_t stream_next(struct stream *s, const void **ret, struct error *err);

/* After the end: the digests of the blob and of what came out. Waits for them. */
void stream_digests(struct stream *s, char ret_in[DIGEST_SIZE], char ret_out[DIGEST_SIZE]);
uint64_t stream_n_in(const struct stream *s);
uint64_t stream_n_out(const struct stream *s);

#endif
