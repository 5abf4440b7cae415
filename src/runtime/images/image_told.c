/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/images/image_told.h"

#include <errno.h>

#include "image/image.h"
#include "pod/workload/events.h"
#include "runtime/core/convert.h"
#include "runtime/services.h"

int image_told_one(struct rpc_call *call, const struct image_service *s, const struct image *image,
		   const struct image_told *how, struct error *err)
{
	struct event e = { .object = "image", .kind = "image", .state = how->state, .reason = "" };
	int r = -ENOMEM;

	e.id = image->id;
	e.name = image->names && image->names[0] ? image->names[0] : "";
	events_publish(s->events, &e);
	*how->slot = convert_image(rpc_call_arena(call), image);
	if (*how->slot)
		r = rpc_call_send(call, how->message);
	return r < 0 ? error_set(err, r, "answer") : 0;
}

void image_told(struct rpc_call *call, const struct image_service *s, const struct image *image,
		const struct error *err, const struct image_told *how)
{
	struct error own = ERROR_INIT;

	if (!image) {
		rpc_call_fail(call, err);
		return;
	}
	if (image_told_one(call, s, image, how, &own) < 0) {
		rpc_call_fail(call, &own);
		return;
	}
	rpc_call_finish(call);
}
