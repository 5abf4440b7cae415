/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/disk/quota.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The calls of XFS (Q_X*) are the ones that every file system with quotas understands. Ids are
 * found by asking the kernel: one without files and without a limit is free, whoever else uses
 * project quotas on that file system. Nodes begin their searches at places that hardly ever meet.
 *
 * The limit is the soft one. The hard one, which refuses, is the same but for the moments in which
 * it is stretched.
 */

#define QUOTA_BLOCK 512 /* of the kernel's answers, whatever the file system has */
#define QUOTA_TRIES 64
#define QUOTA_STRETCH ((uint64_t)1 << 20)

static int quota_call(int fd, unsigned command, uint32_t project, void *data)
{
	if (syscall(SYS_quotactl_fd, fd, QCMD(command, PRJQUOTA), project, data) < 0)
		return -errno;
	return 0;
}

int quota_is_enforced(int dir_fd)
{
	struct fs_quota_statv state = { .qs_version = FS_QSTATV_VERSION1 };

	return quota_call(dir_fd, Q_XGETQSTATV, 0, &state) == 0 &&
	       (state.qs_flags & FS_QUOTA_PDQ_ENFD);
}

uint32_t quota_project(int dir_fd)
{
	struct fsxattr attr = { .fsx_projid = 0 };

	if (ioctl(dir_fd, FS_IOC_FSGETXATTR, &attr) < 0 ||
	    !(attr.fsx_xflags & FS_XFLAG_PROJINHERIT) || attr.fsx_projid < QUOTA_PROJECT_FIRST ||
	    attr.fsx_projid - QUOTA_PROJECT_FIRST >= QUOTA_PROJECT_COUNT)
		return 0;
	return attr.fsx_projid;
}

/* XFS has nothing to tell of an id that nobody has used (-ENOENT). */
static int quota_read(int dir_fd, uint32_t project, struct fs_disk_quota *q)
{
	int r;

	*q = (struct fs_disk_quota){ .d_version = FS_DQUOT_VERSION };
	r = quota_call(dir_fd, Q_XGETQUOTA, project, q);
	return r == -ENOENT ? 0 : r;
}

static int quota_set(int dir_fd, uint32_t project, uint64_t limit, uint64_t more)
{
	struct fs_disk_quota q = { .d_version = FS_DQUOT_VERSION,
				   .d_flags = FS_PROJ_QUOTA,
				   .d_fieldmask = FS_DQ_BHARD | FS_DQ_BSOFT,
				   .d_id = project,
				   .d_blk_softlimit = limit / QUOTA_BLOCK,
				   .d_blk_hardlimit = (limit + more) / QUOTA_BLOCK };

	return quota_call(dir_fd, Q_XSETQLIM, project, &q);
}

/* FNV-1a. */
static uint32_t quota_place(const char *name)
{
	uint32_t hash = UINT32_C(2166136261);

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT32_C(16777619);
	return hash % QUOTA_PROJECT_COUNT;
}

static bool quota_is_free(const struct fs_disk_quota *q)
{
	return !q->d_blk_hardlimit && !q->d_blk_softlimit && !q->d_ino_hardlimit &&
	       !q->d_ino_softlimit && !q->d_bcount && !q->d_icount;
}

static int quota_find(int dir_fd, const char *name, uint32_t *ret)
{
	uint32_t place = quota_place(name);

	for (uint32_t i = 0; i < QUOTA_TRIES; i++) {
		uint32_t project = QUOTA_PROJECT_FIRST + (place + i) % QUOTA_PROJECT_COUNT;
		struct fs_disk_quota q;
		int r = quota_read(dir_fd, project, &q);

		if (r < 0)
			return r;
		if (!quota_is_free(&q))
			continue;
		*ret = project;
		return 0;
	}
	return -EBUSY;
}

static int quota_mark(int dir_fd, uint32_t project)
{
	struct fsxattr attr;

	if (ioctl(dir_fd, FS_IOC_FSGETXATTR, &attr) < 0)
		return -errno;
	attr.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	attr.fsx_projid = project;
	return ioctl(dir_fd, FS_IOC_FSSETXATTR, &attr) < 0 ? -errno : 0;
}

int quota_give(int dir_fd, const char *name, uint64_t limit, struct error *err)
{
	uint32_t project;
	int r = quota_find(dir_fd, name, &project);

	if (r < 0)
		return error_set(err, r, "find a free project id for its quota");
	/* In this order a limit always has a directory that leads to it. */
	r = quota_mark(dir_fd, project);
	if (r < 0)
		return error_set(err, r, "give its directory the project %" PRIu32, project);
	r = quota_set(dir_fd, project, limit, 0);
	return r < 0 ? error_set(err, r, "set the quota of the project %" PRIu32, project) : 0;
}

int quota_free(int dir_fd)
{
	uint32_t project = quota_project(dir_fd);

	return project ? quota_set(dir_fd, project, 0, 0) : 0;
}

int quota_look(int dir_fd, struct quota_use *ret)
{
	uint32_t project = quota_project(dir_fd);
	struct fs_disk_quota q;
	int r;

	if (!project)
		return -ENOENT;
	r = quota_read(dir_fd, project, &q);
	if (r < 0)
		return r;
	*ret = (struct quota_use){ .limit = q.d_blk_softlimit * QUOTA_BLOCK,
				   .used = q.d_bcount * QUOTA_BLOCK };
	return 0;
}

static int quota_change(int dir_fd, uint64_t more)
{
	struct quota_use use;
	int r = quota_look(dir_fd, &use);

	return r < 0 || !use.limit ? r : quota_set(dir_fd, quota_project(dir_fd), use.limit, more);
}

int quota_stretch(int dir_fd)
{
	return quota_change(dir_fd, QUOTA_STRETCH);
}

int quota_restore(int dir_fd)
{
	return quota_change(dir_fd, 0);
}

/* ---- CAP_SYS_RESOURCE ---- */

static int quota_change_cap(bool raise, int *ret_had)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
	const unsigned at = CAP_TO_INDEX(CAP_SYS_RESOURCE), bit = CAP_TO_MASK(CAP_SYS_RESOURCE);

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	*ret_had = (data[at].effective & bit) != 0;
	if (raise)
		data[at].effective |= data[at].permitted & bit;
	else
		data[at].effective &= ~bit;
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

int quota_obey(int *ret_had)
{
	return quota_change_cap(false, ret_had);
}

void quota_ignore(int had)
{
	if (had)
		(void)quota_change_cap(true, &had);
}
