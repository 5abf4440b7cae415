/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_GUEST_SET_H
#define NACRE_VM_GUEST_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "vm/guest/guest_desc.h"

/*
 * The files that virtual machines of this node are started from: a kernel, and an initramfs with a
 * nacre to be their pid 1. Sets stand beside each other in "guest" below the node's root directory,
 * each a directory that is never changed once it is there:
 *
 *   guest/NAME/{kernel,initrd,set}     set: vm/guest/guest_desc.h
 *   guest/NAME/tools                   of one that was made with them: vm/guest/guest_tools.h
 *   guest/default                      a link: the name of the set to take where none is named
 *
 * A set is in use while anybody has its open kernel (struct guest_set), or a copy of that
 * descriptor, as a VMM has: a running machine keeps the set from being removed, also while there is
 * no daemon.
 */

#define GUEST_SET_NAME_MAX 63
#define GUEST_SETS_MAX 256

/* 1 to GUEST_SET_NAME_MAX of [A-Za-z0-9._+-], not beginning with '.' or '-', and not "default". */
bool guest_set_is_name(const char *name);

struct guest_set_info {
	char name[GUEST_SET_NAME_MAX + 1];
	struct guest_desc desc;
	bool in_use;
	bool is_default;
};

struct guest_set {
	struct guest_set_info info; /* in_use is true */
	int kernel_fd;              /* holds the lock: shared, of the open file */
	int initrd_fd;
};

#define GUEST_SET_INIT                                                                             \
	{                                                                                          \
		.kernel_fd = -1, .initrd_fd = -1                                                   \
	}

/* name: NULL or "" for the default. ERROR_NOT_FOUND where there is none of that name, and
 * ERROR_PRECONDITION where there is no default: both say how a set is made. */
int guest_set_open(struct guest_set *ret, int root_fd, const char *name, struct error *err);
void guest_set_done(struct guest_set *s);

/* The disk with which its guests have guests (vm/guest/guest_tools.h). ERROR_PRECONDITION where it
 * was made without; else as guest_set_open(). */
int guest_set_open_tools(int root_fd, const char *name, struct error *err);

/* The description of a set; -ENOENT where there is none that can be read. */
int guest_set_look(int root_fd, const char *name, struct guest_set_info *ret);

/* All sets, by name; the caller frees *ret. Directories without a readable description are left
 * out. */
int guest_set_list(int root_fd, struct guest_set_info **ret, size_t *ret_n, struct error *err);

/* ERROR_PRECONDITION while it is in use. A default that goes leaves none. */
int guest_set_remove(int root_fd, const char *name, struct error *err);

int guest_set_make_default(int root_fd, const char *name, struct error *err);

/* ---- for whoever makes one (vm/guest/guest_build.h) ---- */

struct guest_new {
	int sets_fd; /* locked: nobody else makes or removes one meanwhile */
	int dir_fd;  /* of the new set, by a name that nobody looks for */
	char name[32];
};

#define GUEST_NEW_INIT                                                                             \
	{                                                                                          \
		.sets_fd = -1, .dir_fd = -1                                                        \
	}

/* Makes "guest" where it is missing, and takes away what an earlier one has left. */
int guest_new_begin(struct guest_new *n, int root_fd, struct error *err);
/* A file of the new set, for everybody to read. Returns the descriptor. */
int guest_new_file(struct guest_new *n, const char *name, struct error *err);
/* It is a set from now on, on the disk. ERROR_EXISTS. */
int guest_new_commit(struct guest_new *n, const char *name, struct error *err);
/* Removes what was not committed. */
void guest_new_done(struct guest_new *n);

#endif
