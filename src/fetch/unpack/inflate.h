/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_INFLATE_H
#define NACRE_FETCH_INFLATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "wire/message/fetchmsg.h"

/*
 * Reads a file that may be compressed. Its limits answer decompression bombs (security.md C13,
 * C14): the bytes that come out, their ratio to those that went in, and the window of zstd, for
 * which the core is asked. One thread at a time.
 */

#define INFLATE_INPUT ((size_t)128 * 1024)

#define INFLATE_RATIO_MAX 200
#define INFLATE_RATIO_FROM (UINT64_C(100) << 20)
/* 32 MiB: what skopeo and buildah of Debian 12 ask for with zstd:chunked. The window is most of the
 * memory that unpacking takes (SANDBOX_UNPACK_MEMORY of sandbox.c). */
#define INFLATE_ZSTD_WINDOW_LOG 25

struct follow;
struct inflate;
struct memory;

/* Where the file is read to, for one who looks at the same bytes: INFLATE_INPUT bytes at a time. */
struct inflate_pieces {
	/* The piece before is done with. NULL: stop, -ECANCELED. */
	uint8_t *(*take)(void *userdata);
	/* So many bytes (at least one) are in the piece that was taken last, and stay. */
	void (*filled)(void *userdata, size_t n);
	void *userdata;
};

struct inflate_config {
	int fd; /* read from where it stands; the caller's, as all that follows */
	enum fetch_compression compression;
	uint64_t max_out;                    /* bytes that may come out */
	struct follow *follow;               /* says how far the file is good; NULL: it is whole */
	struct memory *memory;               /* the budget for a window; NULL: no limit */
	const struct inflate_pieces *pieces; /* NULL: one of its own */
};

int inflate_new(struct inflate **ret, const struct inflate_config *config, struct error *err);
struct inflate *inflate_free(struct inflate *i);
static inline void inflate_freep(struct inflate **i)
{
	*i = inflate_free(*i);
}

/* Bytes, or 0 at the end; ERROR_INVALID for data that is damaged or cut short, ERROR_EXHAUSTED at a
 * limit. */
ssize_t inflate_read(struct inflate *i, void *to, size_t size, struct error *err);

/* Bytes so far. */
uint64_t inflate_n_in(const struct inflate *i);
uint64_t inflate_n_out(const struct inflate *i);

/* The compression that the first bytes of a file suggest. */
enum fetch_compression inflate_guess(const uint8_t *data, size_t len);
/* Compares the compression that the first INFLATE_HEAD bytes show with the one that was declared:
 * ERROR_UNSUPPORTED names xz and bzip2, ERROR_INVALID any other that differs. */
#define INFLATE_HEAD 10
int inflate_check_form(enum fetch_compression said, const uint8_t *data, size_t len,
		       struct error *err);

#endif
