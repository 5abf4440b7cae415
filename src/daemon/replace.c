/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

#define LOCKS_MAX ((size_t)4 << 20)

/* The process that holds the lock, as /proc/locks has it; 0: nobody that we can see. */
static pid_t lock_holder(int fd, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	char *save = NULL;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at the lock");
	r = fd_read_file(AT_FDCWD, "/proc/locks", LOCKS_MAX, &b);
	if (r < 0)
		return error_set(err, r, "read /proc/locks");
	text = buf_take_str(&b);
	if (!text)
		return error_set(err, -ENOMEM, "read /proc/locks");
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned major, minor;
		uint64_t inode;
		int pid;

		if (sscanf(line, "%*d: FLOCK %*s WRITE %d %x:%x:%" SCNu64, &pid, &major, &minor,
			   &inode) == 4 &&
		    pid > 0 && inode == st.st_ino && major == major(st.st_dev) &&
		    minor == minor(st.st_dev))
			return pid;
	}
	return 0;
}

/* By what it holds it is known again, so the number in between can be nobody else's. */
static int holder_open(int lock_fd, pid_t *ret_pid, struct error *err)
{
	_cleanup_fd_ int pidfd = -1;
	pid_t pid = lock_holder(lock_fd, err), again;

	if (pid < 0)
		return pid;
	if (pid > 0)
		pidfd = pidfd_of(pid);
	if (pid == 0 || pidfd == -ESRCH)
		return error_refuse(err, ERROR_NOT_FOUND, "nobody holds the lock");
	if (pidfd < 0)
		return error_set(err, pidfd, "open process %d", (int)pid);
	again = lock_holder(lock_fd, err);
	if (again < 0)
		return again;
	if (again != pid)
		return error_refuse(err, ERROR_NOT_FOUND, "process %d has ended", (int)pid);
	*ret_pid = pid;
	return TAKE_FD(pidfd);
}

int replace_owner(int lock_fd, nsec_t limit, struct error *err)
{
	nsec_t until = clock_mono() + limit;
	_cleanup_fd_ int pidfd = -1;
	pid_t pid = 0;
	int r;

	pidfd = holder_open(lock_fd, &pid, err);
	if (pidfd < 0)
		return pidfd;
	log_info("the daemon that serves here is asked to end", LOG_INT("pid", pid));
	r = pidfd_kill(pidfd, SIGTERM);
	if (r < 0 && r != -ESRCH)
		return error_set(err, r, "ask the daemon (process %d) to end", (int)pid);
	for (;;) {
		struct pollfd p = { .fd = pidfd, .events = POLLIN };
		nsec_t now = clock_mono();
		struct timespec left = { 0 };

		if (now < until) {
			left.tv_sec = (time_t)((until - now) / NSEC_PER_SEC);
			left.tv_nsec = (long)((until - now) % NSEC_PER_SEC);
		}
		r = ppoll(&p, 1, &left, NULL);
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return error_set(err, -errno, "wait for the end of process %d", (int)pid);
		if (r == 0)
			return error_refuse(err, ERROR_DEADLINE,
					    "the daemon (process %d) has not ended in time",
					    (int)pid);
	}
}
