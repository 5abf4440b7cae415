/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/images/image_auth.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"

static bool image_auth_fits(const char *text, size_t max)
{
	return strlen(text) <= max && str_is_clean(text);
}

static int image_auth_take(struct image_auth *to, const Nacre__V1__RegistryAuth *from, size_t i,
			   struct error *err)
{
	/* A user name without a token goes with a password, which may be empty. */
	bool named = !str_empty(from->username) || !str_empty(from->password);
	unsigned kinds =
		named + !str_empty(from->identity_token) + !str_empty(from->registry_token);
	char field[32];

	(void)str_printf(field, sizeof(field), "auths[%zu]", i);
	if (str_empty(from->host) || !image_auth_fits(from->host, IMAGE_HOST_MAX))
		return error_field(err, ERROR_INVALID, field, "host: this is none");
	if (kinds != 1)
		return error_field(
			err, ERROR_INVALID, field,
			"one of username, identity_token and registry_token is required");
	if (!image_auth_fits(from->username, IMAGE_USER_MAX) ||
	    !image_auth_fits(from->password, IMAGE_SECRET_MAX) ||
	    !image_auth_fits(from->identity_token, IMAGE_SECRET_MAX) ||
	    !image_auth_fits(from->registry_token, IMAGE_SECRET_MAX))
		return error_field(err, ERROR_INVALID, field,
				   "too long, or with control characters");
	if (named && str_empty(from->username))
		return error_field(err, ERROR_INVALID, field, "username: required with a password");
	*to = (struct image_auth){ .host = from->host,
				   .kind = IMAGE_AUTH_PASSWORD,
				   .user = from->username,
				   .secret = from->password };
	if (!str_empty(from->identity_token)) {
		to->kind = IMAGE_AUTH_IDENTITY;
		to->secret = from->identity_token;
	} else if (!str_empty(from->registry_token)) {
		to->kind = IMAGE_AUTH_TOKEN;
		to->secret = from->registry_token;
	}
	return 0;
}

int image_auth_read(struct image_auths *ret, struct arena *a, Nacre__V1__RegistryAuth **auths,
		    size_t n, struct error *err)
{
	struct image_auth *list;

	if (n > IMAGE_AUTHS_MAX)
		return error_field(err, ERROR_INVALID, "auths", "more than %d", IMAGE_AUTHS_MAX);
	list = arena_zalloc(a, n + 1, sizeof(*list));
	if (!list)
		return error_set(err, -ENOMEM, "read credentials");
	for (size_t i = 0; i < n; i++) {
		int r = image_auth_take(&list[i], auths[i], i, err);

		if (r < 0)
			return r;
	}
	*ret = (struct image_auths){ .list = list, .n = n };
	return 0;
}

int image_auth_check_platform(const char *architecture, const char *variant, struct error *err)
{
	if (strlen(architecture) > IMAGE_PLATFORM_MAX || !str_is_clean(architecture))
		return error_field(err, ERROR_INVALID, "architecture", "this is none");
	if (strlen(variant) > IMAGE_PLATFORM_MAX || !str_is_clean(variant))
		return error_field(err, ERROR_INVALID, "variant", "this is none");
	return 0;
}
