/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/images/auth.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "wire/format/base64.h"
#include "wire/name/reference.h"

static int auth_check(const char *field, const char *text, size_t max, struct error *err)
{
	if (strlen(text) > max)
		return error_field(err, ERROR_INVALID, field, "more than %zu bytes", max);
	if (!str_is_clean(text))
		return error_field(err, ERROR_INVALID, field, "it holds control characters");
	return 0;
}

/* "https://index.docker.io/v1/" is how Docker writes its own; others have a path too. */
static char *auth_host_of(struct arena *a, const char *address)
{
	static const char *const schemes[] = { "https://", "http://" };
	char *host;

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (str_has_prefix(address, schemes[i])) {
			address += strlen(schemes[i]);
			break;
		}
	host = arena_strndup(a, address, strcspn(address, "/"));
	return host && str_eq(host, "index.docker.io") ? arena_strdup(a, "docker.io") : host;
}

static int auth_find_host(struct arena *a, const Runtime__V1__AuthConfig *auth,
			  const char *reference, struct image_auth *to, struct error *err)
{
	struct reference ref;
	int r;

	if (str_empty(auth->server_address)) {
		r = reference_parse(&ref, reference, err);
		if (r < 0)
			return error_wrap_field(err, r, "image.image");
		to->host = auth_host_of(a, ref.name);
	} else {
		to->host = auth_host_of(a, auth->server_address);
	}
	if (!to->host)
		return error_set(err, -ENOMEM, "read credentials");
	if (!*to->host || strlen(to->host) > IMAGE_HOST_MAX || !str_is_clean(to->host))
		return error_field(err, ERROR_INVALID, "auth.server_address",
				   "it names no registry");
	return 0;
}

/* Name and password joined by ':', in base64. */
static int auth_split(struct arena *a, const char *text, struct image_auth *to, struct error *err)
{
	char *both = base64_decode(a, text);
	char *colon = both ? strchr(both, ':') : NULL;

	if (!colon)
		return error_field(err, ERROR_INVALID, "auth.auth",
				   "it is not a name, ':' and a password in base64");
	*colon = '\0';
	to->user = both;
	to->secret = colon + 1;
	return 0;
}

/* 1: there are some; 0: none. A token counts more than a password, as everywhere. */
static int auth_find_secret(struct arena *a, const Runtime__V1__AuthConfig *auth,
			    struct image_auth *to, const char **ret_field, struct error *err)
{
	int r;

	*to = (struct image_auth){ .kind = IMAGE_AUTH_PASSWORD, .user = "" };
	if (*auth->identity_token) {
		*ret_field = "auth.identity_token";
		to->kind = IMAGE_AUTH_IDENTITY;
		to->secret = auth->identity_token;
	} else if (*auth->registry_token) {
		*ret_field = "auth.registry_token";
		to->kind = IMAGE_AUTH_TOKEN;
		to->secret = auth->registry_token;
	} else if (*auth->username) {
		*ret_field = "auth.password";
		to->user = auth->username;
		to->secret = auth->password;
	} else if (*auth->auth) {
		*ret_field = "auth.auth";
		r = auth_split(a, auth->auth, to, err);
		return r < 0 ? r : *to->user != '\0';
	} else if (*auth->password) {
		return error_field(err, ERROR_INVALID, "auth.username", "required with a password");
	}
	return to->secret != NULL;
}

int cri_auth_take(struct arena *a, const Runtime__V1__AuthConfig *auth, const char *reference,
		  struct image_auths *ret, struct error *err)
{
	struct image_auth *to = arena_zalloc(a, 1, sizeof(*to));
	const char *field = "auth";
	int r;

	*ret = (struct image_auths){ .n = 0 };
	if (!auth)
		return 0;
	if (!to)
		return error_set(err, -ENOMEM, "read credentials");
	r = auth_find_secret(a, auth, to, &field, err);
	if (r <= 0)
		return r;
	r = auth_check("auth.username", to->user, IMAGE_USER_MAX, err);
	if (r == 0)
		r = auth_check(field, to->secret, IMAGE_SECRET_MAX, err);
	if (r == 0)
		r = auth_find_host(a, auth, reference, to, err);
	if (r < 0)
		return r;
	*ret = (struct image_auths){ .list = to, .n = 1 };
	return 0;
}
