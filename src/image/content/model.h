/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_MODEL_H
#define NACRE_IMAGE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/list.h"
#include "base/memory/map.h"
#include "image/helper/budget.h"
#include "image/helper/helper_namespaces.h"
#include "image/image.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "wire/name/digest.h"
#include "wire/name/reference.h"

/*
 * The state that this area keeps in memory: images with their names, and the content that they
 * share, counted. A layer or blob is held by each image that is made of it and by each import that
 * uses it; with the last hold its files go. Private to src/image.
 */

struct image_import;
struct root_image;
struct inventory;

/* An unpacked layer: what it lies on and what it holds make it what it is. */
struct layer {
	int64_t number;
	int64_t parent; /* 0: none */
	char diff_id[DIGEST_SIZE];
	/* The last that was seen to hold the tar of this diff id; "": not known. Any other blob may
	 * hold something else whatever a configuration says. */
	char blob[DIGEST_SIZE];
	uint64_t size;
	unsigned n_holds;
	unsigned n_marks; /* for who counts (prune.c, usage.c); 0 in between */
	uint64_t bytes;   /* likewise: on the disk, with its EROFS file */
	bool measured;    /* space.c has: */
	struct image_space_part space;
	char key[DIGEST_SIZE + 24];
};

struct blob {
	char digest[DIGEST_SIZE];
	unsigned n_holds;
	unsigned n_marks; /* as those of a layer */
	uint64_t bytes;
};

struct image_record {
	struct image image;
	char **blobs; /* digests */
};

struct image_store {
	struct image_store_config config;
	char *fetch_path, *transfer_path; /* the configuration's are the caller's */
	int blobs_fd, layers_fd, containers_fd, staging_fd, erofs_fd, partial_fd;
	struct helper_namespaces helper_namespaces; /* while layers are unpacked */
	char **lost; /* ids of images without a layer, whose records image_rootfs_sweep() drops */
	struct budget budget;
	struct list closings; /* closing.h */
	struct list images;
	struct list leaving; /* records that are being removed */
	struct map layers;   /* by key */
	struct map blobs;    /* by digest */
	int64_t last_layer;  /* number */
	struct list imports;
	unsigned n_imports;
	struct list recordings; /* of single images, that are under way (recording.h) */
	struct list layerings;  /* that are under way */
	struct list leases;
	struct list exports; /* that are under way */
	unsigned n_exports;
	struct list surveys; /* that are under way (survey.h) */
	struct list prunes;  /* likewise (prune.c) */
	struct list spaces;  /* counts that run, or wait for the one before (space.c) */
	struct loop_timer collector;
	bool swept; /* all containers are known */
	struct list pulls;
	unsigned n_pulls;
	struct list pushes;
	unsigned n_pushes;
	struct list copies;
	unsigned n_copies;
	struct list listings; /* lists that registries are being asked for */
	unsigned n_listings;
	struct list verifies; /* verdicts that are being asked for (verify.c) */
	unsigned n_verifies;
	struct list transfer_jobs; /* transfer_job.h */
	struct map blob_downloads; /* by digest (blob_download.h) */
	struct list trash;         /* files that are being deleted */
	uint64_t n_trash;          /* for names */
	struct list erofs;         /* that are being made (erofs.h) */
	uint64_t n_erofs;          /* for names */
	struct list lowers;        /* that are mounted (lower.h) */
	struct list lower_waits;
	bool tried_lower; /* whether the kernel can; lower_fault: why not */
	struct error lower_fault;
	struct map containers;    /* struct image_container by id: made or adopted */
	bool attaches_ids;        /* a kernel before 6.15 (overlay.c) */
	bool tried_ids, maps_ids; /* image_store_maps_ids() */
	bool old_overlay;         /* a kernel before 6.5, without lowerdir+ */
	bool open; /* until then no other thread knows of it: it may still be freed */
};

/* ---- records ---- */

/* A copy of the record in the database, not in the store's list yet. Holds nothing. NULL without
 * memory. */
struct image_record *image_record_new(const struct root_image *image);
struct image_record *image_record_free(struct image_record *r);
static inline struct image_record *image_record_of(struct image *image)
{
	return container_of(image, struct image_record, image);
}
/* A view for the database; lives as long as the record stays as it is. */
void image_record_view(const struct image_record *r, struct root_image *ret);

struct image *image_store_by_id(const struct image_store *s, const char *id);
/* The image that has this full name. */
struct image *image_store_by_name(const struct image_store *s, const char *name);
/* image_store_find(); *ret_name: the full name, where the reference was one of the image's. */
struct image *image_store_find_name(struct image_store *s, const char *reference,
				    char ret_name[REFERENCE_SIZE], struct error *err);
bool image_has_name(const struct image *image, const char *name);
/* Whether a registry had it by this digest. */
bool image_has_origin(const struct image *image, const char *digest);
/* Gives it the name and takes it from any other image. -ENOMEM: nothing changed. */
int image_store_give_name(struct image_store *s, struct image *image, const char *name);
void image_drop_name(struct image *image, const char *name);

/* ---- content ---- */

struct layer *layer_find(const struct image_store *s, int64_t parent, const char *diff_id);
struct layer *layer_by_number(const struct image_store *s, int64_t number);
/* Without a hold. NULL without memory, or where the store has it already. */
struct layer *layer_add(struct image_store *s, int64_t number, int64_t parent, const char *diff_id,
			uint64_t size);
void layer_hold(struct layer *l);
/* Holds the blob, made known where it was not. -ENOMEM. */
int blob_hold(struct image_store *s, const char *digest);

/* Holds all that the record is made of. -ENOENT where a layer is not there (nothing is held then).
 */
int image_record_hold(struct image_store *s, const struct image_record *r);

/*
 * Downloads that are not whole yet: partial/HEX, named after the blob that is to come. They outlive
 * the daemon, so that a later pull goes on where this one ended. One that no download
 * (blob_download.h) holds is collected a day after it was last written to, or sooner where the disk
 * is nearly full (collect.h, room.h).
 */
#define PARTIAL_SECONDS_MAX (24 * 60 * 60)
#define BLOB_DOWNLOAD_NAME_SIZE (DIGEST_SIZE + 12) /* of a download's digest, and "-N" */
bool partial_is_held(const struct image_store *s, const char *name);

/*
 * Drops a hold. An object without holds leaves the model and its files are moved into the trash.
 * `removal` (may be NULL) is told when they are gone.
 */
struct trash_watch {
	unsigned n_pending;
	void (*gone)(struct trash_watch *w);
};
void layer_release(struct image_store *s, struct layer *l, struct trash_watch *watch);
void blob_release(struct image_store *s, const char *digest, struct trash_watch *watch);
void image_record_release(struct image_store *s, const struct image_record *r,
			  struct trash_watch *watch);

/* ---- trash ---- */

/*
 * Moves dir_fd/name out of sight at once, and deletes it on the pool; `watch` (may be NULL) is told
 * then. A failure to move or delete is retried for ever, and nothing waits for that; an entry that
 * lies neither in staging nor among blobs, layers or root file systems goes with its directory.
 * Without memory it stays until the next start.
 */
void trash_add(struct image_store *s, int dir_fd, const char *name, struct trash_watch *watch);
/* The store is open: what was added before is deleted from now on. */
void trash_begin(struct image_store *s);
void trash_done(struct image_store *s);
/* Names what is being deleted, or is still to be moved. */
void trash_inventory(const struct image_store *s, struct inventory *t);

#endif
