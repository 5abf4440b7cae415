/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A download goes through three phases: the bytes that are in the file are hashed, some MiB each
 * turn, so that the others go on meanwhile; then the rest comes; and at last the reader of the pipe
 * is told the final number, for which the pipe may have to wait.
 */

#include "fetch/transfer/download.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "fetch/job/channel.h"
#include "registry/client.h"
#include "wire/name/checksum.h"

#define DOWNLOAD_HASH_STEP (8U << 20)
#define DOWNLOAD_PIECE (256U << 10)
#define DOWNLOAD_TOLD (64U << 10)
#define DOWNLOAD_PROGRESS (UINT64_C(100) * 1000000)
#define DOWNLOAD_RESTARTS_MAX 8 /* of one blob, beyond the number of hosts */
#define DOWNLOAD_WAIT_MS 1000
#define DOWNLOAD_FLUSH_MS 5

struct download_offer {
	char digest[DIGEST_SIZE];
	uint64_t size;
	bool asked; /* FETCH has come, and no RESTART since */
	bool settled;
	size_t n_restarts, first; /* endpoint to begin with */
};

enum download_phase { DOWNLOAD_HASHES, DOWNLOAD_WAITS, DOWNLOAD_COMES, DOWNLOAD_FLUSHES };

struct download {
	struct downloads *owner;
	struct download_offer *offer;
	struct list link;
	enum download_phase phase;
	int fd, pipe_fd;
	uint64_t from, n; /* kept from earlier; good bytes in the file */
	uint64_t at;      /* of the answer: the file's byte that comes next */
	uint64_t told;    /* to the pipe */
	nsec_t progress;  /* when it was last told */
	struct checksum hash;
	struct exchange exchange;
	char path[sizeof("/blobs/") + DIGEST_SIZE];
	char what[sizeof("blob ") + DIGEST_SIZE];
};

/* ---- offers ---- */

int downloads_init(struct downloads *d, struct network *n, size_t n_max, struct error *err)
{
	*d = (struct downloads){ .network = n, .err = ERROR_INIT, .n_offers_max = n_max };
	list_init(&d->queue);
	d->offers = calloc(n_max, sizeof(*d->offers));
	return d->offers ? 0 : error_set(err, -ENOMEM, "download");
}

static struct download_offer *downloads_find(const struct downloads *d, const char *digest)
{
	for (size_t i = 0; i < d->n_offers; i++)
		if (str_eq(d->offers[i].digest, digest))
			return &d->offers[i];
	return NULL;
}

int downloads_offer(struct downloads *d, const char *digest, uint64_t size, struct error *err)
{
	struct download_offer *o = downloads_find(d, digest);

	if (o && o->size != size)
		return error_refuse(err, ERROR_INVALID,
				    "blob %s is said to have %" PRIu64 " and %" PRIu64 " bytes",
				    digest, o->size, size);
	if (o)
		return 0;
	if (d->n_offers == d->n_offers_max)
		return error_refuse(err, ERROR_EXHAUSTED, "more than %zu blobs", d->n_offers_max);
	o = &d->offers[d->n_offers++];
	(void)str_copy(o->digest, sizeof(o->digest), digest);
	o->size = size;
	d->n_expected++;
	return 0;
}

/* ---- one download ---- */

static void download_free(struct download *l)
{
	if (l->phase == DOWNLOAD_COMES)
		l->owner->n_active--;
	exchange_stop(&l->exchange);
	(void)fd_close(l->fd);
	(void)fd_close(l->pipe_fd);
	list_remove(&l->link);
	free(l);
}

static void downloads_fail(struct downloads *d, const struct error *err)
{
	if (!d->err.code)
		d->err = *err;
}

/* Whether the number has been told, or there is nobody to tell. */
static bool download_tell_pipe(struct download *l)
{
	ssize_t n;

	if (l->pipe_fd < 0 || l->told == l->n)
		return true;
	do {
		n = sysio_write(l->pipe_fd, &l->n, sizeof(l->n));
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return false;
	/* The reader is gone: the core knows, and says what comes of it. */
	if (n < 0)
		l->pipe_fd = fd_close(l->pipe_fd);
	l->told = l->n;
	return true;
}

static int download_tell_progress(struct download *l, bool last, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_PROGRESS };
	nsec_t now = clock_mono();

	if (!last && now - l->progress < DOWNLOAD_PROGRESS)
		return 0;
	l->progress = now;
	(void)str_copy(m.progress.digest, sizeof(m.progress.digest), l->offer->digest);
	m.progress.n_bytes = l->n;
	return channel_send(l->owner->network->sock_fd, &m, err);
}

/* The bytes in the file are hashed and good. */
static int download_added(struct download *l, struct error *err)
{
	if (l->n - l->told >= DOWNLOAD_TOLD)
		(void)download_tell_pipe(l);
	return download_tell_progress(l, false, err);
}

static int download_write(struct download *l, const uint8_t *data, size_t len, struct error *err)
{
	checksum_add(&l->hash, data, len);
	while (len) {
		ssize_t n = pwrite(l->fd, data, len, (off_t)l->n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return error_set(err, n < 0 ? -errno : -EIO, "write %s", l->what);
		data += n;
		len -= (size_t)n;
		l->n += (uint64_t)n;
	}
	return download_added(l, err);
}

/* ---- the whole ---- */

static int download_restart(struct download *l, const char *found, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_RESTART };
	struct registry *registry = &l->owner->network->registry;
	struct download_offer *o = l->offer;
	char text[ERROR_TEXT_MAX];

	if (++o->n_restarts >= registry->endpoints.n + DOWNLOAD_RESTARTS_MAX)
		return error_refuse(err, ERROR_INVALID, "registry %s: %s has the digest %s",
				    registry->host, l->what, found);
	/* An endpoint that sent all of it is asked last; of what was kept from earlier nobody
	 * knows. */
	if (l->from == 0)
		o->first = l->exchange.endpoint + 1;
	(void)str_printf(text, sizeof(text), "what came of it%s has the digest %s",
			 l->from ? ", with what was kept from earlier," : "", found);
	(void)str_copy(m.restart.digest, sizeof(m.restart.digest), o->digest);
	m.restart.text = text;
	o->asked = false;
	return channel_send(l->owner->network->sock_fd, &m, err);
}

static int download_settle(struct download *l, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_BLOB };
	int r;

	l->offer->settled = true;
	l->owner->n_settled++;
	(void)str_copy(m.blob.digest, sizeof(m.blob.digest), l->offer->digest);
	m.blob.size = l->n;
	r = download_tell_progress(l, true, err);
	return r == 0 ? channel_send(l->owner->network->sock_fd, &m, err) : r;
}

/* All bytes are there: are they the right ones? */
static void download_whole(struct download *l)
{
	struct downloads *d = l->owner;
	struct error err = ERROR_INIT;
	char found[DIGEST_SIZE];
	int r;

	checksum_end(&l->hash, found);
	if (!str_eq(found, l->offer->digest)) {
		r = download_restart(l, found, &err);
		if (r < 0)
			downloads_fail(d, &err);
		download_free(l);
		return;
	}
	r = download_settle(l, &err);
	if (r < 0)
		downloads_fail(d, &err);
	if (l->phase == DOWNLOAD_COMES)
		d->n_active--;
	l->phase = DOWNLOAD_FLUSHES;
	if (r == 0 && d->on_whole)
		d->on_whole(d->userdata, l->offer->digest, TAKE_FD(l->fd));
}

/* ---- the exchange ---- */

static void download_on_attempt(struct exchange *x)
{
	struct download *l = container_of(x, struct download, exchange);

	x->from = l->n;
}

static int download_on_head(struct exchange *x, struct error *err)
{
	struct download *l = container_of(x, struct download, exchange);
	const struct transfer_head *h = &x->transfer.head;

	l->at = x->begins;
	if (h->has_length && h->length != l->offer->size - x->begins)
		return error_refuse(err, ERROR_INVALID,
				    "it has %" PRIu64 " bytes to send, not %" PRIu64, h->length,
				    l->offer->size - x->begins);
	return 0;
}

static int download_on_data(struct exchange *x, const void *data, size_t len, struct error *err)
{
	struct download *l = container_of(x, struct download, exchange);
	uint64_t known = l->at < l->n ? l->n - l->at : 0;

	if (len > l->offer->size - l->at)
		return error_refuse(err, ERROR_INVALID, "it sends more than %" PRIu64 " bytes",
				    l->offer->size);
	known = MIN(known, (uint64_t)len);
	l->at += len;
	/* What a server that knows no ranges sends again: it is in the file and in the digest. */
	return download_write(l, (const uint8_t *)data + known, len - (size_t)known, err);
}

static void download_on_end(struct exchange *x, const struct error *err)
{
	struct download *l = container_of(x, struct download, exchange);

	if (err)
		downloads_fail(l->owner, err);
	else
		download_whole(l);
}

static const struct exchange_ops download_ops = { download_on_attempt, download_on_head,
						  download_on_data, download_on_end };

/* ---- phases ---- */

static int download_hash(struct download *l, struct error *err)
{
	static uint8_t piece[DOWNLOAD_PIECE];
	uint64_t end = MIN(l->from, l->n + DOWNLOAD_HASH_STEP);

	while (l->n < end) {
		ssize_t n =
			sysio_pread(l->fd, piece, (size_t)MIN((uint64_t)sizeof(piece), end - l->n),
				    (off_t)l->n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(err, -errno, "read what there is of %s", l->what);
		/* The file is shorter than the core has said. */
		if (n == 0) {
			l->from = l->n;
			break;
		}
		checksum_add(&l->hash, piece, (size_t)n);
		l->n += (uint64_t)n;
	}
	if (l->n == l->from)
		l->phase = DOWNLOAD_WAITS;
	(void)download_tell_pipe(l);
	return download_tell_progress(l, false, err);
}

static int download_begin(struct download *l, struct error *err)
{
	const struct exchange_request request = { .method = "GET",
						  .what = l->what,
						  .path = l->path,
						  .need = FETCH_CAN_PULL,
						  .is_long = true,
						  .whole = l->offer->size,
						  .first = l->offer->first };
	int r;

	/* What stands behind the good bytes is no part of it. */
	if (sysio_ftruncate(l->fd, (off_t)l->n) < 0)
		return error_set(err, -errno, "cut the file of %s", l->what);
	if (l->n == l->offer->size) {
		download_whole(l);
		return 0;
	}
	r = exchange_start(&l->exchange, &l->owner->network->registry, &request, &download_ops,
			   err);
	if (r == 0) {
		l->phase = DOWNLOAD_COMES;
		l->owner->n_active++;
	}
	return r;
}

/* What can go on without the network. */
int downloads_step(struct downloads *d, struct error *err)
{
	uint32_t max = d->network->registry.settings.connections;
	struct download *l;
	int r = 0;

	list_for_each (l, &d->queue, struct download, link) {
		if (l->phase == DOWNLOAD_HASHES)
			r = download_hash(l, err);
		if (r == 0 && l->phase == DOWNLOAD_FLUSHES) {
			if (download_tell_pipe(l))
				download_free(l);
		} else if (r == 0 && l->phase == DOWNLOAD_WAITS && d->n_active < max) {
			r = download_begin(l, err);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

int downloads_wait(const struct downloads *d)
{
	int wait = DOWNLOAD_WAIT_MS;
	struct download *l;

	list_for_each (l, &d->queue, struct download, link) {
		if (l->phase == DOWNLOAD_HASHES)
			wait = 0;
		else if (l->phase == DOWNLOAD_FLUSHES)
			wait = MIN(wait, DOWNLOAD_FLUSH_MS);
	}
	return wait;
}

/* ---- what the core says ---- */

static int downloads_take_fetch(struct downloads *d, const struct fetchmsg *m, int fds[],
				size_t n_fds, struct error *err)
{
	struct download_offer *o = downloads_find(d, m->fetch.digest);
	struct download *l;
	int r = 0;

	if (!o || o->asked || o->settled || m->fetch.size != o->size ||
	    n_fds != 1 + m->fetch.follow)
		return error_refuse(err, ERROR_INVALID, "a FETCH of what was not offered");
	l = calloc(1, sizeof(*l));
	if (!l)
		return error_set(err, -ENOMEM, "download");
	*l = (struct download){ .owner = d,
				.offer = o,
				.fd = TAKE_FD(fds[0]),
				.pipe_fd = m->fetch.follow ? TAKE_FD(fds[1]) : -1,
				.from = m->fetch.from };
	list_init(&l->link);
	list_add_tail(&d->queue, &l->link);
	o->asked = true;
	(void)str_printf(l->path, sizeof(l->path), "/blobs/%s", o->digest);
	(void)str_printf(l->what, sizeof(l->what), "blob %s", o->digest);
	checksum_start(&l->hash);
	if (l->pipe_fd >= 0)
		r = fd_set_nonblock(l->pipe_fd, true);
	return r < 0 ? error_set(err, r, "download") : 0;
}

static int downloads_take_skip(struct downloads *d, const struct fetchmsg *m, struct error *err)
{
	struct download_offer *o = downloads_find(d, m->skip.digest);

	if (!o || o->asked || o->settled)
		return error_refuse(err, ERROR_INVALID, "a SKIP of what was not offered");
	o->settled = true;
	d->n_settled++;
	return 0;
}

int downloads_receive(struct downloads *d, struct error *err)
{
	int fds[CHANNEL_FDS_MAX] = { -1, -1 };
	struct fetchmsg m;
	size_t n_fds;
	int r;

	r = channel_receive_fds(d->network->sock_fd, &m, fds, &n_fds, err);
	if (r < 0)
		return r;
	if (m.type == FETCHMSG_FETCH)
		r = downloads_take_fetch(d, &m, fds, n_fds, err);
	else if (m.type == FETCHMSG_SKIP)
		r = downloads_take_skip(d, &m, err);
	else
		r = error_refuse(err, ERROR_INVALID, "a message that does not belong here");
	for (size_t i = 0; i < n_fds; i++)
		(void)fd_close(fds[i]);
	return r;
}

static bool downloads_go_on(const struct downloads *d)
{
	return d->n_settled < d->n_expected || !list_empty(&d->queue);
}

/* Waits for the network and the core. */
static int downloads_turn(struct downloads *d, struct error *err)
{
	bool readable = false;
	int r = client_turn(&d->network->registry, d->network->sock_fd, downloads_wait(d),
			    &readable, err);

	if (r == 0 && d->err.code)
		r = error_copy(err, &d->err);
	return r == 0 && readable ? downloads_receive(d, err) : r;
}

int downloads_run(struct downloads *d, struct error *err)
{
	int r = 0;

	while (r == 0 && downloads_go_on(d)) {
		r = downloads_step(d, err);
		/* Behind the last one nothing comes that a turn could wait for. */
		if (r == 0 && downloads_go_on(d))
			r = downloads_turn(d, err);
	}
	return r;
}

void downloads_done(struct downloads *d)
{
	struct download *l;

	list_for_each (l, &d->queue, struct download, link) {
		download_free(l);
	}
	free(d->offers);
}
