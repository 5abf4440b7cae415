/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/container.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/json.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/cgroup_path.h"
#include "isolate/cgroup/cgroup_watch.h"
#include "oci/config/given.h"

#define STATE_SIZE_MAX ((size_t)64 << 10)
#define CONFIG_NAME "config.json"
#define STATE_NAME "state.json"
#define STATE_NEW_NAME "state.new"
#define CGROUP_NAME "cgroup"

static const char *const status_names[CONTAINER_STATUS_COUNT] = {
	[CONTAINER_CREATING] = "creating", [CONTAINER_CREATED] = "created",
	[CONTAINER_RUNNING] = "running",   [CONTAINER_PAUSED] = "paused",
	[CONTAINER_STOPPED] = "stopped",
};

const char *container_status_name(enum container_status status)
{
	return status_names[status];
}

int container_check_id(const char *id, struct error *err)
{
	if (!*id || strlen(id) > CONTAINER_ID_MAX)
		return error_refuse(err, ERROR_INVALID, "container ID: has no 1 to %d characters",
				    CONTAINER_ID_MAX);
	for (const char *p = id; *p; p++)
		if (!isascii(*p) || (!isalnum(*p) && !strchr("_+-.", *p)))
			return error_refuse(err, ERROR_INVALID,
					    "container ID: \"%s\": only letters, digits and "
					    "\"_+-.\" are allowed",
					    id);
	if (id[0] == '.')
		return error_refuse(err, ERROR_INVALID, "container ID: \"%s\" begins with a dot",
				    id);
	return 0;
}

static int container_begin(struct container *c, const char *id, struct error *err)
{
	int r;

	*c = (struct container)CONTAINER_INIT;
	r = container_check_id(id, err);
	if (r < 0)
		return r;
	(void)str_copy(c->id, sizeof(c->id), id);
	c->proc_fd = given_open("/proc", O_PATH | O_DIRECTORY, 0);
	return c->proc_fd < 0 ? error_set(err, c->proc_fd, "open /proc") : 0;
}

void container_done(struct container *c)
{
	c->root_fd = fd_close(c->root_fd);
	c->dir_fd = fd_close(c->dir_fd);
	c->proc_fd = fd_close(c->proc_fd);
	c->hierarchy_fd = fd_close(c->hierarchy_fd);
	arena_done(&c->arena);
}

/* ---- making ---- */

int container_make(struct container *c, const char *root, const char *id, struct error *err)
{
	int r;

	r = container_begin(c, id, err);
	if (r < 0)
		return r;
	c->root_fd = given_open(root, O_RDONLY | O_DIRECTORY, 0);
	if (c->root_fd < 0)
		c->root_fd = given_make_dir(root);
	if (c->root_fd < 0)
		return error_set(err, c->root_fd, "--root: make %s", root);
	if (sysio_mkdirat(c->root_fd, c->id, 0700) < 0)
		return errno == EEXIST ? error_refuse(err, ERROR_EXISTS,
						      "container with ID %s already exists", c->id)
				       : error_set(err, -errno, "make %s/%s", root, c->id);
	c->dir_fd =
		sysio_openat(c->root_fd, c->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (c->dir_fd < 0 || flock(c->dir_fd, LOCK_EX | LOCK_NB) < 0)
		return error_set(err, -errno, "lock %s/%s", root, c->id);
	return 0;
}

/* The config of c as bytes: of the bundle, or the copy. */
static int config_parse(struct container *c, const struct buf *b, struct error *err)
{
	int r = oci_config_read(&c->config, &c->arena, buf_data(b), b->len, err);

	return r < 0 ? error_wrap(err, r, CONFIG_NAME) : 0;
}

static int config_keep(struct container *c, const struct buf *b, struct error *err)
{
	_cleanup_fd_ int fd =
		sysio_openat(c->dir_fd, CONFIG_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : fd_write_full(fd, buf_data(b), b->len);

	return r < 0 ? error_set(err, r, "keep a copy of " CONFIG_NAME) : 0;
}

static int container_set_places(struct container *c, const char *bundle, struct error *err)
{
	_cleanup_str_ char *whole = realpath(bundle, NULL);
	const char *root = c->config->root ? c->config->root->path : NULL;

	if (!whole)
		return error_set(err, -errno, "find the bundle %s", bundle);
	if (str_empty(root))
		return error_field(err, ERROR_INVALID, "root.path", "is missing");
	c->bundle = arena_strdup(&c->arena, whole);
	c->rootfs = root[0] == '/' ? root : arena_printf(&c->arena, "%s/%s", whole, root);
	return c->bundle && c->rootfs ? 0 : error_set(err, -ENOMEM, "name the bundle");
}

int container_set_bundle(struct container *c, const char *bundle, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_fd_ int fd = given_open(bundle, O_PATH | O_DIRECTORY, 0);
	int r;

	if (fd < 0)
		return error_set(err, fd, "open the bundle %s", bundle);
	r = fd_read_file(fd, CONFIG_NAME, OCI_CONFIG_SIZE_MAX, &b);
	if (r < 0)
		return error_set(err, r, "read %s/" CONFIG_NAME, bundle);
	r = config_parse(c, &b, err);
	if (r == 0)
		r = container_set_places(c, bundle, err);
	return r < 0 ? r : config_keep(c, &b, err);
}

int container_set_cgroup(struct container *c, const char *path, struct error *err)
{
	c->cgroup = arena_strdup(&c->arena, path);
	if (!c->cgroup)
		return error_set(err, -ENOMEM, "name the cgroup");
	if (sysio_symlinkat(path, c->dir_fd, CGROUP_NAME) < 0)
		return error_set(err, -errno, "write down the cgroup");
	return 0;
}

static void state_put(const struct container *c, FILE *to)
{
	struct json j = JSON_INIT(to);

	json_put_object(&j, NULL);
	json_put_integer(&j, "pid", c->pid);
	json_put_unsigned(&j, "startTime", c->start_time);
	json_put_string(&j, "bundle", c->bundle);
	json_put_string(&j, "rootfs", c->rootfs);
	json_put_string(&j, "created", c->created);
	json_put_end(&j);
}

static int state_write(const struct container *c)
{
	_cleanup_str_ char *text = NULL;
	_cleanup_fd_ int fd = -1;
	size_t len = 0;
	FILE *to;
	int r;

	to = open_memstream(&text, &len);
	if (!to)
		return -ENOMEM;
	state_put(c, to);
	if (fclose(to) != 0)
		return -ENOMEM;
	fd = sysio_openat(c->dir_fd, STATE_NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			  0600);
	if (fd < 0)
		return -errno;
	r = fd_write_full(fd, text, len);
	if (r < 0)
		return r;
	return sysio_renameat(c->dir_fd, STATE_NEW_NAME, c->dir_fd, STATE_NAME) < 0 ? -errno : 0;
}

int container_set_process(struct container *c, pid_t pid, struct error *err)
{
	char now[CLOCK_TEXT_SIZE];
	int r;

	clock_format(now, clock_real());
	c->created = arena_strdup(&c->arena, now);
	if (!c->created)
		return error_set(err, -ENOMEM, "write the state");
	r = process_start_time(c->proc_fd, pid, &c->start_time);
	if (r < 0)
		return error_set(err, r, "look at process %d", (int)pid);
	c->pid = pid;
	r = state_write(c);
	return r < 0 ? error_set(err, r, "write " STATE_NAME) : 0;
}

/* ---- reading ---- */

struct state_document {
	struct json_int pid;
	struct json_uint start_time;
	const char *bundle, *rootfs, *created;
};

#define STATE_FIELD(json, member, how)                                                             \
	{                                                                                          \
		.name = (json), .want = (how), .required = true,                                   \
		.offset = offsetof(struct state_document, member)                                  \
	}

static const struct json_field state_fields[] = {
	STATE_FIELD("pid", pid, JSON_TO_INT),
	STATE_FIELD("startTime", start_time, JSON_TO_UINT),
	STATE_FIELD("bundle", bundle, JSON_TO_TEXT),
	STATE_FIELD("rootfs", rootfs, JSON_TO_TEXT),
	STATE_FIELD("created", created, JSON_TO_TEXT),
};

static int state_parse(struct container *c, const struct buf *b, struct error *err)
{
	struct state_document d = { .bundle = NULL };
	struct json_value *v;
	int r;

	r = json_parse(&v, &c->arena, buf_data(b), b->len, err);
	if (r == 0)
		r = json_fill(&d, v, state_fields, ARRAY_SIZE(state_fields), "", &c->arena, err);
	if (r < 0)
		return r;
	c->pid = (pid_t)d.pid.value;
	c->start_time = d.start_time.value;
	c->bundle = d.bundle;
	c->rootfs = d.rootfs;
	c->created = d.created;
	return 0;
}

static int state_read(struct container *c, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r;

	r = fd_read_file(c->dir_fd, STATE_NAME, STATE_SIZE_MAX, &b);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = state_parse(c, &b, err);
	else
		(void)error_set(err, r, "read");
	return r < 0 ? error_wrap(err, r, STATE_NAME " of %s", c->id) : 0;
}

static int cgroup_read(struct container *c, struct error *err)
{
	char path[CGROUP_PATH_SIZE];
	ssize_t n = readlinkat(c->dir_fd, CGROUP_NAME, path, sizeof(path) - 1);

	if (n < 0)
		return errno == ENOENT ? 0 : error_set(err, -errno, "read the path of the cgroup");
	path[n] = '\0';
	c->cgroup = arena_strdup(&c->arena, path);
	return c->cgroup ? 0 : error_set(err, -ENOMEM, "read the path of the cgroup");
}

/* A config.json that a killed `create` wrote only in part counts as none: there is no more. */
static int config_read(struct container *c, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r;

	r = fd_read_file(c->dir_fd, CONFIG_NAME, OCI_CONFIG_SIZE_MAX, &b);
	if (r == 0)
		r = config_parse(c, &b, err);
	else if (r != -ENOENT)
		(void)error_set(err, r, "read " CONFIG_NAME " of %s", c->id);
	if (r < 0 && !c->cgroup && r != -ENOMEM) {
		*err = (struct error)ERROR_INIT;
		return 0;
	}
	return r;
}

static int container_none(const char *id, struct error *err)
{
	return error_refuse(err, ERROR_NOT_FOUND, "container \"%s\" does not exist", id);
}

int container_open(struct container *c, const char *root, const char *id, struct error *err)
{
	int r;

	r = container_begin(c, id, err);
	if (r < 0)
		return r;
	c->root_fd = given_open(root, O_RDONLY | O_DIRECTORY, 0);
	if (c->root_fd < 0)
		return c->root_fd == -ENOENT ? container_none(id, err)
					     : error_set(err, c->root_fd, "open %s", root);
	c->dir_fd =
		sysio_openat(c->root_fd, c->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (c->dir_fd < 0)
		return errno == ENOENT ? container_none(id, err)
				       : error_set(err, -errno, "open %s/%s", root, id);
	r = cgroup_read(c, err);
	if (r == 0)
		r = config_read(c, err);
	return r < 0 ? r : state_read(c, err);
}

int container_lock(struct container *c, bool wait, struct error *err)
{
	int r;

	do
		r = flock(c->dir_fd, wait ? LOCK_EX : LOCK_EX | LOCK_NB);
	while (r < 0 && errno == EINTR);
	if (r < 0 && errno == EWOULDBLOCK)
		return error_refuse(err, ERROR_UNAVAILABLE, "container \"%s\" is being created",
				    c->id);
	return r < 0 ? error_set(err, -errno, "lock container \"%s\"", c->id) : 0;
}

int container_forget(struct container *c, struct error *err)
{
	static const char *const files[] = { "state.json", "cgroup", "config.json" };
	int r;

	/* What is usually there is not looked for. */
	for (size_t i = 0; i < ARRAY_SIZE(files) && c->dir_fd >= 0; i++)
		(void)sysio_unlinkat(c->dir_fd, files[i], 0);
	if (sysio_unlinkat(c->root_fd, c->id, AT_REMOVEDIR) == 0)
		return 0;
	r = rootfd_remove_tree(c->root_fd, c->id);
	return r < 0 ? error_set(err, r, "remove the state of %s", c->id) : 0;
}

/* ---- looking ---- */

/* Whether the process is the one of state.json, and no zombie. */
static bool container_lives(const struct container *c)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	unsigned long long start = 0;
	char name[32];
	char *end;

	if (c->pid <= 0 || process_start_time(c->proc_fd, c->pid, &start) < 0 ||
	    start != c->start_time)
		return false;
	(void)str_printf(name, sizeof(name), "%d/stat", (int)c->pid);
	if (fd_read_file(c->proc_fd, name, 4096, &b) < 0 || buf_add(&b, "", 1) < 0)
		return false;
	/* "PID (NAME) STATE": the name may hold anything but ends with the last parenthesis. */
	end = strrchr((const char *)buf_data(&b), ')');
	return end && end[1] == ' ' && end[2] != 'Z' && end[2] != 'X';
}

static bool container_frozen(const struct container *c)
{
	_cleanup_fd_ int fd = container_cgroup(c, NULL);

	return fd >= 0 && cgroup_frozen(fd) > 0;
}

enum container_status container_status(const struct container *c)
{
	struct stat st;

	if (c->pid == 0) {
		if (flock(c->dir_fd, LOCK_EX | LOCK_NB) < 0)
			return CONTAINER_CREATING;
		(void)flock(c->dir_fd, LOCK_UN);
		return CONTAINER_STOPPED;
	}
	if (!container_lives(c))
		return CONTAINER_STOPPED;
	if (fstatat(c->dir_fd, CONTAINER_START_SOCKET, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return CONTAINER_CREATED;
	return container_frozen(c) ? CONTAINER_PAUSED : CONTAINER_RUNNING;
}

int container_pidfd(const struct container *c)
{
	_cleanup_fd_ int fd = -1;

	if (c->pid <= 0)
		return -ESRCH;
	/* Opened first: if it is still the same process afterwards, it is the one of the pidfd. */
	fd = pidfd_of(c->pid);
	if (fd < 0)
		return fd;
	return container_lives(c) ? TAKE_FD(fd) : -ESRCH;
}

int container_cgroup(const struct container *c, struct error *err)
{
	_cleanup_fd_ int root = -1;
	int fd;

	if (!c->cgroup)
		return -ENOENT;
	root = cgroup_open_root(err);
	if (root < 0)
		return root;
	fd = cgroup_open_path(root, c->cgroup);
	return fd < 0 ? error_set(err, fd, "open the cgroup %s", c->cgroup) : fd;
}

void container_write_state(const struct container *c, enum container_status status, pid_t pid,
			   bool compact, FILE *to)
{
	struct json j = { .to = to, .compact = compact };

	json_put_object(&j, NULL);
	json_put_string(&j, "ociVersion", c->config ? c->config->version : "1.0.0");
	json_put_string(&j, "id", c->id);
	json_put_string(&j, "status", container_status_name(status));
	if (pid > 0)
		json_put_integer(&j, "pid", pid);
	json_put_string(&j, "bundle", c->bundle ? c->bundle : "");
	json_put_object(&j, "annotations");
	for (size_t i = 0; c->config && i < c->config->n_annotations; i++)
		json_put_string(&j, c->config->annotations[i].name,
				c->config->annotations[i].value);
	json_put_end(&j);
	json_put_string(&j, "rootfs", c->rootfs ? c->rootfs : "");
	json_put_string(&j, "created", c->created ? c->created : "");
	json_put_end(&j);
}

char *container_state_text(const struct container *c, enum container_status status, pid_t pid)
{
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	if (!to)
		return NULL;
	container_write_state(c, status, pid, true, to);
	if (fclose(to) == 0)
		return text;
	free(text);
	return NULL;
}
