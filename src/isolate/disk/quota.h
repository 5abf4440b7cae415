/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_QUOTA_H
#define NACRE_ISOLATE_QUOTA_H

#include <stdint.h>

#include "base/log/error.h"

/*
 * Project quotas: a limit on the bytes of all files below a directory, on a file system that has
 * them (ext4 made with `project,quota` and mounted with prjquota, XFS mounted with prjquota) and a
 * kernel with quotactl_fd() (5.14). The record of a directory's project is the directory itself: it
 * has the id, which everything that is made in it inherits, and keeps it through a crash.
 *
 * A limit holds for whoever writes, but not
 *  - for a process with CAP_SYS_RESOURCE on ext4: the mount that a container writes through is made
 *    without it (quota_obey()), since an overlay writes with the capabilities of its maker;
 *  - for a process that gives its files another project (FS_IOC_FSSETXATTR, FS_IOC_SETFLAGS): the
 *    owner may, unless it is in a user namespace. The filter of containers refuses both.
 *
 * Descriptors are of directories, opened for reading. All of this may block.
 */

/* Ids of ours; those below are left to administrators (projid(5)). */
#define QUOTA_PROJECT_FIRST UINT32_C(0x40000000)
#define QUOTA_PROJECT_COUNT UINT32_C(0x40000000)

struct quota_use {
	uint64_t limit, used; /* bytes; limit 0: none */
};

/* Whether the file system enforces limits of projects: 1 or 0. */
int quota_is_enforced(int dir_fd);
/* The project of the directory if it is one of ours; or 0. */
uint32_t quota_project(int dir_fd);
/*
 * Makes the empty directory, and with it what will be in it, a project of its own with this limit.
 * `name` decides where the search for a free id begins. Only where quota_is_enforced().
 * -EBUSY where no id is free near that place.
 */
int quota_give(int dir_fd, const char *name, uint64_t limit, struct error *err);
/* For what the node itself has to make in a directory that is full: the limit is a little higher
 * until quota_restore(). Who is killed in between leaves that to the next one. */
int quota_stretch(int dir_fd);
int quota_restore(int dir_fd);
/* Takes the limit of its project away, so that the id is free once the files are gone. */
int quota_free(int dir_fd);
/* -ENOENT where the directory has no project of ours. */
int quota_look(int dir_fd, struct quota_use *ret);

/*
 * Without CAP_SYS_RESOURCE in the effective set of this thread until quota_ignore(). 0 or an errno:
 * nothing has changed then. *ret_had: what quota_ignore() is to be given.
 */
int quota_obey(int *ret_had);
void quota_ignore(int had);

#endif
