/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_DISKS_H
#define NACRE_VM_DISKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "vm/driver/driver.h"

/*
 * Disks of machines with a system of the user's. The user's disk, the base, is only read. Writes of
 * such a machine go to a qcow2 over it: a throw-away one has no name and is gone with its machine;
 * one that is kept has a name in "disks" of the root directory, and with it what its base was: a
 * base that has changed would show through in pieces, and is refused. A disk whose descriptor is
 * open for a machine is locked for as long as that lives.
 *
 * All of it may block on the disk: not for a loop thread.
 */

/* Makes the directory where it is missing, and takes away what was half made when its maker died:
 * to be called before anybody makes a disk. */
int disks_prepare(int root_fd, struct error *err);

#define DISKS_MAX 4096
#define DISK_PATH_MAX 1023

struct disk_base {
	int fd;
	enum vm_disk_format format;
	uint64_t bytes; /* as its guest sees it, in whole sectors */
};

#define DISK_BASE_NONE                                                                             \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/*
 * Opens what is brought: an absolute path, or a file:// URL of one. format: "raw", "qcow2", or ""
 * for what it begins as. ERROR_INVALID, ERROR_NOT_FOUND, ERROR_PRECONDITION; ERROR_UNSUPPORTED for
 * a URL of another kind.
 */
int disk_open_base(struct disk_base *ret, const char *source, const char *format,
		   struct error *err);
/*
 * An image as it is, raw: an absolute path of a regular file in whole sectors. One that is writable
 * is open for writing.
 */
int disk_open_drive(const char *path, bool writable, struct error *err);
/* ERROR_PRECONDITION where another machine has it, and one of the two writes to it. The lock is
 * that of what was opened, so it lasts as long as that is. */
int disk_lock_drive(int fd, const char *path, bool writable, struct error *err);
/* A kernel or a first root: a regular file by an absolute path. */
int disk_open_file(const char *path, struct error *err);

/* An open file over the base; bytes: how large it is to be, 0: as the base. */
int disk_make_throw_away(int root_fd, const struct disk_base *base, uint64_t bytes,
			 struct error *err);
/* The same with a name: made where it is missing. ERROR_PRECONDITION where another machine has it,
 * or its base is another one or has changed; ERROR_INVALID where it is there and of another size.
 */
int disk_open_kept(int root_fd, const char *name, const char *source, const struct disk_base *base,
		   uint64_t bytes, struct error *err);
/* The file of the UEFI variables for the disk of that name, or "" for a throw-away one. */
int disk_open_vars(int root_fd, const char *name, struct error *err);

/* A file with these bytes, without a name, that nobody can write to. */
int disk_make_read_only(int root_fd, const void *data, size_t len, struct error *err);

struct disk_kept {
	char name[64];
	char base[DISK_PATH_MAX + 1];
	uint64_t bytes, used; /* as its guest sees it; what it takes here */
	bool busy;            /* a machine has it */
};

/* By name; the caller frees *ret. */
int disks_list(int root_fd, struct disk_kept **ret, size_t *ret_n, struct error *err);
/* Names beside theirs, which are those of no whole disk: what is half made for a moment, too. The
 * caller frees *ret, which may be NULL. */
int disks_strangers(int root_fd, char ***ret, struct error *err);
/* ERROR_NOT_FOUND; ERROR_PRECONDITION while a machine has it. */
int disk_remove(int root_fd, const char *name, struct error *err);

#endif
