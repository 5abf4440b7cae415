/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/images/image_inspect_call.h"

#include <errno.h>

#include "api/nacre.pb-c.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "image/image.h"
#include "runtime/core/convert.h"
#include "runtime/services.h"

static ProtobufCBinaryData image_document(const struct buf *b)
{
	return (ProtobufCBinaryData){ .len = b->len, .data = b->base ? b->base + b->head : NULL };
}

static void image_lease_drop(struct image_lease **l)
{
	*l = image_lease_free(*l);
}

/* Documents are small, were read when the image came, and are read from the cache most of the time:
 * the loop thread reads and hashes them. */
static int image_inspect(struct rpc_call *call, const struct image_service *s,
			 const char *reference, struct error *err)
{
	Nacre__V1__InspectImageResponse m = NACRE__V1__INSPECT_IMAGE_RESPONSE__INIT;
	_cleanup_(buf_done) struct buf manifest = BUF_INIT, config = BUF_INIT;
	_cleanup_(image_lease_drop) struct image_lease *lease = NULL;
	const struct image *image;
	int r;

	if (str_empty(reference))
		return error_field(err, ERROR_INVALID, "image", "required");
	image = image_store_find(s->images, reference, err);
	if (!image)
		return error_wrap_field(err, err->code, "image");
	m.image = convert_image(rpc_call_arena(call), image);
	if (!m.image || image_lease_new(&lease, s->images, image) < 0)
		return error_set(err, -ENOMEM, "inspect an image");
	r = image_lease_read(lease, image->digest, &manifest, err);
	if (r == 0)
		r = image_lease_read(lease, image->id, &config, err);
	if (r < 0)
		return r;
	m.manifest = image_document(&manifest);
	m.config = image_document(&config);
	rpc_call_reply(call, &m.base);
	return 0;
}

void image_inspect_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__InspectImageRequest *q =
		(const Nacre__V1__InspectImageRequest *)(const void *)request;
	struct error err = ERROR_INIT;

	if (image_inspect(call, userdata, q->image, &err) < 0)
		rpc_call_fail(call, &err);
}
