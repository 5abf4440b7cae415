/* SPDX-License-Identifier: Apache-2.0 */
#include "init/guest_start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "init/guest_self.h"
#include "instance/spawn.h"
#include "wire/message/guestgate.h"

#define START_GATE "/libexec/nacre/nacre-gate"

int guest_programs_open(struct guest_programs *ret, struct error *err)
{
	_cleanup_fd_ int exe_fd = -1;
	int gate_fd;

	exe_fd = instance_open_exe(err);
	if (exe_fd < 0)
		return exe_fd;
	gate_fd = sysio_openat(AT_FDCWD, START_GATE, O_PATH | O_CLOEXEC, 0);
	if (gate_fd < 0 && errno != ENOENT)
		return error_set(err, -errno, "open " START_GATE);
	*ret = (struct guest_programs){ .exe_fd = TAKE_FD(exe_fd), .gate_fd = gate_fd };
	return 0;
}

/* Whether the program runs; a child of which it does not is reaped with all others. */
static int start_report(struct isolate_child *child, struct error *err)
{
	int exit_status;

	return isolate_child_report(child, &exit_status, err);
}

int guest_start_keeper(const struct guest_programs *programs, const struct guest_groups *groups,
		       const char *title, int dir_fd, struct isolate_child *ret, struct error *err)
{
	const struct instance_spawn spec = {
		.title = title,
		.dir_fd = dir_fd,
		.cgroup_fd = groups->layer_fd,
		.exe_fd = programs->exe_fd,
		.in_guest = true,
	};
	int r = instance_spawn(&spec, ret, err);

	if (r == 0)
		r = start_report(ret, err);
	return r < 0 ? error_wrap(err, r, "start the keeper") : 0;
}

/* A file in memory that nobody can change, read from its start. */
static int start_boot_file(const struct bootmsg_blob *frame, struct error *err)
{
	_cleanup_fd_ int fd = memfd_create("boot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return error_set(err, -errno, "make a file in memory");
	r = fd_write_full(fd, frame->data, frame->len);
	if (r < 0)
		return error_set(err, r, "write to a file in memory");
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0 ||
	    lseek(fd, 0, SEEK_SET) < 0)
		return error_set(err, -errno, "seal a file in memory");
	return TAKE_FD(fd);
}

int guest_start_gate(const struct guest_programs *programs, const struct guest_groups *groups,
		     const struct guest_boot *b, int dir_fd, struct isolate_child *ret,
		     struct error *err)
{
	const char *patience = getenv(GUESTGATE_PATIENCE_WORD);
	const char *lease = getenv(GUESTGATE_LEASE_WORD);
	const char *const argv[] = { "nacre-gate", "guest", patience ?: GUESTGATE_PATIENCE,
				     lease ?: GUESTGATE_LEASE, NULL };
	static const char *const env[] = { NULL };
	_cleanup_fd_ int listen_fd = -1, boot_fd = -1;
	struct isolate_plan plan;
	int r;

	listen_fd = guest_net_listen(b->boot, b->device, GUESTGATE_PORT, err);
	if (listen_fd < 0)
		return listen_fd;
	boot_fd = start_boot_file(b->frame, err);
	if (boot_fd < 0)
		return boot_fd;
	isolate_plan_init(&plan);
	plan.cgroup_fd = groups->gate_fd;
	plan.exec_fd = programs->gate_fd;
	plan.argv = (char *const *)(uintptr_t)argv;
	plan.env = (char *const *)(uintptr_t)env;
	/* The keeper's socket is for uid 0, and that is all that it needs of it. */
	plan.caps = 0;
	plan.no_new_privs = true;
	plan.new_session = true;
	plan.stdio[1] = -1;
	plan.stdio[0] = -1;
	plan.stdio[2] = STDERR_FILENO;
	plan.keep_fds[GUESTGATE_FD_LISTEN - 3] = listen_fd;
	plan.keep_fds[GUESTGATE_FD_BOOT - 3] = boot_fd;
	plan.keep_fds[GUESTGATE_FD_KEEPER - 3] = dir_fd;
	plan.n_keep_fds = GUESTGATE_FD_END_OF_LIST - 3;
	r = isolate_spawn(&plan, ret, err);
	if (r == 0)
		r = start_report(ret, err);
	return r < 0 ? error_wrap(err, r, "start the gate") : 0;
}
