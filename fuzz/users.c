/* SPDX-License-Identifier: Apache-2.0 */

/* passwd and group of an image: the user, a line feed, passwd, a NUL, group. */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "fuzz.h"
#include "fuzz_tmpfs.h"
#include "isolate/user/user.h"

static int root_fd = -1;

static void put(const char *name, struct fuzz_input text)
{
	_cleanup_fd_ int fd = openat(root_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	fuzz_need(fd >= 0 && fd_write_full(fd, text.at, text.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct error err = ERROR_INIT;
	struct isolate_user u;
	char *user;

	if (root_fd < 0) {
		root_fd = fuzz_tmpfs();
		fuzz_need(mkdirat(root_fd, "etc", 0755) == 0);
	}
	user = fuzz_str(fuzz_until(&in, '\n'));
	put("etc/passwd", fuzz_until(&in, '\0'));
	put("etc/group", in);
	if (isolate_user_find(root_fd, user, &u, &err) == 0) {
		fuzz_need(u.n_groups <= ISOLATE_GROUPS_MAX && u.home[0] == '/');
		fuzz_need(memchr(u.home, '\0', sizeof(u.home)) != NULL);
	} else {
		fuzz_need(err.code != 0);
	}
	free(user);
	return 0;
}
