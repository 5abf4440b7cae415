/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_REGISTRY_AUTH_H
#define NACRE_CLI_REGISTRY_AUTH_H

#include "api/nacre.pb-c.h"
#include "base/log/error.h"
#include "base/memory/arena.h"
#include "base/text/args.h"

/* The user's credentials for the registry of an image, as the calls of the images take them. */

#define REGISTRY_AUTH_MEMORY_MAX ((size_t)4 << 20)

/* Fills in `auth`, with texts of the arena: 1, or 0 where he has none. */
int registry_auth_find(Nacre__V1__RegistryAuth *auth, struct arena *arena, const char *image,
		       struct error *err);
/* The same, but those of --creds, or of the file of --authfile, where one of them is given. An
 * error names the option. */
int registry_auth_take(Nacre__V1__RegistryAuth *auth, struct arena *arena, const struct args *args,
		       const char *image, struct error *err);

#endif
