/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/image_told.h"

#include <errno.h>

#include "image/image.h"
#include "pod/events.h"
#include "runtime/convert.h"
#include "runtime/services.h"

void image_told(struct rpc_call *call, const struct image_service *s, const struct image *image,
		const struct error *err, const struct image_told *how)
{
	struct event e = { .object = "image", .kind = "image", .state = how->state, .reason = "" };
	struct error own = ERROR_INIT;
	int r = -ENOMEM;

	if (!image) {
		rpc_call_fail(call, err);
		return;
	}
	e.id = image->id;
	e.name = image->names && image->names[0] ? image->names[0] : "";
	events_publish(s->events, &e);
	*how->slot = convert_image(rpc_call_arena(call), image);
	if (*how->slot)
		r = rpc_call_send(call, how->message);
	if (r < 0) {
		(void)error_set(&own, r, "answer");
		rpc_call_fail(call, &own);
		return;
	}
	rpc_call_finish(call);
}
