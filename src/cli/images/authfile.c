/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/images/authfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "cli/images/credential_helper.h"
#include "cli/images/credentials.h"
#include "wire/document/jsonread.h"
#include "wire/document/jsonwrite.h"
#include "wire/format/base64.h"

#define AUTHFILE_MEMORY_MAX ((size_t)16 << 20)
#define AUTHFILE_LINK_MAX 4096

/* ---- the text ---- */

/* Parses the text into *ret, which lies in the arena, and checks the form of "auths". */
static int authfile_parse(struct json_value **ret, struct arena *arena, const char *text,
			  size_t len, struct error *err)
{
	const struct json_value *auths;
	int r = json_parse(ret, arena, text, len, err);

	if (r < 0)
		return r;
	if ((*ret)->kind != JSON_OBJECT)
		return error_refuse(err, ERROR_INVALID, "it is no JSON object");
	auths = json_member(*ret, "auths");
	if (auths && auths->kind != JSON_OBJECT)
		return error_refuse(err, ERROR_INVALID, "its member \"auths\" is no object");
	return 0;
}

static int authfile_put_auths(struct buf *b, const struct json_value *auths, const char *host,
			      const char *auth, bool *found)
{
	int r = buf_add_str(b, "{");

	for (const struct json_value *m = auths ? auths->first : NULL; r == 0 && m; m = m->next) {
		if (!host || credentials_is_host(m->name, host)) {
			*found = true;
			continue;
		}
		r = json_write_name(b, m->name);
		if (r == 0)
			r = json_write_value(b, m);
	}
	if (r == 0 && auth)
		r = json_write_name(b, credentials_server(host));
	if (r == 0 && auth)
		r = buf_add_str(b, "{");
	if (r == 0 && auth)
		r = json_write_name(b, "auth");
	if (r == 0 && auth)
		r = json_write_text(b, auth);
	if (r == 0 && auth)
		r = buf_add_str(b, "}");
	return r == 0 ? buf_add_str(b, "}") : r;
}

static int authfile_put(struct buf *b, const struct json_value *top, const char *host,
			const char *auth, bool *found)
{
	bool there = false;
	int r = buf_add_str(b, "{");

	for (const struct json_value *m = top->first; r == 0 && m; m = m->next) {
		bool auths = str_eq(m->name, "auths");

		there = there || auths;
		r = json_write_name(b, m->name);
		if (r == 0)
			r = auths ? authfile_put_auths(b, m, host, auth, found)
				  : json_write_value(b, m);
	}
	if (r == 0 && !there)
		r = json_write_name(b, "auths");
	if (r == 0 && !there)
		r = authfile_put_auths(b, NULL, host, auth, found);
	return r == 0 ? buf_add_str(b, "}") : r;
}

static int authfile_newline(struct buf *b, unsigned depth)
{
	int r = buf_add_str(b, "\n");

	while (r == 0 && depth-- > 0)
		r = buf_add_str(b, "\t");
	return r;
}

/* In lines, as docker writes it: people look into this file. */
static int authfile_indent(struct buf *to, const char *text, size_t len)
{
	bool quoted = false;
	unsigned depth = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < len; i++) {
		char c = text[i];
		bool opens = !quoted && (c == '{' || c == '[');
		bool closes = !quoted && (c == '}' || c == ']');
		bool empty = opens && text[i + 1] == (c == '{' ? '}' : ']');

		if (closes)
			r = authfile_newline(to, --depth);
		if (r == 0)
			r = buf_add(to, &text[i], empty ? 2 : 1);
		if (r == 0 && !quoted && c == ':')
			r = buf_add_str(to, " ");
		if (r == 0 && ((opens && !empty) || (!quoted && c == ',')))
			r = authfile_newline(to, opens ? ++depth : depth);
		if (c == '"')
			quoted = !quoted;
		else if (quoted && c == '\\' && r == 0)
			r = buf_add(to, &text[++i], 1);
		i += empty;
	}
	return r == 0 ? buf_add_str(to, "\n") : r;
}

int authfile_edit(struct buf *ret, struct arena *arena, const char *text, size_t len,
		  const char *host, const char *auth, bool *ret_found, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct json_value *top = NULL;
	bool found = false;
	int r;

	r = authfile_parse(&top, arena, text, len, err);
	if (r < 0)
		return r;
	r = authfile_put(&b, top, host, auth, &found);
	if (r == 0)
		r = authfile_indent(ret, (const char *)buf_data(&b), b.len);
	*ret_found = found;
	return r < 0 ? error_set(err, r, "write credentials") : 0;
}

/* ---- the file ---- */

struct authfile {
	struct arena arena;
	const char *path;
	const char *name; /* in its directory */
	int dir_fd;       /* locked */
	struct buf text;  /* "{}" where there is no file yet */
};

static void authfile_close(struct authfile *f)
{
	buf_done(&f->text);
	f->dir_fd = fd_close(f->dir_fd);
	arena_done(&f->arena);
}

/* Where a link ends: what is written there stays what the link means. */
static int authfile_follow(struct authfile *f, const char *path, struct error *err)
{
	_cleanup_fd_ int fd = sysio_openat(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
	char self[32], *to;
	ssize_t n;

	f->path = path;
	if (fd < 0)
		return errno == ENOENT ? 0 : error_set(err, -errno, "open %s", path);
	(void)str_printf(self, sizeof(self), "/proc/self/fd/%d", fd);
	to = arena_zalloc(&f->arena, AUTHFILE_LINK_MAX, 1);
	if (!to)
		return error_set(err, -ENOMEM, "open %s", path);
	n = readlinkat(AT_FDCWD, self, to, AUTHFILE_LINK_MAX - 1);
	if (n > 0 && n < AUTHFILE_LINK_MAX - 1)
		f->path = to;
	return 0;
}

/* The directory of the file, made where it is missing if there is something to keep. */
static int authfile_open_dir(struct authfile *f, bool make, struct error *err)
{
	const char *slash = strrchr(f->path, '/');
	const char *dir = arena_printf(&f->arena, "%.*s", slash ? (int)MAX(slash - f->path, 1) : 1,
				       slash ? f->path : ".");

	if (!dir)
		return error_set(err, -ENOMEM, "open %s", f->path);
	f->name = slash ? slash + 1 : f->path;
	if (make && sysio_mkdirat(AT_FDCWD, dir, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make %s", dir);
	f->dir_fd = sysio_openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (f->dir_fd < 0)
		return errno == ENOENT && !make ? -ENOENT : error_set(err, -errno, "open %s", dir);
	while (flock(f->dir_fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return error_set(err, -errno, "lock %s", dir);
	return 0;
}

/* -ENOENT without a word: there is no file, and `make` is false. authfile_close() is due. */
static int authfile_open(struct authfile *f, const char *path, bool make, struct error *err)
{
	int r;

	*f = (struct authfile){ .arena = ARENA_INIT_LIMIT(AUTHFILE_MEMORY_MAX),
				.dir_fd = -1,
				.text = BUF_INIT };
	r = authfile_follow(f, path, err);
	if (r == 0)
		r = authfile_open_dir(f, make, err);
	if (r < 0)
		return r;
	r = fd_read_file(f->dir_fd, f->name, CREDENTIALS_FILE_MAX, &f->text);
	if (r == -ENOENT && !make)
		return r;
	if (r == -ENOENT || (r == 0 && f->text.len == 0))
		r = buf_add_str(&f->text, "{}");
	return r < 0 ? error_set(err, r, "read %s", path) : 0;
}

static int authfile_write(const struct authfile *f, const struct buf *text, struct error *err)
{
	_cleanup_str_ char *new = str_format(".%s.%d", f->name, (int)getpid());
	_cleanup_fd_ int fd = -1;
	int r;

	if (!new)
		return error_set(err, -ENOMEM, "write %s", f->path);
	(void)sysio_unlinkat(f->dir_fd, new, 0);
	fd = sysio_openat(f->dir_fd, new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			  0600);
	if (fd < 0)
		return error_set(err, -errno, "write %s", f->path);
	r = fd_write_full(fd, buf_data(text), text->len);
	if (r == 0 && sysio_fsync(fd) < 0)
		r = -errno;
	if (r == 0 && sysio_renameat(f->dir_fd, new, f->dir_fd, f->name) < 0)
		r = -errno;
	if (r < 0)
		(void)sysio_unlinkat(f->dir_fd, new, 0);
	return r < 0 ? error_set(err, r, "write %s", f->path) : 0;
}

/* Another entry for the host, or none (auth NULL): 1 where one has gone. */
static int authfile_change(struct authfile *f, const char *host, const char *auth,
			   struct error *err)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	bool found = false;
	int r = authfile_edit(&text, &f->arena, (const char *)buf_data(&f->text), f->text.len, host,
			      auth, &found, err);

	if (r < 0)
		return error_wrap(err, r, "%s", f->path);
	if (!found && !auth)
		return 0;
	r = authfile_write(f, &text, err);
	return r < 0 ? r : found;
}

/* ---- keeping ---- */

static int authfile_choose(const char **ret, struct arena *arena, const char *host,
			   struct error *err)
{
	static const enum credentials_place usual[] = { CREDENTIALS_AUTH_FILE, CREDENTIALS_DOCKER,
							CREDENTIALS_HOME };
	struct credentials c;
	const char *path;
	int r;

	/* Behind one that has the host it would never be read. */
	for (size_t i = 0; i < CREDENTIALS_PLACES; i++) {
		r = credentials_place(&path, arena, i, err);
		if (r > 0)
			r = credentials_find_in(&c, arena, host, path, err);
		if (r != 0) {
			*ret = path;
			return MIN(r, 0);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++) {
		r = credentials_place(ret, arena, usual[i], err);
		if (r != 0)
			return MIN(r, 0);
	}
	return error_refuse(err, ERROR_PRECONDITION,
			    "there is no place for credentials: neither HOME nor "
			    "REGISTRY_AUTH_FILE is set; use --authfile");
}

int authfile_keep(const char *path, const char *host, const char *user, const char *secret,
		  struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(AUTHFILE_MEMORY_MAX);
	const char *both = arena_printf(&arena, "%s:%s", user, secret);
	const char *auth = both ? base64_encode(&arena, (const uint8_t *)both, strlen(both)) : NULL;
	_cleanup_(authfile_close) struct authfile f = { .dir_fd = -1 };
	const char *helper;
	int r = 0;

	if (!auth)
		return error_set(err, -ENOMEM, "keep credentials");
	if (!path)
		r = authfile_choose(&path, &arena, host, err);
	if (r == 0)
		r = authfile_open(&f, path, true, err);
	if (r < 0)
		return r;
	r = credentials_read_helper(&helper, &arena, host, (const char *)buf_data(&f.text),
				    f.text.len, err);
	if (r < 0)
		return error_wrap(err, r, "%s", f.path);
	if (r > 0)
		return credential_helper_store(helper, credentials_server(host), user, secret, err);
	r = authfile_change(&f, host, auth, err);
	return MIN(r, 0);
}

/* ---- forgetting ---- */

/* Erases the credentials of a host from its helper. 1: the helper had some; 0: it had none. */
static int authfile_forget_helper(struct authfile *f, const char *host, struct error *err)
{
	const char *helper, *user, *secret;
	int r = credentials_read_helper(&helper, &f->arena, host, (const char *)buf_data(&f->text),
					f->text.len, err);

	if (r > 0)
		r = credential_helper_get(helper, credentials_server(host), &f->arena, &user,
					  &secret, err);
	return r > 0 ? credential_helper_erase(helper, credentials_server(host), err) : r;
}

/* Of all hosts that the file names: docker notes in "auths" for which there is something. */
static int authfile_forget_helpers(struct authfile *f, struct error *err)
{
	static const char *const members[] = { "auths", "credHelpers" };
	struct json_value *top = NULL;
	int found = 0, r;

	r = authfile_parse(&top, &f->arena, (const char *)buf_data(&f->text), f->text.len, err);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(members); i++) {
		const struct json_value *of = json_member(top, members[i]);

		for (of = of && of->kind == JSON_OBJECT ? of->first : NULL; r >= 0 && of;
		     of = of->next) {
			const char *host =
				credentials_is_host(of->name, "docker.io") ? "docker.io" : of->name;

			r = authfile_forget_helper(f, host, err);
			found = MAX(found, r);
		}
	}
	return r < 0 ? r : found;
}

static int authfile_forget_in(const char *path, const char *host, struct error *err)
{
	_cleanup_(authfile_close) struct authfile f = { .dir_fd = -1 };
	int found, r = authfile_open(&f, path, false, err);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	found = host ? authfile_forget_helper(&f, host, err) : authfile_forget_helpers(&f, err);
	if (found < 0)
		return error_wrap(err, found, "%s", f.path);
	r = authfile_change(&f, host, NULL, err);
	return r < 0 ? r : MAX(found, r);
}

int authfile_forget(const char *path, const char *host, struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(AUTHFILE_MEMORY_MAX);
	int found = 0, r = 0;

	if (path)
		return authfile_forget_in(path, host, err);
	for (size_t i = 0; r >= 0 && i < CREDENTIALS_PLACES; i++) {
		r = credentials_place(&path, &arena, i, err);
		if (r > 0)
			r = authfile_forget_in(path, host, err);
		found = MAX(found, r);
	}
	return r < 0 ? r : found;
}
