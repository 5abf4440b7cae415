/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_BED_TEST_H
#define NACRE_NET_BED_TEST_H

/*
 * A network namespace for a test program, and what its kernel says about it in files: links in a
 * sysfs of that namespace, the rest in /proc/net.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "net/netlink/netlink.h"
#include "unit.h"

static int bed_sys_fd = -1; /* of the namespace that the program has come to */
static struct netlink bed_nl = NETLINK_NONE;
/* Before any allocation can fail, which those that look do not want to know about. */
static char bed_text[65536];

static inline void bed_enter(void)
{
	int fs = -1;

	CHECK(unshare(CLONE_NEWNET) == 0);
	fs = sysio_fsopen("sysfs", FSOPEN_CLOEXEC);
	CHECK(fs >= 0 && sysio_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0);
	bed_sys_fd = sysio_fsmount(fs, FSMOUNT_CLOEXEC, 0);
	CHECK(bed_sys_fd >= 0);
	(void)fd_close(fs);
	CHECK_INT(netlink_open(&bed_nl, NULL), 0);
}

/* The whole of a file, or "" where there is none. */
static inline const char *bed_read(int dir_fd, const char *path)
{
	_cleanup_fd_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	size_t len = 0;

	bed_text[0] = '\0';
	while (fd >= 0 && len < sizeof(bed_text) - 1) {
		n = read(fd, bed_text + len, sizeof(bed_text) - 1 - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	bed_text[len] = '\0';
	return bed_text;
}

/* A file of a link, without its line feed. */
static inline const char *bed_link(const char *link, const char *file)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "class/net/%s/%s", link, file);
	(void)bed_read(bed_sys_fd, path);
	bed_text[strcspn(bed_text, "\n")] = '\0';
	return bed_text;
}

static inline long bed_link_number(const char *link, const char *file)
{
	const char *text = bed_link(link, file);

	return *text ? strtol(text, NULL, 0) : -1;
}

static inline bool bed_has_link(const char *link)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "class/net/%s", link);
	return faccessat(bed_sys_fd, path, F_OK, 0) == 0;
}

/* Whether a line of /proc/net/FILE of this thread's namespace has this text. */
static inline bool bed_proc_has(const char *file, const char *text)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/thread-self/net/%s", file);
	return strstr(bed_read(AT_FDCWD, path), text) != NULL;
}

/* How many descriptors this process has. */
static inline int bed_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

#endif
