/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/contexts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "base/text/json.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "wire/document/jsonread.h"

#define CONTEXTS_FILE "contexts.json"
#define CONTEXTS_FILE_MAX ((size_t)256 * 1024)

const char *const context_field_names[CONTEXT_FIELD_COUNT] = {
	[CONTEXT_HOST] = "host",       [CONTEXT_SOCKET] = "socket",
	[CONTEXT_TLS_CA] = "tls-ca",   [CONTEXT_TLS_CERT] = "tls-cert",
	[CONTEXT_TLS_KEY] = "tls-key", [CONTEXT_TLS_NAME] = "tls-name",
};

static void context_done(struct context *c)
{
	free(c->name);
	for (size_t f = 0; f < CONTEXT_FIELD_COUNT; f++)
		free(c->fields[f]);
	*c = (struct context){ .name = NULL };
}

struct contexts *contexts_free(struct contexts *all)
{
	if (!all)
		return NULL;
	for (size_t i = 0; i < all->n; i++)
		context_done(&all->list[i]);
	free(all->current);
	free(all);
	return NULL;
}

struct context *contexts_find(struct contexts *all, const char *name)
{
	for (size_t i = 0; i < all->n; i++)
		if (str_eq(all->list[i].name, name))
			return &all->list[i];
	return NULL;
}

struct context *contexts_add(struct contexts *all, const char *name)
{
	struct context *c;

	if (all->n == CONTEXTS_MAX)
		return NULL;
	c = &all->list[all->n++];
	*c = (struct context){ .name = xstrdup(name) };
	return c;
}

void contexts_remove(struct contexts *all, struct context *c)
{
	size_t at = (size_t)(c - all->list);

	if (all->current && str_eq(all->current, c->name)) {
		free(all->current);
		all->current = NULL;
	}
	context_done(c);
	memmove(c, c + 1, (all->n - at - 1) * sizeof(*c));
	all->n--;
}

int context_check_name(const char *name, struct error *err)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strlen(name);

	if (len > 0 && len <= CONTEXT_NAME_MAX && strspn(name, letters) == len && name[0] != '-')
		return 0;
	return error_refuse(
		err, ERROR_INVALID,
		"\"%.80s\" is no name of a context: 1 to %d of [A-Za-z0-9._-], and no '-' "
		"in front",
		name, CONTEXT_NAME_MAX);
}

/* ---- reading ---- */

static char *json_copy(const struct json_value *v)
{
	return v && v->kind == JSON_STRING ? xstrdup(v->text) : NULL;
}

static int contexts_read_one(struct contexts *all, const struct json_value *v, const char *name,
			     struct error *err)
{
	struct context *c;

	if (v->kind != JSON_OBJECT || context_check_name(v->name, NULL) < 0 ||
	    contexts_find(all, v->name))
		return error_refuse(err, ERROR_INVALID, "%s: \"%.80s\" is no context", name,
				    v->name);
	c = contexts_add(all, v->name);
	if (!c)
		return error_refuse(err, ERROR_INVALID, "%s: more than %d contexts", name,
				    CONTEXTS_MAX);
	for (size_t f = 0; f < CONTEXT_FIELD_COUNT; f++)
		c->fields[f] = json_copy(json_member(v, context_field_names[f]));
	if (!c->fields[CONTEXT_HOST] == !c->fields[CONTEXT_SOCKET])
		return error_refuse(err, ERROR_INVALID,
				    "%s: the context \"%.80s\" has not exactly one of \"host\" and "
				    "\"socket\"",
				    name, c->name);
	return 0;
}

int contexts_parse(struct contexts **ret, const char *text, size_t len, const char *name,
		   struct error *err)
{
	_cleanup_(contexts_freep) struct contexts *all = xrealloc(NULL, 1, sizeof(*all));
	_cleanup_(arena_done) struct arena arena = ARENA_INIT;
	const struct json_value *list = NULL;
	struct json_value *top = NULL;
	int r;

	*all = (struct contexts){ .n = 0 };
	r = json_parse(&top, &arena, text, len, err);
	if (r < 0)
		return error_wrap(err, r, "%s", name);
	if (top->kind == JSON_OBJECT)
		list = json_member(top, "contexts");
	if (!list || list->kind != JSON_OBJECT)
		return error_refuse(err, ERROR_INVALID, "%s: no object \"contexts\" in it", name);
	for (const struct json_value *v = list->first; v; v = v->next) {
		r = contexts_read_one(all, v, name, err);
		if (r < 0)
			return r;
	}
	all->current = json_copy(json_member(top, "current"));
	*ret = TAKE_PTR(all);
	return 0;
}

/* Beside the certificates, but never where NACRE_CERT_PATH says. NULL: there is no home. */
static char *contexts_directory(void)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (!str_empty(config))
		return xformat("%s/nacre", config);
	return str_empty(home) ? NULL : xformat("%s/.config/nacre", home);
}

int contexts_load(struct contexts **ret, struct error *err)
{
	_cleanup_str_ char *dir = contexts_directory(), *path = NULL;
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	int r = -ENOENT;

	path = xformat("%s/" CONTEXTS_FILE, dir ? dir : "");
	if (dir)
		r = fd_read_file(AT_FDCWD, path, CONTEXTS_FILE_MAX, &text);
	/* A user without a home, or without permission to read it, has no contexts. */
	if (r == -ENOENT || r == -ENOTDIR || r == -EACCES) {
		*ret = xrealloc(NULL, 1, sizeof(**ret));
		**ret = (struct contexts){ .n = 0 };
		return 0;
	}
	if (r < 0)
		return error_set(err, r, "read %s", path);
	return contexts_parse(ret, text.len ? (const char *)buf_data(&text) : "", text.len, path,
			      err);
}

/* ---- writing ---- */

static void contexts_write(const struct contexts *all, FILE *to)
{
	struct json j = JSON_INIT(to);

	json_put_object(&j, NULL);
	json_put_string(&j, "current", all->current);
	json_put_object(&j, "contexts");
	for (size_t i = 0; i < all->n; i++) {
		const struct context *c = &all->list[i];

		json_put_object(&j, c->name);
		for (size_t f = 0; f < CONTEXT_FIELD_COUNT; f++)
			if (c->fields[f])
				json_put_string(&j, context_field_names[f], c->fields[f]);
		json_put_end(&j);
	}
	json_put_end(&j);
	json_put_end(&j);
}

/* The directory, made where it is missing: ~/.config is there or is made too. */
static int contexts_open_dir(struct error *err)
{
	_cleanup_str_ char *dir = contexts_directory(), *parent = NULL;
	int fd;

	if (!dir)
		return error_refuse(
			err, ERROR_PRECONDITION,
			"there is neither HOME nor XDG_CONFIG_HOME to keep contexts in");
	parent = xformat("%.*s", (int)(strrchr(dir, '/') - dir), dir);
	(void)sysio_mkdirat(AT_FDCWD, parent, 0755);
	if (sysio_mkdirat(AT_FDCWD, dir, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make %s", dir);
	fd = sysio_openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return fd < 0 ? error_set(err, -errno, "open %s", dir) : fd;
}

int contexts_save(const struct contexts *all, struct error *err)
{
	_cleanup_str_ char *new = xformat("." CONTEXTS_FILE ".%d", (int)getpid()), *text = NULL;
	_cleanup_fd_ int dir_fd = contexts_open_dir(err), fd = -1;
	size_t len = 0;
	FILE *to;
	int r;

	if (dir_fd < 0)
		return dir_fd;
	to = open_memstream(&text, &len);
	if (!to)
		return error_set(err, -ENOMEM, "write " CONTEXTS_FILE);
	contexts_write(all, to);
	(void)fclose(to);
	fd = sysio_openat(dir_fd, new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return error_set(err, -errno, "write " CONTEXTS_FILE);
	r = fd_write_full(fd, text, len);
	if (r == 0 && sysio_fsync(fd) < 0)
		r = -errno;
	if (r == 0 && sysio_renameat(dir_fd, new, dir_fd, CONTEXTS_FILE) < 0)
		r = -errno;
	if (r < 0)
		(void)sysio_unlinkat(dir_fd, new, 0);
	return r < 0 ? error_set(err, r, "write " CONTEXTS_FILE) : 0;
}
