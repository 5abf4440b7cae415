/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/driver/gate.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "gates/channel.h"
#include "gates/issuer.h"
#include "io/unix.h"

#define GATE_SOCK_RPC "rpc.sock"
#define GATE_SOCK_CONTROL "gate.sock"

struct gate;

/* A question of the gate's that the issuer has. */
struct gate_need {
	struct gate *gate;
	uint32_t request; /* 0: none */
};

struct gate {
	const struct gate_events *events;
	void *userdata;
	struct issuer *issuer;
	nsec_t life;
	char ids[GATE_WHOSE_COUNT][SPIFFE_SIZE];
	struct channel channel;
	struct isolate_child child; /* of gate_start(); pidfd -1 else */
	struct loop_child watch;
	bool watched, set_up;
	struct gate_need needs[GATE_WHOSE_COUNT];
	gate_console_fn console_done;
	void *console_userdata;
	uint8_t address[4];
	uint16_t port;
	uint8_t token[GATE_TOKEN_SIZE];
	struct issuer_watch watch_bundle;
	struct loop_defer early; /* the end, found while a caller stood here */
	struct error end;
};

/* ---- the end ---- */

static void gate_console_answer(struct gate *g, const uint8_t *last, size_t len, uint64_t total,
				const struct error *err)
{
	gate_console_fn done = g->console_done;

	g->console_done = NULL;
	if (done)
		done(g->console_userdata, last, len, total, err);
}

static void gate_tell_end(struct loop_defer *d)
{
	struct gate *g = container_of(d, struct gate, early);

	if (g->events->on_end)
		g->events->on_end(g->userdata, &g->end);
}

/* All that is left is to be told, from the loop; the caller may free the gate there. */
static void gate_over(struct gate *g, const struct error *err)
{
	if (g->end.code)
		return;
	(void)error_copy(&g->end, err);
	(void)error_wrap(&g->end, g->end.code, "the gate of a virtual machine");
	channel_done(&g->channel);
	issuer_forget(g->issuer, &g->needs[GATE_NODE]);
	issuer_forget(g->issuer, &g->needs[GATE_GUEST]);
	issuer_forget(g->issuer, g);
	issuer_unwatch(&g->watch_bundle);
	/* A gate that cannot be spoken to serves nobody; the end is told when it is reaped. */
	if (g->watched)
		(void)pidfd_kill(g->child.pidfd, SIGKILL);
	else
		loop_defer_schedule(&g->early);
	gate_console_answer(g, NULL, 0, 0, &g->end);
}

static void gate_child_end(struct loop_child *watch, int code, int status)
{
	struct gate *g = container_of(watch, struct gate, watch);
	struct error err = ERROR_INIT;
	int exit_code;

	loop_child_done(&g->watch);
	g->watched = false;
	if (g->end.code) {
		loop_defer_schedule(&g->early);
		return;
	}
	if (isolate_child_report(&g->child, &exit_code, &err) == 0)
		(void)error_refuse(&err, ERROR_FAULT, "it ended (%s %d)",
				   code == CLD_EXITED ? "status" : "signal", status);
	gate_over(g, &err);
}

static void gate_channel_end(struct channel *c, const struct error *err)
{
	struct gate *g = container_of(c, struct gate, channel);

	/* How a child ended says more, and comes at once. */
	if (g->watched && (err->code == -EPIPE || err->code == -ECONNRESET))
		channel_done(c);
	else
		gate_over(g, err);
}

/* ---- what the gate says ---- */

static void gate_issued(void *userdata, const struct gate_bytes *bytes, const struct error *err)
{
	struct gate_need *need = userdata;
	struct gate *g = need->gate;
	struct gatemsg m = { .type = bytes ? GATEMSG_ISSUED : GATEMSG_DENIED };
	struct error why = ERROR_INIT;

	if (bytes) {
		m.issued.request = need->request;
		m.issued.chain = *bytes;
	} else {
		m.denied.request = need->request;
		m.denied.text = error_text(err);
	}
	need->request = 0;
	if (channel_send(&g->channel, &m, &why) < 0)
		gate_over(g, &why);
}

static void gate_take_need(struct gate *g, const struct gatemsg *m)
{
	struct gate_need *need = &g->needs[m->need.whose];
	struct error err = ERROR_INIT;
	int r;

	/* The newer question is the one that counts. */
	issuer_forget(g->issuer, need);
	need->request = m->need.request;
	r = issuer_sign(g->issuer, m->need.key, g->ids[m->need.whose], g->life, gate_issued, need);
	if (r == 0)
		return;
	(void)error_set(&err, r, "ask for a certificate");
	gate_issued(need, NULL, &err);
}

static void gate_take_state(struct gate *g, const struct gatemsg *m)
{
	if (g->events->on_state)
		g->events->on_state(g->userdata, (enum gate_state)m->state.state, m->state.text);
}

static void gate_take_frame(struct gate *g, const struct gatemsg *m)
{
	if (g->events->on_frame)
		g->events->on_frame(g->userdata, m->frame.bytes.data, m->frame.bytes.len);
}

static void gate_take_notice(struct gate *g, const struct gatemsg *m)
{
	if (g->events->on_notice)
		g->events->on_notice(g->userdata, m->notice.text);
}

static void gate_take_console(struct gate *g, const struct gatemsg *m)
{
	gate_console_answer(g, m->console_part.last.data, m->console_part.last.len,
			    m->console_part.total, NULL);
}

/* Anything else is passed over: a gate may be newer than the daemon. */
static void (*const gate_messages[GATEMSG_TYPE_COUNT])(struct gate *g, const struct gatemsg *m) = {
	[GATEMSG_STATE] = gate_take_state,          [GATEMSG_NEED] = gate_take_need,
	[GATEMSG_FRAME] = gate_take_frame,          [GATEMSG_NOTICE] = gate_take_notice,
	[GATEMSG_CONSOLE_PART] = gate_take_console,
};

static void gate_message(struct channel *c, const struct gatemsg *m)
{
	struct gate *g = container_of(c, struct gate, channel);

	if (gate_messages[m->type])
		gate_messages[m->type](g, m);
}

/* ---- the bundle ---- */

/* SETUP: all of it the first time, and then the bundle. */
static int gate_send_setup(struct gate *g, const struct gate_bytes *bundle, struct error *err)
{
	struct gatemsg m = { .type = GATEMSG_SETUP };
	int r;

	m.setup.own_id = g->ids[GATE_NODE];
	m.setup.peer_id = g->ids[GATE_GUEST];
	m.setup.port = g->port ?: GATE_PORT;
	m.setup.bundle = *bundle;
	memcpy(m.setup.address, g->address, sizeof(g->address));
	memcpy(m.setup.token, g->token, sizeof(g->token));
	r = channel_send(&g->channel, &m, err);
	explicit_bzero(g->token, sizeof(g->token));
	explicit_bzero(m.setup.token, sizeof(m.setup.token));
	return r;
}

static void gate_bundle_changed(struct issuer_watch *w, const struct gate_bytes *bundle)
{
	struct gate *g = container_of(w, struct gate, watch_bundle);
	struct error err = ERROR_INIT;

	if (g->set_up && g->channel.fd >= 0 && gate_send_setup(g, bundle, &err) < 0)
		gate_over(g, &err);
}

/* ---- the beginning ---- */

static int gate_new(struct gate **ret, const struct gate_config *config,
		    const struct gate_events *events, void *userdata, struct error *err)
{
	struct gate *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return error_set(err, -ENOMEM, "make a gate");
	g->events = events;
	g->userdata = userdata;
	g->issuer = config->issuer;
	g->life = config->life;
	g->channel = (struct channel)CHANNEL_INIT;
	g->child = (struct isolate_child)ISOLATE_CHILD_INIT;
	loop_defer_init(&g->early, config->loop, gate_tell_end);
	issuer_watch(g->issuer, &g->watch_bundle, gate_bundle_changed);
	for (size_t i = 0; i < GATE_WHOSE_COUNT; i++)
		g->needs[i].gate = g;
	r = issuer_node_id(g->issuer, g->ids[GATE_NODE], err);
	if (r == 0)
		r = issuer_instance_id(g->issuer, config->instance, g->ids[GATE_GUEST], err);
	if (r < 0) {
		(void)gate_free(g);
		return r;
	}
	*ret = g;
	return 0;
}

static void gate_freep(struct gate **g)
{
	*g = gate_free(*g);
}

static int gate_open(struct gate *g, const struct gate_config *config, struct error *err)
{
	static const struct channel_ops ops = { .on_message = gate_message,
						.on_end = gate_channel_end };
	int fd = unix_connect(config->dir_fd, GATE_SOCK_CONTROL, SOCK_SEQPACKET, err);

	if (fd < 0)
		return fd;
	channel_init(&g->channel, config->loop, fd, &ops);
	return 0;
}

/* A gate that has the same already passes it over. */
static void gate_bundle(void *userdata, const struct gate_bytes *bytes, const struct error *err)
{
	struct gate *g = userdata;

	if (!err)
		gate_bundle_changed(&g->watch_bundle, bytes);
}

static int gate_ask_bundle(struct gate *g, struct error *err)
{
	int r = issuer_bundle(g->issuer, gate_bundle, g);

	return r < 0 ? error_set(err, r, "ask for the trust bundle") : 0;
}

int gate_connect(struct gate **ret, const struct gate_config *config,
		 const struct gate_events *events, void *userdata, struct error *err)
{
	_cleanup_(gate_freep) struct gate *g = NULL;
	int r = gate_new(&g, config, events, userdata, err);

	if (r < 0)
		return r;
	r = gate_open(g, config, err);
	/* By the daemon before; where it did not come to that, the bundle is the first one. A
	 * change that it has not heard of is told once the authority is first asked. */
	g->set_up = true;
	if (r == 0)
		r = gate_ask_bundle(g, err);
	if (r == -ECONNREFUSED || r == -ENOENT)
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "the gate of this virtual machine is gone");
	if (r < 0)
		return r;
	*ret = TAKE_PTR(g);
	return 0;
}

/* The bundle has come: the gate is told who it is. */
static void gate_set_up(void *userdata, const struct gate_bytes *bytes, const struct error *err)
{
	struct gate *g = userdata;
	struct error why = ERROR_INIT;
	int r = bytes ? gate_send_setup(g, bytes, &why) : error_copy(&why, err);

	g->set_up = r == 0;
	if (r < 0)
		gate_over(g, &why);
}

static int gate_spawn(struct gate *g, const struct gate_start *start, const int *fds, size_t n_fds,
		      struct error *err)
{
	_cleanup_str_ char *program = strdup(start->program), *title = strdup(start->title);
	char uid[16], gid[16], patience[16], role[8];
	char *const argv[] = { program, role, uid, gid, title, patience, NULL };
	const struct channel_spawn spec = { .argv = argv,
					    .net_fd = start->net_fd,
					    .cgroup_fd = start->cgroup_fd,
					    .fds = fds,
					    .n_fds = n_fds };

	if (!program || !title)
		return error_set(err, -ENOMEM, "start nacre-gate");
	(void)str_copy(role, sizeof(role), start->boot_fd < 0 ? "far" : "node");
	(void)str_printf(uid, sizeof(uid), "%u", start->uid);
	(void)str_printf(gid, sizeof(gid), "%u", start->gid);
	(void)str_copy(patience, sizeof(patience), start->patience ?: GUESTGATE_PATIENCE);
	return channel_spawn(&spec, &g->child, err);
}

static int gate_begin(struct gate *g, const struct gate_config *config,
		      const struct gate_start *start, struct error *err)
{
	_cleanup_fd_ int rpc_fd = -1, control_fd = -1;
	int r;

	rpc_fd = unix_listen(config->dir_fd, GATE_SOCK_RPC, SOCK_STREAM, err);
	if (rpc_fd < 0)
		return rpc_fd;
	control_fd = unix_listen(config->dir_fd, GATE_SOCK_CONTROL, SOCK_SEQPACKET, err);
	if (control_fd < 0)
		return control_fd;
	r = gate_open(g, config, err);
	if (r == 0) {
		const int fds[] = { rpc_fd, control_fd, start->boot_fd, start->console_fd };

		r = gate_spawn(g, start, fds, start->boot_fd < 0 ? 2 : ARRAY_SIZE(fds), err);
	}
	if (r < 0)
		return r;
	loop_child_init(&g->watch, config->loop, g->child.pidfd, gate_child_end);
	g->watched = true;
	r = issuer_bundle(g->issuer, gate_set_up, g);
	return r < 0 ? error_set(err, r, "ask for the trust bundle") : 0;
}

int gate_start(struct gate **ret, const struct gate_config *config, const struct gate_start *start,
	       const struct gate_events *events, void *userdata, struct error *err)
{
	_cleanup_(gate_freep) struct gate *g = NULL;
	int r = gate_new(&g, config, events, userdata, err);

	if (r < 0)
		return r;
	memcpy(g->address, start->address, sizeof(g->address));
	memcpy(g->token, start->token, sizeof(g->token));
	g->port = start->port;
	r = gate_begin(g, config, start, err);
	if (r < 0) {
		/* It serves nobody. */
		if (g->child.pidfd >= 0)
			(void)pidfd_kill(g->child.pidfd, SIGKILL);
		return error_wrap(err, r, "start the gate of a virtual machine");
	}
	*ret = TAKE_PTR(g);
	return 0;
}

struct gate *gate_free(struct gate *g)
{
	if (!g)
		return NULL;
	issuer_forget(g->issuer, &g->needs[GATE_NODE]);
	issuer_forget(g->issuer, &g->needs[GATE_GUEST]);
	issuer_forget(g->issuer, g);
	issuer_unwatch(&g->watch_bundle);
	channel_done(&g->channel);
	if (g->watched)
		loop_child_done(&g->watch);
	isolate_child_done(&g->child);
	loop_defer_done(&g->early);
	explicit_bzero(g->token, sizeof(g->token));
	free(g);
	return NULL;
}

/* ---- what the daemon says ---- */

pid_t gate_pid(const struct gate *g)
{
	return g->child.pid;
}

void gate_end(struct gate *g)
{
	static const struct gatemsg m = { .type = GATEMSG_END };

	if (g->channel.fd >= 0)
		(void)channel_send(&g->channel, &m, NULL);
}

void gate_kill(struct gate *g)
{
	assert(g->child.pidfd >= 0);
	(void)pidfd_kill(g->child.pidfd, SIGKILL);
}

int gate_send(struct gate *g, const uint8_t *frame, size_t len)
{
	const struct gatemsg m = { .type = GATEMSG_FRAME, .frame = { { frame, len } } };

	return g->channel.fd >= 0 ? channel_send(&g->channel, &m, NULL) : -EPIPE;
}

int gate_console(struct gate *g, gate_console_fn done, void *userdata)
{
	static const struct gatemsg m = { .type = GATEMSG_CONSOLE };
	int r;

	if (g->console_done)
		return -EBUSY;
	r = g->channel.fd >= 0 ? channel_send(&g->channel, &m, NULL) : -EPIPE;
	if (r < 0)
		return r;
	g->console_done = done;
	g->console_userdata = userdata;
	return 0;
}
