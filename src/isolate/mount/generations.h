/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_GENERATIONS_H
#define NACRE_ISOLATE_GENERATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * A directory in memory whose content changes as a whole. Who looks through its link "..data" finds
 * all of one generation or all of the next one, never some of both, as in those that a kubelet
 * makes:
 *
 *   ..data -> ..g7       swapped by rename(2)
 *   ..g7/                the generation in force
 *   ..g6/                the one before, for who has just followed the link
 *   NAME -> ..data/NAME  for each name of that generation
 *
 * It is a tmpfs of its own for each name, mounted on own_fd/GENERATIONS_PREFIX NAME, and all that
 * is known of it is there: nothing need be handed over to another program of the same process. Only
 * one thread may change the same one at a time. All of this may block.
 */

#define GENERATIONS_PREFIX "files."
#define GENERATIONS_NAME_MAX 64
/* Of the tmpfs: room for some generations of MIRROR_BYTES_MAX in small files. */
#define GENERATIONS_BYTES ((uint64_t)16 << 20)
#define GENERATIONS_INODES 2048

struct tree_list;

/* Whether there is one of this name in own_fd. */
bool generations_has(int own_fd, const char *name);
/* A descriptor of its root; -ENOENT where there is none. */
int generations_open(int own_fd, const char *name);
/* The tree becomes its next generation, whose number is *ret; it is made where it is not there. The
 * first entry is a directory, whose mode and owner its root gets. Where this fails, the generation
 * before stays in force and nothing is left, but for a failure to name what is in it. */
int generations_put(int own_fd, const char *name, const struct tree_list *tree, uint64_t *ret,
		    struct error *err);
/* The same in the directory itself, whatever it is on. */
int generations_put_at(int root_fd, const struct tree_list *tree, uint64_t *ret, struct error *err);
/* Takes away what is older than the generation in force, but for those from `from` on. */
void generations_retire(int own_fd, const char *name, uint64_t from);

#endif
