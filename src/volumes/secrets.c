/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A set is a directory: `map` has a line for each file, "SECRET UID GID MODE FILE", and `files` is
 * what a container has mounted. A file is written beside `files` and then renamed into it, so that
 * whoever reads there finds the old or the new one. A set that is only one file has it as `only`:
 * what is bound there is that very file, and does not change.
 */

#include "volumes/secrets.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "base/time/clock.h"

#define SECRETS_DIR "secrets"
#define SECRETS_NEW ".new-" /* no secret is called so */
#define SECRET_MAGIC "nacre-secret 1"
#define SECRET_HEAD_MAX 80
#define SECRET_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define SET_MAP "map"
#define SET_FILES "files"
#define SET_NEW "new"
#define SET_DROP_TRIES 8
#define SET_MAP_MAX ((size_t)64 << 10)

/* A change of a secret and the making of a set exclude each other: no set misses a change. */
static pthread_mutex_t secrets_lock = PTHREAD_MUTEX_INITIALIZER;

static void secrets_unlock(pthread_mutex_t **lock)
{
	(void)pthread_mutex_unlock(*lock);
}

#define SECRETS_LOCKED                                                                             \
	_cleanup_(secrets_unlock) pthread_mutex_t *locked = &secrets_lock;                         \
	(void)pthread_mutex_lock(locked)

static void secret_wipe(struct buf *b)
{
	if (b->base)
		explicit_bzero(b->base, b->size);
	buf_done(b);
}

/* ---- names ---- */

int secret_check_name(const char *field, const char *name, struct error *err)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strlen(name);

	if (len > 0 && len <= SECRET_NAME_MAX && strspn(name, letters) == len &&
	    !strchr("._-", name[0]))
		return 0;
	return error_field(err, ERROR_INVALID, field,
			   "\"%.80s\" is not a name: 1 to %d of A-Z, a-z, 0-9, '.', '_' and '-', "
			   "the first a letter or digit",
			   name, SECRET_NAME_MAX);
}

int secret_check_file(const char *field, const char *file, struct error *err)
{
	if (*file && strlen(file) <= SECRET_FILE_MAX && !strchr(file, '/') && str_is_clean(file) &&
	    !str_eq(file, ".") && !str_has_prefix(file, ".."))
		return 0;
	return error_field(err, ERROR_INVALID, field,
			   "\"%.80s\" is not the name of a file, without '/' and not beginning "
			   "with \"..\"",
			   file);
}

/* ---- directories ---- */

static int secrets_open_dir(int parent_fd, const char *name)
{
	int fd = sysio_openat(parent_fd, name, SECRET_DIRECTORY, 0);

	return fd < 0 ? -errno : fd;
}

int secrets_open(int parent_fd, struct error *err)
{
	_cleanup_strv_ char **names = NULL;
	_cleanup_fd_ int fd = -1;
	int r;

	if (sysio_mkdirat(parent_fd, SECRETS_DIR, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make the directory of secrets");
	fd = secrets_open_dir(parent_fd, SECRETS_DIR);
	r = fd < 0 ? fd : fd_list_dir(fd, &names);
	if (r < 0)
		return error_set(err, r, "open the directory of secrets");
	for (char **name = names; name && *name; name++)
		if (str_has_prefix(*name, SECRETS_NEW))
			(void)sysio_unlinkat(fd, *name, 0);
	return TAKE_FD(fd);
}

/* ---- one secret ---- */

static int secret_take_head(const char *line, struct secret_info *ret)
{
	const char *id = line + sizeof(SECRET_MAGIC);

	if (!str_has_prefix(line, SECRET_MAGIC " ") || strlen(id) <= ID_LEN || id[ID_LEN] != ' ')
		return -EBADMSG;
	(void)str_printf(ret->id, sizeof(ret->id), "%.*s", ID_LEN, id);
	return parse_u64(id + ID_LEN + 1, 0, UINT64_MAX, &ret->created_at) < 0 ? -EBADMSG : 0;
}

static int secret_parse(struct buf *b, struct secret_info *ret)
{
	const uint8_t *end =
		b->len ? memchr(buf_data(b), '\n', MIN(b->len, (size_t)SECRET_HEAD_MAX)) : NULL;
	char line[SECRET_HEAD_MAX + 1];
	int r;

	if (!end)
		return -EBADMSG;
	(void)str_printf(line, sizeof(line), "%.*s", (int)(end - buf_data(b)),
			 (const char *)buf_data(b));
	r = secret_take_head(line, ret);
	buf_consume(b, strlen(line) + 1);
	ret->size = b->len;
	return r;
}

static int secret_load(int dir_fd, const char *name, struct buf *b, struct secret_info *ret)
{
	_cleanup_fd_ int fd = sysio_openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	struct stat st;
	int r;

	*ret = (struct secret_info){ .size = 0 };
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	r = str_copy(ret->name, sizeof(ret->name), name);
	ret->updated_at = (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	if (r == 0)
		r = fd_read_all(fd, SECRET_SIZE_MAX + SECRET_HEAD_MAX, b);
	return r < 0 ? r : secret_parse(b, ret);
}

int secret_read(int dir_fd, const char *name, struct buf *ret_data, struct secret_info *ret,
		struct error *err)
{
	_cleanup_(secret_wipe) struct buf b = BUF_INIT;
	int r = secret_load(dir_fd, name, &b, ret);

	if (r == -ENOENT)
		return error_refuse(err, ERROR_NOT_FOUND, "this node has no secret %s", name);
	if (r == 0 && ret_data && b.len)
		r = buf_add(ret_data, buf_data(&b), b.len);
	return r < 0 ? error_set(err, r, "read the secret %s", name) : 0;
}

static int secret_write(int fd, const struct secret_info *info, const void *data, size_t len)
{
	char head[SECRET_HEAD_MAX];
	int r = str_printf(head, sizeof(head), SECRET_MAGIC " %s %" PRIu64 "\n", info->id,
			   info->created_at);

	if (r >= 0)
		r = fd_write_full(fd, head, strlen(head));
	if (r == 0)
		r = fd_write_full(fd, data, len);
	if (r == 0 && sysio_fsync(fd) < 0)
		r = -errno;
	return r;
}

/* Under its own name when it is whole. */
static int secret_settle(int dir_fd, const char *new, const char *name)
{
	if (sysio_renameat(dir_fd, new, dir_fd, name) < 0) {
		int r = -errno;

		(void)sysio_unlinkat(dir_fd, new, 0);
		return r;
	}
	return sysio_fsync(dir_fd) < 0 ? -errno : 0;
}

static int secret_store(int dir_fd, const char *name, const void *data, size_t len,
			const struct secret_info *info)
{
	char new[sizeof(SECRETS_NEW) + ID_LEN], id[ID_SIZE];
	_cleanup_fd_ int fd = -1;
	int r = id_new(id);

	if (r < 0)
		return r;
	(void)str_printf(new, sizeof(new), SECRETS_NEW "%s", id);
	fd = sysio_openat(dir_fd, new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = secret_write(fd, info, data, len);
	if (r == 0)
		return secret_settle(dir_fd, new, name);
	(void)sysio_unlinkat(dir_fd, new, 0);
	return r;
}

static int secrets_check_room(int dir_fd, struct error *err)
{
	_cleanup_strv_ char **names = NULL;
	int r = fd_list_dir(dir_fd, &names);

	if (r < 0)
		return error_set(err, r, "look at the secrets");
	return strv_len(names) < SECRETS_MAX
		       ? 0
		       : error_refuse(err, ERROR_EXHAUSTED, "this node has %d secrets, the limit",
				      SECRETS_MAX);
}

static int secret_begin(int dir_fd, const char *name, bool replace, struct secret_info *info,
			struct error *err)
{
	_cleanup_(secret_wipe) struct buf old = BUF_INIT;
	int r = secret_load(dir_fd, name, &old, info);

	if (r == 0 && !replace)
		return error_field(err, ERROR_EXISTS, "name", "there is a secret %s", name);
	if (r == 0)
		return 0;
	if (r != -ENOENT && !replace)
		return error_set(err, r, "look at the secret %s", name);
	*info = (struct secret_info){ .created_at = clock_real() };
	(void)str_copy(info->name, sizeof(info->name), name);
	r = id_new(info->id);
	return r < 0 ? error_set(err, r, "draw an id") : secrets_check_room(dir_fd, err);
}

/* ---- sets ---- */

static int set_write(int set_fd, int to_fd, const struct secret_file *f, const void *data,
		     size_t len)
{
	_cleanup_fd_ int fd = -1;
	int r;

	(void)sysio_unlinkat(set_fd, SET_NEW, 0);
	fd = sysio_openat(set_fd, SET_NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			  0600);
	if (fd < 0)
		return -errno;
	r = fd_write_full(fd, data, len);
	if (r == 0 && fchown(fd, f->uid, f->gid) < 0)
		r = -errno;
	if (r == 0 && fchmod(fd, f->mode) < 0)
		r = -errno;
	if (r == 0 && sysio_renameat(set_fd, SET_NEW, to_fd, f->file) < 0)
		r = -errno;
	if (r < 0)
		(void)sysio_unlinkat(set_fd, SET_NEW, 0);
	return r;
}

static int set_add(int dir_fd, int set_fd, int files_fd, const struct secret_file *f,
		   struct buf *map, struct error *err)
{
	_cleanup_(secret_wipe) struct buf data = BUF_INIT;
	struct secret_info info;
	int r = secret_read(dir_fd, f->secret, &data, &info, err);

	if (r < 0)
		return r;
	r = set_write(set_fd, files_fd, f, data.len ? buf_data(&data) : (const void *)"", data.len);
	if (r == 0)
		r = buf_addf(map, "%s %u %u %u %s\n", f->secret, f->uid, f->gid, f->mode, f->file);
	return r < 0 ? error_set(err, r, "give a container the secret %s", f->secret) : 0;
}

static int set_fill(int dir_fd, int set_fd, const struct secret_file *files, size_t n,
		    struct error *err)
{
	_cleanup_(buf_done) struct buf map = BUF_INIT;
	_cleanup_fd_ int files_fd = -1;
	bool only = n == 1 && !*files->file;
	int r;

	if (sysio_mkdirat(set_fd, SET_FILES, 0755) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make a directory for secrets");
	files_fd = secrets_open_dir(set_fd, SET_FILES);
	r = files_fd < 0 ? files_fd : fchmod(files_fd, 0755) < 0 ? -errno : 0;
	if (r < 0)
		return error_set(err, r, "open a directory for secrets");
	for (size_t i = 0; i < n; i++) {
		struct secret_file f = files[i];

		f.file = only ? "only" : f.file;
		r = set_add(dir_fd, set_fd, files_fd, &f, &map, err);
		if (r < 0)
			return r;
	}
	/* The only file is what is mounted: another one in its place is seen by nobody. */
	if (only)
		buf_clear(&map);
	r = rootfd_put(set_fd, SET_MAP, 0600, map.len ? buf_data(&map) : (const void *)"", map.len);
	return r < 0 ? error_set(err, r, "note which secrets a container has") : 0;
}

static int set_point(int set_fd, bool only, struct error *err)
{
	int fd = rootfd_point(set_fd, only ? SET_FILES "/only" : SET_FILES);

	return fd < 0 ? error_set(err, fd, "open the secrets of a container") : fd;
}

int secret_set_make(int dir_fd, int sets_fd, const char *id, const struct secret_file *files,
		    size_t n, struct error *err)
{
	_cleanup_fd_ int set_fd = -1;
	bool is_new;
	int r;
	SECRETS_LOCKED;

	assert(n > 0);
	is_new = sysio_mkdirat(sets_fd, id, 0700) == 0;
	if (!is_new && errno != EEXIST)
		return error_set(err, -errno, "make a directory for secrets");
	set_fd = secrets_open_dir(sets_fd, id);
	r = set_fd < 0 ? error_set(err, set_fd, "open a directory for secrets")
		       : set_fill(dir_fd, set_fd, files, n, err);
	if (r == 0)
		r = set_point(set_fd, n == 1 && !*files->file, err);
	/* One that was there may be mounted already, by another start of the same container. */
	if (r < 0 && is_new)
		(void)rootfd_remove_tree(sets_fd, id);
	return r;
}

void secret_set_drop(int sets_fd, const char *id)
{
	/* A secret that changes meanwhile may put a file in once more. */
	for (int i = 0; sets_fd >= 0 && i < SET_DROP_TRIES; i++)
		if (rootfd_remove_tree(sets_fd, id) != -ENOTEMPTY)
			return;
}

void secret_sets_collect(int sets_fd, bool (*is_wanted)(void *userdata, const char *id),
			 void *userdata)
{
	_cleanup_strv_ char **ids = NULL;

	if (fd_list_dir(sets_fd, &ids) < 0)
		return;
	for (char **id = ids; id && *id; id++)
		if (!is_wanted(userdata, *id))
			secret_set_drop(sets_fd, *id);
}

/* A line of a map; false: it is none, or of another secret. */
static bool set_take_line(char *line, const char *name, struct secret_file *ret)
{
	char *words[5];
	uint64_t uid, gid, mode;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		words[i] = i + 1 < ARRAY_SIZE(words) ? strsep(&line, " ") : line;
		if (!words[i])
			return false;
	}
	if (!str_eq(words[0], name) || parse_u64(words[1], 0, UINT32_MAX, &uid) < 0 ||
	    parse_u64(words[2], 0, UINT32_MAX, &gid) < 0 ||
	    parse_u64(words[3], 0, 07777, &mode) < 0)
		return false;
	*ret = (struct secret_file){ .secret = name,
				     .file = words[4],
				     .uid = (uid_t)uid,
				     .gid = (gid_t)gid,
				     .mode = (mode_t)mode };
	return secret_check_file("", ret->file, NULL) == 0;
}

static int set_update(int sets_fd, const char *id, const char *name, const void *data, size_t len)
{
	_cleanup_fd_ int set_fd = secrets_open_dir(sets_fd, id), files_fd = -1;
	_cleanup_(buf_done) struct buf map = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	char *rest, *line;
	int r;

	if (set_fd < 0)
		return set_fd;
	files_fd = secrets_open_dir(set_fd, SET_FILES);
	if (files_fd < 0)
		return files_fd;
	r = fd_read_file(set_fd, SET_MAP, SET_MAP_MAX, &map);
	if (r < 0)
		return r;
	text = buf_take_str(&map);
	if (!text)
		return -ENOMEM;
	rest = text;
	while (r == 0 && (line = strsep(&rest, "\n"))) {
		struct secret_file f;

		if (set_take_line(line, name, &f))
			r = set_write(set_fd, files_fd, &f, data, len);
	}
	return r;
}

/* A set that goes meanwhile is none. */
static int sets_update(int sets_fd, const char *name, const void *data, size_t len)
{
	_cleanup_strv_ char **ids = NULL;
	int r = fd_list_dir(sets_fd, &ids), worst = 0;

	for (char **id = ids; r == 0 && id && *id; id++) {
		int one = set_update(sets_fd, *id, name, data, len);

		if (one < 0 && one != -ENOENT && worst == 0)
			worst = one;
	}
	return r < 0 ? r : worst;
}

/* ---- all of them ---- */

int secret_put(int dir_fd, int sets_fd, const char *name, const void *data, size_t len,
	       bool replace, struct secret_info *ret, struct error *err)
{
	int r;
	SECRETS_LOCKED;

	if (len == 0 || len > SECRET_SIZE_MAX)
		return error_field(err, ERROR_INVALID, "data", "1 to %d bytes, not %zu",
				   SECRET_SIZE_MAX, len);
	r = secret_begin(dir_fd, name, replace, ret, err);
	if (r < 0)
		return r;
	r = secret_store(dir_fd, name, data, len, ret);
	if (r < 0)
		return error_set(err, r, "write the secret %s", name);
	ret->size = len;
	ret->updated_at = clock_real();
	r = replace ? sets_update(sets_fd, name, data, len) : 0;
	return r < 0 ? error_set(err, r, "give containers the new secret %s", name) : 0;
}

int secret_remove(int dir_fd, const char *name, struct error *err)
{
	SECRETS_LOCKED;

	if (sysio_unlinkat(dir_fd, name, 0) == 0)
		return sysio_fsync(dir_fd) < 0
			       ? error_set(err, -errno, "remove the secret %s", name)
			       : 0;
	if (errno == ENOENT)
		return error_refuse(err, ERROR_NOT_FOUND, "this node has no secret %s", name);
	return error_set(err, -errno, "remove the secret %s", name);
}

int secrets_list(int dir_fd, struct secret_info **ret, size_t *ret_n, struct error *err)
{
	_cleanup_strv_ char **names = NULL;
	struct secret_info *list;
	int r = fd_list_dir(dir_fd, &names);
	size_t n = 0;

	if (r < 0)
		return error_set(err, r, "look at the secrets");
	list = calloc(strv_len(names) + 1, sizeof(*list));
	if (!list)
		return error_set(err, -ENOMEM, "look at the secrets");
	for (char **name = names; name && *name; name++) {
		_cleanup_(secret_wipe) struct buf b = BUF_INIT;

		if (secret_check_name("", *name, NULL) == 0 &&
		    secret_load(dir_fd, *name, &b, &list[n]) == 0)
			n++;
	}
	*ret = list;
	*ret_n = n;
	return 0;
}
