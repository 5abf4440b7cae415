/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/logs_call.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "api/nacre.pb-c.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/sysio.h"
#include "pod/log_reader.h"
#include "pod/workload.h"
#include "runtime/services.h"

struct logs_call {
	struct rpc_call *call;
	struct workload_service *service;
	struct log_reader *reader;
	char workload[ID_SIZE];
	bool waits; /* is a waiter of the workload */
};

static void logs_call_free(struct logs_call *c)
{
	struct workload *w = workloads_find(c->service->workloads, c->workload);

	if (w && c->waits)
		workload_forget_waiter(w, c);
	rpc_call_on_cancel(c->call, NULL, NULL);
	rpc_call_on_writable(c->call, NULL, NULL);
	c->reader = log_reader_free(c->reader);
	free(c);
}

static void logs_call_fail(struct logs_call *c, const struct error *err)
{
	struct rpc_call *call = c->call;

	logs_call_free(c);
	rpc_call_fail(call, err);
}

static void logs_call_cancelled(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	(void)call;
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	logs_call_fail(data, &err);
}

static void logs_call_writable(struct rpc_call *call, void *data)
{
	struct logs_call *c = data;

	(void)call;
	log_reader_pause(c->reader, false);
}

static void logs_call_data(void *userdata, int stream, uint64_t time, const void *data, size_t len)
{
	struct logs_call *c = userdata;
	Nacre__V1__LogsResponse m = NACRE__V1__LOGS_RESPONSE__INIT;
	struct error err = ERROR_INIT;
	int r;

	m.stream = stream == 2 ? NACRE__V1__LOGS_RESPONSE__STREAM__STREAM_STDERR
			       : NACRE__V1__LOGS_RESPONSE__STREAM__STREAM_STDOUT;
	m.time = time;
	m.data.data = (uint8_t *)(uintptr_t)data;
	m.data.len = len;
	r = rpc_call_send(c->call, &m.base);
	if (r < 0) {
		(void)error_set(&err, r, "send a log");
		logs_call_fail(c, &err);
	} else if (!rpc_call_writable(c->call)) {
		log_reader_pause(c->reader, true);
	}
}

static void logs_call_end(void *userdata, const struct error *err)
{
	struct logs_call *c = userdata;
	struct rpc_call *call = c->call;

	if (err) {
		logs_call_fail(c, err);
		return;
	}
	logs_call_free(c);
	rpc_call_finish(call);
}

static const struct log_reader_ops logs_call_ops = {
	.on_data = logs_call_data,
	.on_end = logs_call_end,
};

/* The container has ended, and all of its output is in the file. */
static void logs_call_ended(void *userdata, struct workload *w, const struct error *err)
{
	struct logs_call *c = userdata;

	(void)w;
	(void)err;
	c->waits = false;
	log_reader_finish(c->reader);
}

int logs_call_start(struct rpc_call *call, struct workload_service *service,
		    struct pod_container *container, bool follow, struct error *err)
{
	struct logs_call *c = calloc(1, sizeof(*c));
	char name[ID_SIZE + NAME_LABEL_MAX + 8];
	int fd, r;

	if (!c)
		return error_set(err, -ENOMEM, "read a log");
	c->call = call;
	c->service = service;
	(void)str_copy(c->workload, sizeof(c->workload), container->workload->id);
	(void)str_printf(name, sizeof(name), "%s/%s.log", container->workload->id, container->name);
	fd = sysio_openat(service->logs_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	r = fd < 0 ? -errno
		   : log_reader_new(&c->reader, service->loop, service->pool, fd, follow,
				    &logs_call_ops, c);
	if (r < 0) {
		free(c);
		return r == -ENOENT ? error_refuse(err, ERROR_NOT_FOUND,
						   "%s/%s has no log: it never started",
						   container->workload->path, container->name)
				    : error_set(err, r, "open the log of %s/%s",
						container->workload->path, container->name);
	}
	rpc_call_on_cancel(call, logs_call_cancelled, c);
	rpc_call_on_writable(call, logs_call_writable, c);
	if (follow) {
		c->waits = true;
		workload_wait(container->workload, container, logs_call_ended, c);
	}
	return 0;
}
