/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/qemu/qemu_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "io/unix.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/spawn/spawn.h"
#include "vm/driver/firmware.h"
#include "vm/driver/jail.h"
#include "vm/driver/tsc.h"
#include "vm/qemu/qemu.h"
#include "vm/qemu/qemu_end.h"
#include "vm/qemu/qemu_io_error.h"
#include "vm/qemu/qemu_move.h"
#include "vm/qemu/qemu_slots.h"
#include "vm/qemu/qmp.h"

/*
 * The process and the conversation end separately, and what the conversation still holds when the
 * process is gone (SHUTDOWN with its reason) is wanted: so the end is told when both are over, or
 * QEMU_LAST_WAIT behind that of the process.
 */

#define QEMU_SOCKET "qmp.sock"
#define QEMU_WORDS "vmm.err"
/* What the kernel calls it, whatever it emulates. */
#define QEMU_COMM "qemu-"
#define QEMU_LAST_WAIT (2 * NSEC_PER_SEC)
#define QEMU_WORDS_PER_TURN 16

struct qemu {
	struct vm vm;
	const struct vm_events *events;
	void *owner;
	enum vm_state state;
	struct isolate_child child;
	struct loop_child watch;
	struct loop_fd report;
	struct loop_fd words;
	struct loop_timer last;
	struct loop_defer end;
	struct qmp *qmp;
	struct slots slots;
	struct move move;
	int state_fd; /* to begin with; -1: none */
	bool held;    /* it stays where it was saved */
	vm_done_fn saved;
	void *saved_data;
	bool adopted;
	bool gone; /* the process */
	struct qemu_seen seen;
	int words_fd;
	char said[VM_LAST_WORDS_MAX + 1]; /* the end of the error stream */
	size_t n_said;
};

/* A machine that nothing may be written to is the same object. */
static struct qemu *qemu_of(const struct vm *vm)
{
	return container_of((struct vm *)(uintptr_t)vm, struct qemu, vm);
}

/* ---- its last words ---- */

static void qemu_keep_words(struct qemu *q, const char *data, size_t n)
{
	size_t over;

	if (n > VM_LAST_WORDS_MAX) {
		data += n - VM_LAST_WORDS_MAX;
		n = VM_LAST_WORDS_MAX;
	}
	over = q->n_said + n > VM_LAST_WORDS_MAX ? q->n_said + n - VM_LAST_WORDS_MAX : 0;
	memmove(q->said, q->said + over, q->n_said - over);
	q->n_said -= over;
	memcpy(q->said + q->n_said, data, n);
	q->n_said += n;
}

/* 0 where nothing is left for now, or the other end is closed. */
static int qemu_read_words(struct qemu *q)
{
	char data[4096];
	ssize_t n;

	do
		n = read(q->words_fd, data, sizeof(data));
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 0 : -EPIPE;
	qemu_keep_words(q, data, (size_t)n);
	return 1;
}

static void qemu_on_words(struct loop_fd *source, unsigned events)
{
	struct qemu *q = container_of(source, struct qemu, words);
	int r = 1;

	for (int i = 0; i < QEMU_WORDS_PER_TURN && r > 0; i++)
		r = qemu_read_words(q);
	if (r < 0)
		loop_fd_done(&q->words);
}

/* Printable, in lines, without the last line's end. */
static void qemu_clean_words(struct qemu *q)
{
	char *line = q->said;

	while (q->n_said && q->said[q->n_said - 1] == '\n')
		q->n_said--;
	for (size_t i = 0; i < q->n_said; i++)
		if (!q->said[i])
			q->said[i] = '?';
	q->said[q->n_said] = '\0';
	while (line) {
		char *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		str_clean(line);
		if (end)
			*end++ = '\n';
		line = end;
	}
	for (char *c = q->said; *c; c++)
		if ((unsigned char)*c > '~')
			*c = '?';
}

/* ---- its end ---- */

static void qemu_on_end(struct loop_defer *source)
{
	struct qemu *q = container_of(source, struct qemu, end);
	struct vm_end end;
	int turns = QEMU_WORDS_PER_TURN;

	loop_timer_stop(&q->last);
	while (turns-- && q->words_fd >= 0 && qemu_read_words(q) > 0)
		;
	qemu_clean_words(q);
	qemu_end_judge(&end, &q->seen, q->said);
	q->state = VM_ENDED;
	q->qmp = qmp_free(q->qmp);
	q->slots.qmp = NULL;
	move_break(&q->move);
	if (q->events->on_end)
		q->events->on_end(&q->vm, &end, q->owner);
}

static void qemu_look_for_end(struct qemu *q)
{
	if (q->gone && !q->qmp)
		loop_defer_schedule(&q->end);
	else if (q->gone)
		loop_timer_set(&q->last, QEMU_LAST_WAIT);
}

static void qemu_read_report(struct qemu *q)
{
	int exit_code;

	if (q->child.report_fd < 0)
		return;
	loop_fd_done(&q->report);
	(void)isolate_child_report(&q->child, &exit_code, &q->seen.failed);
	q->child.report_fd = fd_close(q->child.report_fd);
}

static void qemu_on_report(struct loop_fd *source, unsigned events)
{
	qemu_read_report(container_of(source, struct qemu, report));
}

static void qemu_on_child(struct loop_child *source, int code, int status)
{
	struct qemu *q = container_of(source, struct qemu, watch);

	qemu_read_report(q);
	q->gone = true;
	q->seen.code = code;
	q->seen.status = status;
	qemu_look_for_end(q);
}

/* ---- what it says ---- */

static void qemu_enter(struct qemu *q, enum vm_state state)
{
	if (q->state == state || q->state == VM_STARTING || q->state == VM_ENDED)
		return;
	q->state = state;
	if (q->events->on_state)
		q->events->on_state(&q->vm, state, q->owner);
}

static void qemu_on_shutdown(struct qemu *q, const struct json_value *data)
{
	const struct json_value *reason = data ? json_member(data, "reason") : NULL;

	if (reason && reason->kind == JSON_STRING)
		(void)str_copy(q->seen.reason, sizeof(q->seen.reason), reason->text);
}

static void qemu_on_panic(struct qemu *q, const struct json_value *data)
{
	if (q->seen.panicked)
		return;
	q->seen.panicked = true;
	if (q->events->on_panic)
		q->events->on_panic(&q->vm, q->owner);
}

static void qemu_on_stop(struct qemu *q, const struct json_value *data)
{
	qemu_enter(q, VM_PAUSED);
}

static void qemu_on_resume(struct qemu *q, const struct json_value *data)
{
	qemu_enter(q, VM_RUNNING);
}

static void qemu_on_migration(struct qemu *q, const struct json_value *data)
{
	move_take_event(&q->move, data);
}

static void qemu_on_io_error(struct qemu *q, const struct json_value *data)
{
	struct vm_io_error e;

	if (q->events->on_io_error && qemu_io_error_read(&e, data))
		q->events->on_io_error(&q->vm, &e, q->owner);
}

static void qemu_on_event(struct qmp *qmp, const char *name, const struct json_value *data,
			  void *owner)
{
	static const struct {
		const char *name;
		void (*take)(struct qemu *q, const struct json_value *data);
	} events[] = {
		{ "SHUTDOWN", qemu_on_shutdown },   { "GUEST_PANICKED", qemu_on_panic },
		{ "STOP", qemu_on_stop },           { "RESUME", qemu_on_resume },
		{ "MIGRATION", qemu_on_migration }, { "BLOCK_IO_ERROR", qemu_on_io_error },
	};

	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (str_eq(name, events[i].name)) {
			events[i].take(owner, data);
			return;
		}
}

static void qemu_break(struct qemu *q, const struct error *err)
{
	if (!q->seen.broken.code)
		q->seen.broken = *err;
	(void)pidfd_kill(q->child.pidfd, SIGKILL);
}

/* After its end nothing more comes; before, a monitor that speaks to nobody is worth nothing. */
static void qemu_on_last(struct loop_timer *source)
{
	struct qemu *q = container_of(source, struct qemu, last);
	struct error err = ERROR_INIT;

	if (q->gone) {
		loop_defer_schedule(&q->end);
		return;
	}
	(void)error_refuse(&err, ERROR_FAULT, "it has closed its control socket");
	qemu_break(q, &err);
}

static void qemu_on_status(const struct json_value *answer, const struct error *err, void *data)
{
	struct qemu *q = data;
	const struct json_value *running =
		answer && answer->kind == JSON_OBJECT ? json_member(answer, "running") : NULL;

	if (err || q->state != VM_STARTING)
		return;
	q->seen.up = true;
	q->state =
		running && running->kind == JSON_BOOL && !running->truth ? VM_PAUSED : VM_RUNNING;
	if (q->events->on_up)
		q->events->on_up(&q->vm, q->owner);
}

static void qemu_on_disks(const struct json_value *answer, const struct error *err, void *data)
{
	struct qemu *q = data;
	struct error own = ERROR_INIT;

	if (!err && slots_learn(&q->slots, answer, &own) < 0)
		qemu_break(q, &own);
}

/* It has the state, and stands still. */
static void qemu_on_loaded(const struct error *err, void *data)
{
	static const struct qmp_command go_on = { .name = "cont", .fd = -1 };
	static const struct qmp_command status = { .name = "query-status", .fd = -1 };
	struct qemu *q = data;
	struct error own = ERROR_INIT;
	int r = 0;

	/* Of a conversation that has ended the process' end says more. */
	if (err && (!q->qmp || q->gone))
		return;
	if (err) {
		qemu_break(q, err);
		return;
	}
	if (!q->held)
		r = qmp_ask(q->qmp, &go_on, NULL, NULL, &own);
	if (r == 0)
		r = qmp_ask(q->qmp, &status, qemu_on_status, q, &own);
	if (r < 0)
		qemu_break(q, &own);
}

static void qemu_on_names(const struct json_value *answer, const struct error *err, void *data)
{
	struct qemu *q = data;
	struct error own = ERROR_INIT;

	if (!err && slots_learn_names(&q->slots, answer, &own) < 0)
		qemu_break(q, &own);
}

static void qemu_on_ready(struct qmp *qmp, void *owner)
{
	struct qemu *q = owner;
	static const struct qmp_command disks = { .name = "query-block", .fd = -1 };
	static const struct qmp_command names = { .name = "query-fdsets", .fd = -1 };
	static const struct qmp_command status = { .name = "query-status", .fd = -1 };
	struct error err = ERROR_INIT;
	int r = 0;

	if (q->state_fd >= 0) {
		r = move_begin(&q->move, qmp, MOVE_LOAD, q->state_fd, qemu_on_loaded, q, &err);
		q->state_fd = fd_close(q->state_fd);
		if (r < 0)
			qemu_break(q, &err);
		return;
	}
	if (q->adopted)
		r = qmp_ask(qmp, &disks, qemu_on_disks, q, &err);
	if (r == 0 && q->adopted)
		r = qmp_ask(qmp, &names, qemu_on_names, q, &err);
	if (r == 0)
		r = qmp_ask(qmp, &status, qemu_on_status, q, &err);
	if (r < 0)
		qemu_break(q, &err);
}

static void qemu_on_silence(struct qmp *qmp, const struct error *err, void *owner)
{
	struct qemu *q = owner;

	if (err)
		qemu_break(q, err);
	q->slots.qmp = NULL;
	q->qmp = qmp_free(q->qmp);
	move_break(&q->move);
	if (!q->gone)
		loop_timer_set(&q->last, QEMU_LAST_WAIT);
	qemu_look_for_end(q);
}

static const struct qmp_events qemu_qmp_events = {
	.on_ready = qemu_on_ready,
	.on_event = qemu_on_event,
	.on_end = qemu_on_silence,
};

/* ---- making one ---- */

static struct vm *qemu_free(struct vm *vm)
{
	struct qemu *q;

	if (!vm)
		return NULL;
	q = qemu_of(vm);
	loop_child_done(&q->watch);
	loop_fd_done(&q->report);
	loop_fd_done(&q->words);
	loop_timer_done(&q->last);
	loop_defer_done(&q->end);
	(void)qmp_free(q->qmp);
	slots_done(&q->slots);
	move_done(&q->move);
	(void)fd_close(q->state_fd);
	isolate_child_done(&q->child);
	(void)fd_close(q->words_fd);
	free(q);
	return NULL;
}

static void qemu_freep(struct qemu **q)
{
	if (*q)
		(void)qemu_free(&(*q)->vm);
}

static struct qemu *qemu_new(const struct vm_events *events, void *owner)
{
	struct qemu *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	*q = (struct qemu){
		.vm.driver = &vm_qemu,
		.events = events,
		.owner = owner,
		.child = ISOLATE_CHILD_INIT,
		.seen = { .failed = ERROR_INIT, .broken = ERROR_INIT },
		.words_fd = -1,
		.move = MOVE_INIT,
		.state_fd = -1,
	};
	return q;
}

static int check(struct error *err)
{
	_cleanup_fd_ int host_fd = jail_open_host(err);
	int fd;

	if (host_fd < 0)
		return host_fd;
	fd = rootfd_open(host_fd, QEMU_PROGRAM, O_PATH, 0);
	if (fd == -ENOENT)
		return error_refuse(err, ERROR_PRECONDITION,
				    "there is no %s (the package qemu-system-x86)", QEMU_PROGRAM);
	if (fd < 0)
		return error_set(err, fd, "open %s", QEMU_PROGRAM);
	(void)fd_close(fd);
	fd = firmware_open(VM_FIRMWARE_NONE, err);
	if (fd < 0)
		return fd;
	(void)fd_close(fd);
	return 0;
}

/* Of the program's file; its libraries and its firmware come and go with it. */
static int identity(uint64_t *ret)
{
	_cleanup_fd_ int host_fd = jail_open_host(NULL), fd = -1;
	struct stat st;

	if (host_fd < 0)
		return host_fd;
	fd = rootfd_open(host_fd, QEMU_PROGRAM, O_PATH, 0);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (uint64_t)st.st_ino * 31 + (uint64_t)st.st_size * 17 +
	       (uint64_t)st.st_ctim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_ctim.tv_nsec;
	return 0;
}

/* QEMU reads these by name, as its own user. */
static int qemu_check_readable(int fd, const char *what, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at the %s of a machine", what);
	if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH))
		return error_refuse(err, ERROR_PRECONDITION,
				    "the %s of a machine is no file that everybody may read", what);
	return 0;
}

/*
 * The pipe for last words. What QEMU gets is open for reading, too, so that the pipe lives as long
 * as QEMU does, whoever listens; a full one takes no more, and holds nobody up.
 */
static int qemu_open_words(struct qemu *q, int dir_fd, bool make, struct error *err)
{
	if (make && sysio_unlinkat(dir_fd, QEMU_WORDS, 0) < 0 && errno != ENOENT)
		return error_set(err, -errno, "remove an old %s", QEMU_WORDS);
	if (make && sysio_mknodat(dir_fd, QEMU_WORDS, S_IFIFO | 0600, 0) < 0)
		return error_set(err, -errno, "make %s", QEMU_WORDS);
	q->words_fd =
		sysio_openat(dir_fd, QEMU_WORDS, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW, 0);
	return q->words_fd < 0 ? error_set(err, -errno, "open %s", QEMU_WORDS) : 0;
}

static int qemu_spawn(struct qemu *q, const struct vm_spec *spec, struct error *err)
{
	_cleanup_(qemu_call_done) struct qemu_call call = QEMU_CALL_INIT;
	_cleanup_fd_ int qmp_fd = -1, firmware_fd = -1, words_fd = -1;
	struct qemu_place place = { 0 };
	struct jail jail;
	int r;

	firmware_fd = firmware_open(spec->firmware, err);
	if (firmware_fd < 0)
		return firmware_fd;
	qmp_fd = unix_listen(spec->dir_fd, QEMU_SOCKET, SOCK_STREAM, err);
	if (qmp_fd < 0)
		return qmp_fd;
	words_fd = sysio_openat(spec->dir_fd, QEMU_WORDS,
				O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW, 0);
	if (words_fd < 0)
		return error_set(err, -errno, "open %s", QEMU_WORDS);
	place.qmp_fd = qmp_fd;
	place.firmware_fd = firmware_fd;
	if (spec->accel == VM_ACCEL_EMULATED)
		place.tsc_khz = tsc_khz();
	else if (spec->accel == VM_ACCEL_EMULATED_TWICE)
		place.tsc_khz = QEMU_COUNTED_KHZ;
	r = qemu_call_make(&call, spec, &place, err);
	if (r < 0)
		return r;
	jail = (struct jail){
		.program = QEMU_PROGRAM,
		.argv = call.argv,
		.fds = call.fds,
		.n_fds = call.n_fds,
		.words_fd = words_fd,
		.net_ns_fd = spec->net_ns_fd,
		.cgroup_fd = spec->cgroup_fd,
		.uid = spec->uid,
		.gid = spec->gid,
		.fleeting = spec->fleeting,
		.kvm = spec->accel == VM_ACCEL_HARDWARE,
	};
	return jail_spawn(&jail, &q->child, err);
}

/* Speaks by the socket in dir_fd; whoever shall answer may come to it later. */
static int qemu_connect(struct qemu *q, struct loop *l, int dir_fd, struct error *err)
{
	_cleanup_fd_ int fd = unix_connect(dir_fd, QEMU_SOCKET, SOCK_STREAM, err);
	int r;

	if (fd < 0)
		return fd;
	r = qmp_new(&q->qmp, l, fd, &qemu_qmp_events, q, err);
	if (r < 0)
		return r;
	TAKE_FD(fd);
	q->slots.qmp = q->qmp;
	return 0;
}

/* From here on nothing fails: the loop brings what happens. */
static void qemu_watch(struct qemu *q, struct loop *l)
{
	loop_timer_init(&q->last, l, qemu_on_last);
	loop_defer_init(&q->end, l, qemu_on_end);
	loop_child_init(&q->watch, l, q->child.pidfd, qemu_on_child);
	if (q->child.report_fd >= 0)
		loop_fd_init(&q->report, l, q->child.report_fd, LOOP_READ, qemu_on_report);
	if (q->words_fd >= 0)
		loop_fd_init(&q->words, l, q->words_fd, LOOP_READ, qemu_on_words);
}

static void qemu_undo(struct qemu *q)
{
	if (q->child.pidfd < 0)
		return;
	(void)pidfd_kill(q->child.pidfd, SIGKILL);
	(void)waitid(P_PIDFD, (id_t)q->child.pidfd, &(siginfo_t){ 0 }, WEXITED);
}

/* Opened anew: it is read from its start, whoever else reads it. */
static int qemu_open_state(struct qemu *q, int state_fd, struct error *err)
{
	char path[64];

	if (state_fd < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", state_fd);
	q->state_fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	return q->state_fd < 0 ? error_set(err, -errno, "open the state of a machine") : 0;
}

static int start(struct vm **ret, struct loop *l, const struct vm_spec *spec,
		 const struct vm_events *events, void *owner, struct error *err)
{
	_cleanup_(qemu_freep) struct qemu *q = NULL;
	int r;

	r = vm_spec_check(spec, err);
	if (r == 0 && spec->kernel_fd >= 0)
		r = qemu_check_readable(spec->kernel_fd, "kernel", err);
	if (r == 0 && spec->initrd_fd >= 0)
		r = qemu_check_readable(spec->initrd_fd, "first root", err);
	if (r == 0)
		r = vm_room_check(spec->memory_mib, err);
	if (r < 0)
		return r;
	q = qemu_new(events, owner);
	if (!q)
		return error_set(err, -ENOMEM, "start a machine");
	slots_init(&q->slots, &q->vm, spec->n_slots, spec->writable_slots);
	q->held = spec->held;
	r = qemu_open_state(q, spec->state_fd, err);
	if (r == 0)
		r = qemu_open_words(q, spec->dir_fd, true, err);
	if (r == 0)
		r = qemu_spawn(q, spec, err);
	if (r < 0)
		return error_wrap(err, r, "start a machine");
	r = qemu_connect(q, l, spec->dir_fd, err);
	if (r < 0) {
		qemu_undo(q);
		return error_wrap(err, r, "start a machine");
	}
	qemu_watch(q, l);
	*ret = &TAKE_PTR(q)->vm;
	return 0;
}

/* -ESRCH where there is none. */
static int qemu_find(struct qemu *q, int cgroup_fd, struct error *err)
{
	pid_t pid = 0;
	int r = cgroup_find_one(cgroup_fd, QEMU_COMM, &pid, err);

	if (r < 0)
		return r;
	if (!pid)
		return error_set(err, -ESRCH, "find the machine's monitor");
	q->child.pid = pid;
	q->child.pidfd = pidfd_of(pid);
	return q->child.pidfd < 0 ? error_set(err, q->child.pidfd, "find the machine's monitor")
				  : 0;
}

static int adopt(struct vm **ret, struct loop *l, int dir_fd, int cgroup_fd,
		 const struct vm_events *events, void *owner, struct error *err)
{
	_cleanup_(qemu_freep) struct qemu *q = qemu_new(events, owner);
	int r;

	if (!q)
		return error_set(err, -ENOMEM, "take up a machine");
	q->adopted = true;
	slots_init(&q->slots, &q->vm, 0, 0);
	r = qemu_find(q, cgroup_fd, err);
	if (r == 0)
		r = qemu_connect(q, l, dir_fd, err);
	if (r < 0)
		return error_wrap(err, r, "take up a machine");
	/* Without its words it is a machine all the same. */
	(void)qemu_open_words(q, dir_fd, false, NULL);
	qemu_watch(q, l);
	*ret = &TAKE_PTR(q)->vm;
	return 0;
}

/* ---- what is asked of one ---- */

static enum vm_state state(const struct vm *vm)
{
	return qemu_of(vm)->state;
}

static pid_t pid(const struct vm *vm)
{
	const struct qemu *q = qemu_of(vm);

	return q->gone ? 0 : q->child.pid;
}

static int stop(struct vm *vm, struct error *err)
{
	static const struct qmp_command command = { .name = "system_powerdown", .fd = -1 };
	struct qemu *q = qemu_of(vm);

	if (q->state != VM_RUNNING && q->state != VM_PAUSED)
		return error_set(err, -ENOTCONN, "press the power button of a machine");
	/* It may live on for a moment without one: qemu_on_silence(). */
	if (!q->qmp)
		return error_refuse(err, ERROR_UNAVAILABLE, "the machine's monitor is gone");
	return qmp_ask(q->qmp, &command, NULL, NULL, err);
}

static void kill_vm(struct vm *vm)
{
	struct qemu *q = qemu_of(vm);

	if (q->gone)
		return;
	q->seen.asked = true;
	(void)pidfd_kill(q->child.pidfd, SIGKILL);
}

static int put_disk(struct vm *vm, unsigned slot, const struct vm_disk *disk, vm_done_fn done,
		    void *data, struct error *err)
{
	return slots_change(&qemu_of(vm)->slots, slot, disk, done, data, err);
}

static int remove_disk(struct vm *vm, unsigned slot, vm_done_fn done, void *data, struct error *err)
{
	return slots_change(&qemu_of(vm)->slots, slot, NULL, done, data, err);
}

static void qemu_on_saved(const struct error *err, void *data)
{
	struct qemu *q = data;

	q->saved(&q->vm, err, q->saved_data);
}

static int snapshot(struct vm *vm, int state_fd, vm_done_fn done, void *data, struct error *err)
{
	struct qemu *q = qemu_of(vm);
	int r;

	if (q->state != VM_RUNNING && q->state != VM_PAUSED)
		return error_set(err, -ENOTCONN, "save a machine");
	if (!q->qmp)
		return error_refuse(err, ERROR_UNAVAILABLE, "the machine's monitor is gone");
	r = move_begin(&q->move, q->qmp, MOVE_SAVE, state_fd, qemu_on_saved, q, err);
	if (r < 0)
		return r;
	q->saved = done;
	q->saved_data = data;
	return 0;
}

static int resume(struct vm *vm, struct error *err)
{
	static const struct qmp_command command = { .name = "cont", .fd = -1 };
	struct qemu *q = qemu_of(vm);

	if (!q->qmp)
		return error_refuse(err, ERROR_UNAVAILABLE, "the machine's monitor is gone");
	return qmp_ask(q->qmp, &command, NULL, NULL, err);
}

static bool slot_(const struct vm *vm, unsigned slot, const char **ret_name)
{
	const struct slots *s = &qemu_of(vm)->slots;

	*ret_name = slot < s->n ? s->slot[slot].name : "";
	return slot < s->n && s->slot[slot].filled;
}

const struct vm_driver vm_qemu = {
	.name = "qemu",
	.check = check,
	.identity = identity,
	.start = start,
	.adopt = adopt,
	.state = state,
	.pid = pid,
	.stop = stop,
	.kill = kill_vm,
	.put_disk = put_disk,
	.remove_disk = remove_disk,
	.snapshot = snapshot,
	.resume = resume,
	.slot = slot_,
	.free = qemu_free,
};
