/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "isolate/spawn/spawn.h"
#include "oci/cmd/report.h"
#include "oci/config/given.h"

bool hooks_has(const struct oci_config *config, enum oci_hook_kind kind)
{
	return config->hooks && config->hooks->lists[kind].n > 0;
}

/* The state as a file that is read from its beginning. */
static int hook_input(const char *state, struct error *err)
{
	_cleanup_fd_ int fd = memfd_create("state", MFD_CLOEXEC);

	if (fd < 0)
		return error_set(err, -errno, "make the input of a hook");
	if (fd_write_full(fd, state, strlen(state)) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return error_set(err, -errno, "write the input of a hook");
	return TAKE_FD(fd);
}

/*
 * A program is executed by descriptor, since its first argument may be another word than its path.
 * A script cannot: its interpreter opens it by name, and drops its first argument anyway; *ret
 * stays as it is.
 */
static int hook_open(const struct oci_hook *h, int *ret, struct error *err)
{
	_cleanup_fd_ int fd = given_open(h->path, O_RDONLY, 0);
	char mark[2] = "";

	if (fd < 0)
		return error_set(err, fd, "open");
	if (pread(fd, mark, sizeof(mark), 0) == 2 && mark[0] == '#' && mark[1] == '!')
		return 0;
	*ret = TAKE_FD(fd);
	return 0;
}

/* Until the hook has ended; killed past its time. */
static int hook_wait(const struct isolate_child *child, const struct oci_hook *h, struct error *err)
{
	nsec_t end = h->timeout.set ? clock_mono() + (nsec_t)h->timeout.value * NSEC_PER_SEC
				    : NSEC_NEVER;
	siginfo_t info = { .si_pid = 0 };
	bool late = false;
	int r;

	for (;;) {
		struct pollfd p = { .fd = child->pidfd, .events = POLLIN };
		nsec_t now = clock_mono(), left = end > now ? end - now : 0;
		int ms = (int)MIN(left / NSEC_PER_MSEC + 1, (nsec_t)INT32_MAX);

		r = poll(&p, 1, end == NSEC_NEVER || late ? -1 : ms);
		if (r > 0)
			break;
		if (r == 0 && clock_mono() >= end) {
			late = true;
			(void)pidfd_kill(child->pidfd, SIGKILL);
		}
	}
	do
		r = waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED);
	while (r < 0 && errno == EINTR);
	if (late)
		return error_refuse(err, ERROR_DEADLINE, "did not end within %lld s",
				    (long long)h->timeout.value);
	if (r < 0)
		return error_set(err, -errno, "wait");
	if (info.si_code != CLD_EXITED)
		return error_refuse(err, ERROR_FAULT, "was killed by signal %d", info.si_status);
	if (info.si_status != 0)
		return error_refuse(err, ERROR_FAULT, "exit status %d", info.si_status);
	return 0;
}

/* Without no_new_privs the filter is set by now, and inherited. The listener is the program's. */
static void hook_confine(struct isolate_plan *plan, const struct isolate_plan *by)
{
	if (!by || !by->no_new_privs)
		return;
	plan->no_new_privs = true;
	plan->seccomp = by->seccomp;
	plan->seccomp_flags = by->seccomp_flags & ~(unsigned)SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
}

/* What a hook runs with, beside its own entry. */
struct hook_place {
	int input_fd;
	int exec_fd; /* or -1: by its path */
	bool inside;
	const struct isolate_plan *confined_by; /* or NULL */
};

static int hook_spawn(const struct oci_hook *h, const struct hook_place *place, struct error *err)
{
	char *const none[] = { NULL };
	char *const path_only[] = { (char *)(uintptr_t)h->path, NULL };
	struct isolate_child child = ISOLATE_CHILD_INIT;
	const char *args[OCI_HOOK_ARGS_MAX + 1];
	struct isolate_plan plan;
	int r, status = 0;

	for (size_t i = 0; i < h->n_args && i < OCI_HOOK_ARGS_MAX; i++)
		args[i] = h->args[i];
	args[h->n_args] = NULL;
	if (h->n_args > 0 && place->exec_fd < 0)
		args[0] = h->path;
	isolate_plan_init(&plan);
	plan.exec_fd = place->exec_fd;
	plan.argv = h->n_args > 0 ? (char *const *)(uintptr_t)args : path_only;
	plan.env = h->env ? (char *const *)(uintptr_t)h->env : none;
	plan.cwd = "/";
	plan.keep_credentials = true;
	plan.keep_oom_score = place->inside;
	plan.stdio[0] = place->input_fd;
	plan.stdio[1] = STDERR_FILENO;
	plan.stdio[2] = STDERR_FILENO;
	hook_confine(&plan, place->confined_by);
	r = isolate_spawn(&plan, &child, err);
	if (r < 0)
		return r;
	r = isolate_child_report(&child, &status, err);
	/* Reaped in any case. */
	if (r < 0)
		(void)hook_wait(&child, h, NULL);
	else
		r = hook_wait(&child, h, err);
	isolate_child_done(&child);
	return r;
}

static int hook_run(const struct oci_hook *h, enum oci_hook_kind kind, const char *state,
		    const struct isolate_plan *inside, struct error *err)
{
	_cleanup_fd_ int input_fd = hook_input(state, err), exec_fd = -1;
	struct hook_place place = { .input_fd = input_fd, .inside = inside };
	int r;

	if (input_fd < 0)
		return input_fd;
	r = hook_open(h, &exec_fd, err);
	if (r < 0)
		return r;
	place.exec_fd = exec_fd;
	if (kind == OCI_HOOK_START_CONTAINER)
		place.confined_by = inside;
	return hook_spawn(h, &place, err);
}

static int hooks_wrap(enum oci_hook_kind kind, size_t i, const struct oci_hook *h,
		      struct error *err)
{
	return error_wrap(err, -EIO, "hook %s[%zu] (%s)", oci_hook_names[kind], i, h->path);
}

int hooks_run(const struct oci_config *config, enum oci_hook_kind kind, const char *state,
	      const struct isolate_plan *inside, struct error *err)
{
	for (size_t i = 0; hooks_has(config, kind) && i < config->hooks->lists[kind].n; i++) {
		const struct oci_hook *h = &config->hooks->lists[kind].hooks[i];

		if (hook_run(h, kind, state, inside, err) < 0)
			return hooks_wrap(kind, i, h, err);
	}
	return 0;
}

void hooks_run_all(const struct oci_config *config, enum oci_hook_kind kind, const char *state)
{
	for (size_t i = 0; hooks_has(config, kind) && i < config->hooks->lists[kind].n; i++) {
		const struct oci_hook *h = &config->hooks->lists[kind].hooks[i];
		struct error err = ERROR_INIT;

		if (hook_run(h, kind, state, NULL, &err) < 0) {
			(void)hooks_wrap(kind, i, h, &err);
			report_warning("%s", error_text(&err));
		}
	}
}
