/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/streams/forward_call.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "api/cri.pb-c.h"
#include "base/file/fd.h"
#include "base/memory/list.h"
#include "base/text/id.h"
#include "base/text/str.h"
#include "cri/sandbox/find.h"
#include "cri/services.h"
#include "cri/streams/relay.h"
#include "net/port/sockets.h"
#include "pod/networks/netns.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "stream/dial.h"
#include "stream/server.h"

#define URL_MAX 256

/* A client's, for one sandbox. */
struct forwarding {
	struct cri_runtime_service *service;
	char id[ID_SIZE];   /* of the sandbox */
	struct list relays; /* where it has a kernel of its own */
	size_t n_ports;
	uint16_t ports[];
};

/* The sockets of one connection, which are made on a thread, in the pod's network. */
struct forward_work {
	struct sockets sockets;
	struct dial *dial;
};
static_assert((int)DIAL_COUNT == (int)SOCKETS_COUNT, "one place for each");

/* ---- sockets ---- */

static void forward_done(struct sockets *s)
{
	struct forward_work *w = container_of(s, struct forward_work, sockets);

	for (int i = 0; i < SOCKETS_COUNT; i++)
		w->dial->fds[i] = TAKE_FD(s->fds[i]);
	w->dial->err = s->err;
	dial_answer(w->dial);
	free(w);
}

static int forward_find(const struct cri_runtime_service *s, const char *id, struct workload **ret,
			struct error *err)
{
	int r = cri_find_sandbox(s, "pod_sandbox_id", id, ret, err);

	if (r < 0)
		return r;
	if ((*ret)->state != WORKLOAD_RUNNING || !(*ret)->instance)
		return error_refuse(err, ERROR_PRECONDITION, "the sandbox %s is not ready",
				    (*ret)->id);
	return 0;
}

static int forward_relay(struct forwarding *f, struct workload *of, struct dial *d,
			 struct error *err)
{
	struct peer *peer = workload_peer(of);

	return peer ? relay_open(&f->relays, peer, d, err)
		    : error_refuse(err, ERROR_UNAVAILABLE, "the keeper of %s is gone", of->path);
}

static int forward_begin(struct forwarding *f, struct dial *d, struct error *err)
{
	struct forward_work *w;
	struct workload *of;
	int fd, r = forward_find(f->service, f->id, &of, err);

	if (r < 0)
		return r;
	if (instance_is_remote(of->instance))
		return forward_relay(f, of, d, err);
	fd = netns_open(of, err);
	if (fd < 0)
		return fd;
	w = malloc(sizeof(*w));
	if (!w) {
		(void)fd_close(fd);
		return error_set(err, -ENOMEM, "forward a port");
	}
	w->dial = d;
	sockets_make(&w->sockets, f->service->pool, fd, forward_done);
	return 0;
}

static void forward_dial(void *userdata, struct dial *d)
{
	if (forward_begin(userdata, d, &d->err) < 0)
		dial_answer(d);
}

static void forward_gone(void *userdata)
{
	struct forwarding *f = userdata;

	relays_free(&f->relays);
	free(f);
}

/* ---- the call ---- */

static int forward_offer(struct cri_runtime_service *s, const Runtime__V1__PortForwardRequest *q,
			 char url[URL_MAX], struct error *err)
{
	struct stream_command command = { .kind = "portforward",
					  .dial = forward_dial,
					  .gone = forward_gone };
	struct forwarding *f;
	struct workload *of;
	int r = forward_find(s, q->pod_sandbox_id, &of, err);

	for (size_t i = 0; r == 0 && i < q->n_port; i++)
		if (q->port[i] < 1 || q->port[i] > UINT16_MAX)
			r = error_field(err, ERROR_INVALID, "port", "%d is not from 1 to 65535",
					q->port[i]);
	if (r < 0)
		return r;
	f = malloc(sizeof(*f) + q->n_port * sizeof(f->ports[0]));
	if (!f)
		return error_set(err, -ENOMEM, "forward ports");
	f->service = s;
	list_init(&f->relays);
	f->n_ports = q->n_port;
	for (size_t i = 0; i < q->n_port; i++)
		f->ports[i] = (uint16_t)q->port[i];
	command.ports = f->ports;
	command.n_ports = f->n_ports;
	(void)str_copy(f->id, sizeof(f->id), of->id);
	command.userdata = f;
	r = stream_server_offer(s->streams, &command, url, URL_MAX, err);
	if (r < 0)
		free(f);
	return r;
}

void cri_port_forward(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	Runtime__V1__PortForwardResponse m = RUNTIME__V1__PORT_FORWARD_RESPONSE__INIT;
	struct error err = ERROR_INIT;
	char url[URL_MAX];

	m.url = url;
	if (forward_offer(userdata, (const Runtime__V1__PortForwardRequest *)(const void *)request,
			  url, &err) < 0)
		rpc_call_fail(call, &err);
	else
		rpc_call_reply(call, &m.base);
}
