/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_VOLUME_H
#define NACRE_POD_VOLUME_H

#include <stdbool.h>

#include "base/log/error.h"
#include "cell/spec.h"

/* A directory or file of the node that goes into a container. */

struct secret_file;

/* A mount; `field` is its source's name in the request, for errors. */
struct pod_mount_spec {
	const char *field;
	const char *source; /* a path of the node; NULL: a new tmpfs, or an image: */
	const char *image;  /* its reference (pod/storage/image_mounts.h); NULL: it is none */
	int fd;             /* the result of volume_open(); stays the caller's */
	bool read_only, no_exec;
	bool follow;   /* volume_open_through() */
	bool top_only; /* then read_only holds for the mount alone, not for those below it */
	bool devices;  /* device nodes in it are devices; with mount.access it may be one */
	/* `source` is the name of a volume of the node (volumes/volumes.h), which is made where it
	 * is missing; of an anonymous one a new id. */
	bool is_volume, anonymous;
	bool is_identity; /* the directory of the socket of the Workload API; `source` only says so
			   */
	bool no_copy;     /* of what the image has there, into an empty volume */
	const char *sub_path; /* in the volume or the image; NULL: all of it */
	bool map_ids;         /* of a pod in a user namespace: those of its files */
	bool chown;           /* to the user of the container */
	/* `source` is the id of a set of secrets (volumes/secrets.h), which is made of these; 0: it
	 * is none. */
	const struct secret_file *secrets;
	size_t n_secrets;
	const char *volume_id; /* of it, filled in with fd; NULL: it is none */
	/* Only in a machine of a cloud, beside no source: the name of a volume of the machine's own
	 * (isolate/mount/scratch_dir.h); of the pod, and the same for all its containers. */
	const char *scratch;
	bool one_file; /* of that; or `source` is a regular file, which is given with its content */
	struct container_mount mount;
};

/* Directories that are not given out, nor what holds them: -1 for none. */
struct volume_guard {
	int root_fd, run_fd;
	int sets_fd;     /* contents are given out all the same: our own mounts (secrets) */
	int identity_fd; /* the source of a mount with is_identity; given out, and read-only */
};

/*
 * Waits for as long as the file systems on the way do not answer: not for the loop. A detached
 * mount of what the source names in this process's own tree, for the container
 * (isolate/mount/bind.h). Resolved once, through no link at all: what is checked is what travels.
 * The error names the field: ERROR_NOT_FOUND; ERROR_INVALID for a path that is not absolute or too
 * long, and for what is not given out; ERROR_PRECONDITION for a link on the way, for what is
 * neither a directory nor a regular file (of one with mount.access: nor a device), and where its
 * own mount does not pass on what is mounted later, and mount.propagation asks for that.
 */
int volume_open(const struct volume_guard *guard, const struct pod_mount_spec *m,
		struct error *err);
/* The same where links on the way to the source are followed, as the node has them; what they lead
 * to is resolved through none. */
int volume_open_through(const struct volume_guard *guard, const struct pod_mount_spec *m,
			struct error *err);
/* Waits likewise. A log file, made where it is missing, to append to and to read: `name` below the
 * directory `dir`, neither of which leads out of it. ERROR_NOT_FOUND: there is no such directory;
 * ERROR_PRECONDITION for what is no regular file. */
int volume_open_log(const char *field, const char *dir, const char *name, struct error *err);
/* Whether an open regular file, as a disk or a kernel of a machine, may be given out: judged by
 * where the file itself lies, whatever links `path` goes through. ERROR_INVALID with the field. */
int volume_check_file(const struct volume_guard *guard, const char *field, const char *path, int fd,
		      struct error *err);

#endif
