/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_CREDENTIALS_H
#define NACRE_CLI_CREDENTIALS_H

#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/arena.h"

/*
 * The user's credentials for a registry, read with the user's own rights, from the first of these
 * files that has an entry for it, or names a helper (cli/images/credential_helper.h) that has:
 * $REGISTRY_AUTH_FILE, $DOCKER_CONFIG/config.json, $XDG_RUNTIME_DIR/containers/auth.json,
 * ~/.docker/config.json.
 */

struct credentials {
	const char *host;
	const char *username, *password; /* both, or "" */
	const char *identity_token;      /* or "" */
	const char *registry_token;      /* or "" */
};

#define CREDENTIALS_FILE_MAX ((size_t)1 << 20)

/* The files, in the order in which they are read. */
enum credentials_place {
	CREDENTIALS_AUTH_FILE,
	CREDENTIALS_DOCKER,
	CREDENTIALS_RUNTIME,
	CREDENTIALS_HOME,
	CREDENTIALS_PLACES
};
/* The path of one, in the arena: 1; 0: its variable is not set. */
int credentials_place(const char **ret, struct arena *arena, size_t i, struct error *err);

/* Whether the key of an entry means this host: as it is, or as Docker writes its own. */
bool credentials_is_host(const char *key, const char *host);
/* The key of a new entry: the name under which Docker keeps its own registry, else the host. */
const char *credentials_server(const char *host);

/* 1: found, in the arena. 0: there are none. ERROR_INVALID for a file that cannot be read as what
 * it should be: names it, and shows nothing of it. */
int credentials_find(struct credentials *ret, struct arena *arena, const char *host,
		     struct error *err);

/* The same in one file, which may be missing. */
int credentials_find_in(struct credentials *ret, struct arena *arena, const char *host,
			const char *path, struct error *err);
/* Those of one file's text, as above. */
int credentials_read(struct credentials *ret, struct arena *arena, const char *host,
		     const char *text, size_t len, struct error *err);
/* The helper that such a file names for the host (credHelpers), or for all (credsStore): 1, in the
 * arena; 0: none. */
int credentials_read_helper(const char **ret, struct arena *arena, const char *host,
			    const char *text, size_t len, struct error *err);

#endif
