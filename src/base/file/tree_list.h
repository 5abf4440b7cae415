/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_TREE_LIST_H
#define NACRE_BASE_TREE_LIST_H

#include "base/file/tree.h"

/*
 * A small tree of files in memory, to be passed on as a whole. What it held of files is overwritten
 * when it goes: they may be secrets.
 */

struct tree_item {
	struct tree_entry entry; /* path and target are its own; never TREE_OTHER */
	uint8_t *data;           /* of a file: entry.size bytes of it; NULL for none */
};

/* A value. */
struct tree_list {
	struct tree_item *items; /* a directory before what is in it */
	size_t n;
	uint64_t bytes; /* of all files */
};

#define TREE_LIST_INIT                                                                             \
	{                                                                                          \
		.items = NULL                                                                      \
	}

struct tree_list_limits {
	size_t n_max; /* entries, the root among them */
	uint64_t bytes_max;
};

/*
 * Reads the directory `path` in the root (tree_source_open()) into a list that is empty, and stays
 * so where this fails. on_directory, which may be NULL, is called for each directory before it is
 * read, with its path below the root of the tree ("" for that itself); an error ends the reading.
 * ERROR_EXHAUSTED past a limit; ERROR_PRECONDITION where something in it is neither a file nor a
 * directory nor a link.
 */
int tree_list_read(struct tree_list *l, int root_fd, const char *path,
		   const struct tree_list_limits *limits,
		   int (*on_directory)(void *userdata, const char *below), void *userdata,
		   struct error *err);
/* Writes all of it (tree_sink.h says how), its owners too, as the directory `name` that is not in
 * dir_fd yet. What is there of it after an error is the caller's to take away. */
int tree_list_write(const struct tree_list *l, int dir_fd, const char *name, struct error *err);
void tree_list_done(struct tree_list *l);

#endif
