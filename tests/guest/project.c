/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs in a container and tries to get out of its quota: "project give FILE" makes a file one of
 * project 0, "project leave DIR" has what is made in a directory be of none. Says "done", or why
 * the kernel refuses that.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int project_give(int fd)
{
	struct fsxattr attr;

	if (ioctl(fd, FS_IOC_FSGETXATTR, &attr) < 0)
		return -1;
	attr.fsx_projid = 0;
	return ioctl(fd, FS_IOC_FSSETXATTR, &attr);
}

static int project_leave(int fd)
{
	int flags;

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return -1;
	flags &= ~FS_PROJINHERIT_FL;
	return ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

int main(int argc, char **argv)
{
	int fd = argc == 3 ? open(argv[2], O_RDONLY | O_CLOEXEC) : -1;
	int r = -1;

	if (fd >= 0)
		r = strcmp(argv[1], "give") == 0 ? project_give(fd) : project_leave(fd);
	puts(r < 0 ? strerror(errno) : "done");
	return r < 0;
}
