/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/probe/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"

/* What a console says is kept as far as a marker needs it: this much, the end of it. */
#define PROBE_CONSOLE_MAX 512
#define PROBE_READS_PER_TURN 16

struct probe {
	struct vm *vm;
	const char *marker;
	probe_fn fn;
	void *owner;
	struct loop_timer late;
	struct loop_fd console, port;
	int console_fd, port_fd;
	char said[PROBE_CONSOLE_MAX + 1];
	size_t n_said;
	nsec_t began;
	nsec_t took; /* until it was up */
	bool up, late_is_over;
};

static void probe_is_up(struct probe *p)
{
	if (p->up)
		return;
	p->up = true;
	p->took = clock_mono() - p->began;
	p->vm->driver->kill(p->vm);
}

static void probe_on_port(struct loop_fd *source, unsigned events)
{
	struct probe *p = container_of(source, struct probe, port);
	char byte;

	if (read(p->port_fd, &byte, 1) == 1)
		probe_is_up(p);
	loop_fd_done(&p->port);
}

/* False where nothing is left, or will ever come. */
static bool probe_read_console(struct probe *p)
{
	char data[PROBE_CONSOLE_MAX];
	size_t over;
	ssize_t n;

	n = read(p->console_fd, data, sizeof(data));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		loop_fd_done(&p->console);
		return false;
	}
	for (ssize_t i = 0; i < n; i++)
		data[i] = data[i] ? data[i] : ' ';
	over = p->n_said + (size_t)n > PROBE_CONSOLE_MAX ? p->n_said + (size_t)n - PROBE_CONSOLE_MAX
							 : 0;
	memmove(p->said, p->said + over, p->n_said - over);
	p->n_said -= over;
	memcpy(p->said + p->n_said, data, (size_t)n);
	p->n_said += (size_t)n;
	p->said[p->n_said] = '\0';
	if (p->marker && strstr(p->said, p->marker))
		probe_is_up(p);
	return true;
}

static void probe_on_console(struct loop_fd *source, unsigned events)
{
	struct probe *p = container_of(source, struct probe, console);

	for (int i = 0; i < PROBE_READS_PER_TURN && probe_read_console(p); i++)
		;
}

static void probe_on_late(struct loop_timer *source)
{
	struct probe *p = container_of(source, struct probe, late);

	p->late_is_over = true;
	p->vm->driver->kill(p->vm);
}

static void probe_judge(const struct probe *p, const struct vm_end *end, struct probe_record *ret)
{
	*ret = (struct probe_record){ .verdict = PROBE_NO_GUEST };
	if (p->up || end->cause == VM_END_POWERED_OFF) {
		nsec_t took = p->up ? p->took : clock_mono() - p->began;

		ret->verdict = PROBE_WORKS;
		(void)snprintf(ret->text, sizeof(ret->text), "a guest came up within %u ms",
			       (unsigned)(took / NSEC_PER_MSEC));
		return;
	}
	if (p->late_is_over)
		(void)snprintf(ret->text, sizeof(ret->text),
			       "KVM opens but no guest comes up: it said nothing for %u s",
			       (unsigned)(PROBE_WAIT / NSEC_PER_SEC));
	else
		(void)snprintf(ret->text, sizeof(ret->text),
			       "KVM opens but no guest comes up: %.180s", end->text);
	str_clean(ret->text);
}

static void probe_on_end(struct vm *vm, const struct vm_end *end, void *owner)
{
	struct probe *p = owner;
	struct probe_record record;

	loop_timer_stop(&p->late);
	while (p->console_fd >= 0 && !p->up && probe_read_console(p))
		;
	loop_fd_done(&p->console);
	loop_fd_done(&p->port);
	probe_judge(p, end, &record);
	p->vm = vm->driver->free(vm);
	p->fn(p, &record, p->owner);
}

static const struct vm_events probe_events = { .on_end = probe_on_end };

struct probe *probe_free(struct probe *p)
{
	pid_t pid;

	if (!p)
		return NULL;
	loop_timer_done(&p->late);
	loop_fd_done(&p->console);
	loop_fd_done(&p->port);
	if (p->vm) {
		pid = p->vm->driver->pid(p->vm);
		p->vm->driver->kill(p->vm);
		p->vm = p->vm->driver->free(p->vm);
		if (pid > 0)
			(void)waitpid(pid, NULL, 0);
	}
	(void)fd_close(p->console_fd);
	(void)fd_close(p->port_fd);
	free(p);
	return NULL;
}

static void probe_freep(struct probe **p)
{
	*p = probe_free(*p);
}

/* A socket whose other end is the machine's. */
static int probe_pair(int *ret_ours, int *ret_theirs, struct error *err)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(err, -errno, "make a socket for a trial machine");
	*ret_ours = pair[0];
	*ret_theirs = pair[1];
	r = fd_set_nonblock(pair[0], true);
	return r < 0 ? error_set(err, r, "make a socket for a trial machine") : 0;
}

int probe_start(struct probe **ret, struct loop *l, const struct probe_trial *trial, probe_fn fn,
		void *owner, struct error *err)
{
	_cleanup_(probe_freep) struct probe *p = calloc(1, sizeof(*p));
	_cleanup_fd_ int console_fd = -1, port_fd = -1;
	struct vm_spec spec = *trial->machine;
	struct vm_port port = { .name = trial->port };
	int r;

	if (!p)
		return error_set(err, -ENOMEM, "try a machine");
	*p = (struct probe){ .console_fd = -1, .port_fd = -1, .fn = fn, .owner = owner };
	p->marker = trial->marker;
	r = probe_pair(&p->console_fd, &console_fd, err);
	if (r == 0)
		r = probe_pair(&p->port_fd, &port_fd, err);
	if (r < 0)
		return r;
	if (trial->n_hello && send(p->port_fd, trial->hello, trial->n_hello, MSG_NOSIGNAL) < 0)
		return error_set(err, -errno, "greet a trial machine");
	port.fd = port_fd;
	spec.console_fd = console_fd;
	spec.ports = &port;
	spec.n_ports = trial->port ? 1 : 0;
	p->began = clock_mono();
	r = trial->driver->start(&p->vm, l, &spec, &probe_events, p, err);
	if (r < 0)
		return error_wrap(err, r, "try a machine");
	loop_timer_init(&p->late, l, probe_on_late);
	loop_timer_set(&p->late, PROBE_WAIT);
	loop_fd_init(&p->console, l, p->console_fd, LOOP_READ, probe_on_console);
	loop_fd_init(&p->port, l, p->port_fd, LOOP_READ, probe_on_port);
	*ret = TAKE_PTR(p);
	return 0;
}
