/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_FD_H
#define NACRE_BASE_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/macros.h"
#include "base/memory/buf.h"

/* Descriptors: an owned one starts as -1, is O_CLOEXEC, and is closed where its scope ends. */

/* Closes fd where it is >= 0; returns -1, keeps errno. */
int fd_close(int fd);

static inline void fd_closep(int *fd)
{
	*fd = fd_close(*fd);
}
#define _cleanup_fd_ _cleanup_(fd_closep)

/*
 * Opens each of 0, 1 and 2 that is closed on /dev/null. The first call of each program: a caller
 * may have closed a standard stream, and the first descriptor that the program opened, of a
 * directory of the host for example, would become that stream here and in a container. A negative
 * errno where /dev/null cannot be opened or is another file: the program, whose name the complaint
 * on standard error begins with, must end.
 */
int fd_open_standard(const char *program);

/* A copy with O_CLOEXEC, or a negative errno. */
int fd_copy(int fd);
int fd_set_nonblock(int fd, bool on);
int fd_set_cloexec(int fd, bool on);

/* Reads or writes all of it, over EINTR and short counts. Reading: -EPIPE where the end came early.
 */
int fd_read_full(int fd, void *data, size_t len);
int fd_write_full(int fd, const void *data, size_t len);

/* Appends what is left of fd to b; -EFBIG past `max` bytes. */
int fd_read_all(int fd, size_t max, struct buf *b);
/* The same for a file by name; 0 or a negative errno. */
int fd_read_file(int dir_fd, const char *name, size_t max, struct buf *b);
/* A file of the kernel (cgroup, proc): one write() of the string. */
int fd_write_file(int dir_fd, const char *name, const char *text);

/* The names in a directory (without "." and ".."), as a strv, NULL for none; dir_fd stays open. */
int fd_list_dir(int dir_fd, char ***ret);

/* A pidfd for pid; -ESRCH where there is none. A caller must know that pid cannot have been used
 * again. */
int pidfd_of(pid_t pid);
int pidfd_kill(int pidfd, int sig);
/* Whether its process has ended, reaped or not. */
bool pidfd_has_ended(int pidfd);
/* Start time of a process in clock ticks since boot (field 22 of /proc/PID/stat): with the pid it
 * names a process for good. proc_fd: a descriptor of a /proc, or -1 for "/proc". */
int process_start_time(int proc_fd, pid_t pid, unsigned long long *ret);

#endif
