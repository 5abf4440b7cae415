/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_EXT4_FILE_H
#define NACRE_ISOLATE_EXT4_FILE_H

#include <stdint.h>

#include "base/log/error.h"

/*
 * An ext4 file system of a given size in a file, mounted through a loop device. The blocks of the
 * file are allocated when it is made: a write into the file system never fails because the disk
 * below is full, and what the file system can hold is taken from that disk at once.
 *
 * There is no journal, and nothing is synced: the contents mean nothing after a crash of the host.
 */

#define EXT4_FILE_MIN ((uint64_t)16 << 20)
#define EXT4_FILE_MAX ((uint64_t)1 << 40)

/* Writes an empty file system of `size` bytes (rounded down to blocks of 4096) into the empty file.
 * Its root belongs to user 0, mode 0755. -ENOSPC where the disk below has no room for all of it. */
int ext4_file_make(int fd, uint64_t size, struct error *err);

/*
 * Mounts it, detached, without devices. The loop device goes with the last mount, also where this
 * process is killed. fd is the only open file of its inode. ERROR_PRECONDITION where something has
 * the file open (it may be mounted), or the kernel has no loop devices.
 */
int ext4_file_mount(int fd, struct error *err);

#endif
