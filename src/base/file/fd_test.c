/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static int file_of(const char *text)
{
	int fd = memfd_create("fd-test", MFD_CLOEXEC);

	CHECK(fd_write_full(fd, text, strlen(text)) == 0);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static void close_keeps_errno(void)
{
	int fd = file_of("");

	errno = 77;
	CHECK_INT(fd_close(fd), -1);
	CHECK_INT(fd_close(fd), -1);
	CHECK_INT(fd_close(-1), -1);
	CHECK_INT(errno, 77);
	CHECK_INT(fd_copy(fd), -EBADF);
}

/* Whether fd is the null device for reading and writing, and stays open through an exec. */
static bool is_null(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3) &&
	       (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR && fcntl(fd, F_GETFD) == 0;
}

static bool is_same(int fd, int other)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Each set of standard streams that a caller can have closed. */
static void standard_streams(void)
{
	int saved[3];

	for (int i = 0; i < 3; i++)
		saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
	for (unsigned closed = 0; closed < 8; closed++) {
		bool right = true;
		int next;

		for (int i = 0; i < 3; i++)
			if (closed & 1U << i)
				(void)close(i);
		right = fd_open_standard("fd-test") == 0;
		next = fcntl(saved[0], F_DUPFD_CLOEXEC, 0);
		right = right && next > 2;
		for (int i = 0; i < 3; i++)
			right = right && (closed & 1U << i ? is_null(i) : is_same(i, saved[i]));
		(void)fd_close(next);
		for (int i = 0; i < 3; i++)
			(void)dup3(saved[i], i, 0);
		CHECK(right);
	}
	for (int i = 0; i < 3; i++)
		(void)close(saved[i]);
}

static void flags(void)
{
	_cleanup_fd_ int fd = file_of("");
	_cleanup_fd_ int copy = fd_copy(fd);

	CHECK(copy >= 3);
	CHECK_INT(fcntl(copy, F_GETFD), FD_CLOEXEC);
	CHECK_INT(fd_set_cloexec(copy, false), 0);
	CHECK_INT(fcntl(copy, F_GETFD), 0);
	CHECK_INT(fd_set_nonblock(fd, true), 0);
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK_INT(fd_set_nonblock(fd, false), 0);
	CHECK(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
	CHECK_INT(fd_set_nonblock(-1, true), -EBADF);
}

static void reads_all_of_it(void)
{
	_cleanup_fd_ int fd = file_of("0123456789");
	_cleanup_(buf_done) struct buf b = BUF_INIT, tight = BUF_INIT_LIMIT(10);
	char got[10];

	CHECK_INT(fd_read_full(fd, got, 10), 0);
	CHECK(memcmp(got, "0123456789", 10) == 0);
	CHECK_INT(fd_read_full(fd, got, 1), -EPIPE);
	CHECK_INT(fd_read_full(fd, got, 0), 0);

	/* What is in the buffer already does not count; the bound and the buffer's limit are exact.
	 */
	CHECK(buf_add_str(&b, "before") == 0);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CHECK_INT(fd_read_all(fd, 10, &b), 0);
	CHECK_INT(b.len, 16);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CHECK_INT(fd_read_all(fd, 10, &tight), 0);
	CHECK_INT(tight.len, 10);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CHECK_INT(fd_read_all(fd, 9, &b), -EFBIG);
	CHECK_INT(fd_read_all(-1, 9, &b), -EBADF);

	/* A bound of more than one read. */
	CHECK(ftruncate(fd, 10000) == 0 && lseek(fd, 0, SEEK_SET) == 0);
	CHECK_INT(fd_read_all(fd, 9999, &b), -EFBIG);
	buf_clear(&b);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CHECK_INT(fd_read_all(fd, 10000, &b), 0);
	CHECK_INT(b.len, 10000);
}

static void reads_over_short_counts(void)
{
	char got[6] = "";
	int p[2];
	pid_t pid;

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 5; i++) {
			(void)usleep(1000);
			if (write(p[1], &"abcde"[i], 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	CHECK_INT(fd_read_full(p[0], got, 5), 0);
	CHECK_STR(got, "abcde");
	CHECK(waitpid(pid, NULL, 0) == pid);
	(void)close(p[0]);
	(void)signal(SIGPIPE, SIG_IGN);
	CHECK_INT(fd_write_full(p[1], "x", 1), -EPIPE);
	(void)close(p[1]);
}

static void files_by_name(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_fd_ int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	CHECK_INT(fd_read_file(proc, "self/comm", 64, &b), 0);
	CHECK(b.len > 1);
	CHECK_INT(fd_read_file(proc, "no-such-file", 64, &b), -ENOENT);
	CHECK_INT(fd_write_file(proc, "self/comm", "fd-test-name"), 0);
	buf_clear(&b);
	CHECK_INT(fd_read_file(proc, "self/comm", 64, &b), 0);
	CHECK(b.len == 13 && memcmp(buf_data(&b), "fd-test-name\n", 13) == 0);
}

static void processes(void)
{
	_cleanup_fd_ int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	unsigned long long a = 0, b = 0, later = 0;
	_cleanup_fd_ int pidfd = -1;
	siginfo_t info;
	pid_t pid;
	int status;

	/* The name is chosen to look like the fields behind it. */
	CHECK(prctl(PR_SET_NAME, "x) R 1 2 (3") == 0);
	CHECK_INT(process_start_time(-1, getpid(), &a), 0);
	CHECK_INT(process_start_time(proc, getpid(), &b), 0);
	CHECK(a > 0 && a == b);
	(void)usleep(20000);
	pid = fork();
	if (pid == 0)
		_exit(pause());
	CHECK_INT(process_start_time(-1, pid, &later), 0);
	CHECK(later > a);
	CHECK(later <= a + 100000000ULL);
	pidfd = pidfd_of(pid);
	CHECK(pidfd >= 0);
	CHECK_INT(fcntl(pidfd, F_GETFD), FD_CLOEXEC);
	CHECK(!pidfd_has_ended(pidfd));
	CHECK_INT(pidfd_kill(pidfd, SIGTERM), 0);
	CHECK(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOWAIT) == 0);
	CHECK(pidfd_has_ended(pidfd));
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	      WTERMSIG(status) == SIGTERM);
	CHECK(pidfd_has_ended(pidfd));
	CHECK_INT(pidfd_kill(pidfd, 0), -ESRCH);
	CHECK_INT(pidfd_of(pid), -ESRCH);
	CHECK_INT(process_start_time(-1, pid, &later), -ENOENT);
}

UNIT_MAIN({ "close keeps errno", close_keeps_errno },
	  { "standard streams that the caller closed", standard_streams }, { "flags", flags },
	  { "reads all of it", reads_all_of_it },
	  { "reads over short counts", reads_over_short_counts },
	  { "files by name", files_by_name }, { "processes", processes })
