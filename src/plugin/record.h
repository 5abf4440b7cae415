/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PLUGIN_RECORD_H
#define NACRE_PLUGIN_RECORD_H

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "wire/document/cni_config.h"
#include "wire/document/jsonread.h"

/*
 * The record of a container on a network of plugins: the request to them, with their configuration
 * as it was, and their answer. It is written before the first plugin runs, so that a program that
 * dies meanwhile leaves enough to undo it. A file CONTAINER.json in one directory; one that is to
 * be undone is called CONTAINER.gone.
 */

#define RECORD_SIZE_MAX ((size_t)4 << 20)

struct record {
	const char *container;
	const char *interface;
	const char *netns; /* path */
	const char *args;  /* CNI_ARGS */
	const char *boot;  /* the boot in which the path means something */
	struct cni_config config;
	const struct json_value *config_tree;
	const struct json_value *offered; /* NULL: nothing */
	const struct json_value *result;  /* NULL: the plugins have not all answered */
};

/* In the arena. -ENOENT: there is none; -EBADMSG: it makes no sense. */
int record_load(struct record *ret, struct arena *arena, int dir_fd, const char *container,
		bool gone);
/* By a new file that takes the name, and is on the disk. */
int record_save(const struct record *r, int dir_fd, struct error *err);
/* -ENOENT: there is none. */
int record_mark_gone(int dir_fd, const char *container);
void record_remove(int dir_fd, const char *container);
/* The containers that have one, gone or not. The caller frees the list. */
int record_list(int dir_fd, bool gone, char ***ret);

#endif
