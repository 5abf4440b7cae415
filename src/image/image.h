/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_IMAGE_H
#define NACRE_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"

/*
 * The images of a node. A struct image is read-only for everybody but this area, lives in memory
 * while the node runs (lists touch no disk) and in the root database. All blocking work (reading
 * archives, unpacking, hashing, removing trees) is done by the helper `nacre-fetch` or on the pool.
 *
 * Below the node's root directory: blobs/sha256/HEX (content, by digest, verified), layers/N/ (one
 * unpacked layer each, N a number, shared by images by their chain of diff ids),
 * containers/ID/{upper, work} (what a container writes), staging/ (emptied at start).
 */

struct loop;
struct pool;
struct root_store;
struct image_store;
struct image_import;

struct image_config {
	char **env;
	char **entrypoint;
	char **cmd;
	char *user;        /* "" where the image names none */
	char *working_dir; /* "" likewise */
	char *stop_signal; /* "" likewise */
};

struct image {
	struct list link;
	char id[72];      /* digest of the configuration: "sha256:..." */
	char digest[72];  /* of the manifest */
	char **names;     /* "docker.io/library/busybox:latest", strv; may be empty */
	uint64_t size;    /* bytes of the compressed layers and documents */
	uint64_t created; /* wall clock, nanoseconds: when it was imported */
	struct image_config config;
	int64_t *layers; /* numbers, lowest first */
	size_t n_layers;
	unsigned n_users; /* containers on it: while > 0 it cannot be removed */
};

struct image_store_config {
	struct loop *loop;
	struct pool *pool;
	struct root_store *store; /* the root database */
	int root_fd;              /* the node's root directory; kept open by the caller */
	const char *fetch_path;   /* the helper, "/usr/libexec/nacre/nacre-fetch"; copied */
};

/* Reads the records, removes what an import left half done (staging, layers without a record). To
 * be freed after the pool and before the root database; imports that run are killed without a word.
 */
int image_store_new(struct image_store **ret, const struct image_store_config *config,
		    struct error *err);
struct image_store *image_store_free(struct image_store *s);

/* The head of the list of all images (struct image.link). */
const struct list *image_store_list(const struct image_store *s);

/*
 * By name (normalised: "busybox" is "docker.io/library/busybox:latest"), by digest or id
 * ("sha256:HEX"), or by at least 6 hexadecimal digits of the id. NULL with err: ERROR_NOT_FOUND, or
 * ERROR_INVALID for something that is no reference, or is ambiguous.
 */
struct image *image_store_find(struct image_store *s, const char *reference, struct error *err);

/*
 * Imports an OCI layout (tar, also compressed, or a directory) or the tar of `docker save`. `path`
 * is absolute, opened with the daemon's rights. name "" takes the names that the archive carries.
 * At the end: image is the (first) imported image, or NULL with err. Never calls back before it has
 * returned. Importing the same image twice is success and adds its names.
 */
struct image_import_ops {
	/* A line for people ("layer 2 of 5: unpacked, 31.4 MB"); may be NULL. */
	void (*on_progress)(void *userdata, const char *text);
	void (*on_done)(void *userdata, struct image *image, const struct error *err);
};

int image_import_start(struct image_store *s, const char *path, const char *name,
		       const struct image_import_ops *ops, void *userdata,
		       struct image_import **ret, struct error *err);
/* Kills the helper and undoes; on_done is not called. */
void image_import_cancel(struct image_import *i);

/*
 * Removes a name; the last name takes the image with it. A reference by id or digest takes the
 * image with all its names. ERROR_PRECONDITION while a container uses it. done (may be NULL) is
 * called when the files are gone too.
 */
int image_store_remove(struct image_store *s, const char *reference,
		       void (*done)(void *userdata, const struct error *err), void *userdata,
		       struct error *err);

/*
 * The root file system of a new container: an overlay of the image's layers with a fresh upper
 * directory (removed by image_rootfs_remove()), as a detached mount. The caller owns the descriptor
 * and holds the image (n_users) until image_rootfs_remove().
 */
int image_rootfs_make(struct image_store *s, struct image *image, const char *container_id,
		      struct error *err);
/* Takes a container's directories away, on the pool; tries again later where they are busy. image
 * may be NULL (a container of an earlier life of the daemon whose image is gone). */
void image_rootfs_remove(struct image_store *s, struct image *image, const char *container_id);
/*
 * The image as one read-only EROFS file, for who has a kernel of his own: made by Debian's
 * mkfs.erofs when it is first asked for, kept as long as its layers. done is called once, and not
 * before this has returned: with a descriptor (O_RDONLY), which is the callee's, or -1 and err:
 * ERROR_PRECONDITION where mkfs.erofs is missing. The caller holds the image (n_users) until then.
 */
typedef void (*image_erofs_fn)(void *userdata, int fd, const struct error *err);
int image_erofs_open(struct image_store *s, struct image *image, image_erofs_fn done,
		     void *userdata, struct error *err);

/* After a restart: holds the image for a container that lives on. Everything below containers/ that
 * no call of this kind named is removed by image_rootfs_sweep(). */
void image_rootfs_adopt(struct image_store *s, struct image *image, const char *container_id);
void image_rootfs_sweep(struct image_store *s);

#endif
