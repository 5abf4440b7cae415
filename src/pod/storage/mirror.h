/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_MIRROR_H
#define NACRE_POD_MIRROR_H

#include "base/log/error.h"
#include "base/memory/list.h"
#include "loop/loop.h"
#include "pod/storage/volume.h"

/*
 * Volumes that change as a whole in a machine of its own kernel: small directories that are only
 * read, as those of secrets. The contents of one are read here, and given to the machine's keeper
 * in one call each time that they change (peer_ops.put_files), so that a reader there finds all old
 * or all new files, where the machine's file system of volumes would show some of both, or none.
 *
 * A directory is one of these where it is mounted read-only, has at most VOLUME_FILES_MAX files and
 * VOLUME_BYTES_MAX bytes, and is on a tmpfs, or is one in which a link "..data" is swapped and all
 * names lead through that, as a kubelet makes them. It holds no entries but files, directories and
 * links, and a name that begins with ".." is its maker's. Where that is asked for, a regular file
 * of as many bytes is one too: given once, as the file SCRATCH_DIR_FILE in a directory. Owners,
 * modes and times are kept; attributes beyond those, and that two names are one file, are not.
 *
 * A change is read MIRROR_SETTLE after the last of what belongs to it, MIRROR_SETTLE_MAX after the
 * first at the latest, and given MIRROR_PAUSE after the one before at the earliest: within a second
 * all in all. One that outgrows the limits, or cannot be read, or is gone, keeps what it had in the
 * machine. Its bytes are in the memory of this process for as long as that takes, and nowhere else.
 */

#define MIRROR_SETTLE (50 * NSEC_PER_MSEC)
#define MIRROR_SETTLE_MAX (250 * NSEC_PER_MSEC)
#define MIRROR_PAUSE (400 * NSEC_PER_MSEC)
/* Where it could not be read or given, though it might have been. */
#define MIRROR_AGAIN (2 * NSEC_PER_SEC)
#define MIRROR_THREADS 4

struct mirror;
struct peer;
struct pool;

/* A value: all of a daemon. */
struct mirrors {
	struct loop *loop;
	struct volume_guard guard;
	struct pool *pool; /* made when it is needed, as the next one */
	int inotify_fd;
	struct loop_fd source;
	struct list list;
	struct list jobs;  /* struct mirror_job: on a thread */
	uint64_t n_strays; /* events of directories that were not known to be watched */
};

void mirrors_init(struct mirrors *all, struct loop *l, const struct volume_guard *guard);
/* Waits for no thread. Behind the last mirror_free(). */
void mirrors_done(struct mirrors *all);

struct mirror_ops {
	/* The peer that it is given to; NULL: none now. */
	struct peer *(*peer)(void *userdata);
	/* Once, of one that is new: the machine has it (err NULL), or will not, and that is over.
	 * ERROR_PRECONDITION: it is not one of these volumes. */
	void (*done)(void *userdata, const struct error *err);
	/* It keeps what it had: once for each reason. It may say so again after it went well. */
	void (*kept)(void *userdata, const struct error *err);
};

struct mirror_spec {
	const char *name;   /* of the volume, in the machine */
	const char *source; /* path on the node */
	bool one_file;      /* which may be a regular file */
	int fd;             /* of what that was resolved to; -1: of an earlier life, which had it */
	const struct mirror_ops *ops;
	void *userdata;
};

/* The descriptor is taken over where this succeeds. No op is called before this has returned. 0,
 * -ENOMEM, or what inotify failed by. */
int mirror_new(struct mirror **ret, struct mirrors *all, const struct mirror_spec *spec);
/* The peer that it was given to is gone, and answers nothing any more. */
void mirror_lose_peer(struct mirror *m);
/* No op is called any more. */
struct mirror *mirror_free(struct mirror *m);

#endif
