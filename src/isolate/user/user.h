/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_USER_H
#define NACRE_ISOLATE_USER_H

#include <stddef.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "isolate/plan/plan.h"

/*
 * The user that a container runs as: "", "user", "uid", "user:group", "uid:gid" against the passwd
 * and group files of its own root, read by our own parser through rooted descriptors (no NSS).
 * Rules of security.md A34, A35, A04: an all-digit string is a number and never a name; a number
 * above 2147483647 is refused; "" is 0:0; the primary group of a user and all groups that list it
 * are kept; an explicit group replaces the primary one.
 */
struct isolate_user {
	uid_t uid;
	gid_t gid;
	gid_t groups[ISOLATE_GROUPS_MAX];
	size_t n_groups;
	char home[ISOLATE_HOME_SIZE]; /* "/" where passwd has none */
};

/*
 * The home of a uid as /etc/passwd of the root has it; "/" where it has none or is no regular file
 * of at most 4 MiB: whoever made the root must not keep its programs from starting so. Returns 0,
 * -ENOMEM or what reading says.
 */
int isolate_user_home(int root_fd, uid_t uid, char home[ISOLATE_HOME_SIZE], struct error *err);

/* ERROR_INVALID for a wrong form, ERROR_PRECONDITION where the name is not in the image. */
int isolate_user_find(int root_fd, const char *user, struct isolate_user *ret, struct error *err);

#endif
