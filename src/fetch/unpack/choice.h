/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_CHOICE_H
#define NACRE_FETCH_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"

/*
 * Which images of an archive are read, and how they are named. An archive says a full reference
 * ("docker.io/library/nginx:1.27"), as containerd and Docker write it, or a tag alone ("1.27"),
 * which is what skopeo, podman and umoci write into a layout: it becomes a name behind a
 * repository, which the core makes of the archive's file name.
 */

#define CHOICE_OFFERS_MAX 200

struct choice {
	const char *ref;                    /* "" for all of them; not owned */
	const char *repository;             /* for tags; "" for none; not owned */
	char offers[CHOICE_OFFERS_MAX + 1]; /* the names that were not chosen, for the error */
};

#define CHOICE_INIT(which, name)                                                                   \
	{                                                                                          \
		.ref = (which), .repository = (name)                                               \
	}

/* Whether an image of which the archive says this (a strv, may be NULL) is to be read: the text
 * itself was asked for, or another form of the same reference. */
bool choice_takes(struct choice *c, char *const *said);
/* Where nothing was: ERROR_NOT_FOUND, with what there is. */
int choice_fail(const struct choice *c, struct error *err);
/* Adds the names of the image, in full. A name that is no reference, or has a digest, is left out.
 * may_be_tag: "1.27" is a tag alone, not a repository. */
int choice_names(const struct choice *c, char *const *said, bool may_be_tag, char ***ret,
		 struct error *err);

#endif
