/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VOLUMES_SECRETS_H
#define NACRE_VOLUMES_SECRETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "base/text/id.h"

/*
 * Secrets of a node: short files of its root directory, mode 0600, each a line of ours and then the
 * bytes. Containers have copies of them, in sets: directories of the run directory (which is a
 * tmpfs where it lies in /run), each for one mount of one container. Which secrets became which
 * files is written beside the files, so that a secret that changes is found in all sets by any
 * later daemon.
 *
 * All of it waits for the disk: not for the loop, but for what says otherwise.
 */

#define SECRET_NAME_MAX 253
#define SECRET_SIZE_MAX 512000
#define SECRET_FILE_MAX 255
#define SECRETS_MAX 4096
#define SECRETS_OF_MOUNT_MAX 64

struct secret_info {
	char name[SECRET_NAME_MAX + 1];
	char id[ID_SIZE];
	uint64_t created_at, updated_at; /* clock_real() */
	uint64_t size;
};

/* 1 to SECRET_NAME_MAX of A-Z, a-z, 0-9, ".", "_" and "-", the first a letter or digit.
 * ERROR_INVALID names the field. */
int secret_check_name(const char *field, const char *name, struct error *err);
/* The name of a file of a set: one component of a path. Likewise. */
int secret_check_file(const char *field, const char *file, struct error *err);

/* The directory `secrets`, made where it is missing, without what a killed daemon left half done.
 * For the start of a daemon: of the root directory, and of the run directory for sets. */
int secrets_open(int parent_fd, struct error *err);

/* It is on the disk when this returns. replace: one that is there keeps its id, and all sets have
 * the new bytes, each file as a whole. ERROR_EXISTS, ERROR_INVALID, ERROR_EXHAUSTED. */
int secret_put(int dir_fd, int sets_fd, const char *name, const void *data, size_t len,
	       bool replace, struct secret_info *ret, struct error *err);
/* Its bytes, or NULL for none of them. ERROR_NOT_FOUND. */
int secret_read(int dir_fd, const char *name, struct buf *ret_data, struct secret_info *ret,
		struct error *err);
/* Sets keep what they have. ERROR_NOT_FOUND. */
int secret_remove(int dir_fd, const char *name, struct error *err);
/* In no order; the list is the caller's. */
int secrets_list(int dir_fd, struct secret_info **ret, size_t *ret_n, struct error *err);

struct secret_file {
	const char *secret;
	const char *file; /* its name in the set; "": the set is this file */
	uid_t uid;
	gid_t gid;
	mode_t mode;
};

/* The set of this id with present bytes, pointed at its directory, or its only file. The files of
 * one that is there are replaced, since it may be mounted: an id always goes with the same list.
 * ERROR_NOT_FOUND for a secret. A new set that fails leaves nothing. */
int secret_set_make(int dir_fd, int sets_fd, const char *id, const struct secret_file *files,
		    size_t n, struct error *err);
/* Nobody has it any more, or never had. In memory mostly: also for the loop. */
void secret_set_drop(int sets_fd, const char *id);
/* Likewise, for the start of a daemon: drops those that nobody has. */
void secret_sets_collect(int sets_fd, bool (*is_wanted)(void *userdata, const char *id),
			 void *userdata);

#endif
