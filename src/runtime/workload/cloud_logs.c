/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/cloud_logs.h"

#include <errno.h>
#include <string.h>

#include "clouds/clouds.h"
#include "pod/workload/model.h"
#include "rpc/server/server.h"
#include "runtime/services.h"
#include "wire/format/base64.h"

struct cloud_logs {
	struct rpc_call *call;
	bool has_tail;
	uint64_t lines;
};

/* Where the last lines begin. */
static size_t cloud_logs_tail(const uint8_t *data, size_t len, uint64_t lines)
{
	size_t at = len;

	if (at > 0 && data[at - 1] == '\n')
		at--;
	for (; lines > 0 && at > 0; at--)
		if (data[at - 1] == '\n' && --lines == 0)
			return at;
	return lines > 0 ? 0 : len;
}

static void cloud_logs_done(void *userdata, const char *base64, const char *time,
			    const struct error *err)
{
	const struct cloud_logs *l = userdata;
	Nacre__V1__LogsResponse m = NACRE__V1__LOGS_RESPONSE__INIT;
	struct error own = ERROR_INIT;
	size_t len = 0, from = 0;
	uint8_t *data = NULL;

	(void)time;
	if (!err) {
		data = arena_alloc(rpc_call_arena(l->call), strlen(base64) + 1);
		if (!data || !base64_decode_lines(base64, data, &len))
			(void)error_set(&own, -ENOMEM, "answer");
	}
	if (!err && !own.code && l->has_tail)
		from = cloud_logs_tail(data, len, l->lines);
	m.stream = NACRE__V1__LOGS_RESPONSE__STREAM__STREAM_STDOUT;
	m.data = (ProtobufCBinaryData){ .data = data + from, .len = len - from };
	if (!err && !own.code && len > from && rpc_call_send(l->call, &m.base) < 0)
		(void)error_set(&own, -ENOMEM, "answer");
	if (err || own.code)
		rpc_call_fail(l->call, err ? err : &own);
	else
		rpc_call_finish(l->call);
}

void cloud_logs_start(struct rpc_call *call, const struct workload_service *service,
		      const Nacre__V1__LogsRequest *q, const struct workload *w)
{
	const char *field = q->follow ? "follow" : q->since ? "since" : q->until ? "until" : NULL;
	struct cloud_vm *vm = clouds_find_workload(service->clouds, w->id);
	struct cloud_logs *l = arena_zalloc(rpc_call_arena(call), 1, sizeof(*l));
	struct error err = ERROR_INIT;
	int r = 0;

	if (field)
		r = error_field(&err, ERROR_UNSUPPORTED, field,
				"the console of a machine in a cloud is told as it is, and without "
				"times");
	else if (!vm)
		r = error_refuse(&err, ERROR_PRECONDITION,
				 "%s has no machine in the cloud any more, and its console went "
				 "with it",
				 w->path);
	else if (!l)
		r = error_set(&err, -ENOMEM, "read a console");
	if (r == 0) {
		*l = (struct cloud_logs){ .call = call,
					  .has_tail = q->tail != NULL,
					  .lines = q->tail ? q->tail->lines : 0 };
		r = cloud_vm_console(vm, cloud_logs_done, l, &err);
	}
	if (r < 0)
		rpc_call_fail(call, &err);
}
