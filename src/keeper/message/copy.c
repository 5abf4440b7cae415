/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/message/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/tree.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/id.h"
#include "base/text/str.h"
#include "isolate/spawn/ids.h"
#include "keeper/message/convert_tree.h"
#include "loop/pool.h"
#include "rpc/server/server.h"

/*
 * Both directions go in steps: a step runs on a thread (it alone touches the tree, the root and the
 * buffer meanwhile), and comes back to the loop, which sends what was read and asks for the next
 * step as soon as the client has room, or takes the next message. So a call holds one step's worth
 * of bytes, however large the tree is and however slow the client.
 *
 * Where the client goes away the call ends at once; the copy lives on until its step has come back
 * and one more has closed what it had.
 */

/* Bytes of messages that a step of CopyFrom makes, and of data in each. */
#define COPY_STEP ((size_t)256 * 1024)
#define COPY_PIECE ((size_t)64 * 1024)
/* The name of the root of a tree that has none. */
#define COPY_CONTENT "."

struct copy_call {
	struct pool_work work;
	struct rpc_call *call; /* NULL: it has ended */
	struct copies *all;
	struct copy_call *next; /* of all */
	int root_fd;
	char id[ID_SIZE]; /* of the container */
	char *path;
	struct isolate_ids ids;
	unsigned flags; /* TREE_* */
	bool directory; /* CopyTo: into one that is there */
	bool dress;     /* CopyTo: which gets the mode and owner of the entry "." */
	struct tree_source *source;
	struct tree_sink *sink;
	/* CopyFrom: messages that were made, each behind its length. CopyTo: the data in hand. */
	struct buf bytes;
	bool in_file;   /* CopyFrom: the data of a file are due */
	bool ended;     /* CopyFrom: all is read. CopyTo: the client has said all */
	bool closing;   /* only closes what is open */
	bool has_entry; /* CopyTo: in hand, with strings of its own */
	struct tree_entry entry;
	char *entry_path, *entry_target;
	struct tree_extent *entry_map;
	uint64_t n_entries, n_bytes;
	struct error err;
};

static void copies_tell_gone(const struct copies *all, const char *id)
{
	if (all->gone)
		all->gone(all->userdata, id);
}

static void copy_call_free(struct copy_call *c)
{
	struct copy_call **at = &c->all->first;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->all->n--;
	(void)fd_close(c->root_fd);
	(void)tree_source_free(c->source);
	(void)tree_sink_free(c->sink);
	buf_done(&c->bytes);
	free(c->entry_path);
	free(c->entry_target);
	free(c->entry_map);
	free(c->path);
	copies_tell_gone(c->all, c->id);
	free(c);
}

/* On a thread: whatever was opened, without keeping the loop. */
static void copy_call_close(struct copy_call *c)
{
	c->source = tree_source_free(c->source);
	c->sink = tree_sink_free(c->sink);
}

/* On the loop, when no step runs: one more closes what is open, then the copy is gone. */
static void copy_call_end(struct copy_call *c)
{
	if (c->source || c->sink)
		pool_submit(c->all->pool, &c->work);
	/* Also where the daemon ends, and its pool takes no more. */
	if (!c->work.busy)
		copy_call_free(c);
}

/* Takes the call away from the copy. */
static struct rpc_call *copy_call_leave(struct copy_call *c)
{
	struct rpc_call *call = TAKE_PTR(c->call);

	rpc_call_on_cancel(call, NULL, NULL);
	rpc_call_on_writable(call, NULL, NULL);
	c->closing = true;
	if (!c->work.busy)
		copy_call_end(c);
	return call;
}

static void copy_call_cancelled(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	(void)copy_call_leave(data);
	rpc_call_fail(call, &err);
}

static int copy_call_new(struct copy_call **ret, struct rpc_call *call, struct copies *all,
			 int root_fd, const char *id, const struct isolate_ids *ids,
			 const char *path, struct error *err)
{
	_cleanup_fd_ int fd = root_fd;
	struct copy_call *c = calloc(1, sizeof(*c));

	if (!c) {
		copies_tell_gone(all, id);
		return error_set(err, -ENOMEM, "copy");
	}
	all->n++;
	*c = (struct copy_call){
		.all = all, .call = call, .next = all->first, .root_fd = TAKE_FD(fd)
	};
	all->first = c;
	if (ids)
		c->ids = *ids;
	(void)str_copy(c->id, sizeof(c->id), id);
	c->path = strdup(path);
	if (!c->path) {
		copy_call_free(c);
		return error_set(err, -ENOMEM, "copy");
	}
	*ret = c;
	return 0;
}

void copies_done(struct copies *all)
{
	while (all->first)
		copy_call_free(all->first);
}

int copies_check(const struct copies *all, const char *path, struct error *err)
{
	if (str_empty(path) || path[0] != '/' || strlen(path) > CONVERT_PATH_MAX)
		return error_field(err, ERROR_INVALID, "path", "absolute, and of at most %u bytes",
				   CONVERT_PATH_MAX);
	if (all->n >= COPIES_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%u copies are under way already",
				    COPIES_MAX);
	return 0;
}

int copies_root(const struct copies *all, const char *id)
{
	for (const struct copy_call *c = all->first; c; c = c->next)
		if (str_eq(c->id, id))
			return fd_copy(c->root_fd);
	return -1;
}

/* ---- CopyFrom ---- */

/* What the workload has done to its files meanwhile is no fault of ours. */
static void copy_call_judge(struct error *err)
{
	static const struct {
		int code;
		enum error_kind kind;
	} table[] = {
		{ -EISDIR, ERROR_PRECONDITION },    { -ENOTDIR, ERROR_PRECONDITION },
		{ -ENOENT, ERROR_PRECONDITION },    { -EEXIST, ERROR_PRECONDITION },
		{ -ENOTEMPTY, ERROR_PRECONDITION }, { -ELOOP, ERROR_PRECONDITION },
		{ -EXDEV, ERROR_PRECONDITION },     { -EROFS, ERROR_PRECONDITION },
		{ -EACCES, ERROR_PRECONDITION },    { -EPERM, ERROR_PRECONDITION },
		{ -ENOSPC, ERROR_EXHAUSTED },       { -EDQUOT, ERROR_EXHAUSTED },
	};

	for (size_t i = 0; err->kind == ERROR_FAULT && i < ARRAY_SIZE(table); i++)
		if (table[i].code == err->code)
			err->kind = table[i].kind;
}

/* On a thread, at the end of a step. The last one closes what is open: whoever hears the answer can
 * do with the files what he wants. */
static void copy_call_step_over(struct copy_call *c)
{
	copy_call_judge(&c->err);
	if (c->ended || c->err.code)
		copy_call_close(c);
}

static int copy_from_add(struct copy_call *c, const Nacre__V1__CopyFromResponse *m)
{
	uint32_t len = (uint32_t)nacre__v1__copy_from_response__get_packed_size(m);
	uint8_t *to;

	if (buf_reserve(&c->bytes, sizeof(len) + len, &to) < 0)
		return error_set(&c->err, -ENOMEM, "copy");
	memcpy(to, &len, sizeof(len));
	(void)nacre__v1__copy_from_response__pack(m, to + sizeof(len));
	buf_added(&c->bytes, sizeof(len) + len);
	return 0;
}

static int copy_from_entry(struct copy_call *c)
{
	Nacre__V1__CopyFromResponse m = NACRE__V1__COPY_FROM_RESPONSE__INIT;
	Nacre__V1__CopyEntry entry;
	struct tree_entry e;
	int r;

	r = tree_source_next(c->source, &e, &c->err);
	if (r <= 0) {
		c->ended = r == 0;
		return r;
	}
	e.uid = isolate_ids_inside(&c->ids, c->ids.uid, e.uid);
	e.gid = isolate_ids_inside(&c->ids, c->ids.gid, e.gid);
	convert_entry(&entry, &e);
	m.entry = &entry;
	c->in_file = e.type == TREE_FILE;
	return copy_from_add(c, &m);
}

static int copy_from_data(struct copy_call *c, uint8_t *piece)
{
	Nacre__V1__CopyFromResponse m = NACRE__V1__COPY_FROM_RESPONSE__INIT;
	ssize_t n = tree_source_read(c->source, piece, COPY_PIECE, &c->err);

	if (n <= 0) {
		c->in_file = false;
		return (int)n;
	}
	m.data.data = piece;
	m.data.len = (size_t)n;
	return copy_from_add(c, &m);
}

static void copy_from_run(struct pool_work *work)
{
	struct copy_call *c = container_of(work, struct copy_call, work);
	uint8_t *piece;
	int r = 0;

	if (c->closing) {
		copy_call_close(c);
		return;
	}
	piece = malloc(COPY_PIECE);
	if (!piece)
		r = error_set(&c->err, -ENOMEM, "copy");
	if (r == 0 && !c->source)
		r = tree_source_open(&c->source, c->root_fd, c->path, COPY_CONTENT, c->flags,
				     &c->err);
	while (r >= 0 && !c->ended && c->bytes.len < COPY_STEP)
		r = c->in_file ? copy_from_data(c, piece) : copy_from_entry(c);
	free(piece);
	copy_call_step_over(c);
}

/* 0 or a negative errno. */
static int copy_from_send(struct copy_call *c)
{
	uint32_t len;
	int r = 0;

	while (r == 0 && c->bytes.len > 0) {
		memcpy(&len, buf_data(&c->bytes), sizeof(len));
		r = rpc_call_send_bytes(c->call, buf_data(&c->bytes) + sizeof(len), len);
		buf_consume(&c->bytes, sizeof(len) + len);
	}
	return r;
}

static void copy_from_writable(struct rpc_call *call, void *data)
{
	struct copy_call *c = data;

	(void)call;
	if (!c->work.busy)
		pool_submit(c->all->pool, &c->work);
}

static void copy_from_done(struct pool_work *work)
{
	struct copy_call *c = container_of(work, struct copy_call, work);
	struct error err;
	bool ended;
	int r;

	if (c->closing) {
		copy_call_end(c);
		return;
	}
	r = copy_from_send(c);
	if (r < 0)
		(void)error_set(&c->err, r, "send a piece of a copy");
	err = c->err;
	ended = c->ended;
	if (err.code)
		rpc_call_fail(copy_call_leave(c), &err);
	else if (ended)
		rpc_call_finish(copy_call_leave(c));
	else if (rpc_call_writable(c->call))
		pool_submit(c->all->pool, &c->work);
}

int copy_from_begin(struct copies *all, struct rpc_call *call, int root_fd, const char *id,
		    const struct isolate_ids *ids, const Nacre__V1__CopyFromRequest *q,
		    struct error *err)
{
	struct copy_call *c;
	int r;

	r = copy_call_new(&c, call, all, root_fd, id, ids, q->path, err);
	if (r < 0)
		return r;
	c->flags = (q->follow ? TREE_FOLLOW : 0) | (q->exact ? TREE_EXACT : 0) |
		   (q->one_mount ? TREE_ONE_MOUNT : 0);
	c->work = (struct pool_work){ .run = copy_from_run, .done = copy_from_done };
	rpc_call_on_cancel(call, copy_call_cancelled, c);
	rpc_call_on_writable(call, copy_from_writable, c);
	pool_submit(all->pool, &c->work);
	return 0;
}

/* ---- CopyTo ---- */

static int copy_to_open(struct copy_call *c)
{
	int r = tree_sink_open(&c->sink, c->root_fd, c->path, &c->err);

	if (r == 0 && c->dress)
		tree_sink_dress_top(c->sink);
	return r == 0 && c->directory ? tree_sink_check_directory(c->sink, &c->err) : r;
}

static void copy_to_run(struct pool_work *work)
{
	struct copy_call *c = container_of(work, struct copy_call, work);
	int r = 0;

	if (c->closing) {
		copy_call_close(c);
		return;
	}
	r = isolate_ids_enter(&c->ids, &c->err);
	if (r < 0)
		return;
	if (!c->sink)
		r = copy_to_open(c);
	if (r == 0 && c->has_entry)
		r = tree_sink_entry(c->sink, &c->entry, true, &c->err);
	if (r == 0 && c->bytes.len > 0)
		r = tree_sink_write(c->sink, buf_data(&c->bytes), c->bytes.len, &c->err);
	if (r == 0 && c->ended)
		(void)tree_sink_finish(c->sink, &c->err);
	isolate_ids_leave(&c->ids);
	copy_call_step_over(c);
}

static int copy_to_take_entry(struct copy_call *c, const Nacre__V1__CopyEntry *e)
{
	int r = convert_entry_back(&c->entry, e, &c->entry_path, &c->entry_target, &c->err);

	if (r < 0)
		return r;
	c->entry.uid = isolate_ids_outside(&c->ids, c->ids.uid, c->entry.uid);
	c->entry.gid = isolate_ids_outside(&c->ids, c->ids.gid, c->entry.gid);
	if (c->entry.uid == UINT32_MAX || c->entry.gid == UINT32_MAX)
		return error_field(
			&c->err, ERROR_INVALID, "entry",
			"%.200s has an owner that the %u ids of the container do not have",
			c->entry_path, c->ids.count);
	free(c->entry_map);
	c->entry_map = NULL;
	if (c->entry.map) {
		c->entry_map = calloc(c->entry.n_map + 1, sizeof(*c->entry_map));
		if (!c->entry_map)
			return error_set(&c->err, -ENOMEM, "copy");
		memcpy(c->entry_map, c->entry.map, c->entry.n_map * sizeof(*c->entry_map));
		c->entry.map = c->entry_map;
	}
	c->n_entries++;
	return 0;
}

/* Nothing of the message is kept but copies. */
static int copy_to_take(struct copy_call *c, const Nacre__V1__CopyToRequest *q)
{
	int r = q->entry ? copy_to_take_entry(c, q->entry) : 0;

	if (r == 0 && q->data.len > 0 && c->all->room)
		r = c->all->room(c->all->userdata, q->data.len, &c->err);
	if (r < 0)
		return r;
	c->has_entry = q->entry;
	c->n_bytes += q->data.len;
	buf_clear(&c->bytes);
	if (q->data.len > 0 && buf_add(&c->bytes, q->data.data, q->data.len) < 0)
		return error_set(&c->err, -ENOMEM, "copy");
	return 0;
}

static void copy_to_message(struct rpc_call *call, const ProtobufCMessage *message, void *data)
{
	const Nacre__V1__CopyToRequest *q = (const Nacre__V1__CopyToRequest *)(const void *)message;
	struct copy_call *c = data;
	struct error err;
	int r = 0;

	if (q && (*q->target || *q->container || *q->path || q->directory || q->with_directory))
		r = error_refuse(&c->err, ERROR_INVALID,
				 "target, container, path, directory, with_directory: in the first "
				 "message only");
	if (r == 0 && q)
		r = copy_to_take(c, q);
	if (r < 0) {
		err = c->err;
		rpc_call_fail(copy_call_leave(c), &err);
		return;
	}
	if (!q) {
		c->ended = true;
		c->has_entry = false;
		buf_clear(&c->bytes);
	}
	rpc_call_pause(call, true);
	pool_submit(c->all->pool, &c->work);
}

static void copy_to_done(struct pool_work *work)
{
	struct copy_call *c = container_of(work, struct copy_call, work);
	Nacre__V1__CopyToResponse m = NACRE__V1__COPY_TO_RESPONSE__INIT;
	struct error err;

	if (c->closing) {
		copy_call_end(c);
		return;
	}
	err = c->err;
	m.entries = c->n_entries;
	m.bytes = c->n_bytes;
	if (err.code)
		rpc_call_fail(copy_call_leave(c), &err);
	else if (c->ended)
		rpc_call_reply(copy_call_leave(c), &m.base);
	else
		rpc_call_pause(c->call, false);
}

int copy_to_begin(struct copies *all, struct rpc_call *call, int root_fd, const char *id,
		  const struct isolate_ids *ids, const Nacre__V1__CopyToRequest *first,
		  struct error *err)
{
	struct copy_call *c;
	int r;

	r = copy_call_new(&c, call, all, root_fd, id, ids, first->path, err);
	if (r < 0)
		return r;
	c->directory = first->directory;
	c->dress = first->with_directory;
	c->work = (struct pool_work){ .run = copy_to_run, .done = copy_to_done };
	r = copy_to_take(c, first);
	if (r < 0) {
		(void)error_copy(err, &c->err);
		copy_call_free(c);
		return r;
	}
	rpc_call_on_cancel(call, copy_call_cancelled, c);
	rpc_call_on_message(call, copy_to_message, c);
	rpc_call_pause(call, true);
	pool_submit(all->pool, &c->work);
	return 0;
}
