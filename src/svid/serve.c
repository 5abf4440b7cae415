/* SPDX-License-Identifier: Apache-2.0 */
#include "svid/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "gate/control.h"
#include "gate/drop.h"
#include "loop/loop.h"
#include "rpc/server/server.h"
#include "svid/caller.h"
#include "svid/descriptors.h"
#include "svid/workload.pb-c.h"

/* Of metadata, in each request (SPIFFE Workload Endpoint, section 3). */
#define SERVE_MARK "workload.spiffe.io"

struct serve {
	struct loop *loop;
	struct loop_fd control;
	struct rpc_server *server;
	struct callers callers;
};

/* ---- calls ---- */

static struct caller *serve_caller(struct serve *s, const struct rpc_remote *remote)
{
	uint32_t number;

	return parse_u32(remote->address, &number) < 0 ? NULL : callers_find(&s->callers, number);
}

static void serve_watch(struct rpc_call *call, struct serve *s, bool bundles)
{
	struct caller *c = serve_caller(s, rpc_call_peer(call)->remote);
	struct error err = ERROR_INIT;

	if (c) {
		caller_watch(c, call, bundles);
		return;
	}
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "the caller is gone");
	rpc_call_fail(call, &err);
}

static void serve_svids(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	(void)request;
	serve_watch(call, userdata, false);
}

static void serve_bundles(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	(void)request;
	serve_watch(call, userdata, true);
}

static const struct rpc_method serve_methods[] = {
	{ .name = "FetchX509SVID",
	  .input = &x509_svidrequest__descriptor,
	  .output = &x509_svidresponse__descriptor,
	  .server_streaming = true,
	  .handle = serve_svids },
	{ .name = "FetchX509Bundles",
	  .input = &x509_bundles_request__descriptor,
	  .output = &x509_bundles_response__descriptor,
	  .server_streaming = true,
	  .handle = serve_bundles },
};

static const struct rpc_service serve_service = { .name = "SpiffeWorkloadAPI",
						  .methods = serve_methods,
						  .n_methods = ARRAY_SIZE(serve_methods) };

/* ---- the daemon ---- */

static void serve_tell(void *userdata, const struct gatemsg *m)
{
	static uint8_t packet[GATEMSG_SIZE_MAX];
	struct serve *s = userdata;
	int len = gatemsg_encode(m, packet, NULL);

	/* It is asked again by the clock; a daemon that takes nothing is no more use. */
	if (len < 0 || send(SERVE_FD_CONTROL, packet, (size_t)len, MSG_NOSIGNAL) != len)
		loop_quit(s->loop, 0);
}

static void serve_closed(void *userdata, const struct rpc_remote *remote)
{
	struct serve *s = userdata;
	struct caller *c = serve_caller(s, remote);
	struct gatemsg m = { .type = GATEMSG_PART };

	if (!c || parse_u32(remote->address, &m.part.caller) < 0)
		return;
	(void)caller_free(c);
	serve_tell(s, &m);
}

/* Its connection is not its own any more: it was taken over. */
static int serve_take_caller(struct serve *s, const struct gatemsg *m, int fd)
{
	_cleanup_fd_ int owned = fd, copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct gatemsg part = { .type = GATEMSG_PART, .part = { m->caller.caller } };
	struct rpc_remote *remote = NULL;
	char number[16];

	if (fd < 0)
		return -EPROTO;
	(void)str_printf(number, sizeof(number), "%u", m->caller.caller);
	if (copy < 0 || fd_set_nonblock(fd, true) < 0 ||
	    rpc_remote_new(&remote, m->caller.instance_id, number) < 0 ||
	    caller_new(&s->callers, m, TAKE_FD(copy)) < 0)
		serve_tell(s, &part);
	else
		rpc_server_take(s->server, TAKE_FD(owned), remote);
	(void)rpc_remote_unref(remote);
	return 0;
}

static int serve_take(struct serve *s, const struct gatemsg *m, int fd)
{
	_cleanup_fd_ int owned = fd;
	const struct caller *c;

	switch ((unsigned)m->type) {
	case GATEMSG_FRONT:
		return callers_know(&s->callers, m->front.domain, &m->front.bundle);
	case GATEMSG_CALLER:
		return serve_take_caller(s, m, TAKE_FD(owned));
	case GATEMSG_SIGNED:
		callers_signed(&s->callers, m);
		return 0;
	case GATEMSG_DENIED:
		callers_denied(&s->callers, m);
		return 0;
	case GATEMSG_PART:
		c = callers_find(&s->callers, m->part.caller);
		if (c)
			caller_end(c);
		return 0;
	default:
		return -EPROTO;
	}
}

static void serve_on_control(struct loop_fd *source, unsigned events)
{
	static uint8_t packet[GATEMSG_SIZE_MAX];
	struct serve *s = container_of(source, struct serve, control);
	struct gatemsg m;
	int fd;
	ssize_t n = control_receive(SERVE_FD_CONTROL, packet, sizeof(packet), &fd);

	(void)events;
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0 || gatemsg_decode(&m, packet, (size_t)n, NULL) < 0 || serve_take(s, &m, fd) < 0)
		loop_quit(s->loop, 0);
}

static int serve_begin(struct serve *s, struct error *err)
{
	struct rpc_server_config config = { .mark = SERVE_MARK,
					    .closed = serve_closed,
					    .userdata = s,
					    .descriptors = workload_descriptors,
					    .descriptors_len = workload_descriptors_len };
	int r = loop_new(&s->loop);

	if (r < 0)
		return error_set(err, r, "make a loop");
	config.loop = s->loop;
	callers_init(&s->callers, s->loop, serve_tell, s);
	r = rpc_server_new(&s->server, &config);
	if (r == 0)
		r = rpc_server_add(s->server, &serve_service, s);
	if (r < 0)
		return error_set(err, r, "make the server");
	loop_fd_init(&s->control, s->loop, SERVE_FD_CONTROL, LOOP_READ, serve_on_control);
	return 0;
}

int serve_run(uid_t uid, gid_t gid, struct error *err)
{
	static struct serve s;
	int r = serve_begin(&s, err);

	if (r == 0)
		r = drop_privilege(DROP_FRONT, uid, gid, err);
	if (r < 0)
		return r;
	return loop_run(s.loop);
}
