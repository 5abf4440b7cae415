/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/images/image_export_call.h"

#include <errno.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "image/image.h"
#include "runtime/services.h"

/* In the call's arena. */
struct export_call {
	struct rpc_call *call;
	struct image_export *export; /* until it is done */
};

static void export_call_end(struct export_call *c, const struct error *err)
{
	struct rpc_call *call = c->call;

	c->export = NULL;
	rpc_call_on_cancel(call, NULL, NULL);
	rpc_call_on_writable(call, NULL, NULL);
	if (err)
		rpc_call_fail(call, err);
	else
		rpc_call_finish(call);
}

static void export_call_image(void *userdata, const char *id, const char *digest,
			      char *const *names)
{
	struct export_call *c = userdata;
	Nacre__V1__ExportResponse m = NACRE__V1__EXPORT_RESPONSE__INIT;
	Nacre__V1__ExportedImage image = NACRE__V1__EXPORTED_IMAGE__INIT;

	image.id = (char *)(uintptr_t)id;
	image.digest = (char *)(uintptr_t)digest;
	image.names = (char **)(uintptr_t)names;
	image.n_names = strv_len(names);
	m.image = &image;
	/* Without memory the data cannot follow either, and that ends the call. */
	if (rpc_call_send(c->call, &m.base) < 0)
		return;
}

static void export_call_data(void *userdata, const void *data, size_t len)
{
	struct export_call *c = userdata;
	Nacre__V1__ExportResponse m = NACRE__V1__EXPORT_RESPONSE__INIT;
	struct error err = ERROR_INIT;
	int r;

	m.data.data = (uint8_t *)(uintptr_t)data;
	m.data.len = len;
	r = rpc_call_send(c->call, &m.base);
	if (r < 0) {
		(void)error_set(&err, r, "send an archive");
		image_export_cancel(c->export);
		export_call_end(c, &err);
	} else if (!rpc_call_writable(c->call)) {
		image_export_pause(c->export, true);
	}
}

static void export_call_done(void *userdata, const struct error *err)
{
	export_call_end(userdata, err);
}

static const struct image_export_ops export_call_ops = { .on_image = export_call_image,
							 .on_data = export_call_data,
							 .on_end = export_call_done };

static void export_call_writable(struct rpc_call *call, void *data)
{
	struct export_call *c = data;

	if (c->export)
		image_export_pause(c->export, false);
}

static void export_call_cancelled(struct rpc_call *call, void *data)
{
	struct export_call *c = data;
	struct error err = ERROR_INIT;

	image_export_cancel(c->export);
	(void)error_refuse(&err, ERROR_CANCELLED, "the export was cancelled");
	export_call_end(c, &err);
}

static int export_call_format(const char *text, enum image_export_form *ret, struct error *err)
{
	*ret = str_eq(text, "oci") ? IMAGE_EXPORT_OCI : IMAGE_EXPORT_DOCKER;
	if (str_empty(text) || str_eq(text, "oci") || str_eq(text, "docker"))
		return 0;
	return error_field(err, ERROR_INVALID, "format", "\"%.80s\" is neither oci nor docker",
			   text);
}

static int export_call_start(struct export_call *c, struct image_service *s,
			     const Nacre__V1__ExportRequest *q, struct error *err)
{
	enum image_export_form form;
	int r = export_call_format(q->format, &form, err);

	return r < 0 ? r
		     : image_export_start(s->images, q->images, q->n_images, form, &export_call_ops,
					  c, &c->export, err);
}

void image_export_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__ExportRequest *q = (const Nacre__V1__ExportRequest *)(const void *)request;
	struct export_call *c = arena_zalloc(rpc_call_arena(call), 1, sizeof(*c));
	struct error err = ERROR_INIT;
	int r;

	if (c) {
		c->call = call;
		r = export_call_start(c, userdata, q, &err);
	} else {
		r = error_set(&err, -ENOMEM, "export");
	}
	if (r < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	rpc_call_on_cancel(call, export_call_cancelled, c);
	rpc_call_on_writable(call, export_call_writable, c);
}
