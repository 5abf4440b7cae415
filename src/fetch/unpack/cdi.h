/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_CDI_H
#define NACRE_FETCH_CDI_H

#include <stddef.h>

#include "base/log/error.h"
#include "base/memory/buf.h"

/*
 * Container Device Interface: files of vendors, JSON or YAML, with the changes to a container that
 * a device needs: variables, device nodes, mounts, groups. The core's requests are words, each with
 * a NUL behind it: "device" NAME ("vendor.com/class=name"), in the order in which they are wanted;
 * then "file" DIRECTORY PATH LENGTH and so many bytes, where a file of a later directory counts
 * more than one of an earlier one. The answer are words, too:
 *
 *   "env" KEY=VALUE; "device" PATH HOST-PATH PERMISSIONS; "group" NUMBER;
 *   "mount" CONTAINER-PATH HOST-PATH PROPAGATION FLAGS, of "r" (read-only) and "x" (no program)
 *
 * Hooks, network devices, owners of nodes and Intel's RDT are refused by name (ERROR_UNSUPPORTED):
 * a container without them is not what its vendor meant.
 */

#define CDI_REQUEST_MAX ((size_t)16 << 20)
#define CDI_ANSWER_MAX ((size_t)256 << 10)
#define CDI_FILES_MAX 256
#define CDI_DEVICES_MAX 64 /* that are wanted */

/* Pure. ERROR_NOT_FOUND names a device that no file has, and a broken file where there is one;
 * ERROR_INVALID: two files of a directory have it; ERROR_UNSUPPORTED. */
int cdi_resolve(struct buf *to, const void *data, size_t len, struct error *err) _must_check_;
/* The job: as fetch/unpack/profile.h. */
int cdi_run(int from_fd, int to_fd, int sock_fd, struct error *err);

#endif
