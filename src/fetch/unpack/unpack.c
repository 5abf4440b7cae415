/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/text/str.h"
#include "fetch/unpack/layer.h"
#include "fetch/unpack/stream.h"
#include "fetch/unpack/tarscan.h"

struct unpack {
	struct stream *stream;
	struct error fault; /* of the stream below libarchive, which cannot carry it */
	struct tarscan scan;
	bool padded;
	struct layer layer;
};

static void unpack_done(struct unpack *u)
{
	u->stream = stream_free(u->stream);
	layer_done(&u->layer);
}

/* An archive may end right behind the data of its last member: Go's reader takes it, so that there
 * are programs that write it (umoci). libarchive needs the padding to the end of the block. */
static ssize_t unpack_pad(struct unpack *u, const void **ret)
{
	static const uint8_t zeroes[TARSCAN_BLOCK];

	if (u->padded)
		return 0;
	u->padded = true;
	*ret = zeroes;
	return (ssize_t)tarscan_n_missing(&u->scan);
}

static ssize_t unpack_feed(struct archive *a, void *userdata, const void **ret)
{
	struct unpack *u = userdata;
	ssize_t n;
	int r = 0;

	n = stream_next(u->stream, ret, &u->fault);
	if (n == 0)
		return unpack_pad(u, ret);
	if (n > 0)
		r = tarscan_feed(&u->scan, *ret, (size_t)n, &u->fault);
	if (n < 0 || r < 0) {
		archive_set_error(a, EIO, "the data below");
		return ARCHIVE_FATAL;
	}
	return n;
}

static int unpack_archive_fail(struct unpack *u, struct archive *a, struct error *err)
{
	const char *text = archive_error_string(a);

	if (u->fault.code)
		return error_copy(err, &u->fault);
	if (archive_errno(a) == ENOMEM)
		return error_set(err, -ENOMEM, "read the layer");
	return error_refuse(err, ERROR_INVALID,
			    "the layer is no tar archive that can be read: %.200s",
			    text ? text : "unknown format");
}

static int unpack_entries(struct unpack *u, struct archive *a, struct error *err)
{
	for (;;) {
		struct archive_entry *entry;
		int r;

		r = archive_read_next_header(a, &entry);
		if (r == ARCHIVE_EOF)
			return 0;
		/* A warning is a name or an attribute that did not fit the character set: read on.
		 */
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
			return unpack_archive_fail(u, a, err);
		r = layer_add(&u->layer, a, entry, err);
		if (r < 0)
			return u->fault.code ? error_copy(err, &u->fault) : r;
	}
}

static void unpack_archive_free(struct archive **a)
{
	(void)archive_read_free(*a);
}

static int unpack_tar(struct unpack *u, struct error *err)
{
	_cleanup_(unpack_archive_free) struct archive *a = archive_read_new();

	if (!a || archive_read_support_format_tar(a) != ARCHIVE_OK)
		return error_set(err, -ENOMEM, "read the layer");
	/* Without a single header there is no format to recognise: an empty layer is one of these.
	 */
	if (archive_read_support_format_empty(a) != ARCHIVE_OK)
		return error_set(err, -ENOMEM, "read the layer");
	if (archive_read_open(a, u, NULL, unpack_feed, NULL) != ARCHIVE_OK)
		return unpack_archive_fail(u, a, err);
	return unpack_entries(u, a, err);
}

/* What follows the end mark of the tar belongs to the digests too. */
static int unpack_drain(struct unpack *u, struct error *err)
{
	const void *data;
	ssize_t n;

	do {
		n = stream_next(u->stream, &data, err);
	} while (n > 0);
	return (int)n;
}

static int unpack_verify(struct unpack *u, const struct fetchmsg *request, struct error *err)
{
	char blob[DIGEST_SIZE], tar[DIGEST_SIZE];

	stream_digests(u->stream, blob, tar);
	if (stream_n_in(u->stream) != request->unpack.size)
		return error_refuse(err, ERROR_INVALID, "the blob has %llu bytes, not %llu",
				    (unsigned long long)stream_n_in(u->stream),
				    (unsigned long long)request->unpack.size);
	if (!str_eq(blob, request->unpack.digest))
		return error_refuse(err, ERROR_INVALID, "the blob has the digest %s, not %s", blob,
				    request->unpack.digest);
	if (!str_eq(tar, request->unpack.diff_id))
		return error_refuse(err, ERROR_INVALID,
				    "the layer has the diff id %s, the configuration says %s", tar,
				    request->unpack.diff_id);
	return 0;
}

int unpack_run(const struct fetchmsg *request, int blob_fd, int pipe_fd, int root_fd, int sock_fd,
	       struct fetchmsg *ret, struct error *err)
{
	_cleanup_(unpack_done) struct unpack u = {
		.fault = ERROR_INIT,
		.scan = TARSCAN_INIT,
		.layer =
			LAYER_INIT(root_fd, request->unpack.max_bytes, request->unpack.max_entries),
	};
	int r;

	r = stream_new(&u.stream,
		       &(struct stream_config){ .fd = blob_fd,
						.compression = request->unpack.compression,
						.max_out = request->unpack.max_bytes,
						.pipe_fd = pipe_fd,
						.size = request->unpack.size,
						.sock_fd = sock_fd },
		       err);
	if (r == 0)
		r = unpack_tar(&u, err);
	if (r == 0)
		r = unpack_drain(&u, err);
	if (r == 0)
		r = unpack_verify(&u, request, err);
	if (r == 0)
		r = layer_finish(&u.layer, err);
	if (r < 0)
		return r;
	*ret = (struct fetchmsg){ .type = FETCHMSG_UNPACKED,
				  .unpacked = { .n_bytes = stream_n_out(u.stream),
						.n_entries = u.layer.n_entries,
						.n_skipped = u.layer.n_skipped } };
	return 0;
}
