/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/diff_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/nacre.pb-c.h"
#include "base/file/fd.h"
#include "base/text/str.h"
#include "image/content/changes.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/pool_call.h"
#include "runtime/core/target.h"
#include "runtime/services.h"

/* Changes of one message. */
#define DIFF_BATCH 128
/* At a time: each may queue CHANGES_BYTES_MAX for its client. */
#define DIFFS_MAX 8

struct diff {
	struct pool_call base;
	struct workload_service *service;
	char id[ID_SIZE];
	int upper_fd, image_fd;
	struct changes changes;
	struct error err;
};

/* ---- on the thread ---- */

static void diff_run(struct pool_call *p)
{
	struct diff *d = container_of(p, struct diff, base);

	(void)changes_find(&d->changes, d->upper_fd, d->image_fd, &d->err);
}

/* ---- and behind it ---- */

static int diff_send(const struct diff *d, size_t from, struct rpc_call *call)
{
	Nacre__V1__DiffResponse m = NACRE__V1__DIFF_RESPONSE__INIT;
	Nacre__V1__FileChange changes[DIFF_BATCH], *list[DIFF_BATCH];

	m.changes = list;
	for (; m.n_changes < DIFF_BATCH && from < d->changes.n; m.n_changes++, from++) {
		Nacre__V1__FileChange *c = &changes[m.n_changes];
		const char *text = d->changes.list[from];

		nacre__v1__file_change__init(c);
		c->kind = text[0] == CHANGE_ADDED     ? NACRE__V1__FILE_CHANGE__KIND__KIND_ADDED
			  : text[0] == CHANGE_DELETED ? NACRE__V1__FILE_CHANGE__KIND__KIND_DELETED
						      : NACRE__V1__FILE_CHANGE__KIND__KIND_CHANGED;
		c->path.data = (uint8_t *)(uintptr_t)(text + 1);
		c->path.len = strlen(text + 1);
		list[m.n_changes] = c;
	}
	return rpc_call_send(call, &m.base);
}

static void diff_reply(struct pool_call *p, struct rpc_call *call)
{
	struct diff *d = container_of(p, struct diff, base);
	int r = 0;

	/* Without it, nobody held its image meanwhile. */
	if (!d->err.code && !workloads_find_container(d->service->workloads, d->id))
		(void)error_refuse(&d->err, ERROR_ABORTED,
				   "it was removed before its changes were told");
	for (size_t i = 0; !d->err.code && r == 0 && i < d->changes.n; i += DIFF_BATCH)
		r = diff_send(d, i, call);
	if (r < 0)
		(void)error_set(&d->err, r, "answer");
	if (d->err.code)
		rpc_call_fail(call, &d->err);
	else
		rpc_call_finish(call);
}

static void diff_free(struct pool_call *p)
{
	struct diff *d = container_of(p, struct diff, base);

	d->service->n_diffs--;
	(void)fd_close(d->upper_fd);
	(void)fd_close(d->image_fd);
	changes_done(&d->changes);
	free(d);
}

/* ---- the call ---- */

static int diff_check(const struct workload_service *s, const struct pod_container *c,
		      struct error *err)
{
	const struct workload *w = c->workload;
	bool remote = w->instance ? instance_is_remote(w->instance) : *c->serial != '\0';
	int r = target_refuse_machine(w, "which keeps its changes on disks of its own", err);

	if (r < 0)
		return r;
	if (w->kind == WORKLOAD_EXECUTABLE)
		return error_field(err, ERROR_INVALID, "target",
				   "%s is an executable, it has the files of the node", w->path);
	if (remote)
		return error_field(
			err, ERROR_UNSUPPORTED, "target",
			"%s/%s keeps its changes in the memory of its machine, where they "
			"are not compared (copy its files out)",
			w->path, c->name);
	if (s->n_diffs >= DIFFS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "%d other calls compare files at this moment, the limit",
				    DIFFS_MAX);
	return 0;
}

static int diff_begin(struct rpc_call *call, struct workload_service *s, struct pod_container *c,
		      struct error *err)
{
	static const struct pool_call_ops ops = { diff_run, diff_reply, diff_free };
	_cleanup_fd_ int upper_fd = -1, image_fd = -1;
	struct diff *d;

	upper_fd = pod_container_open_changes(c, &image_fd, err);
	if (upper_fd < 0)
		return upper_fd;
	d = calloc(1, sizeof(*d));
	if (!d)
		return error_set(err, -ENOMEM, "compare its files");
	d->service = s;
	d->upper_fd = TAKE_FD(upper_fd);
	d->image_fd = TAKE_FD(image_fd);
	(void)str_copy(d->id, sizeof(d->id), c->id);
	s->n_diffs++;
	pool_call_start(&d->base, &ops, s->pool, call);
	return 0;
}

void diff_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__DiffRequest *q = (const Nacre__V1__DiffRequest *)(const void *)request;
	struct workload_service *s = userdata;
	struct error err = ERROR_INIT;
	struct pod_container *c;
	int r;

	r = target_container(s, q->target, q->container, &c, &err);
	if (r == 0)
		r = diff_check(s, c, &err);
	if (r == 0)
		r = diff_begin(call, s, c, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}
