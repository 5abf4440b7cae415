/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file/sysio.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macros.h"
#include "unit.h"

/* The plan is read once, so each case is a process; it says what it saw, a letter for each call. */
static void expect(const char *plan, const char *calls, const char *results)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		bool wrong = false;

		(void)setenv("NACRE_SYSIO", plan, 1);
		for (size_t i = 0; calls[i]; i++) {
			int r;

			errno = 0;
			r = calls[i] == 's' ? sysio_socket(AF_UNIX, SOCK_STREAM, 0)
					    : sysio_openat(AT_FDCWD, "/", O_RDONLY | O_CLOEXEC, 0);
			if (results[i] == '.' ? r < 0 : r != -1)
				wrong = true;
			if (results[i] == 'N' && errno != ENOSPC)
				wrong = true;
			if (results[i] == 'I' && errno != EIO)
				wrong = true;
		}
		_exit(wrong);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
		  strchr(results, 'K') ? -SIGKILL : 0);
}

static void plans(void)
{
	expect("", "oooo", "....");
	expect("openat:1:EIO", "oooo", "I...");
	expect("openat:3:ENOSPC", "oosoo", "...N.");
	expect("openat:2:EIO:sticky", "ooosoo", ".II.II");
	expect("*:3:EIO", "ososo", "..I..");
	/* Several for one call: each counts all of them. */
	expect("openat:1:EIO,openat:2:ENOSPC", "ooo", "IN.");
	expect("openat:2:ENOSPC,*:2:EIO", "ooo", ".N.");
	expect("nonsense", "oo", "..");
	expect("openat:1", "oo", "..");
	expect("openat:2:kill", "oo", ".K");
}

UNIT_MAIN({ "plans", plans })
