/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/file/fd.h"
#include "base/file/tree.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cli/copy/copy.h"
#include "cli/output/alloc.h"
#include "wire/format/tar_write.h"

/* Out of a container: into the tree of this system, or as a tar archive to standard output. */

struct copy_in {
	struct copy *copy;
	struct tree_sink *sink; /* NULL: an archive */
	char *name;             /* of the root of the tree */
	bool in_file;
	uint64_t due, size; /* of the data of the file in hand: that have not come, all of them */
	struct buf bytes;   /* of the archive, to be written */
};

/* ---- archive ---- */

static int copy_in_flush(struct copy_in *in)
{
	int r = fd_write_full(in->copy->archive_fd, buf_data(&in->bytes), in->bytes.len);

	buf_clear(&in->bytes);
	return r < 0 ? error_set(&in->copy->err, r, "write the archive") : 0;
}

static int copy_in_zeroes(struct copy_in *in, uint64_t n)
{
	static const uint8_t zeroes[64 * 1024];

	for (; n > 0; n -= MIN(n, sizeof(zeroes))) {
		int r = fd_write_full(in->copy->archive_fd, zeroes, (size_t)MIN(n, sizeof(zeroes)));

		if (r < 0)
			return error_set(&in->copy->err, r, "write the archive");
	}
	return 0;
}

/* The end of a file: an archive has as many bytes as it said, whatever came. */
static int copy_in_pad(struct copy_in *in)
{
	int r = copy_in_zeroes(in, in->due);

	if (r == 0 && tar_write_pad(&in->bytes, in->size) < 0)
		r = error_set(&in->copy->err, -ENOMEM, "write a tar archive");
	return r < 0 ? r : copy_in_flush(in);
}

/* Names below the name that was asked for: another one is nothing that an archive should have. */
static int copy_in_head(struct copy_in *in, const struct tree_entry *e)
{
	int r = tree_check_path("entry.path", e->path, &in->copy->err);

	if (r == 0 && e->type == TREE_HARD_LINK)
		r = tree_check_path("entry.link_target", e->target, &in->copy->err);
	if (r == 0 && tar_write_head(&in->bytes, e) < 0)
		r = error_set(&in->copy->err, -ENOMEM, "write a tar archive");
	return r < 0 ? r : copy_in_flush(in);
}

/* ---- entries ---- */

/* Less has come than was told: it has shrunk. */
static int copy_in_end_file(struct copy_in *in)
{
	int r = 0;

	if (!in->in_file)
		return 0;
	if (in->due > 0)
		copy_warn(in->copy, in->copy->file, "its end, it became shorter while it was read");
	if (!in->sink)
		r = copy_in_pad(in);
	in->in_file = false;
	return r;
}

/* The map of a sparse file lies in the message. What is wrong with it is told by whoever takes it.
 */
static void copy_in_take_map(struct tree_entry *e, const Nacre__V1__CopyEntry *m)
{
	static const struct tree_extent none[1];

	e->type = TREE_FILE;
	e->n_map = m->n_extents / 2;
	e->map = e->n_map ? (const struct tree_extent *)(const void *)m->extents : none;
}

static int copy_in_entry(struct copy_in *in, const Nacre__V1__CopyEntry *m)
{
	static const enum tree_type types[] = { TREE_OTHER, TREE_FILE,  TREE_DIRECTORY,
						TREE_LINK,  TREE_OTHER, TREE_HARD_LINK,
						TREE_FILE,  TREE_FIFO };
	_cleanup_str_ char *path = xformat("%.*s", (int)m->path.len, (const char *)m->path.data);
	_cleanup_str_ char *target =
		xformat("%.*s", (int)m->link_target.len, (const char *)m->link_target.data);
	struct copy *c = in->copy;
	struct tree_entry e = {
		.type = (size_t)m->type < ARRAY_SIZE(types) ? types[m->type] : TREE_OTHER,
		.path = path,
		/* Who may become whom is not a stranger's to say. */
		.mode = (mode_t)m->mode & (c->archive || !in->sink ? 07777 : 0777),
		.uid = m->uid,
		.gid = m->gid,
		.mtime = m->mtime,
		.size = m->size,
		.target = target,
	};
	int r = copy_in_end_file(in);

	if (r < 0)
		return r;
	copy_set_file(c, path);
	if (m->type == NACRE__V1__COPY_ENTRY__TYPE__TYPE_SPARSE)
		copy_in_take_map(&e, m);
	if (e.type == TREE_OTHER) {
		copy_warn(c, path, *m->reason ? m->reason : "it is of an unknown kind");
		return 0;
	}
	if (e.type != TREE_LINK && e.type != TREE_HARD_LINK)
		e.target = NULL;
	c->n_entries++;
	in->in_file = e.type == TREE_FILE;
	in->due = in->size = tar_write_due(&e);
	return in->sink ? tree_sink_entry(in->sink, &e, c->archive, &c->err) : copy_in_head(in, &e);
}

static int copy_in_data(struct copy_in *in, const uint8_t *data, size_t len)
{
	struct copy *c = in->copy;
	int r;

	if (in->sink) {
		r = tree_sink_write(in->sink, data, len, &c->err);
	} else if (!in->in_file || len > in->due) {
		r = error_refuse(&c->err, ERROR_FAULT, "more data came than a file has");
	} else {
		r = fd_write_full(c->archive_fd, data, len);
		if (r < 0)
			(void)error_set(&c->err, r, "write the archive");
	}
	c->n_bytes += len;
	in->due -= MIN(in->due, len);
	return r;
}

static void copy_in_message(struct client_call *call, const ProtobufCMessage *message)
{
	const Nacre__V1__CopyFromResponse *m =
		(const Nacre__V1__CopyFromResponse *)(const void *)message;
	struct copy_in *in = container_of(call, struct copy, call)->in;
	int r = 0;

	if (m->entry)
		r = copy_in_entry(in, m->entry);
	if (r == 0 && m->data.len > 0)
		r = copy_in_data(in, m->data.data, m->data.len);
	if (r < 0)
		call->done = true;
	copy_tell(in->copy);
}

/* ---- the call ---- */

static int copy_in_open(struct copy_in *in, const struct copy_place *to, struct error *err)
{
	_cleanup_fd_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (to->stream)
		return isatty(in->copy->archive_fd)
			       ? error_refuse(err, ERROR_INVALID,
					      "cp: a tar archive is nothing for a "
					      "terminal (put `> FILE.tar` behind)")
			       : 0;
	r = tree_sink_open(&in->sink, root_fd, to->path, err);
	/* The container does not choose what appears in the user's directory. */
	if (r == 0 && tree_sink_set_root(in->sink, in->name) < 0)
		r = error_refuse(err, ERROR_INVALID, "cp: the name %.40s… is too long", in->name);
	return r;
}

static int copy_in_run(struct copy_in *in, const struct copy_place *from)
{
	Nacre__V1__CopyFromRequest request = NACRE__V1__COPY_FROM_REQUEST__INIT;
	Nacre__V1__ExportVolumeRequest volume = NACRE__V1__EXPORT_VOLUME_REQUEST__INIT;
	struct copy *c = in->copy;
	int r;

	request.target = from->target;
	request.container = from->container;
	request.path = from->path;
	request.follow = c->follow;
	request.exact = true;
	request.one_mount = c->one_mount;
	volume.name = c->volume;
	c->call.type = &nacre__v1__copy_from_response__descriptor;
	c->call.on_message = copy_in_message;
	if (c->volume)
		client_call_start(c->client, &c->call, "/nacre.v1.VolumeService/ExportVolume",
				  &volume.base);
	else
		client_call_start(c->client, &c->call, "/nacre.v1.WorkloadService/CopyFrom",
				  &request.base);
	(void)client_call_wait(c->client, &c->call);
	if (c->err.code)
		return c->err.code;
	if (c->call.err.code)
		return error_copy(&c->err, &c->call.err);
	r = copy_in_end_file(in);
	if (r == 0 && in->sink)
		return tree_sink_finish(in->sink, &c->err);
	if (r == 0 && tar_write_end(&in->bytes) < 0)
		r = error_set(&c->err, -ENOMEM, "write a tar archive");
	return r < 0 ? r : copy_in_flush(in);
}

int copy_from(struct copy *c, const struct copy_place *from, const struct copy_place *to)
{
	struct copy_in in = { .copy = c, .name = copy_place_name(from) };
	int r = copy_in_open(&in, to, &c->err);

	c->in = &in;
	if (r == 0)
		r = copy_in_run(&in, from);
	client_call_done(&c->call);
	c->in = NULL;
	in.sink = tree_sink_free(in.sink);
	buf_done(&in.bytes);
	free(in.name);
	return r;
}
