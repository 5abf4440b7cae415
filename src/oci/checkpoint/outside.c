/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/checkpoint/outside.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/json.h"
#include "base/text/str.h"
#include "isolate/spawn/spawn.h"
#include "oci/config/given.h"
#include "wire/document/jsonread.h"

#define MOUNTINFO_MAX ((size_t)16 << 20)
#define STREAMS_NAME "descriptors.json"
#define STREAMS_SIZE_MAX ((size_t)4096)
#define PIPE_FS_MAGIC 0x50495045
/* What masked files are bound from, and its name. */
#define MASK_SOURCE "/dev/null"
#define MASK_NAME "nacre-mask"
#define CRIU_FIRST_FD 4

void outside_done(struct outside *o)
{
	for (size_t i = 0; i < OUTSIDE_KEEP_MAX; i++)
		o->keep_fds[i] = fd_close(o->keep_fds[i]);
}

void outside_fill(const struct outside *o, struct criu_options *options)
{
	options->mounts = o->mounts;
	options->n_mounts = o->n_mounts;
	options->externals = o->externals;
	options->n_externals = o->n_externals;
	options->joins = o->joins;
	options->n_joins = o->n_joins;
	options->inherited = o->inherited;
	options->n_inherited = o->n_inherited;
}

static size_t paths_len(char *const *paths)
{
	return paths ? strv_len(paths) : 0;
}

/* Room for all that there can be. */
static int outside_begin(struct outside *o, struct container *c, struct error *err)
{
	const struct oci_linux *os = c->config->os;
	char *const *masked = (char *const *)(uintptr_t)os->masked_paths;
	size_t n_mounts = c->config->n_mounts + paths_len(masked) + 1;
	size_t n_others = os->n_namespaces + OUTSIDE_STREAMS;

	o->mounts = arena_zalloc(&c->arena, n_mounts, sizeof(*o->mounts));
	o->externals = arena_zalloc(&c->arena, n_others, sizeof(*o->externals));
	o->joins = arena_zalloc(&c->arena, n_others, sizeof(*o->joins));
	o->inherited = arena_zalloc(&c->arena, n_others, sizeof(*o->inherited));
	return o->mounts && o->externals && o->joins && o->inherited
		       ? 0
		       : error_set(err, -ENOMEM, "list what is not the container's own");
}

static bool outside_has_mount(const struct outside *o, const char *key)
{
	for (size_t i = 0; i < o->n_mounts; i++)
		if (str_eq(o->mounts[i].key, key))
			return true;
	return false;
}

static bool mount_is_bind(const struct oci_mount *m)
{
	if (!str_empty(m->type) && str_eq(m->type, "bind"))
		return true;
	for (size_t i = 0; i < m->n_options; i++)
		if (str_eq(m->options[i], "bind") || str_eq(m->options[i], "rbind"))
			return true;
	return false;
}

/* ---- mounts, of a container that lives ---- */

/* Its mountinfo, and its root. */
struct look {
	struct container *c;
	char *text;
	int root_fd;
};

static void look_done(struct look *l)
{
	free(l->text);
	l->root_fd = fd_close(l->root_fd);
}

/* The number of the mount that a descriptor is in; who: "self" or a process. */
static int look_mount_of(const struct look *l, const char *who, int fd, unsigned *ret)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char name[64], *at;
	int r;

	(void)str_printf(name, sizeof(name), "%s/fdinfo/%d", who, fd);
	r = fd_read_file(l->c->proc_fd, name, 4096, &b);
	if (r == 0)
		r = buf_add(&b, "", 1);
	if (r < 0)
		return r;
	at = strstr((const char *)buf_data(&b), "mnt_id:");
	if (!at)
		return -ENODATA;
	*ret = (unsigned)strtoul(at + strlen("mnt_id:"), NULL, 10);
	return 0;
}

/* The line of a mount, from behind its number on; NULL where the container has none of it. */
static const char *look_line(const struct look *l, unsigned id)
{
	for (const char *line = l->text; line; line = strchr(line, '\n')) {
		char *end;

		line += *line == '\n';
		if (strtoul(line, &end, 10) == id && end != line && *end == ' ')
			return end;
	}
	return NULL;
}

/* " PARENT MAJ:MIN ROOT POINT ...": the ROOT (2) or POINT (3), its octal escapes undone. */
static char *look_word(const struct look *l, const char *line, int n)
{
	char *word, *to;
	size_t len;

	for (; n >= 0 && line; n--) {
		line = strchr(line, ' ');
		line = line ? line + 1 : NULL;
	}
	if (!line)
		return NULL;
	len = strcspn(line, " \n");
	word = arena_strndup(&l->c->arena, line, len);
	to = word;
	for (const char *at = word; at && *at;) {
		if (*at == '\\' && strspn(at + 1, "01234567") >= 3) {
			*to++ = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
			at += 4;
		} else {
			*to++ = *at++;
		}
	}
	if (word)
		*to = '\0';
	return word;
}

/* Adds what is mounted at a path of the container under this name; with part_only, if it is a part
 * of a file system and not the whole of one of the container's own. */
static int look_mount(struct outside *o, const struct look *l, const char *path, const char *name,
		      bool part_only, struct error *err)
{
	_cleanup_fd_ int fd = rootfd_open(l->root_fd, path, O_PATH, 0);
	const char *line, *root, *point;
	unsigned id = 0;
	int r;

	/* A masked path need not be there. */
	if (fd < 0)
		return part_only && (fd == -ENOENT || fd == -ENOTDIR)
			       ? 0
			       : error_set(err, fd, "find %s in the container", path);
	r = look_mount_of(l, "self", fd, &id);
	line = r == 0 ? look_line(l, id) : NULL;
	if (!line)
		return error_set(err, r < 0 ? r : -ENOENT, "find the mount of %s", path);
	root = look_word(l, line, 2);
	point = look_word(l, line, 3);
	if (!root || !point)
		return error_set(err, -ENOMEM, "read the container's mounts");
	if (part_only && str_eq(root, "/"))
		return 0;
	/* Two entries of config.json in one place: the upper one is there. */
	if (outside_has_mount(o, point))
		return 0;
	o->mounts[o->n_mounts++] = (struct criu_pair){ .key = point, .value = name };
	return 0;
}

static int look_mounts(struct outside *o, const struct look *l, struct error *err)
{
	const struct oci_config *config = l->c->config;
	int r = 0;

	for (size_t i = config->n_mounts; r == 0 && i > 0; i--)
		if (mount_is_bind(&config->mounts[i - 1]))
			r = look_mount(o, l, config->mounts[i - 1].destination,
				       config->mounts[i - 1].destination, false, err);
	for (size_t i = 0; r == 0 && config->os->masked_paths && config->os->masked_paths[i]; i++)
		r = look_mount(o, l, config->os->masked_paths[i], MASK_NAME, true, err);
	return r;
}

/* ---- streams ---- */

/* What criu shall find in its place again: an unnamed pipe, or a file that no mount of the
 * container leads to. */
static int look_stream(struct outside *o, const struct look *l, int i, struct error *err)
{
	char name[32], who[16];
	_cleanup_fd_ int fd = -1;
	struct statfs fs;
	struct stat st;
	unsigned id = 0;
	int r;

	o->streams[i] = "";
	(void)str_printf(who, sizeof(who), "%d", (int)l->c->pid);
	(void)str_printf(name, sizeof(name), "%d/fd/%d", (int)l->c->pid, i);
	fd = sysio_openat(l->c->proc_fd, name, O_PATH | O_CLOEXEC, 0);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return error_set(err, -errno, "look at descriptor %d of process %s", i, who);
	if (S_ISFIFO(st.st_mode) && fs.f_type == PIPE_FS_MAGIC) {
		o->streams[i] = arena_printf(&l->c->arena, "pipe:[%ju]", (uintmax_t)st.st_ino);
		return o->streams[i] ? 0 : error_set(err, -ENOMEM, "name a pipe");
	}
	if (S_ISSOCK(st.st_mode))
		return 0;
	r = look_mount_of(l, who, i, &id);
	if (r < 0)
		return error_set(err, r, "find the mount of descriptor %d", i);
	if (look_line(l, id))
		return 0;
	o->streams[i] = arena_printf(&l->c->arena, "file[%x:%jx]", id, (uintmax_t)st.st_ino);
	if (!o->streams[i])
		return error_set(err, -ENOMEM, "name a file");
	o->externals[o->n_externals++] = o->streams[i];
	return 0;
}

int outside_write_streams(const struct outside *o, int images_fd, struct error *err)
{
	_cleanup_str_ char *text = NULL;
	_cleanup_fd_ int fd = -1;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);
	struct json j = JSON_INIT(to);
	int r;

	if (!to)
		return error_set(err, -ENOMEM, "write " STREAMS_NAME);
	json_put_array(&j, NULL);
	for (int i = 0; i < OUTSIDE_STREAMS; i++)
		json_put_string(&j, NULL, o->streams[i]);
	json_put_end(&j);
	if (fclose(to) != 0)
		return error_set(err, -ENOMEM, "write " STREAMS_NAME);
	fd = sysio_openat(images_fd, STREAMS_NAME,
			  O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : fd_write_full(fd, text, len);
	return r < 0 ? error_set(err, r, "write " STREAMS_NAME) : 0;
}

static bool stream_is_known(const char *text)
{
	return str_has_prefix(text, "pipe:[") || str_has_prefix(text, "file[");
}

/* A name that stands for several streams goes to the first. */
static void find_stream(struct outside *o, const char *text, int fd)
{
	for (size_t i = 0; i < o->n_inherited; i++)
		if (str_eq(o->inherited[i].key, text))
			return;
	o->inherited[o->n_inherited++] = (struct criu_descriptor){ .key = text, .fd = fd };
}

static int find_streams(struct outside *o, struct container *c, int images_fd, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	const struct json_value *list = NULL;
	struct json_value *v = NULL;
	int fd = 0;
	int r;

	r = rootfd_read(images_fd, STREAMS_NAME, STREAMS_SIZE_MAX, &b);
	if (r < 0)
		return error_set(err, r, "--image-path: read " STREAMS_NAME);
	r = json_parse(&v, &c->arena, buf_data(&b), b.len, err);
	if (r < 0)
		return error_wrap(err, r, "--image-path: " STREAMS_NAME);
	if (v->kind != JSON_ARRAY || v->n > OUTSIDE_STREAMS)
		return error_refuse(err, ERROR_INVALID,
				    "--image-path: " STREAMS_NAME " is no list of %d streams",
				    OUTSIDE_STREAMS);
	for (list = v->first; list; list = list->next, fd++)
		if (list->kind == JSON_STRING && stream_is_known(list->text))
			find_stream(o, list->text, fd);
	return 0;
}

/* ---- namespaces ---- */

/* Those that criu leaves out, with the name under which it takes one in again. All others that were
 * joined it writes down, and joins when it restores. */
static const struct {
	const char *type; /* in config.json */
	enum isolate_ns kind;
	const char *word; /* of criu */
	const char *name; /* NULL: it is joined */
} outside_namespaces[] = {
	{ "network", ISOLATE_NS_NET, "net", "extRootNetNS" },
	{ "pid", ISOLATE_NS_PID, "pid", "extRootPidNS" },
	{ "ipc", ISOLATE_NS_IPC, "ipc", NULL },
	{ "uts", ISOLATE_NS_UTS, "uts", NULL },
	{ "time", ISOLATE_NS_TIME, "time", NULL },
	{ "user", ISOLATE_NS_USER, "user", NULL },
};

static int look_namespace(struct outside *o, const struct look *l, size_t kind, struct error *err)
{
	_cleanup_fd_ int fd =
		isolate_ns_open(l->c->proc_fd, l->c->pid, outside_namespaces[kind].kind);
	struct stat st;
	char *text;

	if (!outside_namespaces[kind].name)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_set(err, fd < 0 ? fd : -errno, "open the %s namespace of process %d",
				 outside_namespaces[kind].type, (int)l->c->pid);
	text = arena_printf(&l->c->arena, "%s[%ju]:%s", outside_namespaces[kind].word,
			    (uintmax_t)st.st_ino, outside_namespaces[kind].name);
	if (!text)
		return error_set(err, -ENOMEM, "name a namespace");
	o->externals[o->n_externals++] = text;
	return 0;
}

static int find_namespace(struct outside *o, const char *path, size_t kind, struct error *err)
{
	int fd;

	if (!outside_namespaces[kind].name) {
		o->joins[o->n_joins++] =
			(struct criu_pair){ .key = outside_namespaces[kind].word, .value = path };
		return 0;
	}
	fd = given_open(path, O_RDONLY, 0);
	if (fd < 0)
		return error_set(err, fd, "linux.namespaces: open %s", path);
	o->inherited[o->n_inherited++] = (struct criu_descriptor){
		.key = outside_namespaces[kind].name,
		.fd = CRIU_FIRST_FD + (int)o->n_keep_fds,
	};
	o->keep_fds[o->n_keep_fds++] = fd;
	return 0;
}

/* l: of a container that lives; NULL to find them. */
static int outside_each_namespace(struct outside *o, struct container *c, const struct look *l,
				  struct error *err)
{
	const struct oci_linux *os = c->config->os;

	for (size_t i = 0; i < os->n_namespaces; i++) {
		const struct oci_namespace *ns = &os->namespaces[i];
		size_t kind = 0;
		int r;

		if (str_empty(ns->path))
			continue;
		while (kind < ARRAY_SIZE(outside_namespaces) &&
		       !str_eq(outside_namespaces[kind].type, ns->type))
			kind++;
		if (kind == ARRAY_SIZE(outside_namespaces))
			return error_field(err, ERROR_UNSUPPORTED, "linux.namespaces",
					   "criu cannot join a %s namespace", ns->type);
		r = l ? look_namespace(o, l, kind, err) : find_namespace(o, ns->path, kind, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- both ---- */

int outside_look(struct outside *o, struct container *c, struct error *err)
{
	_cleanup_(look_done) struct look l = { .c = c, .root_fd = -1 };
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char name[32];
	int r;

	r = outside_begin(o, c, err);
	if (r < 0)
		return r;
	(void)str_printf(name, sizeof(name), "%d/mountinfo", (int)c->pid);
	r = fd_read_file(c->proc_fd, name, MOUNTINFO_MAX, &b);
	if (r < 0)
		return error_set(err, r, "read the mounts of process %d", (int)c->pid);
	l.text = buf_take_str(&b);
	if (!l.text)
		return error_set(err, -ENOMEM, "read the mounts of process %d", (int)c->pid);
	l.root_fd = isolate_root_open(c->proc_fd, c->pid);
	if (l.root_fd < 0)
		return error_set(err, l.root_fd, "open the root of process %d", (int)c->pid);
	r = look_mounts(o, &l, err);
	for (int i = 0; r == 0 && i < OUTSIDE_STREAMS; i++)
		r = look_stream(o, &l, i, err);
	return r < 0 ? r : outside_each_namespace(o, c, &l, err);
}

static const char *find_source(const struct oci_mount *m, struct container *c)
{
	return m->source[0] == '/' ? m->source
				   : arena_printf(&c->arena, "%s/%s", c->bundle, m->source);
}

int outside_find(struct outside *o, struct container *c, int images_fd, struct error *err)
{
	const struct oci_config *config = c->config;
	int r = outside_begin(o, c, err);

	for (size_t i = config->n_mounts; r == 0 && i > 0; i--) {
		const struct oci_mount *m = &config->mounts[i - 1];
		const char *source;

		if (!mount_is_bind(m) || outside_has_mount(o, m->destination))
			continue;
		if (str_empty(m->source))
			return error_refuse(err, ERROR_INVALID,
					    "mounts[%zu]: a bind mount needs a source", i - 1);
		source = find_source(m, c);
		if (!source)
			return error_set(err, -ENOMEM, "name a mount");
		o->mounts[o->n_mounts++] =
			(struct criu_pair){ .key = m->destination, .value = source };
	}
	if (r == 0 && config->os->masked_paths)
		o->mounts[o->n_mounts++] =
			(struct criu_pair){ .key = MASK_NAME, .value = MASK_SOURCE };
	if (r == 0)
		r = outside_each_namespace(o, c, NULL, err);
	return r < 0 || config->process->terminal.value ? r : find_streams(o, c, images_fd, err);
}

/* ---- places ---- */

/* Whether an earlier mount of the list covers the place: then it is in there, not in the root. */
static bool place_is_covered(const struct oci_config *config, size_t n)
{
	const char *path = config->mounts[n].destination;

	for (size_t i = 0; i < n; i++) {
		const char *above = config->mounts[i].destination;
		size_t len = strlen(above);

		if (strncmp(path, above, len) == 0 && path[len] == '/')
			return true;
	}
	return false;
}

/* As where a container is made: a system mount goes on a directory of the root itself. */
static int place_make(int root_fd, const struct oci_mount *m, struct container *c)
{
	bool is_bind = mount_is_bind(m);
	_cleanup_fd_ int source = -1, place = -1;
	struct stat st = { .st_mode = S_IFDIR };

	if (is_bind && !str_empty(m->source)) {
		const char *path = find_source(m, c);

		source = path ? given_open(path, O_PATH, 0) : -ENOMEM;
		if (source < 0 || fstat(source, &st) < 0)
			return source < 0 ? source : -errno;
	}
	if (isolate_mount_is_system(is_bind ? NULL : m->type, m->destination))
		place = rootfd_make_dir_plain(root_fd, m->destination);
	else if (S_ISDIR(st.st_mode))
		place = rootfd_make_dir_through(root_fd, m->destination);
	else
		place = rootfd_make_file_through(root_fd, m->destination);
	return place < 0 ? place : 0;
}

int outside_make_places(struct container *c, struct error *err)
{
	_cleanup_fd_ int root_fd = given_open(c->rootfs, O_PATH | O_DIRECTORY, 0);

	if (root_fd < 0)
		return error_set(err, root_fd, "root.path: open %s", c->rootfs);
	for (size_t i = 0; i < c->config->n_mounts; i++) {
		int r;

		if (place_is_covered(c->config, i))
			continue;
		r = place_make(root_fd, &c->config->mounts[i], c);
		if (r < 0)
			return error_set(err, r, "mounts[%zu]: make %s", i,
					 c->config->mounts[i].destination);
	}
	return 0;
}
