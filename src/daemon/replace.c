/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "base/file/fd.h"
#include "base/log/log.h"

/* The process that holds the lock; 0: nobody that we can see. */
static pid_t lock_holder(int fd, struct error *err)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(fd, F_GETLK, &lock) < 0)
		return error_set(err, -errno, "look at the lock");
	return lock.l_type == F_UNLCK || lock.l_pid < 0 ? 0 : lock.l_pid;
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
