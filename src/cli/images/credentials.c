/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/images/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cli/images/credential_helper.h"
#include "wire/document/jsonread.h"
#include "wire/format/base64.h"

/* ---- one file ---- */

bool credentials_is_host(const char *key, const char *host)
{
	size_t n;

	if (str_eq(host, "docker.io") &&
	    (str_eq(key, "https://index.docker.io/v1/") || str_eq(key, "index.docker.io")))
		return true;
	if (str_has_prefix(key, "https://"))
		key += strlen("https://");
	else if (str_has_prefix(key, "http://"))
		key += strlen("http://");
	n = strcspn(key, "/");
	return strlen(host) == n && strncmp(key, host, n) == 0;
}

static const char *credentials_text(const struct json_value *entry, const char *name)
{
	const struct json_value *v = json_member(entry, name);

	return v && v->kind == JSON_STRING ? v->text : "";
}

static int credentials_take(struct credentials *c, struct arena *arena,
			    const struct json_value *entry, struct error *err)
{
	const char *auth = credentials_text(entry, "auth");
	char *colon = NULL, *both = NULL;

	c->identity_token = credentials_text(entry, "identitytoken");
	c->registry_token = credentials_text(entry, "registrytoken");
	c->username = credentials_text(entry, "username");
	c->password = credentials_text(entry, "password");
	if (*auth) {
		both = base64_decode(arena, auth);
		colon = both ? strchr(both, ':') : NULL;
		if (!colon)
			return error_refuse(err, ERROR_INVALID,
					    "the member \"auth\" of %s is no name and password",
					    c->host);
		*colon = '\0';
		c->username = both;
		c->password = colon + 1;
	}
	if (*c->identity_token || *c->registry_token) {
		c->username = c->password = "";
		if (*c->identity_token)
			c->registry_token = "";
		return 1;
	}
	/* A password may be empty, as those of some registries that only want a name. */
	return *c->username != '\0';
}

int credentials_read(struct credentials *ret, struct arena *arena, const char *host,
		     const char *text, size_t len, struct error *err)
{
	struct credentials c = { .host = host };
	const struct json_value *entry;
	struct json_value *top = NULL;
	int r;

	r = json_parse(&top, arena, text, len, err);
	if (r < 0)
		return r;
	entry = top->kind == JSON_OBJECT ? json_member(top, "auths") : NULL;
	if (!entry || entry->kind != JSON_OBJECT)
		return 0;
	for (entry = entry->first; entry; entry = entry->next) {
		if (entry->kind != JSON_OBJECT || !credentials_is_host(entry->name, host))
			continue;
		r = credentials_take(&c, arena, entry, err);
		if (r > 0)
			*ret = c;
		return r;
	}
	return 0;
}

/* ---- helpers ---- */

static const char *credentials_find_helper(const struct json_value *top, const char *host)
{
	const struct json_value *own = json_member(top, "credHelpers");

	if (own && own->kind == JSON_OBJECT)
		for (const struct json_value *m = own->first; m; m = m->next)
			if (m->kind == JSON_STRING && credentials_is_host(m->name, host))
				return m->text;
	return credentials_text(top, "credsStore");
}

int credentials_read_helper(const char **ret, struct arena *arena, const char *host,
			    const char *text, size_t len, struct error *err)
{
	struct json_value *top = NULL;
	const char *name;
	int r;

	r = json_parse(&top, arena, text, len, err);
	if (r < 0 || top->kind != JSON_OBJECT)
		return MIN(r, 0);
	name = credentials_find_helper(top, host);
	if (!*name)
		return 0;
	if (!credential_helper_is_name(name))
		return error_refuse(err, ERROR_INVALID,
				    "\"%.80s\" is no name of a credential helper", name);
	*ret = name;
	return 1;
}

const char *credentials_server(const char *host)
{
	return str_eq(host, "docker.io") ? "https://index.docker.io/v1/" : host;
}

static int credentials_ask(struct credentials *ret, struct arena *arena, const char *host,
			   const char *name, struct error *err)
{
	struct credentials c = { .host = host,
				 .username = "",
				 .password = "",
				 .identity_token = "",
				 .registry_token = "" };
	int r = credential_helper_get(name, credentials_server(host), arena, &c.username,
				      &c.password, err);

	if (r <= 0)
		return r;
	if (str_eq(c.username, "<token>")) {
		c.identity_token = c.password;
		c.username = c.password = "";
	}
	*ret = c;
	return 1;
}

/* ---- the files ---- */

int credentials_find_in(struct credentials *ret, struct arena *arena, const char *host,
			const char *path, struct error *err)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	const char *helper = "";
	int r;

	r = fd_read_file(AT_FDCWD, path, CREDENTIALS_FILE_MAX, &text);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return error_set(err, r, "read %s", path);
	r = credentials_read_helper(&helper, arena, host, (const char *)buf_data(&text), text.len,
				    err);
	if (r > 0)
		r = credentials_ask(ret, arena, host, helper, err);
	/* What such a helper does not know may stand in the file still. */
	if (r == 0)
		r = credentials_read(ret, arena, host, (const char *)buf_data(&text), text.len,
				     err);
	return r < 0 ? error_wrap(err, r, "%s", path) : r;
}

int credentials_place(const char **ret, struct arena *arena, size_t i, struct error *err)
{
	static const char *const places[CREDENTIALS_PLACES][2] = {
		[CREDENTIALS_AUTH_FILE] = { "REGISTRY_AUTH_FILE", "" },
		[CREDENTIALS_DOCKER] = { "DOCKER_CONFIG", "/config.json" },
		[CREDENTIALS_RUNTIME] = { "XDG_RUNTIME_DIR", "/containers/auth.json" },
		[CREDENTIALS_HOME] = { "HOME", "/.docker/config.json" },
	};
	const char *value = getenv(places[i][0]);

	if (str_empty(value))
		return 0;
	*ret = arena_printf(arena, "%s%s", value, places[i][1]);
	return *ret ? 1 : error_set(err, -ENOMEM, "read credentials");
}

int credentials_find(struct credentials *ret, struct arena *arena, const char *host,
		     struct error *err)
{
	const char *path;
	int r = 0;

	for (size_t i = 0; r == 0 && i < CREDENTIALS_PLACES; i++) {
		r = credentials_place(&path, arena, i, err);
		if (r > 0)
			r = credentials_find_in(ret, arena, host, path, err);
	}
	return r;
}
