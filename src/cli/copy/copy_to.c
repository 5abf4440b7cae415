/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/file/fd.h"
#include "base/file/tree.h"
#include "base/text/str.h"
#include "cli/copy/copy.h"
#include "cli/copy/untar.h"
#include "cli/output/alloc.h"
#include "loop/loop.h"

/* Into a container: from the tree of this system, or from a tar archive on standard input. */

#define COPY_PIECE ((size_t)256 * 1024)

struct copy_out {
	struct copy *copy;
	struct tree_source *source; /* NULL: an archive */
	bool in_file;
	uint8_t *piece;
	struct untar *untar;
	struct loop_fd fd;         /* of the archive: it wakes the loop */
	char known[TREE_PATH_MAX]; /* of an archive: the directory that was told of last */
};

static void copy_out_send_data(struct copy_out *out, const uint8_t *data, size_t len)
{
	Nacre__V1__CopyToRequest m = NACRE__V1__COPY_TO_REQUEST__INIT;

	m.data.data = (uint8_t *)(uintptr_t)data;
	m.data.len = len;
	out->copy->n_bytes += len;
	client_call_send(&out->copy->call, &m.base);
}

/* exact: owners and all bits of the mode as well. */
static void copy_out_send(struct copy_out *out, const struct tree_entry *e, bool exact)
{
	static const Nacre__V1__CopyEntry__Type types[] = {
		[TREE_FILE] = NACRE__V1__COPY_ENTRY__TYPE__TYPE_FILE,
		[TREE_DIRECTORY] = NACRE__V1__COPY_ENTRY__TYPE__TYPE_DIRECTORY,
		[TREE_LINK] = NACRE__V1__COPY_ENTRY__TYPE__TYPE_LINK,
		[TREE_HARD_LINK] = NACRE__V1__COPY_ENTRY__TYPE__TYPE_HARD_LINK,
		[TREE_FIFO] = NACRE__V1__COPY_ENTRY__TYPE__TYPE_FIFO,
	};
	Nacre__V1__CopyToRequest m = NACRE__V1__COPY_TO_REQUEST__INIT;
	Nacre__V1__CopyEntry entry = NACRE__V1__COPY_ENTRY__INIT;

	entry.type = e->map ? NACRE__V1__COPY_ENTRY__TYPE__TYPE_SPARSE : types[e->type];
	entry.path.data = (uint8_t *)(uintptr_t)e->path;
	entry.path.len = strlen(e->path);
	entry.mode = e->mode & (exact ? 07777U : 0777U);
	entry.uid = exact ? e->uid : 0;
	entry.gid = exact ? e->gid : 0;
	entry.mtime = e->mtime;
	entry.size = e->size;
	if (e->map) {
		entry.extents = (uint64_t *)(uintptr_t)e->map;
		entry.n_extents = 2 * e->n_map;
	}
	if (e->target) {
		entry.link_target.data = (uint8_t *)(uintptr_t)e->target;
		entry.link_target.len = strlen(e->target);
	}
	m.entry = &entry;
	out->copy->n_entries++;
	client_call_send(&out->copy->call, &m.base);
}

/* ---- from the tree ---- */

/* One message; 0 where there is nothing more to send. */
static int copy_out_tree_step(struct copy_out *out)
{
	struct copy *c = out->copy;
	struct tree_entry e;
	ssize_t n;
	int r;

	if (!out->in_file) {
		r = tree_source_next(out->source, &e, &c->err);
		if (r <= 0)
			return r;
		copy_set_file(c, e.path);
		out->in_file = e.type == TREE_FILE;
		if (e.type == TREE_OTHER)
			copy_warn(c, e.path, e.reason);
		else
			copy_out_send(out, &e, c->archive);
		return 1;
	}
	n = tree_source_read(out->source, out->piece, COPY_PIECE, &c->err);
	if (n < 0)
		return (int)n;
	out->in_file = n > 0;
	if (n > 0)
		copy_out_send_data(out, out->piece, (size_t)n);
	return 1;
}

/* ---- from an archive ---- */

/* An archive need not tell of the directories that its entries are in. */
static void copy_out_parents(struct copy_out *out, const char *path)
{
	const char *end = strrchr(path, '/');
	char dir[TREE_PATH_MAX];

	for (const char *at = path; end && at < end;) {
		size_t len;

		at += strcspn(at, "/");
		len = (size_t)(at - path);
		at++;
		/* The destination itself is there. */
		if (len == 1 && *path == '.')
			continue;
		if (strncmp(out->known, path, len) == 0 &&
		    (out->known[len] == '/' || !out->known[len]))
			continue;
		if (str_printf(dir, sizeof(dir), "%.*s", (int)len, path) < 0)
			return;
		copy_out_send(
			out,
			&(struct tree_entry){ .type = TREE_DIRECTORY, .path = dir, .mode = 0755 },
			true);
		(void)str_copy(out->known, sizeof(out->known), dir);
	}
}

static void copy_out_archive_entry(struct copy_out *out, const struct tree_entry *e)
{
	copy_set_file(out->copy, e->path);
	if (e->type == TREE_OTHER) {
		copy_warn(out->copy, e->path, e->reason);
		return;
	}
	copy_out_parents(out, e->path);
	copy_out_send(out, e, true);
	if (e->type == TREE_DIRECTORY)
		(void)str_copy(out->known, sizeof(out->known), e->path);
}

static int copy_out_archive_step(struct copy_out *out)
{
	struct tree_entry e;
	const uint8_t *data;
	size_t len;
	int r = untar_next(out->untar, &e, &data, &len, &out->copy->err);

	if (r == UNTAR_ENTRY)
		copy_out_archive_entry(out, &e);
	else if (r == UNTAR_DATA)
		copy_out_send_data(out, data, len);
	return r == UNTAR_END ? 0 : MIN(r, 1);
}

static void copy_out_on_archive(struct loop_fd *source, unsigned events)
{
	(void)events;
	loop_fd_set(source, 0);
}

/* Whether the next message can be made without waiting; else the loop waits for that, too. */
static bool copy_out_is_ready(struct copy_out *out)
{
	struct pollfd p = { .events = POLLIN };

	if (!out->untar)
		return true;
	p.fd = untar_fd(out->untar);
	if (poll(&p, 1, 0) != 0)
		return true;
	loop_fd_set(&out->fd, LOOP_READ);
	return false;
}

/* ---- the call ---- */

static int copy_out_open(struct copy_out *out, const struct copy_place *from)
{
	struct copy *c = out->copy;
	_cleanup_fd_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (from->stream) {
		r = untar_new(&out->untar, &c->err);
		if (r == 0)
			loop_fd_init(&out->fd, client_loop(c->client), untar_fd(out->untar), 0,
				     copy_out_on_archive);
		return r;
	}
	out->piece = xrealloc(NULL, COPY_PIECE, 1);
	return tree_source_open(&out->source, root_fd, from->path, ".",
				TREE_EXACT | (c->follow ? TREE_FOLLOW : 0), &c->err);
}

static int copy_out_run(struct copy_out *out, const struct copy_place *to)
{
	Nacre__V1__CopyToRequest request = NACRE__V1__COPY_TO_REQUEST__INIT;
	struct copy *c = out->copy;
	int r = 1;

	if (c->volume) {
		request.target = c->volume;
		request.with_directory = true;
	} else {
		request.target = to->target;
		request.container = to->container;
		request.path = to->path;
		request.directory = out->untar != NULL;
	}
	c->call.type = &nacre__v1__copy_to_response__descriptor;
	c->call.more = true;
	client_call_start(c->client, &c->call,
			  c->volume ? "/nacre.v1.VolumeService/ImportVolume"
				    : "/nacre.v1.WorkloadService/CopyTo",
			  &request.base);
	while (r > 0 && !c->call.done) {
		bool ready;

		copy_tell(c);
		ready = copy_out_is_ready(out);
		/* What the daemon says meanwhile is heard between two messages. */
		loop_turn(client_loop(c->client), !ready || !client_call_writable(&c->call));
		if (ready && client_call_writable(&c->call))
			r = out->untar ? copy_out_archive_step(out) : copy_out_tree_step(out);
	}
	if (r < 0)
		return r;
	client_call_close_send(&c->call);
	(void)client_call_wait(c->client, &c->call);
	return error_copy(&c->err, &c->call.err);
}

int copy_to(struct copy *c, const struct copy_place *from, const struct copy_place *to)
{
	struct copy_out out = { .copy = c };
	int r = copy_out_open(&out, from);

	if (r == 0)
		r = copy_out_run(&out, to);
	client_call_done(&c->call);
	if (out.untar)
		loop_fd_done(&out.fd);
	out.untar = untar_free(out.untar);
	out.source = tree_source_free(out.source);
	free(out.piece);
	return r;
}
