/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_AUTHFILE_H
#define NACRE_CLI_AUTHFILE_H

#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"

/*
 * Writes what cli/images/credentials.h reads: entries come into a file and go out of it, and
 * everything else in it stays. A file is replaced as a whole, with mode 0600, by one that is on the
 * disk; a link to it stays one. Two that change a file at the same time wait for each other. Where
 * a file names a helper for a host (credHelpers, credsStore), that keeps or forgets the
 * credentials.
 */

/*
 * Keeps a name and password for a host, in `path`, or where that is NULL in the file from which
 * they are read: the one that has the host already, else $REGISTRY_AUTH_FILE, else
 * $DOCKER_CONFIG/config.json, else ~/.docker/config.json. ERROR_PRECONDITION: there is none.
 */
int authfile_keep(const char *path, const char *host, const char *user, const char *secret,
		  struct error *err);
/* Forgets what is kept for a host (NULL: for all), in `path` or, where that is NULL, in all files
 * that are read. 1, or 0 where there was nothing. */
int authfile_forget(const char *path, const char *host, struct error *err);

/*
 * One file's text with another entry for the host, for tests: `auth` in base64, or NULL for none;
 * host NULL: for none at all. *ret_found: there was such an entry.
 */
int authfile_edit(struct buf *ret, struct arena *arena, const char *text, size_t len,
		  const char *host, const char *auth, bool *ret_found, struct error *err);

#endif
