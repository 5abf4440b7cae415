/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_DISK_LOOP_H
#define NACRE_ISOLATE_DISK_LOOP_H

#include <stdbool.h>

#include "base/log/error.h"

/*
 * Files in memory as block devices, where a machine gets the disk of a container as bytes: what
 * disk_find() (isolate/disk/disk.h) finds by its serial then, until the end of the machine. The
 * kernel holds the file; nothing of it is this process's.
 */

#define DISK_LOOP_SERIAL_MAX 20

/* 1 to DISK_LOOP_SERIAL_MAX of a-z, 0-9 and '-'. */
bool disk_loop_serial_is_valid(const char *serial);
/* A file to write it to, before it is a disk. */
int disk_loop_file(const char *serial, struct error *err) _must_check_;
/* The file becomes one, read-only; dev_fd: of /dev. ERROR_PRECONDITION: this kernel has no loop
 * devices. */
int disk_loop_attach(int dev_fd, int file_fd, struct error *err) _must_check_;
/* Whether the device is that of the serial. */
bool disk_loop_is(int sys_fd, const char *device, const char *serial);

#endif
