/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_REMOTE_H
#define NACRE_FETCH_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"
#include "fetch/job/descriptor.h"
#include "fetch/transfer/network.h"
#include "fetch/unpack/reading.h"

/* The documents of an image in a registry, as a reading has those of an archive. A value. */

struct remote {
	struct reading reading; /* its platform and on_layer are the owner's to set */
	struct network *network;
	struct network_document root; /* the document that the reference names */
	bool named;                   /* the error that occurred names the registry already */
};

/* dir_fd: of staging, stays the caller's. max_bytes: of all documents together. */
void remote_init(struct remote *m, struct network *n, int dir_fd, uint64_t max_bytes);
void remote_done(struct remote *m);
/* Resolves the reference, and tells the core RESOLVED. Once, before anything is read. */
int remote_resolve(struct remote *m, struct error *err);
/* After that; its texts are m's. */
struct descriptor remote_root(const struct remote *m);
/* Puts registry and host in front of an error of what was read after that, once; returns r. */
int remote_blame(const struct remote *m, int r, struct error *err);

#endif
