/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zstd.h>

#include "base/file/fd.h"
#include "base/process/thread.h"
#include "base/text/str.h"
#include "unit.h"
#include "wire/name/checksum.h"

/* What is compressed: longer than all blocks of a stream together, and as uneven as files are. */
#define PLAIN_LEN (STREAM_BLOCK * (STREAM_BLOCKS + 3) + 12345)

struct sample {
	uint8_t *plain, *packed;
	size_t plain_len, packed_len;
	int fd;
};

static void sample_done(struct sample *s)
{
	free(s->plain);
	free(s->packed);
	s->fd = fd_close(s->fd);
}

static void sample_fill(uint8_t *to, size_t len)
{
	uint32_t x = 1;

	for (size_t i = 0; i < len; i++) {
		if (i % 64 == 0)
			x = x * 1664525 + 1013904223;
		to[i] = (uint8_t)(x >> (i % 3 * 8));
	}
}

static size_t pack_gzip(const uint8_t *from, size_t len, uint8_t *to, size_t room)
{
	struct isal_zstream *z = malloc(sizeof(*z));
	size_t n;

	if (!z)
		return 0;
	isal_deflate_stateless_init(z);
	z->gzip_flag = IGZIP_GZIP;
	z->next_in = (uint8_t *)(uintptr_t)from;
	z->avail_in = (uint32_t)len;
	z->end_of_stream = 1;
	z->next_out = to;
	z->avail_out = (uint32_t)room;
	n = isal_deflate_stateless(z) == COMP_OK ? z->total_out : 0;
	free(z);
	return n;
}

static size_t pack_zstd(const uint8_t *from, size_t len, uint8_t *to, size_t room)
{
	size_t n = ZSTD_compress(to, room, from, len, 1);

	return ZSTD_isError(n) ? 0 : n;
}

static size_t pack_plain(const uint8_t *from, size_t len, uint8_t *to, size_t room)
{
	memcpy(to, from, MIN(len, room));
	return MIN(len, room);
}

static const struct {
	enum fetch_compression compression;
	size_t (*pack)(const uint8_t *from, size_t len, uint8_t *to, size_t room);
} formats[] = { { FETCH_PLAIN, pack_plain }, { FETCH_GZIP, pack_gzip }, { FETCH_ZSTD, pack_zstd } };

/* In n_members pieces, each of which is whole by itself. */
static bool sample_make(struct sample *s, size_t format, size_t len, size_t n_members)
{
	size_t room = len * 2 + 4096 * n_members;

	*s = (struct sample){ .plain = malloc(len + 1), .packed = malloc(room), .plain_len = len };
	s->fd = memfd_create("blob", MFD_CLOEXEC);
	if (!s->plain || !s->packed || s->fd < 0)
		return false;
	sample_fill(s->plain, len);
	for (size_t i = 0; i < n_members; i++) {
		size_t from = len * i / n_members, to = len * (i + 1) / n_members;

		s->packed_len +=
			formats[format].pack(s->plain + from, to - from, s->packed + s->packed_len,
					     room - s->packed_len);
	}
	return fd_write_full(s->fd, s->packed, s->packed_len) == 0 &&
	       lseek(s->fd, 0, SEEK_SET) == 0;
}

static void digest_of(const void *data, size_t len, char ret[DIGEST_SIZE])
{
	struct checksum h;

	checksum_start(&h);
	checksum_add(&h, data, len);
	checksum_end(&h, ret);
}

/* Takes all of a stream. 0 where it is the sample, and its digests are; or the error. */
static int take(struct stream *s, const struct sample *sample, struct error *err)
{
	char in[DIGEST_SIZE], out[DIGEST_SIZE], expected[DIGEST_SIZE];
	size_t len = 0;

	for (;;) {
		const void *data = NULL;
		ssize_t n = stream_next(s, &data, err);

		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		if (len + (size_t)n > sample->plain_len ||
		    memcmp(sample->plain + len, data, (size_t)n) != 0)
			return 1;
		len += (size_t)n;
	}
	stream_digests(s, in, out);
	CHECK(len == sample->plain_len);
	CHECK(stream_n_in(s) == sample->packed_len);
	CHECK(stream_n_out(s) == sample->plain_len);
	digest_of(sample->packed, sample->packed_len, expected);
	CHECK_STR(in, expected);
	digest_of(sample->plain, sample->plain_len, expected);
	CHECK_STR(out, expected);
	return 0;
}

static int take_from(const struct sample *sample, size_t format, int pipe_fd, struct error *err)
{
	_cleanup_(stream_freep) struct stream *s = NULL;
	int r = stream_new(&s,
			   &(struct stream_config){ .fd = sample->fd,
						    .compression = formats[format].compression,
						    .max_out = PLAIN_LEN,
						    .pipe_fd = pipe_fd,
						    .size = sample->packed_len,
						    .sock_fd = -1 },
			   err);

	return r < 0 ? r : take(s, sample, err);
}

static void reads_each_format(void)
{
	for (size_t f = 0; f < ARRAY_SIZE(formats); f++) {
		_cleanup_(sample_done) struct sample sample = { .fd = -1 };
		struct error err = ERROR_INIT;

		CHECK(sample_make(&sample, f, PLAIN_LEN, 1));
		CHECK(take_from(&sample, f, -1, &err) == 0);
	}
}

static void reads_members(void)
{
	for (size_t f = 0; f < ARRAY_SIZE(formats); f++) {
		for (size_t n = 2; n < 3000; n *= 11) {
			_cleanup_(sample_done) struct sample sample = { .fd = -1 };
			struct error err = ERROR_INIT;

			CHECK(sample_make(&sample, f, 200000, n));
			CHECK(take_from(&sample, f, -1, &err) == 0);
		}
	}
}

static void refuses_what_is_cut(void)
{
	for (size_t f = 1; f < ARRAY_SIZE(formats); f++) {
		_cleanup_(sample_done) struct sample sample = { .fd = -1 };

		CHECK(sample_make(&sample, f, 3000, 2));
		for (size_t n = sample.packed_len - 1; n > 0; n -= MIN(n, (size_t)13)) {
			struct error err = ERROR_INIT;

			CHECK(ftruncate(sample.fd, (off_t)n) == 0);
			CHECK(lseek(sample.fd, 0, SEEK_SET) == 0);
			CHECK(take_from(&sample, f, -1, &err) < 0);
			CHECK(err.code != 0);
		}
	}
}

static void refuses_what_is_damaged(void)
{
	for (size_t f = 1; f < ARRAY_SIZE(formats); f++) {
		_cleanup_(sample_done) struct sample sample = { .fd = -1 };

		CHECK(sample_make(&sample, f, 30000, 1));
		for (size_t at = 0; at < sample.packed_len; at += 97) {
			uint8_t wrong = (uint8_t)~sample.packed[at];
			struct error err = ERROR_INIT;
			int r;

			CHECK(pwrite(sample.fd, &wrong, 1, (off_t)at) == 1);
			CHECK(lseek(sample.fd, 0, SEEK_SET) == 0);
			r = take_from(&sample, f, -1, &err);
			/* zstd's one-shot form has no checksum: then the bytes differ. */
			CHECK(r != 0 || formats[f].compression == FETCH_ZSTD || at < 10);
			CHECK(pwrite(sample.fd, &sample.packed[at], 1, (off_t)at) == 1);
		}
	}
}

static void keeps_its_limit(void)
{
	_cleanup_(sample_done) struct sample sample = { .fd = -1 };
	_cleanup_(stream_freep) struct stream *s = NULL;
	struct error err = ERROR_INIT;
	const void *data;
	ssize_t n = 1;

	CHECK(sample_make(&sample, 1, PLAIN_LEN, 1));
	CHECK(stream_new(&s,
			 &(struct stream_config){ .fd = sample.fd,
						  .compression = FETCH_GZIP,
						  .max_out = PLAIN_LEN - 1,
						  .pipe_fd = -1,
						  .sock_fd = -1 },
			 &err) == 0);
	while (s && n > 0)
		n = stream_next(s, &data, &err);
	CHECK(err.kind == ERROR_EXHAUSTED);
}

/* The caller goes away while the maker waits for a block, and while it waits for the pipe. */
static void ends_anywhere(void)
{
	for (size_t n_taken = 0; n_taken < STREAM_BLOCKS + 3; n_taken++) {
		_cleanup_(sample_done) struct sample sample = { .fd = -1 };
		_cleanup_(stream_freep) struct stream *s = NULL;
		_cleanup_fd_ int read_fd = -1, write_fd = -1;
		struct error err = ERROR_INIT;
		const void *data;
		int fds[2];

		CHECK(sample_make(&sample, 1, PLAIN_LEN, 1));
		CHECK(pipe2(fds, O_CLOEXEC) == 0);
		read_fd = fds[0];
		write_fd = fds[1];
		CHECK(stream_new(&s,
				 &(struct stream_config){ .fd = sample.fd,
							  .compression = FETCH_GZIP,
							  .max_out = PLAIN_LEN,
							  .pipe_fd = n_taken ? -1 : read_fd,
							  .size = sample.packed_len,
							  .sock_fd = -1 },
				 &err) == 0);
		for (size_t i = 0; s && i < n_taken; i++)
			CHECK(stream_next(s, &data, &err) > 0 || err.code != 0);
	}
}

struct download {
	const struct sample *sample;
	int pipe_fd;
	uint64_t until, step;
};

/* Writes the file bit by bit, and tells of it. */
static void *download_run(void *arg)
{
	struct download *d = arg;

	for (uint64_t at = 0; at < d->until;) {
		uint64_t n = MIN(d->step, d->until - at);

		if (pwrite(d->sample->fd, d->sample->packed + at, n, (off_t)at) != (ssize_t)n)
			break;
		at += n;
		if (write(d->pipe_fd, &at, sizeof(at)) != (ssize_t)sizeof(at))
			break;
	}
	(void)close(d->pipe_fd);
	return NULL;
}

/* What take_from() says of a blob that comes in steps, and no further than `until`. */
static int follow(size_t format, uint64_t step, uint64_t missing, struct error *err)
{
	_cleanup_(sample_done) struct sample sample = { .fd = -1 };
	struct download d = { .sample = &sample, .step = step };
	_cleanup_fd_ int read_fd = -1;
	pthread_t thread;
	int fds[2], r;

	CHECK(sample_make(&sample, format, PLAIN_LEN, 1));
	/* What stands there before it is told is not what will be there. */
	for (size_t at = 0; at < sample.packed_len; at += 4096)
		CHECK(pwrite(sample.fd, "not yet!", 8, (off_t)at) == 8);
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	read_fd = fds[0];
	d.pipe_fd = fds[1];
	d.until = sample.packed_len - missing;
	if (thread_start(&thread, download_run, &d) < 0) {
		(void)close(fds[1]);
		return error_set(err, -EAGAIN, "start the download");
	}
	r = take_from(&sample, format, read_fd, err);
	read_fd = fd_close(read_fd);
	(void)pthread_join(thread, NULL);
	return r;
}

static void follows_a_blob_that_grows(void)
{
	for (size_t f = 0; f < ARRAY_SIZE(formats); f++) {
		struct error err = ERROR_INIT;

		CHECK(follow(f, 64 * 1024, 0, &err) == 0);
		CHECK(follow(f, 7777, 0, &err) == 0);
		CHECK(follow(f, PLAIN_LEN * 2, 0, &err) == 0);
	}
}

static void says_that_a_download_was_cut(void)
{
	for (size_t f = 0; f < ARRAY_SIZE(formats); f++) {
		struct error err = ERROR_INIT;

		CHECK(follow(f, 64 * 1024, 1, &err) < 0);
		CHECK(err.kind == ERROR_INVALID && strstr(err.text, "cut"));
	}
}

static void believes_no_number_that_cannot_be(void)
{
	static const uint64_t wrong[][2] = { { 100, 99 }, { UINT64_MAX, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		_cleanup_(sample_done) struct sample sample = { .fd = -1 };
		_cleanup_fd_ int read_fd = -1, write_fd = -1;
		struct error err = ERROR_INIT;
		int fds[2];

		CHECK(sample_make(&sample, 1, 30000, 1));
		CHECK(pipe2(fds, O_CLOEXEC) == 0);
		read_fd = fds[0];
		write_fd = fds[1];
		CHECK(write(write_fd, wrong[i], sizeof(wrong[i])) == sizeof(wrong[i]));
		CHECK(take_from(&sample, 1, read_fd, &err) < 0);
		CHECK(err.code == -EPROTO);
	}
}

/* A frame of zstd that says it needs a window of 8 MiB, and has one block with three bytes. */
static const uint8_t wide[] = {
	0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3, 3 << 3 | 1, 0, 0, 'a', 'b', 'c'
};

/* Who is asked says so much (GO), or nothing at all and the stream is ended. */
static void ask_for_a_window(enum fetchmsg_type answer, bool answers)
{
	_cleanup_(stream_freep) struct stream *s = NULL;
	_cleanup_fd_ int fd = memfd_create("blob", MFD_CLOEXEC), ours = -1, theirs = -1;
	static uint8_t packet[FETCHMSG_SIZE_MAX];
	struct error err = ERROR_INIT;
	const void *data = NULL;
	struct fetchmsg m = { .type = FETCHMSG_ERROR };
	int pair[2], len;
	ssize_t n;

	CHECK(fd_write_full(fd, wide, sizeof(wide)) == 0 && lseek(fd, 0, SEEK_SET) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	ours = pair[0];
	theirs = pair[1];
	if (stream_new(&s,
		       &(struct stream_config){ .fd = fd,
						.compression = FETCH_ZSTD,
						.max_out = 1000,
						.pipe_fd = -1,
						.sock_fd = theirs },
		       &err) < 0)
		return;
	/* Where there is no memory to ask with, nothing comes. */
	n = poll(&(struct pollfd){ .fd = ours, .events = POLLIN }, 1, 2000);
	if (n == 1)
		n = recv(ours, packet, sizeof(packet), 0);
	CHECK(n > 0 && fetchmsg_decode(&m, packet, (size_t)n, &err) == 0);
	CHECK(m.type == FETCHMSG_MEMORY && m.memory.n_bytes > 8 << 20);
	if (!answers || n <= 0)
		return;
	len = fetchmsg_encode(&(struct fetchmsg){ .type = answer }, packet, &err);
	CHECK(len > 0 && send(ours, packet, (size_t)len, 0) == len);
	if (answer == FETCHMSG_GO)
		CHECK(stream_next(s, &data, &err) == 3 && memcmp(data, "abc", 3) == 0);
	else
		CHECK(stream_next(s, &data, &err) < 0 && err.code == -EPROTO);
}

static void asks_for_its_window(void)
{
	ask_for_a_window(FETCHMSG_GO, true);
	ask_for_a_window(FETCHMSG_CONTENT_END, true);
	ask_for_a_window(FETCHMSG_GO, false);
}

UNIT_MAIN({ "asks for its window", asks_for_its_window },
	  { "reads each format", reads_each_format },
	  { "reads members and frames one after the other", reads_members },
	  { "refuses what is cut", refuses_what_is_cut },
	  { "refuses what is damaged", refuses_what_is_damaged },
	  { "keeps its limit", keeps_its_limit }, { "ends anywhere", ends_anywhere },
	  { "follows a blob that grows", follows_a_blob_that_grows },
	  { "says that a download was cut", says_that_a_download_was_cut },
	  { "believes no number that cannot be", believes_no_number_that_cannot_be })
