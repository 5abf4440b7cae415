/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/users.h"

#include "base/text/str.h"
#include "cell/start/program.h"

static void users_keep(struct users *u, const char *image, const char *user,
		       const struct isolate_user *found)
{
	/* What does not fit is not kept. */
	if (str_copy(u->image, sizeof(u->image), image) < 0 ||
	    str_copy(u->user, sizeof(u->user), user) < 0)
		u->image[0] = '\0';
	u->found = *found;
}

bool users_know(const struct users *u, enum container_kind kind, const char *image,
		const char *user, struct isolate_user *ret)
{
	if (kind != CONTAINER_IMAGE || str_empty(image) || !str_eq(u->image, image) ||
	    !str_eq(u->user, user ? user : ""))
		return false;
	*ret = u->found;
	return true;
}

int users_find(struct users *u, enum container_kind kind, const char *image, int root_fd,
	       const char *user, struct isolate_user *ret, struct error *err)
{
	int r;

	if (users_know(u, kind, image, user, ret))
		return 0;
	if (!user)
		user = "";
	r = program_user(kind, root_fd, user, ret, err);
	if (r == 0 && kind == CONTAINER_IMAGE && !str_empty(image))
		users_keep(u, image, user, ret);
	return r;
}

int users_find_early(struct users *u, const struct container_spec *spec, int rootfs_fd,
		     struct isolate_user *room, const struct isolate_user **ret, struct error *err)
{
	int r = 0;

	*ret = room;
	if (users_know(u, spec->kind, spec->image, spec->user, room))
		return 0;
	if (spec->late)
		*ret = NULL;
	else
		r = users_find(u, spec->kind, spec->image, rootfs_fd, spec->user, room, err);
	return r;
}
