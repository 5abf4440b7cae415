/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_ATTR_H
#define NACRE_FETCH_ATTR_H

#include <stdint.h>

#include "base/error.h"

/*
 * Extended attributes and access control lists of an archive's entry. Only user.* and
 * security.capability come through: what would speak to the overlay (user.overlay.*, trusted.*) or
 * to a security module of this machine is dropped and counted (security.md C26).
 */

struct archive_entry;

/* Sets them on fd, a regular file or directory with its owner and mode. */
int attr_apply(struct archive_entry *entry, int fd, uint64_t *n_skipped, struct error *err);

#endif
