/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/make.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "cell/start/mounts.h"
#include "image/image.h"
#include "isolate/mount/idmap.h"
#include "isolate/spawn/spawn.h"
#include "pod/networks/etc.h"
#include "pod/storage/image_mounts.h"
#include "pod/storage/shares.h"
#include "pod/storage/volume.h"
#include "pod/workload/alloc.h"

static void workload_unmakep(struct workload **w)
{
	workload_unmake(*w);
}

static int make_append(char ***to, char *const *words)
{
	int r = 0;

	for (size_t i = 0; words && words[i] && r == 0; i++)
		r = strv_add(to, words[i]);
	return r;
}

/* Command and arguments: what the client gives takes the place of what the image says. */
/* A list of one empty word: the image's entrypoint is not wanted, and nothing takes its place. */
static bool make_is_reset(char *const *words)
{
	return strv_len(words) == 1 && str_empty(words[0]);
}

static int make_argv(struct pod_container *c, const struct pod_container_spec *spec)
{
	const struct image_config *config = c->image ? &c->image->config : NULL;
	bool own_command = strv_len(spec->command) > 0;
	bool own_args = strv_len(spec->args) > 0;
	int r;

	r = make_append(&c->argv, make_is_reset(spec->command) ? NULL
				  : own_command                ? spec->command
				  : config                     ? config->entrypoint
							       : NULL);
	if (r == 0)
		r = make_append(&c->argv, own_args      ? spec->args
					  : own_command ? NULL
					  : config      ? config->cmd
							: NULL);
	return r;
}

static int make_env(struct pod_container *c, const struct pod_container_spec *spec)
{
	char *const *env = c->image ? c->image->config.env : NULL;
	int r = 0;

	for (size_t i = 0; env && env[i] && r == 0; i++)
		r = strv_env_put(&c->env, env[i]);
	for (size_t i = 0; spec->env && spec->env[i] && r == 0; i++)
		r = strv_env_put(&c->env, spec->env[i]);
	return r;
}

/* In front of what the container is shown to run. */
static int make_init(struct pod_container *c, const char *init)
{
	_cleanup_strv_ char **argv = NULL;
	int r = strv_add(&argv, init);

	if (r == 0)
		r = strv_add(&argv, "--");
	if (r == 0)
		r = make_append(&argv, c->argv);
	if (r < 0)
		return r;
	strv_free(c->argv);
	c->argv = TAKE_PTR(argv);
	return 0;
}

static char *make_command_text(char *const *argv)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	for (size_t i = 0; argv && argv[i] && b.len < 1024; i++)
		if (buf_addf(&b, "%s%s", i ? " " : "", argv[i]) < 0)
			return NULL;
	return buf_take_str(&b);
}

static const char *make_first(const char *own, const char *image)
{
	return !str_empty(own) ? own : image ? image : "";
}

static int pod_container_fill(struct pod_container *c, const struct pod_container_spec *spec,
			      const char *field, struct error *err)
{
	const struct image_config *config = c->image ? &c->image->config : NULL;
	int r;

	r = id_new(c->id);
	if (r < 0)
		return error_set(err, r, "draw an id");
	(void)str_copy(c->name, sizeof(c->name), spec->name);
	c->created_at = clock_real();
	c->stdin_open = spec->stdin_open;
	c->tty = spec->tty;
	c->terminal = spec->terminal;
	c->hold_output = spec->hold_output;
	c->is_init = spec->is_init;
	c->is_debug = spec->is_debug;
	c->restart = spec->restart;
	c->requires = spec->requires;
	c->read_only_root = spec->read_only_root;
	c->security = spec->security;
	c->new_proc = spec->new_proc;
	c->hidden = spec->masks.hidden ? strv_copy(spec->masks.hidden) : NULL;
	c->read_only = spec->masks.read_only ? strv_copy(spec->masks.read_only) : NULL;
	c->filter_flags = spec->filter.flags;
	if (spec->filter.len > 0)
		r = buf_add(&c->filter, spec->filter.insns, spec->filter.len);
	c->settings = strdup(spec->settings ? spec->settings : "");
	c->limits = spec->limits ? strv_copy(spec->limits) : NULL;
	c->image_name = strdup(spec->image ? spec->image : "");
	c->image_id = strdup(c->image ? c->image->id : "");
	c->cwd = strdup(make_first(spec->working_dir, config ? config->working_dir : NULL));
	c->user = strdup(make_first(spec->user, config ? config->user : NULL));
	if (r == 0)
		r = make_argv(c, spec);
	if (r == 0)
		r = make_env(c, spec);
	c->command = make_command_text(c->argv);
	if (r < 0 || !c->image_name || !c->image_id || !c->cwd || !c->user || !c->command ||
	    !c->settings || (spec->limits && !c->limits) || (spec->masks.hidden && !c->hidden) ||
	    (spec->masks.read_only && !c->read_only))
		return error_set(err, -ENOMEM, "container %s", spec->name);
	if (strv_len(c->argv) == 0)
		return error_field(err, ERROR_INVALID, field,
				   "required, since the image %s names no program", spec->image);
	if (spec->init && make_init(c, spec->init) < 0)
		return error_set(err, -ENOMEM, "container %s", spec->name);
	return 0;
}

/* Whether no descriptor will reach its keeper. */
static bool make_is_remote(const struct workload_spec *spec)
{
	return spec->parent ? instance_is_remote(spec->parent)
			    : spec->kind == WORKLOAD_POD &&
				      !instance_kind_can(spec->choice.kind, INSTANCE_PASSES_FDS);
}

/* The files of a volume seem to be of those ids that the container has for them. The mount was made
 * for this one, and nobody has seen it. */
static int make_map_ids(const struct workload *w, const struct pod_mount_spec *m, struct error *err)
{
	int users[ISOLATE_NS_COUNT], r;

	if (!isolate_ids_are_set(&w->ids) || !m->map_ids)
		return 0;
	r = isolate_users_new(&w->ids, NULL, users, err);
	if (r < 0)
		return r;
	r = isolate_idmap_apply(m->fd, users[ISOLATE_NS_USER], false, err);
	(void)fd_close(users[ISOLATE_NS_USER]);
	return r < 0 ? error_wrap_field(err, r, m->field) : 0;
}

/* The descriptor of a mount of this host. */
static int make_mount(struct pod_container *c, const struct pod_mount_spec *m,
		      struct image_store *images, struct error *err)
{
	int r, fd;

	if (m->image)
		return image_mounts_open(c, images, m, err);
	r = make_map_ids(c->workload, m, err);
	if (r < 0)
		return r;
	fd = fd_copy(m->fd);
	return fd < 0 ? error_set(err, fd, "%s", m->field) : fd;
}

/* In a machine. What an image is mounted as is made here, and the machine sees it. */
static int make_share(struct pod_container *c, const struct pod_mount_spec *m,
		      struct container_mount *to, struct image_store *images, struct error *err)
{
	const enum instance_kind kind = c->workload->choice.kind;
	const char *id;
	int fd;

	if (!m->image)
		return shares_take(c, m, to, err);
	if (c->workload->kind != WORKLOAD_POD || instance_kind_can(kind, INSTANCE_PASSES_FDS) ||
	    !instance_kind_can(kind, INSTANCE_NODE_MOUNTS))
		return error_field(err, ERROR_UNSUPPORTED, m->field,
				   "an image can be mounted in pods of kind \"cell\" and \"vm\"");
	fd = image_mounts_open(c, images, m, err);
	if (fd < 0)
		return fd;
	id = image_mounts_id(c, c->n_image_mounts - 1);
	return shares_take_image(c, m, fd, id, to, err);
}

static int make_mounts(struct pod_container *c, const struct pod_container_spec *spec, bool remote,
		       struct image_store *images, struct error *err)
{
	if (spec->n_mounts == 0)
		return 0;
	c->mounts = calloc(spec->n_mounts, sizeof(*c->mounts));
	if (!c->mounts)
		return error_set(err, -ENOMEM, "container %s", spec->name);
	c->n_mounts = spec->n_mounts;
	for (size_t i = 0; i < spec->n_mounts; i++) {
		const struct pod_mount_spec *m = &spec->mounts[i];
		int fd = -1;

		c->mounts[i] = m->mount;
		c->mounts[i].target = strdup(m->mount.target);
		if (!c->mounts[i].target)
			return error_set(err, -ENOMEM, "container %s", spec->name);
		if (m->volume_id && (strv_add(&c->volumes, m->volume_id) < 0 ||
				     (m->anonymous && strv_add(&c->own_volumes, m->volume_id) < 0)))
			return error_set(err, -ENOMEM, "container %s", spec->name);
		if (m->scratch || ((m->source || m->image) && remote)) {
			int r = make_share(c, m, &c->mounts[i], images, err);

			if (r < 0)
				return r;
		} else if (m->source || m->image) {
			fd = make_mount(c, m, images, err);
			if (fd < 0)
				return fd;
		}
		c->fds.mounts[c->fds.n_mounts++] = fd;
	}
	return 0;
}

/* What can be done about an image that is not there. */
static void make_hint(const char *image, struct error *err)
{
	if (!err || err->kind != ERROR_NOT_FOUND || str_has_prefix(image, "sha256:"))
		return;
	(void)error_refuse(err, ERROR_NOT_FOUND,
			   "there is no image \"%.150s\" on this node; `nacre image pull %.150s` "
			   "loads it",
			   image, image);
}

static struct image *make_find_image(struct image_store *images, const char *name, size_t n,
				     struct error *err)
{
	struct image *image = image_store_find(images, name, err);
	char field[ERROR_FIELD_MAX];

	if (image)
		return image;
	make_hint(name, err);
	(void)str_printf(field, sizeof(field), "containers[%zu].image", n);
	(void)error_wrap_field(err, -ENOENT, field);
	return NULL;
}

int workload_check_image(struct image_store *images, const char *image, size_t n, struct error *err)
{
	return make_find_image(images, image, n, err) ? 0 : err->code;
}

/* A machine keeps the layers of its containers in its own memory. */
static int make_disk(struct pod_container *c, size_t n, const struct pod_container_spec *s,
		     bool remote, const struct workloads_config *config, struct error *err)
{
	char field[ERROR_FIELD_MAX];

	if (!c->image)
		return 0;
	if (!remote) {
		c->disk = s->disk ? s->disk : config->container_limit;
		return 0;
	}
	if (!s->disk)
		return 0;
	(void)str_printf(field, sizeof(field), "containers[%zu].disk", n);
	return error_field(err, ERROR_UNSUPPORTED, field,
			   "an instance of kind vm keeps what its containers write in the memory "
			   "of its machine, so there is no disk to limit (limit the memory)");
}

static int make_log(struct pod_container *c, int log_fd, struct error *err)
{
	c->fds.log = fd_copy(log_fd);
	c->has_own_log = true;
	return c->fds.log < 0 ? error_set(err, c->fds.log, "the log of %s", c->name) : 0;
}

int pod_container_make(struct pod_container *c, const struct pod_container_spec *s, size_t n,
		       bool remote, const struct workloads_config *config, struct error *err)
{
	const struct workload *w = c->workload;
	char field[ERROR_FIELD_MAX];
	int r;

	if (s->image && w->kind != WORKLOAD_VM) {
		c->image = make_find_image(config->images, s->image, n, err);
		if (!c->image)
			return -ENOENT;
		c->image->n_users++;
	}
	(void)str_printf(field, sizeof(field),
			 s->image ? "containers[%zu].command" : "executable.command", n);
	r = pod_container_fill(c, s, field, err);
	if (r == 0)
		r = make_disk(c, n, s, remote, config, err);
	if (r == 0 && s->has_log)
		r = make_log(c, s->log_fd, err);
	return r < 0 ? r : make_mounts(c, s, remote, config->images, err);
}

static int make_container(struct workload *w, size_t n, const struct workload_spec *spec,
			  const struct workloads_config *config, struct error *err)
{
	const struct pod_container_spec *s = &spec->containers[n];
	char field[ERROR_FIELD_MAX];

	(void)str_printf(field, sizeof(field), "containers[%zu].name", n);
	for (size_t i = 0; i < n; i++)
		if (str_eq(spec->containers[i].name, s->name))
			return error_field(err, ERROR_INVALID, field,
					   "%s is taken by containers[%zu]", s->name, i);
	return pod_container_make(w->containers[n], s, n, make_is_remote(spec), config, err);
}

/* "busybox-3f2a" for an image, "pod-3f2a" otherwise: what the workload is, and something to tell it
 * apart. */
static void make_name(const struct workload_spec *spec, const char *id,
		      char ret[NAME_LABEL_MAX + 1])
{
	const char *image = spec->n_containers > 0 ? spec->containers[0].image : NULL;
	char stem[32];
	size_t n = 0;

	if (image && !str_has_prefix(image, "sha256:")) {
		image = strrchr(image, '/') ? strrchr(image, '/') + 1 : image;
		while (n < sizeof(stem) - 1 && image[n] &&
		       strchr("abcdefghijklmnopqrstuvwxyz0123456789", image[n])) {
			stem[n] = image[n];
			n++;
		}
	}
	stem[n] = '\0';
	(void)str_printf(ret, NAME_LABEL_MAX + 1, "%s-%.8s",
			 n ? stem : workload_kind_word(spec->kind), id);
}

int workload_make(const struct workload_spec *spec, const struct workloads_config *config,
		  struct workload **ret, struct error *err)
{
	_cleanup_(workload_unmakep) struct workload *w = NULL;
	const char *above = spec->parent ? spec->parent->path : "";
	char name[NAME_LABEL_MAX + 1];
	int r;

	if (spec->n_containers == 0 && !spec->lasts)
		return error_field(err, ERROR_INVALID, "containers", "required");
	if (spec->n_containers > WORKLOAD_CONTAINERS_MAX)
		return error_field(err, ERROR_INVALID, "containers",
				   "%zu are more than the limit of %d", spec->n_containers,
				   WORKLOAD_CONTAINERS_MAX);
	w = workload_alloc(spec->n_containers);
	if (!w)
		return error_set(err, -ENOMEM, "workload");
	r = id_new(w->id);
	if (r < 0)
		return error_set(err, r, "draw an id");
	if (str_empty(spec->name))
		make_name(spec, w->id, name);
	else
		(void)str_copy(name, sizeof(name), spec->name);
	if (name_depth(above) + 1 > NAME_DEPTH_MAX ||
	    str_printf(w->path, sizeof(w->path), "%s%s%s", above, *above ? "/" : "", name) < 0)
		return error_field(err, ERROR_INVALID, "meta.name",
				   "%s/%s would be deeper than %d names", above, name,
				   NAME_DEPTH_MAX);
	(void)str_copy(w->handle, sizeof(w->handle), name);
	w->kind = spec->kind;
	w->network = spec->network;
	w->ids = spec->ids;
	w->choice = spec->choice;
	w->auto_remove = spec->auto_remove;
	w->drops_volumes = spec->auto_remove;
	w->drops_failed = spec->drops_failed;
	w->lasts = spec->lasts;
	w->restart = spec->restart;
	w->create_only = spec->create_only;
	(void)str_copy(w->request, sizeof(w->request), spec->request ? spec->request : "");
	w->instance = spec->kind == WORKLOAD_POD ? NULL : spec->parent;
	w->created_at = clock_real();
	w->settings = strdup(spec->settings ? spec->settings : "");
	w->limits = spec->limits ? strv_copy(spec->limits) : NULL;
	w->etc = spec->etc ? etc_wish_copy(spec->etc) : NULL;
	if (!w->settings || (spec->limits && !w->limits) || (spec->etc && !w->etc))
		return error_set(err, -ENOMEM, "workload");
	if (workload_set_comment(w, spec->comment) < 0)
		return error_set(err, -ENOMEM, "workload");

	for (size_t n = 0; n < spec->n_containers; n++) {
		r = make_container(w, n, spec, config, err);
		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(w);
	return 0;
}

int workload_await_roots(struct workload *w, struct image_store *images,
			 void (*done)(void *w, const struct error *err), struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < w->n_containers && r >= 0; i++) {
		if (!w->containers[i]->image)
			continue;
		r = image_rootfs_await(images, w->containers[i]->image, done, w, err);
		w->n_roots += r > 0;
	}
	return r < 0 ? r : 0;
}

void workload_forget_roots(struct workload *w, struct image_store *images)
{
	if (w->n_roots > 0)
		image_rootfs_forget(images, w);
	w->n_roots = 0;
}

/* What its process mounts upon, where the image has none: done here it costs nothing, as that is
 * still on its way. What cannot be made is told by the process, which looks again. */
static void make_places(int root_fd)
{
	static const char *const names[] = { "proc", "dev", "sys" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)fd_close(rootfd_make_dir(root_fd, names[i]));
}

/* Its log file, unless whoever asked for it brought one. dir_fd: the log directory of its workload.
 */
static int prepare_log(struct pod_container *c, int dir_fd, struct error *err)
{
	const char *path = c->workload->path;
	char name[NAME_LABEL_MAX + 8];
	int r;

	if (c->has_own_log)
		return 0;
	(void)str_printf(name, sizeof(name), "%s.log", c->name);
	r = FAILPOINT("workload.log");
	if (r < 0)
		return error_set(err, r, "make the log of %s/%s", path, c->name);
	/* That of an earlier run goes on. */
	c->fds.log = sysio_openat(dir_fd, name,
				  O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC |
					  (c->workload->stays || c->stays ? 0 : O_EXCL),
				  0640);
	if (c->fds.log < 0)
		return error_set(err, -errno, "make the log of %s/%s", path, c->name);
	c->fds.log_dir = fd_copy(dir_fd);
	if (c->fds.log_dir < 0)
		return error_set(err, c->fds.log_dir, "the log directory of %s", path);
	FAILPOINT_AFTER("workload.log");
	return 0;
}

/* The tree that it sees is that of this process. */
static int prepare_visitor(struct pod_container *c, struct error *err)
{
	c->fds.rootfs = isolate_ns_open_own(ISOLATE_NS_MOUNT);
	return c->fds.rootfs < 0 ? error_set(err, c->fds.rootfs, "open the own mount namespace")
				 : 0;
}

/*
 * Whether the files that a container writes stay in its project (isolate/disk/quota.h): the kernel
 * lets nobody in a user namespace change that, else our filter refuses it. Some capabilities reach
 * around it.
 */
static bool container_keeps_project(const struct pod_container *c)
{
	static const unsigned around[] = { CAP_LINUX_IMMUTABLE, CAP_SYS_ADMIN, CAP_SYS_RAWIO,
					   CAP_SYS_RESOURCE };
	const struct container_security *s = &c->security;

	if (isolate_ids_are_set(&c->workload->ids))
		return true;
	for (size_t i = 0; s->has_caps && i < ARRAY_SIZE(around); i++)
		if (s->caps & 1ULL << around[i])
			return false;
	return !s->unfiltered && !s->own_filter && !s->all_devices;
}

static int prepare_container(struct pod_container *c, struct image_store *images, int dir_fd,
			     const struct etc *etc, struct error *err)
{
	const struct image_limit limit = { c->disk, container_keeps_project(c) };
	const struct isolate_ids *ids = &c->workload->ids;
	int r = prepare_log(c, dir_fd, err);

	if (r == 0 && c->workload->kind == WORKLOAD_EXECUTABLE &&
	    !instance_is_node(c->workload->instance))
		return prepare_visitor(c, err);
	if (r < 0 || !c->image)
		return r;
	r = c->has_rootfs ? image_rootfs_again(images, c->image, c->id, ids, err)
			  : image_rootfs_make(images, c->image, c->id, &limit, ids, err);
	if (r < 0)
		return r;
	c->fds.rootfs = r;
	if (!c->has_rootfs)
		c->image->n_users--; /* the root file system holds it now */
	c->has_rootfs = true;
	r = isolate_ids_enter(ids, err);
	if (r < 0)
		return r;
	r = etc_fill(c->fds.rootfs, etc, err);
	if (r == 0)
		make_places(c->fds.rootfs);
	isolate_ids_leave(ids);
	if (r == 0)
		c->names = etc->names;
	return r;
}

/* A mount of its own, so that the keeper it goes to has no way up from there. */
static int prepare_log_dir(const struct workload *w, int logs_fd, struct error *err)
{
	int fd = sysio_open_tree(logs_fd, w->id,
				 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);

	return fd < 0 ? error_set(err, -errno, "open the log directory of %s", w->path) : fd;
}

/* The log file and the root file system of each container: made while its keeper comes up. */
static int workload_prepare_all(struct workload *w, struct image_store *images, int logs_fd,
				const struct etc *etc, struct error *err)
{
	_cleanup_fd_ int dir_fd = -1;
	int r = 0;

	if (sysio_mkdirat(logs_fd, w->id, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make the log directory of %s", w->path);
	/* Its keeper gets disks, and keeps the logs (pod/workload/remote.h). */
	if (w->instance && instance_is_remote(w->instance))
		return 0;
	dir_fd = prepare_log_dir(w, logs_fd, err);
	if (dir_fd < 0)
		return dir_fd;
	for (size_t i = 0; i < w->n_containers && r == 0; i++)
		r = prepare_container(w->containers[i], images, dir_fd, etc, err);
	return r;
}

int workload_prepare(struct workload *w, struct image_store *images, int logs_fd, struct error *err)
{
	_cleanup_(etc_done) struct etc etc = ETC_INIT;
	int r = etc_make_for(&etc, w, err);

	return r < 0 ? r : workload_prepare_all(w, images, logs_fd, &etc, err);
}

int pod_container_prepare(struct pod_container *c, struct image_store *images, int logs_fd,
			  struct error *err)
{
	_cleanup_(etc_done) struct etc etc = ETC_INIT;
	_cleanup_fd_ int dir_fd = -1;
	int r;

	/* As workload_prepare_all(): it has a disk. */
	if (workload_is_remote(c->workload))
		return 0;
	r = etc_make_for(&etc, c->workload, err);
	if (r < 0)
		return r;
	dir_fd = prepare_log_dir(c->workload, logs_fd, err);
	return dir_fd < 0 ? dir_fd : prepare_container(c, images, dir_fd, &etc, err);
}
