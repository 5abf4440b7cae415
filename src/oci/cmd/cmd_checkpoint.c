/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "oci/checkpoint/criu.h"
#include "oci/checkpoint/image.h"
#include "oci/checkpoint/outside.h"
#include "oci/cmd/handlers.h"
#include "oci/launch/container.h"

#define LOG_NAME "dump.log"
#define END_MS 10000

static int checkpoint_need_running(const struct container *c, struct error *err)
{
	enum container_status status = container_status(c);

	if (status == CONTAINER_RUNNING)
		return 0;
	return error_refuse(err, ERROR_PRECONDITION,
			    "container not running: cannot checkpoint \"%s\", which is %s", c->id,
			    container_status_name(status));
}

/* Takes the lock, so that nobody deletes it or checkpoints it too meanwhile, and looks once more.
 */
static int checkpoint_open(struct container *c, const struct oci *oci, const char *id,
			   struct error *err)
{
	int r;

	r = container_open(c, oci->root, id, err);
	if (r == 0)
		r = checkpoint_need_running(c, err);
	if (r == 0)
		r = container_lock(c, true, err);
	if (r == 0)
		r = checkpoint_need_running(c, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < c->config->os->n_namespaces; i++)
		if (str_eq(c->config->os->namespaces[i].type, "mount") &&
		    str_empty(c->config->os->namespaces[i].path))
			return 0;
	return error_field(
		err, ERROR_UNSUPPORTED, "linux.namespaces",
		"a container without a mount namespace of its own cannot be checkpointed");
}

/* Which image the memory that has not changed is in: a path from --image-path on. */
static int checkpoint_parent(struct criu_options *o, const struct image *i, const struct args *args,
			     struct error *err)
{
	const char *path = args_value(args, "parent-path");
	_cleanup_str_ char *whole = NULL;
	int r;

	if (!path)
		return 0;
	if (path[0] == '/')
		return error_refuse(err, ERROR_INVALID,
				    "--parent-path: %s does not begin in --image-path", path);
	whole = str_format("%s/%s", i->images, path);
	r = whole ? image_check_dir("--parent-path", whole, err)
		  : error_set(err, -ENOMEM, "name --parent-path");
	if (r < 0)
		return r;
	o->parent_images = path;
	o->track_mem = true;
	return 0;
}

static int checkpoint_options(struct criu_options *o, const struct image *i, struct container *c,
			      const struct args *args, struct error *err)
{
	int r;

	if (args_value(args, "page-server"))
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "--page-server: memory cannot be sent to another host");
	r = image_options(o, i, args, err);
	if (r == 0)
		r = checkpoint_parent(o, i, args, err);
	if (r < 0)
		return r;
	o->pid = c->pid;
	o->root = c->rootfs;
	o->leave_running = args_flag(args, "leave-running");
	if (args_flag(args, "pre-dump"))
		o->track_mem = true;
	return 0;
}

static int checkpoint_run(const struct criu *criu, struct container *c, const struct image *i,
			  struct criu_options *o, bool pre_dump, struct error *err)
{
	_cleanup_(outside_done) struct outside outside = OUTSIDE_INIT;
	_cleanup_fd_ int pidfd = container_pidfd(c);
	const struct criu_job job = {
		.type = pre_dump ? CRIU_PRE_DUMP : CRIU_DUMP,
		.options = o,
		.what = "write the container down",
		.log = i->log,
		.group_fd = -1,
	};
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int r;

	if (pidfd < 0)
		return error_refuse(err, ERROR_PRECONDITION, "container \"%s\" has ended", c->id);
	r = outside_look(&outside, c, err);
	if (r == 0 && !pre_dump)
		r = outside_write_streams(&outside, i->images_fd, err);
	if (r < 0)
		return r;
	outside_fill(&outside, o);
	r = criu_run(criu, &job, NULL, err);
	if (r < 0)
		return r;
	if (pre_dump || o->leave_running)
		return 0;
	do
		r = poll(&p, 1, END_MS);
	while (r < 0 && errno == EINTR);
	return r > 0 ? 0
		     : error_set(err, -ETIMEDOUT, "wait for the end of process %d", (int)c->pid);
}

int oci_checkpoint(const struct oci *oci, const struct args *args, struct error *err)
{
	_cleanup_(container_done) struct container c = CONTAINER_INIT;
	_cleanup_(image_done) struct image image = IMAGE_INIT;
	_cleanup_(criu_done) struct criu criu = CRIU_INIT;
	bool pre_dump = args_flag(args, "pre-dump");
	struct criu_options o = { .pid = 0 };
	int r;

	r = checkpoint_open(&c, oci, args->operands[0], err);
	if (r == 0)
		r = criu_open(&criu, err);
	if (r == 0)
		r = image_open(&image, args, LOG_NAME, true, err);
	if (r == 0)
		r = checkpoint_options(&o, &image, &c, args, err);
	if (r == 0 && o.track_mem)
		r = criu_need_mem_track(&criu, err);
	if (r == 0)
		r = checkpoint_run(&criu, &c, &image, &o, pre_dump, err);
	return r < 0 ? r : EXIT_SUCCESS;
}
