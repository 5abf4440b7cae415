/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_DISK_BED_TEST_H
#define NACRE_ISOLATE_DISK_BED_TEST_H

/* For tests: EROFS images on loop devices, which stand for the disks of a machine. */

#include <fcntl.h>
#include <linux/loop.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "isolate/disk/disk.h"

#define DISK_BED_TRIES 20

/* Whether Debian's mkfs.erofs is there and has made it. */
static inline bool disk_bed_mkfs(const char *image, const char *tree)
{
	char *argv[] = { (char[]){ "mkfs.erofs" }, (char[]){ "--quiet" }, (char *)(uintptr_t)image,
			 (char *)(uintptr_t)tree, NULL };
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t pid;

	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	(void)posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ) == 0)
		(void)waitpid(pid, &status, 0);
	(void)posix_spawn_file_actions_destroy(&actions);
	return status == 0;
}

/* A descriptor that keeps the device while it is open, or -1: the machine gives none. */
static inline int disk_bed_loop(const char *image, char device[DISK_NAME_MAX + 1])
{
	_cleanup_fd_ int control_fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	_cleanup_fd_ int image_fd = open(image, O_RDONLY | O_CLOEXEC);
	struct loop_config config = { .fd = (uint32_t)image_fd,
				      .info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR };

	for (int tries = 0; control_fd >= 0 && tries < DISK_BED_TRIES; tries++) {
		int n = ioctl(control_fd, LOOP_CTL_GET_FREE), fd;
		char node[32];

		(void)str_printf(device, DISK_NAME_MAX + 1, "loop%d", n);
		(void)str_printf(node, sizeof(node), "/dev/loop%d", n);
		fd = n >= 0 ? open(node, O_RDONLY | O_CLOEXEC) : -1;
		if (fd >= 0 && ioctl(fd, LOOP_CONFIGURE, &config) == 0)
			return fd;
		(void)fd_close(fd);
	}
	return -1;
}

#endif
