/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/streams/stream.h"

#include <errno.h>

#include "rpc/server/server.h"

struct cri_stream {
	cri_stream_fn send;
	void *userdata;
};

static void stream_end(struct rpc_call *call, const struct error *err)
{
	rpc_call_on_cancel(call, NULL, NULL);
	rpc_call_on_writable(call, NULL, NULL);
	if (err->code)
		rpc_call_fail(call, err);
	else
		rpc_call_finish(call);
}

static void stream_go_on(struct rpc_call *call, void *data)
{
	const struct cri_stream *s = data;
	struct error err = ERROR_INIT;
	int r = 1;

	while (r > 0 && rpc_call_writable(call))
		r = s->send(call, s->userdata, &err);
	if (r <= 0)
		stream_end(call, &err);
}

static void stream_cancelled(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	(void)data;
	(void)error_refuse(&err, ERROR_CANCELLED, "the list was cancelled");
	stream_end(call, &err);
}

void cri_stream_start(struct rpc_call *call, cri_stream_fn send, void *userdata)
{
	struct cri_stream *s = arena_alloc(rpc_call_arena(call), sizeof(*s));
	struct error err = ERROR_INIT;

	if (!s) {
		(void)error_set(&err, -ENOMEM, "answer");
		rpc_call_fail(call, &err);
		return;
	}
	*s = (struct cri_stream){ send, userdata };
	rpc_call_on_cancel(call, stream_cancelled, s);
	rpc_call_on_writable(call, stream_go_on, s);
	stream_go_on(call, s);
}
