/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A ring of blocks with three counters, each of which only its own thread raises: blocks that were
 * made, hashed, and taken by the caller. A block may be made anew when it was both hashed and given
 * back. The lock is held for the counters alone, so that a block is written and read without it.
 */

#include "fetch/stream.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/thread.h"
#include "fetch/follow.h"
#include "fetch/hash.h"
#include "fetch/inflate.h"
#include "fetch/memory.h"

struct stream {
	struct inflate *inflate; /* of the maker, until it has ended */
	struct follow follow;
	struct memory memory;
	uint8_t *blocks;
	size_t lens[STREAM_BLOCKS];
	struct hash hash; /* of the hasher, until it has ended */
	int stop_fd;
	pthread_t maker, hasher;
	bool has_maker, has_hasher, has_lock;
	bool holds; /* the caller has block n_taken */

	pthread_mutex_t lock; /* over all that follows */
	pthread_cond_t changed;
	uint64_t n_made, n_hashed, n_taken;
	bool ended; /* no block follows those that were made */
	bool stopping;
	struct error fault; /* why it ended */
};

static uint8_t *stream_block(const struct stream *s, uint64_t number)
{
	return s->blocks + number % STREAM_BLOCKS * STREAM_BLOCK;
}

/* Counts one step of a thread; *counter is one of the three. */
static void stream_count(struct stream *s, uint64_t *counter)
{
	(void)pthread_mutex_lock(&s->lock);
	(*counter)++;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
}

/* ---- the maker ---- */

/* Whether there is a block to fill. */
static bool stream_wait_free(struct stream *s)
{
	bool go;

	(void)pthread_mutex_lock(&s->lock);
	while (!s->stopping && s->n_made - MIN(s->n_hashed, s->n_taken) == STREAM_BLOCKS)
		(void)pthread_cond_wait(&s->changed, &s->lock);
	go = !s->stopping;
	(void)pthread_mutex_unlock(&s->lock);
	return go;
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
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- the hasher ---- */

static bool stream_wait_made(struct stream *s, const uint64_t *counter)
{
	bool go;

	(void)pthread_mutex_lock(&s->lock);
	while (!s->stopping && !s->ended && *counter == s->n_made)
		(void)pthread_cond_wait(&s->changed, &s->lock);
	go = !s->stopping && !s->fault.code && *counter < s->n_made;
	(void)pthread_mutex_unlock(&s->lock);
	return go;
}

static void *stream_hash(void *arg)
{
	struct stream *s = arg;

	while (stream_wait_made(s, &s->n_hashed)) {
		hash_add(&s->hash, stream_block(s, s->n_hashed),
			 s->lens[s->n_hashed % STREAM_BLOCKS]);
		stream_count(s, &s->n_hashed);
	}
	return NULL;
}

/* ---- the caller ---- */

static int stream_setup(struct stream *s, const struct stream_config *config, struct error *err)
{
	int r;

	s->blocks = malloc(STREAM_BLOCKS * STREAM_BLOCK);
	if (!s->blocks)
		return error_set(err, -ENOMEM, "begin to decompress");
	hash_start(&s->hash);
	s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->stop_fd < 0)
		return error_set(err, -errno, "begin to decompress");
	s->follow = (struct follow){ .pipe_fd = config->pipe_fd,
				     .stop_fd = s->stop_fd,
				     .size = config->size };
	s->memory = (struct memory){ .sock_fd = config->sock_fd, .stop_fd = s->stop_fd };
	r = inflate_new(&s->inflate, config->fd, config->compression, config->max_out,
			config->pipe_fd >= 0 ? &s->follow : NULL, &s->memory, err);
	if (r < 0)
		return r;
	if (pthread_mutex_init(&s->lock, NULL) != 0)
		return error_set(err, -ENOMEM, "begin to decompress");
	if (pthread_cond_init(&s->changed, NULL) != 0) {
		(void)pthread_mutex_destroy(&s->lock);
		return error_set(err, -ENOMEM, "begin to decompress");
	}
	s->has_lock = true;
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
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
	/* Who waits for the pipe, or for memory, does not look at `stopping`. */
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
		(void)pthread_cond_destroy(&s->changed);
		(void)pthread_mutex_destroy(&s->lock);
	}
	s->inflate = inflate_free(s->inflate);
	(void)fd_close(s->stop_fd);
	free(s->blocks);
	free(s);
	return NULL;
}

ssize_t stream_next(struct stream *s, const void **ret, struct error *err)
{
	if (s->holds)
		stream_count(s, &s->n_taken);
	s->holds = stream_wait_made(s, &s->n_taken);
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
	inflate_digest(s->inflate, ret_in);
	hash_end(&s->hash, ret_out);
}

uint64_t stream_n_in(const struct stream *s)
{
	return inflate_n_in(s->inflate);
}

uint64_t stream_n_out(const struct stream *s)
{
	return inflate_n_out(s->inflate);
}
