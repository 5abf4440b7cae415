/* SPDX-License-Identifier: Apache-2.0 */
#include "init/guest_modules.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/process/thread.h"
#include "base/text/str.h"

#define MODULES_LIST_MAX 65536 /* bytes */
#define MODULES_PATH_MAX 64
#define MODULES_DISKS "virtio_blk.ko"
#define MODULES_SHARE "0x001a\n" /* a file system, as virtio numbers devices */

/* Whether drivers that come take the devices of virtio that are there. */
static void modules_let_take(bool take)
{
	_cleanup_fd_ int fd = sysio_openat(AT_FDCWD, "/sys/bus/virtio/drivers_autoprobe",
					   O_WRONLY | O_CLOEXEC, 0);

	if (fd >= 0)
		(void)fd_write_full(fd, take ? "1" : "0", 1);
}

static int modules_load_one(int dir_fd, const char *name, struct error *err)
{
	_cleanup_fd_ int fd = sysio_openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
	bool of_disks = str_eq(name, MODULES_DISKS);
	int r = 0;

	if (fd < 0)
		return error_set(err, -errno, "open the module %s", name);
	if (of_disks)
		modules_let_take(false);
	if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
		r = error_set(err, -errno, "load the module %s", name);
	if (of_disks)
		modules_let_take(true);
	(void)sysio_unlinkat(dir_fd, name, 0);
	return r;
}

/* Whether the machine has a device of virtiofs. */
static bool modules_are_urgent(void)
{
	_cleanup_strv_ char **names = NULL;
	_cleanup_fd_ int dir_fd = -1;
	char path[MODULES_PATH_MAX];

	dir_fd = sysio_openat(AT_FDCWD, "/sys/bus/virtio/devices",
			      O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir_fd < 0 || fd_list_dir(dir_fd, &names) < 0)
		return false;
	for (size_t i = 0; names && names[i]; i++) {
		_cleanup_(buf_done) struct buf id = BUF_INIT_LIMIT(MODULES_PATH_MAX);

		if (str_printf(path, sizeof(path), "%s/device", names[i]) > 0 &&
		    fd_read_file(dir_fd, path, MODULES_PATH_MAX / 2, &id) == 0 &&
		    id.len == strlen(MODULES_SHARE) &&
		    memcmp(buf_data(&id), MODULES_SHARE, id.len) == 0)
			return true;
	}
	return false;
}

/* One line. What can be done without is missed aloud. */
static int modules_take(struct guest_modules *m, const char *line, struct buf *later,
			struct error *err)
{
	int r;

	if (*line == '+' && later) {
		r = buf_addf(later, "%s\n", line);
		return r < 0 ? error_set(err, r, "list the modules for later") : 0;
	}
	r = modules_load_one(m->dir_fd, line + strspn(line, "?+"), err);
	if (r < 0 && (*line == '?' || *line == '+')) {
		log_warn("a module is missing", LOG_ERR(err));
		r = 0;
	}
	return r;
}

static int modules_take_all(struct guest_modules *m, char *list, struct buf *later,
			    struct error *err)
{
	for (;;) {
		const char *line = strsep(&list, "\n");
		int r;

		if (!line)
			return 0;
		r = *line ? modules_take(m, line, later, err) : 0;
		if (r < 0)
			return r;
	}
}

int guest_modules_load(struct guest_modules *m, struct error *err)
{
	_cleanup_(buf_done) struct buf list = BUF_INIT, later = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	int r;

	m->dir_fd = sysio_openat(AT_FDCWD, "/modules", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (m->dir_fd < 0 && errno == ENOENT)
		return 0;
	if (m->dir_fd < 0)
		return error_set(err, -errno, "open /modules");
	r = fd_read_file(m->dir_fd, "list", MODULES_LIST_MAX, &list);
	if (r < 0)
		return error_set(err, r, "read /modules/list");
	text = buf_take_str(&list);
	if (!text)
		return error_set(err, -ENOMEM, "read /modules/list");
	r = modules_take_all(m, text, &later, err);
	if (r < 0)
		return r;
	m->later = buf_take_str(&later);
	if (!m->later)
		return error_set(err, -ENOMEM, "list the modules for later");
	if (modules_are_urgent())
		guest_modules_load_later(m);
	return 0;
}

void guest_modules_load_later(struct guest_modules *m)
{
	_cleanup_str_ char *list = TAKE_PTR(m->later);
	struct error err = ERROR_INIT;

	if (list)
		(void)modules_take_all(m, list, NULL, &err);
	m->dir_fd = fd_close(m->dir_fd);
}

static void *modules_thread(void *arg)
{
	guest_modules_load_later(arg);
	return NULL;
}

void guest_modules_load_apart(struct guest_modules *m)
{
	pthread_t thread;

	if (!m->later)
		return;
	/* Not joined: pid 1 never ends. */
	if (thread_start(&thread, modules_thread, m) < 0)
		guest_modules_load_later(m);
}
