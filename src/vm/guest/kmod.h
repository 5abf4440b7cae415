/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_KMOD_H
#define NACRE_VM_KMOD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "base/memory/buf.h"

/*
 * The modules of a kernel, found in its directory (lib/modules/RELEASE), and put into an order in
 * which they can be loaded: each behind what it says it depends on. Names have '_' where files may
 * have '-', as the kernel has it. An index that depmod makes is not needed.
 */

#define KMOD_NAME_MAX 55 /* of the kernel */
#define KMOD_FILES_MAX 20000
#define KMOD_DEPTH_MAX 16          /* directories */
#define KMOD_LOAD_MAX 256          /* modules that are put into an order */
#define KMOD_BYTES_MAX (64u << 20) /* of one module */
#define KMOD_BUILTIN_BYTES_MAX (1u << 20)

struct kmod_tree;

/* dir_fd stays the caller's, and open; -1: a kernel without modules, which has everything. */
int kmod_tree_open(struct kmod_tree **ret, int dir_fd, struct error *err);
struct kmod_tree *kmod_tree_free(struct kmod_tree *t);
static inline void kmod_tree_freep(struct kmod_tree **t)
{
	*t = kmod_tree_free(*t);
}

/* How much it is wanted; what two want differently is taken as the one that wants it more. */
enum kmod_want {
	KMOD_MUST,
	KMOD_MAY,   /* it can be done without */
	KMOD_LATER, /* likewise, and nobody waits for it at boot */
};

struct kmod {
	char name[KMOD_NAME_MAX + 1];
	enum kmod_want want;
	struct buf data;
};

struct kmod_list {
	struct kmod *items;
	size_t n;
};

#define KMOD_LIST_INIT                                                                             \
	{                                                                                          \
		.items = NULL                                                                      \
	}

/*
 * Puts a module behind all that it needs and that is not in the list yet; nothing where the kernel
 * has it built in. ERROR_NOT_FOUND where there is none of that name; where it is not a must that is
 * success, and *ret_missing (may be NULL) is set. Modules that can wait are added behind all that
 * cannot. The signature behind a module is left out: no guest has a key to check it with, and to
 * find that out costs more than to load the module.
 */
int kmod_list_add(struct kmod_list *list, struct kmod_tree *t, const char *name,
		  enum kmod_want want, bool *ret_missing, struct error *err);
void kmod_list_done(struct kmod_list *list);

/*
 * The dependencies of the module in data: calls fn with each name, until one fails. -EBADMSG where
 * it is no module.
 */
int kmod_each_needed(const uint8_t *data, size_t len,
		     int (*fn)(void *userdata, const char *name, struct error *err), void *userdata,
		     struct error *err);

#endif
