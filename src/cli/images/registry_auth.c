/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/images/registry_auth.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "cli/images/credentials.h"
#include "cli/options/spec.h"

/* The host of a reference, as credentials are kept for it, in the arena. */
static char *registry_auth_host(struct arena *arena, const char *image)
{
	size_t n = strcspn(image, "/");

	if (image[n] && (memchr(image, '.', n) || memchr(image, ':', n) ||
			 (n == strlen("localhost") && strncmp(image, "localhost", n) == 0)))
		return arena_printf(arena, "%.*s", (int)n, image);
	return arena_strdup(arena, "docker.io");
}

int registry_auth_find(Nacre__V1__RegistryAuth *auth, struct arena *arena, const char *image,
		       struct error *err)
{
	const char *host = registry_auth_host(arena, image);
	struct credentials c;
	int r;

	if (!host)
		return error_set(err, -ENOMEM, "read credentials");
	r = credentials_find(&c, arena, host, err);
	if (r <= 0)
		return r;
	spec_set(&auth->host, (char *)(uintptr_t)c.host);
	spec_set(&auth->username, (char *)(uintptr_t)c.username);
	spec_set(&auth->password, (char *)(uintptr_t)c.password);
	spec_set(&auth->identity_token, (char *)(uintptr_t)c.identity_token);
	spec_set(&auth->registry_token, (char *)(uintptr_t)c.registry_token);
	return 1;
}
