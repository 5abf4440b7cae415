/* SPDX-License-Identifier: Apache-2.0 */
#include "init/guest_modules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "base/sysio.h"

#define MODULES_LIST_MAX 65536 /* bytes */

static int modules_load_one(int dir_fd, const char *name, struct error *err)
{
	_cleanup_fd_ int fd = sysio_openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);

	if (fd < 0)
		return error_set(err, -errno, "open the module %s", name);
	if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
		return error_set(err, -errno, "load the module %s", name);
	(void)sysio_unlinkat(dir_fd, name, 0);
	return 0;
}

static int modules_load_list(int dir_fd, char *list, struct error *err)
{
	for (;;) {
		char *name = strsep(&list, "\n");
		bool optional;
		int r;

		if (!name)
			return 0;
		optional = *name == '?';
		if (optional)
			name++;
		r = *name ? modules_load_one(dir_fd, name, err) : 0;
		if (r < 0 && !optional)
			return r;
		if (r < 0)
			log_warn("a module is missing", LOG_ERR(err));
	}
}

int guest_modules_load(struct error *err)
{
	_cleanup_(buf_done) struct buf list = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	_cleanup_fd_ int dir_fd = -1;
	int r;

	dir_fd = sysio_openat(AT_FDCWD, "/modules", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir_fd < 0 && errno == ENOENT)
		return 0;
	if (dir_fd < 0)
		return error_set(err, -errno, "open /modules");
	r = fd_read_file(dir_fd, "list", MODULES_LIST_MAX, &list);
	if (r < 0)
		return error_set(err, r, "read /modules/list");
	text = buf_take_str(&list);
	if (!text)
		return error_set(err, -ENOMEM, "read /modules/list");
	return modules_load_list(dir_fd, text, err);
}
