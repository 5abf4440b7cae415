/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_IMAGE_H
#define NACRE_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "image/registry.h"
#include "isolate/spawn/ids.h"

/*
 * The images of a node. A struct image is read-only for everybody but this area, lives in memory
 * while the node runs (lists touch no disk) and in the root database. All blocking work (reading
 * archives, unpacking, hashing, removing trees) is done by the helper `nacre-fetch` or on the pool.
 *
 * Below the node's root directory: blobs/sha256/HEX (content, by digest, verified), layers/N/ (one
 * unpacked layer each, N a number, shared by images by their chain of diff ids),
 * containers/ID/{upper, work} (what a container writes), erofs/N (chains of layers as files),
 * partial/HEX (unfinished downloads, which the next pull goes on with), staging/ (emptied at
 * start).
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
	char **volumes;    /* the paths of its VOLUME, as they stand there */
	char **health; /* its HEALTHCHECK, in the words of wire/message/fetchmsg.h; empty: none */
};

struct image {
	struct list link;
	char id[72];      /* digest of the configuration: "sha256:..." */
	char digest[72];  /* of the manifest */
	char **names;     /* "docker.io/library/busybox:latest", strv; may be empty */
	uint64_t size;    /* bytes of the compressed layers and documents */
	uint64_t created; /* wall clock, nanoseconds: when it was imported */
	/* Its names in registries, "docker.io/library/busybox@sha256:...": the digest is that of
	 * the index where it is one of several platforms. strv; may be empty. */
	char **origins;
	char **verdicts; /* of the policy, when it was pulled (image_verdicts()): a strv */
	char *source;    /* where it came from, "file:/x.tar"; "" where that is not known */
	bool pinned;     /* neither removed nor pruned until it is unpinned */
	struct image_config config;
	int64_t *layers; /* numbers, lowest first */
	size_t n_layers;
	unsigned n_users; /* containers on it: while > 0 it cannot be removed */
};

/*
 * The lower layers of the root file systems of containers: the directories of the layers; the EROFS
 * file of them all, which is made when it is first needed; or the file where there is one already
 * (a microVM has run the image) and the kernel can mount it (isolate/disk/erofs_file.h), and else
 * the directories.
 */
enum image_root { IMAGE_ROOT_OVERLAY, IMAGE_ROOT_EROFS, IMAGE_ROOT_AUTO };

/* 256 MiB, of a small disk a twentieth. */
#define IMAGE_RESERVE_USUAL UINT64_MAX

struct image_store_config {
	struct loop *loop;
	struct pool *pool;
	struct root_store *store;  /* the root database */
	int root_fd;               /* the node's root directory; kept open by the caller */
	const char *fetch_path;    /* the helper, "/usr/libexec/nacre/nacre-fetch"; copied */
	const char *transfer_path; /* the one with a network, nacre-transfer; copied */
	unsigned parallel_unpacks; /* layers of an image at once; 0: a processor each, at most 4 */
	uint64_t reserve;          /* bytes of the disk that images leave free, or as usual */
	enum image_root root;
	struct image_network network; /* all that it points to must live as long as the store */
};

/* Reads the records, removes what an import left half done (staging, layers without a record). To
 * be freed after the pool and before the root database; imports that run are killed without a word.
 */
int image_store_new(struct image_store **ret, const struct image_store_config *config,
		    struct error *err);
struct image_store *image_store_free(struct image_store *s);

struct arena;
struct buf;
/* The verdict of the policy on each reference that the image was pulled by and still has, in the
 * arena; without annotations. -ENOMEM. */
int image_verdicts(const struct image *image, struct arena *a, struct image_verdict **ret,
		   size_t *ret_n);

/* The head of the list of all images (struct image.link). */
const struct list *image_store_list(const struct image_store *s);

/*
 * By name (normalised: "busybox" is "docker.io/library/busybox:latest"), by id or digest of its
 * manifest or of an index that it was pulled by ("sha256:HEX", or behind a name), or by at least 6
 * hexadecimal digits of the id. NULL with err: ERROR_NOT_FOUND, or ERROR_INVALID for something that
 * is no reference, or is ambiguous.
 */
struct image *image_store_find(struct image_store *s, const char *reference, struct error *err);

/*
 * Imports an OCI layout (tar, also compressed, or a directory) or the tar of `docker save`; or,
 * with a config, the tar of a root file system (also compressed), of which an image of one layer is
 * made. At the end: image is the (first) imported image, or NULL with err. Never calls back before
 * it has returned. Importing the same image twice is success and adds its names.
 *
 * Objects in a layout beside images (SBOMs, signatures) are skipped. An image whose name in the
 * archive is a tag alone has it behind the name of the file or directory, where `source` is "".
 */
struct image_import_what {
	const char *path; /* absolute; opened with the daemon's rights */
	const char *name; /* "": the names that the archive carries */
	/* "", or JSON: `architecture`, `variant` and `config` as in OCI's image configuration, each
	 * of which may be missing. */
	const char *config;
	const char *source; /* to be recorded as its origin; "": "file:" and the path */
	/* Of an archive with several images, the one that the archive names so, alone; "" all. */
	const char *ref;
};
struct image_import_ops {
	/* A line for people ("layer 2 of 5: unpacked, 31.4 MB"); may be NULL. */
	void (*on_progress)(void *userdata, const char *text);
	/* Each image, in the order of the archive, right before a good end; may be NULL. May not
	 * cancel. */
	void (*on_image)(void *userdata, struct image *image);
	void (*on_done)(void *userdata, struct image *image, const struct error *err);
};

int image_import_start(struct image_store *s, const struct image_import_what *what,
		       const struct image_import_ops *ops, void *userdata,
		       struct image_import **ret, struct error *err);
/* Kills the helper and undoes; on_done is not called. */
void image_import_cancel(struct image_import *i);

/*
 * Removes a name; the last name takes the image with it. A reference by id or digest takes the
 * image with all its names. ERROR_PRECONDITION while a container uses it, and for one that is
 * pinned. done (may be NULL) is called when the files are gone too, but for those that a lease
 * holds: they go with it.
 */
int image_store_remove(struct image_store *s, const char *reference,
		       void (*done)(void *userdata, const struct error *err), void *userdata,
		       struct error *err);

/*
 * Gives the image one more name, which any other image loses; `name` is no digest. Or pins it, or
 * not. Both hold in memory at once, and done (may be NULL) tells when the database has it; where
 * that failed, all is as before. -ENOMEM, and the errors of image_store_find().
 */
typedef void (*image_changed_fn)(void *userdata, const struct error *err);
int image_store_tag(struct image_store *s, const char *reference, const char *name,
		    image_changed_fn done, void *userdata, struct error *err);
int image_store_pin(struct image_store *s, const char *reference, bool pinned,
		    image_changed_fn done, void *userdata, struct error *err);

/*
 * Holds what an image is made of, for who reads it (an export, a push): the image may be removed
 * meanwhile, its content stays until the lease ends. Ends with the process too: what no record
 * names goes at the next start.
 */
struct image_lease;
int image_lease_new(struct image_lease **ret, struct image_store *s, const struct image *image);
struct image_lease *image_lease_free(struct image_lease *l);
/* The image as it was. */
const struct image *image_lease_image(const struct image_lease *l);
/* The digests of all its blobs: a strv. */
char *const *image_lease_blobs(const struct image_lease *l);
/* The blob, open for reading, or a negative errno. Its bytes are not verified: for helpers, which
 * compare them with the digest. */
int image_lease_open(const struct image_lease *l, const char *digest);
/* Reads one of its documents (manifest, configuration), at most 4 MiB, and verifies its digest.
 * ERROR_FAULT that names the blob where that is wrong or the blob is missing; ret counts for
 * nothing then. */
int image_lease_read(const struct image_lease *l, const char *digest, struct buf *ret,
		     struct error *err);

/*
 * Writes images as one archive, a tar: an OCI layout, or the same with the manifest.json of `docker
 * save`. An image that is named by a name has that one there, else all that it has. The contents of
 * the archive are held until the end, and its bytes are verified while they are read; that they
 * were wrong can come when most of them are out, so only an end without err makes an archive.
 */
enum image_export_form { IMAGE_EXPORT_OCI, IMAGE_EXPORT_DOCKER };

struct image_export;
struct image_export_ops {
	/* One of the images; `digest` is that of its manifest in the archive: another one where the
	 * store has it in Docker's form, since that is written in OCI's. names: a strv. May not
	 * cancel. */
	void (*on_image)(void *userdata, const char *id, const char *digest, char *const *names);
	/* The next bytes. */
	void (*on_data)(void *userdata, const void *data, size_t len);
	void (*on_end)(void *userdata, const struct error *err);
};
/* Never calls back before it has returned. Errors: those of image_store_find(), with the field
 * "images[N]"; ERROR_EXHAUSTED for too many images, and exports at once. */
int image_export_start(struct image_store *s, char *const *references, size_t n,
		       enum image_export_form form, const struct image_export_ops *ops,
		       void *userdata, struct image_export **ret, struct error *err);
/* Whether nothing more is to come for now; the helper waits then. */
void image_export_pause(struct image_export *x, bool paused);
/* on_end is not called. */
void image_export_cancel(struct image_export *x);

/*
 * The space that images take on the disk, as du(1) counts it. Lives until the callback returns.
 * `own` of an image are the bytes that no other image holds, `shared` the rest; both with layers,
 * blobs and EROFS files.
 */
struct image_usage_image {
	const struct image *image;
	uint64_t own, shared;
};
struct image_usage_item {
	const char *name;
	uint64_t bytes;
	int64_t changed; /* last written to, seconds since 1970 */
};
struct image_usage {
	const struct image_usage_image *images;
	size_t n_images;
	const struct image_usage_item *containers; /* by id: what they wrote */
	size_t n_containers;
	const struct image_usage_item *partials; /* by the digits of the digest */
	size_t n_partials;
	/* All together, also what was left out of these lists. */
	uint64_t layer_bytes, blob_bytes, erofs_bytes, container_bytes, partial_bytes,
		staging_bytes, database_bytes;
	uint64_t reclaimable; /* bytes that pruning all would free (image_store_prune()) */
	uint64_t free_bytes, reserve;
	bool incomplete; /* something could not be read, or is beyond a limit (measure.h) */
};
typedef void (*image_usage_fn)(void *userdata, const struct image_usage *u,
			       const struct error *err);
int image_store_usage(struct image_store *s, image_usage_fn done, void *userdata,
		      struct error *err);

/*
 * The same as two sums, with the numbers of inodes, for who asks all the time: an unpacked layer is
 * counted once in the life of the daemon, since it does not change. Calls that come while one is
 * being answered share the count that follows it. done is not called before this has returned.
 */
struct image_space_part {
	uint64_t bytes, n_inodes;
};
struct image_space {
	struct image_space_part images;     /* layers, blobs, EROFS files, layers being unpacked */
	struct image_space_part containers; /* files that they wrote */
	uint64_t at;                        /* wall clock, nanoseconds: when it was counted */
};
typedef void (*image_space_fn)(void *userdata, const struct image_space *s,
			       const struct error *err);
int image_store_space(struct image_store *s, image_space_fn done, void *userdata,
		      struct error *err);

/*
 * Removes images that no container uses and that are not pinned: those without a name, or all of
 * them; of these only those imported so long ago. With them partial downloads that nobody goes on
 * with (as long ago), and whatever lies in the store and belongs to nobody. With dry_run it only
 * tells. done is called when all of it is gone.
 */
struct image_prune_options {
	bool all;
	bool dry_run;
	uint64_t older_than; /* seconds */
};
struct image_pruned_item {
	const char *kind; /* "image", "partial", "blob", "layer", "erofs", "container", "staging" */
	const char *id;   /* of an image, or the name of the file */
	char *const *names; /* of an image; else NULL */
	uint64_t bytes;     /* that are freed with it */
	struct error err;   /* code 0: it is gone (or would go); bytes do not count otherwise */
};
struct image_pruned {
	const struct image_pruned_item *items;
	size_t n;
	uint64_t bytes;
};
typedef void (*image_prune_fn)(void *userdata, const struct image_pruned *p,
			       const struct error *err);
int image_store_prune(struct image_store *s, const struct image_prune_options *o,
		      image_prune_fn done, void *userdata, struct error *err);

/*
 * Before the first root file system of an image: 0 when one can be made at once; 1 when a file has
 * to be made for it first (IMAGE_ROOT_EROFS), and done is called later, once, unless
 * image_rootfs_forget() is called before, with the same userdata and not from within done. The
 * image is held (n_users) by the caller until then. ERROR_PRECONDITION where the kernel cannot
 * mount such a file.
 */
typedef void (*image_rootfs_fn)(void *userdata, const struct error *err);
int image_rootfs_await(struct image_store *s, struct image *image, image_rootfs_fn done,
		       void *userdata, struct error *err);
void image_rootfs_forget(struct image_store *s, void *userdata);
/*
 * The tree that its layers make, as a detached mount: read-only, without set-id, devices and
 * execution. The image is held (n_users) by the caller for as long as somebody reads it.
 */
int image_view_open(struct image_store *s, const struct image *image, const struct isolate_ids *ids,
		    struct error *err);
/*
 * A mount for a container of an image that it does not run: as image_view_open(), but its programs
 * can be executed, unless no_exec is set. sub_path: a directory or regular file in it, relative,
 * links in it stay in the image; NULL: all of it. ERROR_NOT_FOUND; ERROR_PRECONDITION for what is
 * neither. The image is held (n_users) by the caller for as long as the mount is there.
 */
int image_mount_open(struct image_store *s, const struct image *image,
		     const struct isolate_ids *ids, const char *sub_path, bool no_exec,
		     struct error *err);
/*
 * The root file system of a new container: an overlay of the image's layers, as directories or as
 * one file (struct image_store_config.root), with a fresh upper directory (removed by
 * image_rootfs_remove()), as a detached mount. The caller owns the descriptor and holds the image
 * (n_users) until image_rootfs_remove().
 *
 * ids: of the user namespace that it is for; NULL or not set: none. Files on the disk have the ids
 * that the container sees, whatever they are outside. ERROR_PRECONDITION where the kernel, or the
 * file system of the node's root directory, cannot map ids.
 *
 * limit: of what the upper directory may take; NULL or 0 bytes: all of the disk. It is a quota of a
 * project, or the directory lies on a file system of its own (image/rootfs/limited.h), whose blocks
 * are allocated here. ERROR_EXHAUSTED where the disk has no room for them and the reserve.
 */
struct image_limit {
	uint64_t bytes;
	/* The container cannot give its files another project (isolate/disk/quota.h): a quota will
	 * do, where the file system has them. */
	bool by_project;
};
int image_rootfs_make(struct image_store *s, struct image *image, const char *container_id,
		      const struct image_limit *limit, const struct isolate_ids *ids,
		      struct error *err);
/* Whether the kernel and the node's root directory can map ids: tried once in the life of the
 * store.
 */
bool image_store_maps_ids(struct image_store *s);
/* The root file system of a container that has one and does not run, to be run again: with the
 * files that it has, else as image_rootfs_make(). A failure leaves them as they are.
 * ERROR_PRECONDITION where they are gone, or its own file system is still in use. */
int image_rootfs_again(struct image_store *s, struct image *image, const char *container_id,
		       const struct isolate_ids *ids, struct error *err);
/* The root file system of a container that has ended, once more, for copying: a detached mount that
 * the caller owns. Nobody else may have one of the same container. ERROR_PRECONDITION where its
 * files, or its image, are gone, or its own file system is still in use. */
int image_rootfs_open(struct image_store *s, const struct image *image, const char *container_id,
		      struct error *err);
/* The directory of a container's overlay that has what it has changed, running or ended, for
 * reading. ERROR_PRECONDITION where its files are gone, or where they are on a file system of its
 * own that is in use. */
int image_rootfs_open_changes(struct image_store *s, const char *container_id, struct error *err);
/* Takes a container's directories away, on the pool; tries again later where they are busy. image
 * may be NULL (a container of an earlier life of the daemon whose image is gone). */
void image_rootfs_remove(struct image_store *s, struct image *image, const char *container_id);
/*
 * The image as one read-only EROFS file, for an instance with a kernel of its own: made by Debian's
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

/*
 * The room on the disk of the root directory, as of now: one system call. `floor` is what
 * containers leave free: the reserve, and a part of it more, since a writer is stopped a moment
 * after it is seen. Both are 0 where nothing is to stay free.
 */
struct image_room {
	uint64_t free, reserve, floor;
};
int image_room_look(const struct image_store *s, struct image_room *ret);
/*
 * Room that is put aside in the root directory, a file `ballast` of 16 MiB at most (of a small disk
 * a part), none where nothing is to stay free. Where the disk is full each change of a workload
 * takes a piece of it, as much as that needs, so that they start, end and are removed there too.
 */
void image_ballast_spend(const struct image_store *s);
/* Makes it whole where more than the floor is free then. */
void image_ballast_restore(const struct image_store *s);
/* Refuses to write `need` bytes for a container where less than the floor would stay:
 * ERROR_EXHAUSTED. */
int image_room_check(const struct image_store *s, uint64_t need, struct error *err);
/* The directory with a directory for each container, by id: for image/content/measure.h. The
 * store's own.
 */
int image_containers_fd(const struct image_store *s);

#endif
