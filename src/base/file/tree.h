/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_TREE_H
#define NACRE_BASE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"

/*
 * A tree of files as a row of entries, for copying it across a wall: read by tree_source (what it
 * is made of), written by tree_sink. Neither leaves the root that it was given, whatever the owner
 * of the files does meanwhile; neither ever opens a FIFO, a socket or a device, nor touches a file
 * system of the kernel (proc, sysfs, cgroup, ...). What they hold is bounded. Both block: they are
 * for a thread of the pool, or for a program of its own.
 */

enum tree_type {
	TREE_FILE,      /* its data follow */
	TREE_DIRECTORY, /* before what is in it */
	TREE_LINK,      /* symbolic */
	TREE_HARD_LINK, /* another name of a file that was told of before: `target` is its path */
	TREE_FIFO,      /* made, never opened */
	TREE_OTHER,     /* is told of, and not copied */
};

#define TREE_DEPTH_MAX 256
#define TREE_PATH_MAX 4096
#define TREE_EXTENTS_MAX 65536 /* of a file with holes; past it, its end is one extent */
#define TREE_LINKS_MAX                                                                             \
	65536 /* files with several names that are remembered; the rest are copied                 \
		 once for each name */

/* A part of a file that has data. */
struct tree_extent {
	uint64_t at, len;
};

struct tree_entry {
	enum tree_type type;
	/* Relative, names parted by '/', neither "." nor "..". The first name is that of the root
	 * of the tree; it may be ".": the content of a directory, without its name. */
	const char *path;
	mode_t mode; /* 07777 */
	uid_t uid;
	gid_t gid;
	uint64_t mtime;     /* wall clock, nanoseconds; what lies before 1970 is 0 */
	uint64_t size;      /* of a file */
	const char *target; /* of a link */
	/* Of a file: where its data belong, in order and apart from each other; the rest of `size`
	 * are holes. NULL: it has none. */
	const struct tree_extent *map;
	size_t n_map;
	const char *reason; /* TREE_OTHER: why it is not copied */
};

/* ---- reading ---- */

struct tree_source;

#define TREE_FOLLOW 1U /* a link at the end of the path is followed */
#define TREE_EXACT 2U  /* hard links and holes are told as such, else as files in full */
/* Mount points in the tree are empty directories or files, where the kernel tells (since 5.8). */
#define TREE_ONE_MOUNT 4U

/* The file, link or directory `path` in the root, with all that is in it. Links on the way are
 * followed inside of the root, one at its end is the thing itself unless '/' is behind it, or
 * TREE_FOLLOW among the flags. The root of the tree is called as the end of path, or `name` where
 * that has none ("/", "/a/."). ERROR_NOT_FOUND, ERROR_INVALID. */
int tree_source_open(struct tree_source **ret, int root_fd, const char *path, const char *name,
		     unsigned flags, struct error *err);
struct tree_source *tree_source_free(struct tree_source *s);
static inline void tree_source_freep(struct tree_source **s)
{
	*s = tree_source_free(*s);
}

/* 1: *ret is the next entry, valid until the next call. 0: there are no more. Or a negative errno,
 * ERROR_EXHAUSTED past TREE_DEPTH_MAX or TREE_PATH_MAX. What goes away meanwhile is left out. */
int tree_source_next(struct tree_source *s, struct tree_entry *ret, struct error *err);
/* Up to `size` bytes of the file that was told of last, at most entry.size in all, or those of its
 * map one behind the other; 0 at its end. */
ssize_t tree_source_read(struct tree_source *s, void *data, size_t size, struct error *err);

/* ---- writing ---- */

struct tree_sink;

/*
 * Where `path` is a directory, or a link to one, the tree is put into it: under its own name, or
 * its content alone where that is ".". Else the tree becomes `path`, whose parent must be a
 * directory: what a link at the end of the path leads to. A file in that place is replaced by a
 * file, a device by nothing, and '/' at the end wants a directory. ERROR_NOT_FOUND, ERROR_INVALID,
 * ERROR_PRECONDITION; the last also from the first entry.
 */
int tree_sink_open(struct tree_sink **ret, int root_fd, const char *path, struct error *err);
/* Whether the destination is a directory that is there. ERROR_NOT_FOUND, ERROR_PRECONDITION. */
int tree_sink_check_directory(const struct tree_sink *s, struct error *err);
/* The entry "." gives the destination, where it is a directory that is there, its mode, owner and
 * time. Else it keeps its own, as each directory does that is there. */
void tree_sink_dress_top(struct tree_sink *s);
/* Whatever the entries say, the root of the tree has this name ("." as above): whoever sends them
 * does not choose it. -ENAMETOOLONG. */
int tree_sink_set_root(struct tree_sink *s, const char *name);
/* A file that is not complete is taken away. */
struct tree_sink *tree_sink_free(struct tree_sink *s);
static inline void tree_sink_freep(struct tree_sink **s)
{
	*s = tree_sink_free(*s);
}

/* Completes the file before it, and begins the next entry. A file takes its place as a whole, in
 * place of a file or link that is there; a directory may be there. Links are made, and never
 * followed. ERROR_INVALID for an entry that cannot be, ERROR_PRECONDITION for a file in the place
 * of a directory, or the other way round. owner: set uid and gid as well. */
int tree_sink_entry(struct tree_sink *s, const struct tree_entry *e, bool owner, struct error *err);
int tree_sink_write(struct tree_sink *s, const void *data, size_t len, struct error *err);
/* Completes the last file. */
int tree_sink_finish(struct tree_sink *s, struct error *err);

/* ---- both ---- */

/* Whether it is the path of an entry; ERROR_INVALID names `field`. */
int tree_check_path(const char *field, const char *path, struct error *err);

/* Whether what the descriptor stands for is on a file system of the kernel: its files are acts. */
bool tree_is_kernels(int fd);

#endif
