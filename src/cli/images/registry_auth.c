/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/images/registry_auth.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
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

static int registry_auth_fill(Nacre__V1__RegistryAuth *auth, const struct credentials *c)
{
	spec_set(&auth->host, (char *)(uintptr_t)c->host);
	spec_set(&auth->username, (char *)(uintptr_t)c->username);
	spec_set(&auth->password, (char *)(uintptr_t)c->password);
	spec_set(&auth->identity_token, (char *)(uintptr_t)c->identity_token);
	spec_set(&auth->registry_token, (char *)(uintptr_t)c->registry_token);
	return 1;
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
	return r > 0 ? registry_auth_fill(auth, &c) : r;
}

/* USER:PASSWORD */
static int registry_auth_words(struct credentials *ret, struct arena *arena, const char *words,
			       struct error *err)
{
	const char *colon = strchr(words, ':');

	if (!colon || colon == words || !colon[1])
		return error_refuse(err, ERROR_INVALID,
				    "--creds is USER:PASSWORD (`nacre login` asks for the "
				    "password, and keeps it)");
	ret->username = arena_printf(arena, "%.*s", (int)(colon - words), words);
	ret->password = colon + 1;
	ret->identity_token = ret->registry_token = "";
	return ret->username ? 1 : error_set(err, -ENOMEM, "--creds");
}

int registry_auth_take(Nacre__V1__RegistryAuth *auth, struct arena *arena, const struct args *args,
		       const char *image, struct error *err)
{
	const char *words = args_value(args, "creds"), *path = args_value(args, "authfile");
	struct credentials c = { .host = registry_auth_host(arena, image) };
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	int r;

	if (words && path)
		return error_refuse(err, ERROR_INVALID, "--creds and --authfile: one of the two");
	if (!words && !path)
		return registry_auth_find(auth, arena, image, err);
	if (!c.host)
		return error_set(err, -ENOMEM, "read credentials");
	/* One that is missing is a slip; one that has nothing for this registry is not. */
	r = path ? fd_read_file(AT_FDCWD, path, CREDENTIALS_FILE_MAX, &text) : 0;
	if (r < 0)
		return error_set(err, r, "--authfile %s", path);
	r = words ? registry_auth_words(&c, arena, words, err)
		  : credentials_find_in(&c, arena, c.host, path, err);
	return r > 0 ? registry_auth_fill(auth, &c) : r;
}
