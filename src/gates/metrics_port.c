/* SPDX-License-Identifier: Apache-2.0 */
#include "gates/metrics_port.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "gates/channel.h"
#include "gates/front.h"
#include "loop/loop.h"
#include "wire/message/gatemsg.h"

#define METRICS_PORT_RETRY (500 * NSEC_PER_MSEC)

struct metrics_port {
	struct metrics_port_config config;
	char *program, *address;
	struct sockaddr_storage socket_address;
	socklen_t socket_len;
	int listen_fd;
	struct isolate_child child;
	struct loop_child watch;
	struct channel channel;
	struct loop_timer retry;
	bool running;
	int complained; /* about the address: the errno; 0: not */
};

bool metrics_port_address_is_valid(const char *text)
{
	struct sockaddr_storage address;
	socklen_t len;

	return front_address_read(text, &address, &len) == 0 && address.ss_family != AF_UNIX &&
	       !front_address_is_any(&address);
}

/* ---- the process ---- */

static void metrics_port_release(struct metrics_port *p)
{
	channel_done(&p->channel);
	loop_child_done(&p->watch);
	isolate_child_done(&p->child);
	p->listen_fd = fd_close(p->listen_fd);
	p->running = false;
}

static void metrics_port_child_end(struct loop_child *watch, int code, int status)
{
	struct metrics_port *p = container_of(watch, struct metrics_port, watch);
	struct error err = ERROR_INIT;
	int exit_code;

	if (isolate_child_report(&p->child, &exit_code, &err) == 0)
		(void)error_refuse(&err, ERROR_FAULT, "it ended (%s %d)",
				   code == CLD_EXITED ? "status" : "signal", status);
	log_warn("the gate of the metrics has ended; it is started again",
		 LOG_STR("address", p->address), LOG_ERR(&err));
	metrics_port_release(p);
	loop_timer_set(&p->retry, METRICS_PORT_RETRY);
}

static void metrics_port_message(struct channel *c, const struct gatemsg *m)
{
	struct metrics_port *p = container_of(c, struct metrics_port, channel);

	if (m->type == GATEMSG_SCRAPE && *c->passed_fd >= 0)
		p->config.on_scrape(p->config.userdata, TAKE_FD(*c->passed_fd));
}

/* How it ended is told when it is reaped. */
static void metrics_port_channel_end(struct channel *c, const struct error *err)
{
	struct metrics_port *p = container_of(c, struct metrics_port, channel);

	(void)err;
	channel_done(&p->channel);
	if (p->running)
		(void)pidfd_kill(p->child.pidfd, SIGKILL);
}

static int metrics_port_spawn(struct metrics_port *p, int sock_fd, struct error *err)
{
	const int fds[] = { sock_fd, p->listen_fd };

	return channel_spawn_role(p->program, "metrics", p->config.uid, p->config.gid, fds,
				  ARRAY_SIZE(fds), &p->child, err);
}

static int metrics_port_start(struct metrics_port *p, struct error *err)
{
	static const struct channel_ops ops = { .on_message = metrics_port_message,
						.on_end = metrics_port_channel_end };
	_cleanup_fd_ int ours = -1, theirs = -1;
	int r = channel_pair(&ours, &theirs, err);

	if (r == 0)
		r = metrics_port_spawn(p, theirs, err);
	if (r < 0)
		return r;
	p->running = true;
	loop_child_init(&p->watch, p->config.loop, p->child.pidfd, metrics_port_child_end);
	channel_init(&p->channel, p->config.loop, TAKE_FD(ours), &ops);
	return 0;
}

static void metrics_port_try(struct loop_timer *t)
{
	struct metrics_port *p = container_of(t, struct metrics_port, retry);
	struct error err = ERROR_INIT;
	int r = front_listen_at(&p->socket_address, p->socket_len);

	p->listen_fd = r;
	if (r < 0)
		(void)error_set(&err, r, "listen at %s", p->address);
	else
		r = metrics_port_start(p, &err);
	if (r >= 0) {
		p->complained = 0;
		log_info("listening for scrapes of metrics", LOG_STR("address", p->address));
		return;
	}
	if (p->complained != err.code)
		log_error("nobody can scrape this node's metrics; it is tried again",
			  LOG_STR("address", p->address), LOG_ERR(&err));
	p->complained = err.code;
	p->listen_fd = fd_close(p->listen_fd);
	loop_timer_set(&p->retry, METRICS_PORT_RETRY);
}

int metrics_port_new(struct metrics_port **ret, const struct metrics_port_config *config)
{
	struct metrics_port *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->config = *config;
	p->listen_fd = -1;
	p->child = (struct isolate_child)ISOLATE_CHILD_INIT;
	p->channel = (struct channel)CHANNEL_INIT;
	loop_timer_init(&p->retry, config->loop, metrics_port_try);
	p->program = strdup(config->program);
	p->address = strdup(config->address);
	r = !p->program || !p->address
		    ? -ENOMEM
		    : front_address_read(p->address, &p->socket_address, &p->socket_len);
	if (r < 0) {
		(void)metrics_port_free(p);
		return r;
	}
	loop_timer_set(&p->retry, 0);
	*ret = p;
	return 0;
}

struct metrics_port *metrics_port_free(struct metrics_port *p)
{
	if (!p)
		return NULL;
	loop_timer_done(&p->retry);
	if (p->running) {
		(void)pidfd_kill(p->child.pidfd, SIGKILL);
		metrics_port_release(p);
	}
	p->listen_fd = fd_close(p->listen_fd);
	free(p->program);
	free(p->address);
	free(p);
	return NULL;
}
