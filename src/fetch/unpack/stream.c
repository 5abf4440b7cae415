/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A ring of blocks with three counters, each of which only its own thread raises: blocks that were
 * made, hashed, and taken by the caller. A block may be made anew when it was both hashed and given
 * back. A ring of pieces of the blob with two: they were read, and hashed; the decoder is done with
 * all pieces when it asks for the next. The lock is held for the counters alone, so that all of
 * these are written and read without it.
 *
 * To wake a thread costs as much as a good part of a block: who has to wait is woken when there is
 * work for a while.
 */

#include "fetch/unpack/stream.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/process/thread.h"
#include "fetch/unpack/follow.h"
#include "fetch/unpack/inflate.h"
#include "fetch/unpack/memory.h"
#include "wire/name/checksum.h"

#define STREAM_BLOCKS_WAKE (STREAM_BLOCKS / 4)
#define STREAM_PIECES_WAKE (STREAM_PIECES / 2)

/* One of the three, under the lock. */
struct stream_side {
	pthread_cond_t go;
	bool has_go;
	bool (*wakes)(const struct stream *s); /* what it waits for; NULL: it does not */
};

struct stream {
	struct inflate *inflate; /* of the maker, until it has ended */
	struct follow follow;
	struct memory memory;
	struct inflate_pieces into;
	uint8_t *blocks, *pieces;
	size_t lens[STREAM_BLOCKS], piece_lens[STREAM_PIECES];
	struct checksum hash_in, hash_out; /* of the hasher, until it has ended */
	int stop_fd;
	pthread_t maker, hasher;
	bool has_maker, has_hasher, has_lock;
	bool holds; /* the caller has block n_taken */

	pthread_mutex_t lock; /* over all that follows */
	struct stream_side make, hash, take;
	uint64_t n_made, n_hashed, n_taken;
	uint64_t n_read, n_read_hashed;
	bool ended; /* no block and no piece follows */
	bool stopping;
	struct error fault; /* why it ended */
};

static uint8_t *stream_block(const struct stream *s, uint64_t number)
{
	return s->blocks + number % STREAM_BLOCKS * STREAM_BLOCK;
}

static uint8_t *stream_piece(const struct stream *s, uint64_t number)
{
	return s->pieces + number % STREAM_PIECES * INFLATE_INPUT;
}

/* ---- who waits, and for what; under the lock ---- */

static uint64_t stream_n_free(const struct stream *s)
{
	return STREAM_BLOCKS - (s->n_made - MIN(s->n_hashed, s->n_taken));
}

static uint64_t stream_n_pieces_free(const struct stream *s)
{
	return STREAM_PIECES - (s->n_read - s->n_read_hashed);
}

static bool stream_wakes_maker(const struct stream *s)
{
	return stream_n_free(s) >= STREAM_BLOCKS_WAKE;
}

static bool stream_wakes_reader(const struct stream *s)
{
	return stream_n_pieces_free(s) >= STREAM_PIECES_WAKE;
}

static bool stream_wakes_hasher(const struct stream *s)
{
	return s->n_made - s->n_hashed >= STREAM_BLOCKS_WAKE ||
	       s->n_read - s->n_read_hashed >= STREAM_PIECES_WAKE;
}

/* The first blocks are taken as they come: a small layer has no others. */
static bool stream_wakes_taker(const struct stream *s)
{
	return s->n_made - s->n_taken >= (s->n_taken < STREAM_BLOCKS ? 1 : STREAM_BLOCKS_WAKE);
}

static void stream_wake(const struct stream *s, struct stream_side *side)
{
	if (side->wakes && (s->ended || s->stopping || side->wakes(s)))
		(void)pthread_cond_signal(&side->go);
}

static void stream_wake_all(struct stream *s)
{
	stream_wake(s, &s->make);
	stream_wake(s, &s->hash);
	stream_wake(s, &s->take);
}

/* Until there is work for a while, or none will come. */
static void stream_wait(struct stream *s, struct stream_side *side,
			bool (*wakes)(const struct stream *s))
{
	side->wakes = wakes;
	while (!s->stopping && !s->ended && !wakes(s))
		(void)pthread_cond_wait(&side->go, &s->lock);
	side->wakes = NULL;
}

/* Counts one step of a thread; *counter is one of the five. */
static void stream_count(struct stream *s, uint64_t *counter)
{
	(void)pthread_mutex_lock(&s->lock);
	(*counter)++;
	stream_wake_all(s);
	(void)pthread_mutex_unlock(&s->lock);
}

/* ---- the maker ---- */

/* Whether there is a block to fill. */
static bool stream_wait_free(struct stream *s)
{
	bool go;

	(void)pthread_mutex_lock(&s->lock);
	if (stream_n_free(s) == 0)
		stream_wait(s, &s->make, stream_wakes_maker);
	go = !s->stopping;
	(void)pthread_mutex_unlock(&s->lock);
	return go;
}

static uint8_t *stream_take_piece(void *userdata)
{
	struct stream *s = userdata;
	bool go;

	(void)pthread_mutex_lock(&s->lock);
	if (stream_n_pieces_free(s) == 0)
		stream_wait(s, &s->make, stream_wakes_reader);
	go = !s->stopping;
	(void)pthread_mutex_unlock(&s->lock);
	return go ? stream_piece(s, s->n_read) : NULL;
}

static void stream_piece_filled(void *userdata, size_t n)
{
	struct stream *s = userdata;

	s->piece_lens[s->n_read % STREAM_PIECES] = n;
	stream_count(s, &s->n_read);
}

/* Fills a block as far as there is anything: its length, 0 at the end. */
static ssize_t stream_fill(struct stream *s, uint8_t *block, struct error *err)
{
	size_t len = 0;

	while (len < STREAM_BLOCK) {
		ssize_t n = inflate_read(s->inflate, block + len, STREAM_BLOCK - len, err);

		if (n < 0)
			return n;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

static void *stream_make(void *arg)
{
	struct stream *s = arg;
	struct error err = ERROR_INIT;

	while (stream_wait_free(s)) {
		ssize_t n = stream_fill(s, stream_block(s, s->n_made), &err);

		if (n <= 0)
			break;
		s->lens[s->n_made % STREAM_BLOCKS] = (size_t)n;
		stream_count(s, &s->n_made);
	}
	(void)pthread_mutex_lock(&s->lock);
	s->ended = true;
	s->fault = err;
	stream_wake_all(s);
	(void)pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- the hasher ---- */

enum stream_work { STREAM_NONE, STREAM_PIECE, STREAM_BLOCK_MADE };

static enum stream_work stream_wait_work(struct stream *s)
{
	enum stream_work work = STREAM_NONE;

	(void)pthread_mutex_lock(&s->lock);
	if (s->n_read_hashed == s->n_read && s->n_hashed == s->n_made)
		stream_wait(s, &s->hash, stream_wakes_hasher);
	if (s->stopping || s->fault.code)
		work = STREAM_NONE;
	else if (s->n_read_hashed < s->n_read)
		work = STREAM_PIECE;
	else if (s->n_hashed < s->n_made)
		work = STREAM_BLOCK_MADE;
	(void)pthread_mutex_unlock(&s->lock);
	return work;
}

static void *stream_hash(void *arg)
{
	struct stream *s = arg;
	enum stream_work work;

	while ((work = stream_wait_work(s)) != STREAM_NONE) {
		if (work == STREAM_PIECE) {
			checksum_add(&s->hash_in, stream_piece(s, s->n_read_hashed),
				     s->piece_lens[s->n_read_hashed % STREAM_PIECES]);
			stream_count(s, &s->n_read_hashed);
		} else {
			checksum_add(&s->hash_out, stream_block(s, s->n_hashed),
				     s->lens[s->n_hashed % STREAM_BLOCKS]);
			stream_count(s, &s->n_hashed);
		}
	}
	return NULL;
}

/* ---- the caller ---- */

/* Whether there is a block to take. */
static bool stream_wait_made(struct stream *s)
{
	bool go;

	(void)pthread_mutex_lock(&s->lock);
	if (s->n_taken == s->n_made)
		stream_wait(s, &s->take, stream_wakes_taker);
	go = !s->stopping && !s->fault.code && s->n_taken < s->n_made;
	(void)pthread_mutex_unlock(&s->lock);
	return go;
}

static int stream_side_init(struct stream_side *side)
{
	side->has_go = pthread_cond_init(&side->go, NULL) == 0;
	return side->has_go ? 0 : -ENOMEM;
}

static void stream_side_done(struct stream_side *side)
{
	if (side->has_go)
		(void)pthread_cond_destroy(&side->go);
	side->has_go = false;
}

static int stream_setup(struct stream *s, const struct stream_config *config, struct error *err)
{
	int r;

	s->blocks = malloc(STREAM_BLOCKS * STREAM_BLOCK);
	s->pieces = malloc(STREAM_PIECES * INFLATE_INPUT);
	if (!s->blocks || !s->pieces)
		return error_set(err, -ENOMEM, "begin to decompress");
	checksum_start(&s->hash_in);
	checksum_start(&s->hash_out);
	s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->stop_fd < 0)
		return error_set(err, -errno, "begin to decompress");
	s->follow = (struct follow){ .pipe_fd = config->pipe_fd,
				     .stop_fd = s->stop_fd,
				     .size = config->size };
	s->memory = (struct memory){ .sock_fd = config->sock_fd, .stop_fd = s->stop_fd };
	s->into = (struct inflate_pieces){ .take = stream_take_piece,
					   .filled = stream_piece_filled,
					   .userdata = s };
	r = inflate_new(
		&s->inflate,
		&(struct inflate_config){ .fd = config->fd,
					  .compression = config->compression,
					  .max_out = config->max_out,
					  .follow = config->pipe_fd >= 0 ? &s->follow : NULL,
					  .memory = &s->memory,
					  .pieces = &s->into },
		err);
	if (r < 0)
		return r;
	if (pthread_mutex_init(&s->lock, NULL) != 0)
		return error_set(err, -ENOMEM, "begin to decompress");
	s->has_lock = true;
	if (stream_side_init(&s->make) < 0 || stream_side_init(&s->hash) < 0 ||
	    stream_side_init(&s->take) < 0)
		return error_set(err, -ENOMEM, "begin to decompress");
	r = thread_start(&s->maker, stream_make, s);
	s->has_maker = r == 0;
	if (r == 0) {
		r = thread_start(&s->hasher, stream_hash, s);
		s->has_hasher = r == 0;
	}
	return r < 0 ? error_set(err, r, "start a thread") : 0;
}

int stream_new(struct stream **ret, const struct stream_config *config, struct error *err)
{
	struct stream *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return error_set(err, -ENOMEM, "begin to decompress");
	s->stop_fd = -1;
	r = stream_setup(s, config, err);
	if (r < 0) {
		(void)stream_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

static void stream_stop(struct stream *s)
{
	(void)pthread_mutex_lock(&s->lock);
	s->stopping = true;
	stream_wake_all(s);
	(void)pthread_mutex_unlock(&s->lock);
	/* A thread that waits for the pipe, or for memory, does not look at `stopping`. */
	(void)eventfd_write(s->stop_fd, 1);
}

static void stream_join(pthread_t thread, bool *has)
{
	if (*has)
		(void)pthread_join(thread, NULL);
	*has = false;
}

struct stream *stream_free(struct stream *s)
{
	if (!s)
		return NULL;
	if (s->has_lock) {
		stream_stop(s);
		stream_join(s->maker, &s->has_maker);
		stream_join(s->hasher, &s->has_hasher);
		stream_side_done(&s->make);
		stream_side_done(&s->hash);
		stream_side_done(&s->take);
		(void)pthread_mutex_destroy(&s->lock);
	}
	s->inflate = inflate_free(s->inflate);
	(void)fd_close(s->stop_fd);
	free(s->blocks);
	free(s->pieces);
	free(s);
	return NULL;
}

ssize_t stream_next(struct stream *s, const void **ret, struct error *err)
{
	if (s->holds)
		stream_count(s, &s->n_taken);
	s->holds = stream_wait_made(s);
	if (s->holds) {
		*ret = stream_block(s, s->n_taken);
		return (ssize_t)s->lens[s->n_taken % STREAM_BLOCKS];
	}
	/* The maker has ended, so that nobody writes to it any more. */
	return s->fault.code ? error_copy(err, &s->fault) : 0;
}

void stream_digests(struct stream *s, char ret_in[DIGEST_SIZE], char ret_out[DIGEST_SIZE])
{
	stream_join(s->maker, &s->has_maker);
	stream_join(s->hasher, &s->has_hasher);
	checksum_end(&s->hash_in, ret_in);
	checksum_end(&s->hash_out, ret_out);
}

uint64_t stream_n_in(const struct stream *s)
{
	return inflate_n_in(s->inflate);
}

uint64_t stream_n_out(const struct stream *s)
{
	return inflate_n_out(s->inflate);
}
