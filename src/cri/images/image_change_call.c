/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/images/image_change_call.h"

#include <errno.h>

#include "base/text/str.h"
#include "cri/images/auth.h"
#include "cri/images/image.h"
#include "cri/sandbox/handler.h"
#include "cri/services.h"
#include "image/registry.h"
#include "pod/workload/events.h"
#include "wire/name/digest.h"
#include "wire/name/reference.h"

/* ---- PullImage ---- */

/* In the call's arena. */
struct cri_pull {
	struct rpc_call *call;
	const struct cri_image_service *service;
	struct image_pull *pull; /* until it is done */
};

static void pull_event(void *userdata, const struct image_pull_event *e)
{
	(void)userdata;
	(void)e;
}

/*
 * A kubelet finds the words that it knows only at the very beginning of what it takes for the
 * message, which has the code in front unless that is UNKNOWN.
 */
static void pull_fail(struct rpc_call *call, const struct error *err)
{
	static const char *const words[] = { "RegistryUnavailable", "SignatureValidationFailed" };
	struct error told = *err;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (str_has_prefix(err->text, words[i]))
			told.kind = ERROR_UNKNOWN;
	rpc_call_fail(call, &told);
}

static void pull_done(void *userdata, struct image *image, const struct error *err)
{
	Runtime__V1__PullImageResponse m = RUNTIME__V1__PULL_IMAGE_RESPONSE__INIT;
	struct event e = { .object = "image", .kind = "image", .state = "pulled", .reason = "" };
	struct cri_pull *p = userdata;

	p->pull = NULL;
	rpc_call_on_cancel(p->call, NULL, NULL);
	if (!image) {
		pull_fail(p->call, err);
		return;
	}
	e.id = image->id;
	e.name = image->names && image->names[0] ? image->names[0] : "";
	events_publish(p->service->events, &e);
	m.image_ref = image->id;
	rpc_call_reply(p->call, &m.base);
}

static void pull_cancelled(struct rpc_call *call, void *data)
{
	struct cri_pull *p = data;
	struct error err = ERROR_INIT;

	image_pull_cancel(TAKE_PTR(p->pull));
	(void)error_refuse(&err, ERROR_CANCELLED, "the pull was cancelled");
	rpc_call_fail(call, &err);
}

static const struct image_pull_ops pull_ops = { .on_event = pull_event, .on_done = pull_done };

static int pull_start(struct cri_pull *p, const Runtime__V1__PullImageRequest *q, struct error *err)
{
	struct image_pull_request request = { .architecture = "", .variant = "" };
	const struct cri_handler *handler;
	char full[REFERENCE_SIZE];
	int r;

	if (!q->image || str_empty(q->image->image))
		return error_field(err, ERROR_INVALID, "image.image", "required");
	r = cri_handler_find("image.runtime_handler", q->image->runtime_handler, &handler, err);
	if (r < 0)
		return r;
	r = reference_normalise(full, q->image->image, err);
	if (r < 0)
		return error_wrap_field(err, r, "image.image");
	r = cri_auth_take(rpc_call_arena(p->call), q->auth, q->image->image, &request.auths, err);
	if (r < 0)
		return r;
	request.reference = q->image->image;
	return image_pull_start(p->service->images, &request, &pull_ops, p, &p->pull, err);
}

void cri_pull_image(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct cri_pull *p = arena_zalloc(rpc_call_arena(call), 1, sizeof(*p));
	struct error err = ERROR_INIT;
	int r;

	if (p) {
		p->call = call;
		p->service = userdata;
		r = pull_start(p, (const Runtime__V1__PullImageRequest *)(const void *)request,
			       &err);
	} else {
		r = error_set(&err, -ENOMEM, "pull");
	}
	if (r < 0)
		pull_fail(call, &err);
	else
		rpc_call_on_cancel(call, pull_cancelled, p);
}

/* ---- RemoveImage ---- */

/* In the call's arena. */
struct cri_removal {
	struct rpc_call *call;
	const struct cri_image_service *service;
	char id[DIGEST_SIZE];
	char name[REFERENCE_SIZE];
};

static void removal_reply(struct rpc_call *call)
{
	Runtime__V1__RemoveImageResponse m = RUNTIME__V1__REMOVE_IMAGE_RESPONSE__INIT;

	rpc_call_reply(call, &m.base);
}

static void removal_done(void *userdata, const struct error *err)
{
	const struct cri_removal *m = userdata;
	struct event e = { .object = "image",
			   .id = m->id,
			   .name = m->name,
			   .kind = "image",
			   .state = "removed",
			   .reason = "" };

	if (err && err->code) {
		rpc_call_fail(m->call, err);
		return;
	}
	events_publish(m->service->events, &e);
	removal_reply(m->call);
}

/* By its id, with all names, whatever name the request has. It is out of every list from here on,
 * and whoever asks again finds nothing to remove. */
static int removal_start(struct cri_removal *m, const struct image *image, struct error *err)
{
	(void)str_copy(m->id, sizeof(m->id), image->id);
	(void)str_copy(m->name, sizeof(m->name),
		       image->names && image->names[0] ? image->names[0] : "");
	return image_store_remove(m->service->images, m->id, removal_done, m, err);
}

void cri_remove_image(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Runtime__V1__RemoveImageRequest *q =
		(const Runtime__V1__RemoveImageRequest *)(const void *)request;
	struct cri_removal *m = arena_zalloc(rpc_call_arena(call), 1, sizeof(*m));
	const struct cri_image_service *s = userdata;
	struct error err = ERROR_INIT;
	struct image *image = NULL;
	int r = m ? cri_image_find(s->images, "image.image", q->image, &image, &err)
		  : error_set(&err, -ENOMEM, "remove an image");

	if (r == 0) {
		removal_reply(call);
		return;
	}
	if (r > 0) {
		m->call = call;
		m->service = s;
		r = removal_start(m, image, &err);
	}
	if (r < 0)
		rpc_call_fail(call, &err);
}

/* ---- ImageFsInfo ---- */

/* In the call's arena. */
struct cri_fs_info {
	struct rpc_call *call;
	const struct cri_image_service *service;
};

/* One file system as a message, with what it consists of. */
struct fs_usage {
	Runtime__V1__FilesystemUsage usage, *list[1];
	Runtime__V1__FilesystemIdentifier id;
	Runtime__V1__UInt64Value bytes, inodes;
};

static void fs_usage_fill(struct fs_usage *u, const char *root, uint64_t at,
			  const struct image_space_part *part)
{
	runtime__v1__filesystem_usage__init(&u->usage);
	runtime__v1__filesystem_identifier__init(&u->id);
	runtime__v1__uint64_value__init(&u->bytes);
	runtime__v1__uint64_value__init(&u->inodes);
	u->id.mountpoint = (char *)(uintptr_t)root;
	u->bytes.value = part->bytes;
	u->inodes.value = part->n_inodes;
	u->usage.timestamp = (int64_t)at;
	u->usage.fs_id = &u->id;
	u->usage.used_bytes = &u->bytes;
	u->usage.inodes_used = &u->inodes;
	u->list[0] = &u->usage;
}

static void fs_info_done(void *userdata, const struct image_space *space, const struct error *err)
{
	Runtime__V1__ImageFsInfoResponse m = RUNTIME__V1__IMAGE_FS_INFO_RESPONSE__INIT;
	const struct cri_fs_info *f = userdata;
	struct fs_usage images, containers;

	if (err) {
		rpc_call_fail(f->call, err);
		return;
	}
	fs_usage_fill(&images, f->service->root, space->at, &space->images);
	fs_usage_fill(&containers, f->service->root, space->at, &space->containers);
	m.image_filesystems = images.list;
	m.n_image_filesystems = 1;
	m.container_filesystems = containers.list;
	m.n_container_filesystems = 1;
	rpc_call_reply(f->call, &m.base);
}

void cri_image_fs_info(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct cri_fs_info *f = arena_zalloc(rpc_call_arena(call), 1, sizeof(*f));
	const struct cri_image_service *s = userdata;
	struct error err = ERROR_INIT;
	int r;

	(void)request;
	if (f) {
		*f = (struct cri_fs_info){ call, s };
		r = image_store_space(s->images, fs_info_done, f, &err);
	} else {
		r = error_set(&err, -ENOMEM, "count what the images take");
	}
	if (r < 0)
		rpc_call_fail(call, &err);
}
