/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_ATTR_H
#define NACRE_FETCH_ATTR_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * Extended attributes and access control lists of an archive's entry. Only user.* and
 * security.capability come through: what would speak to the overlay (user.overlay.*, trusted.*) or
 * to a security module of this machine is dropped and counted (security.md C26).
 */

struct archive_entry;

#define ATTR_ACL_MAX 256

/* The form of system.posix_acl_*: a version and entries, ordered by tag and id. */
struct attr_acl {
	uint32_t version;
	struct attr_acl_entry {
		uint16_t tag, perm;
		uint32_t id;
	} entries[ATTR_ACL_MAX];
};

/* Sets them on fd, a regular file or directory with its owner and mode; a directory's default list
 * is not among them. */
int attr_apply(struct archive_entry *entry, int fd, uint64_t *n_skipped, struct error *err);

/* The default list of a directory as the kernel takes it: its bytes in *ret, or 0 where it has
 * none. What cannot be said in it is counted. */
size_t attr_default_acl(struct archive_entry *entry, struct attr_acl *ret, uint64_t *n_skipped);

#endif
