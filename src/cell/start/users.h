/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_USERS_H
#define NACRE_CELL_USERS_H

#include "cell/spec.h"
#include "isolate/user/user.h"

/*
 * The users that containers run as, with the last answer of an image kept: images of the same
 * digest have the same passwd and group files, and to look them up is a tenth of a start. Zeroed it
 * is empty.
 */
struct users {
	char image[SPEC_IMAGE_MAX + 1]; /* "": nothing is kept */
	char user[SPEC_USER_MAX + 1];
	struct isolate_user found;
};

/* Whether it is known already, and what. */
bool users_know(const struct users *u, enum container_kind kind, const char *image,
		const char *user, struct isolate_user *ret);
/* As program_user(). image: container_spec.image, or NULL. */
int users_find(struct users *u, enum container_kind kind, const char *image, int root_fd,
	       const char *user, struct isolate_user *ret, struct error *err);
/* The user of a start, in room: *ret is NULL where that is not known before its root comes. */
int users_find_early(struct users *u, const struct container_spec *spec, int rootfs_fd,
		     struct isolate_user *room, const struct isolate_user **ret, struct error *err);

#endif
