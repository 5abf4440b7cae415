/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/config/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "isolate/mount/idmap.h"
#include "oci/config/given.h"
#include "oci/config/words.h"

/* ---- mount options ---- */

enum option_kind {
	OPTION_ATTR,    /* attributes of this mount */
	OPTION_BELOW,   /* and of all below it */
	OPTION_BIND,    /* set: with what is below */
	OPTION_SPREAD,  /* propagation; set: MS_* */
	OPTION_IDMAP,   /* set: with what is below */
	OPTION_COPY_UP, /* tmpcopyup */
	OPTION_REMOUNT,
	OPTION_FS,     /* of the file system itself: handed on, but not for a bind */
	OPTION_NOTHING /* the default, or without meaning any more */
};

struct mount_word {
	const char *name;
	enum option_kind kind;
	uint64_t set, clear;
};

#define MOUNT_CGROUP "/sys/fs/cgroup"

#define ATIME MOUNT_ATTR__ATIME
#define FOLLOW 0x00200000 /* MOUNT_ATTR_NOSYMFOLLOW */

/* A pair of words, and the same two for a whole tree. */
#define ATTR(yes, no, attr)                                                                        \
	{ yes, OPTION_ATTR, 0, attr }, { no, OPTION_ATTR, attr, 0 },                               \
		{ "r" yes, OPTION_BELOW, 0, attr },                                                \
	{                                                                                          \
		"r" no, OPTION_BELOW, attr, 0                                                      \
	}
#define TIMES(word, value)                                                                         \
	{ word, OPTION_ATTR, value, ATIME },                                                       \
	{                                                                                          \
		"r" word, OPTION_BELOW, value, ATIME                                               \
	}

static const struct mount_word mount_words[] = {
	ATTR("rw", "ro", MOUNT_ATTR_RDONLY),
	ATTR("suid", "nosuid", MOUNT_ATTR_NOSUID),
	ATTR("dev", "nodev", MOUNT_ATTR_NODEV),
	ATTR("exec", "noexec", MOUNT_ATTR_NOEXEC),
	ATTR("diratime", "nodiratime", MOUNT_ATTR_NODIRATIME),
	ATTR("symfollow", "nosymfollow", FOLLOW),
	TIMES("atime", MOUNT_ATTR_RELATIME),
	TIMES("noatime", MOUNT_ATTR_NOATIME),
	TIMES("relatime", MOUNT_ATTR_RELATIME),
	TIMES("norelatime", MOUNT_ATTR_STRICTATIME),
	TIMES("strictatime", MOUNT_ATTR_STRICTATIME),
	TIMES("nostrictatime", MOUNT_ATTR_RELATIME),
	{ "bind", OPTION_BIND, false, 0 },
	{ "rbind", OPTION_BIND, true, 0 },
	{ "shared", OPTION_SPREAD, MS_SHARED, 0 },
	{ "rshared", OPTION_SPREAD, MS_SHARED | MS_REC, 0 },
	{ "slave", OPTION_SPREAD, MS_SLAVE, 0 },
	{ "rslave", OPTION_SPREAD, MS_SLAVE | MS_REC, 0 },
	{ "private", OPTION_SPREAD, MS_PRIVATE, 0 },
	{ "rprivate", OPTION_SPREAD, MS_PRIVATE | MS_REC, 0 },
	{ "unbindable", OPTION_SPREAD, MS_UNBINDABLE, 0 },
	{ "runbindable", OPTION_SPREAD, MS_UNBINDABLE | MS_REC, 0 },
	{ "idmap", OPTION_IDMAP, false, 0 },
	{ "ridmap", OPTION_IDMAP, true, 0 },
	{ "tmpcopyup", OPTION_COPY_UP, 0, 0 },
	{ "remount", OPTION_REMOUNT, 0, 0 },
	{ "sync", OPTION_FS, 0, 0 },
	{ "dirsync", OPTION_FS, 0, 0 },
	{ "lazytime", OPTION_FS, 0, 0 },
	{ "iversion", OPTION_NOTHING, 0, 0 },
	{ "async", OPTION_NOTHING, 0, 0 },
	{ "defaults", OPTION_NOTHING, 0, 0 },
	{ "loud", OPTION_NOTHING, 0, 0 },
	{ "silent", OPTION_NOTHING, 0, 0 },
	{ "mand", OPTION_NOTHING, 0, 0 },
	{ "noiversion", OPTION_NOTHING, 0, 0 },
	{ "nolazytime", OPTION_NOTHING, 0, 0 },
	{ "nomand", OPTION_NOTHING, 0, 0 },
};

const char *convert_mount_option(size_t i)
{
	return i < ARRAY_SIZE(mount_words) ? mount_words[i].name : NULL;
}

/* What the options of one mount add up to. */
struct options {
	bool bind, recursive, copy_up, idmap, idmap_below, remount;
	struct isolate_mount *mount;
	struct buf fs; /* "size=64k,mode=755" */
};

static void options_attr(uint64_t *set, uint64_t *clear, const struct mount_word *w)
{
	*set = (*set & ~w->clear) | w->set;
	*clear = (*clear & ~w->set) | w->clear;
}

static int options_add(struct options *o, const struct mount_word *w, const char *word)
{
	switch (w->kind) {
	case OPTION_ATTR:
		options_attr(&o->mount->attr_set, &o->mount->attr_clear, w);
		break;
	case OPTION_BELOW:
		options_attr(&o->mount->attr_set_below, &o->mount->attr_clear_below, w);
		break;
	case OPTION_BIND:
		o->bind = true;
		o->recursive |= w->set;
		break;
	case OPTION_SPREAD:
		o->mount->propagation = w->set;
		break;
	case OPTION_IDMAP:
		o->idmap = true;
		o->idmap_below |= w->set;
		break;
	case OPTION_COPY_UP:
		o->copy_up = true;
		break;
	case OPTION_REMOUNT:
		o->remount = true;
		break;
	case OPTION_FS:
		return buf_addf(&o->fs, "%s%s", o->fs.len ? "," : "", word);
	case OPTION_NOTHING:
		break;
	}
	return 0;
}

static int options_word(struct options *o, const char *word)
{
	static const struct mount_word other = { .kind = OPTION_FS };

	for (size_t i = 0; i < ARRAY_SIZE(mount_words); i++)
		if (str_eq(mount_words[i].name, word))
			return options_add(o, &mount_words[i], word);
	return *word ? options_add(o, &other, word) : 0;
}

/* ---- mounts ---- */

static int mount_bind_source(struct convert *c, const struct oci_mount *m, struct isolate_mount *to,
			     const char *field, struct error *err)
{
	const char *path = m->source;
	int fd;

	if (str_empty(path))
		return error_field(err, ERROR_INVALID, field, "a bind mount needs a source");
	if (path[0] != '/')
		path = arena_printf(c->arena, "%s/%s", c->bundle, m->source);
	if (!path)
		return error_set(err, -ENOMEM, "name a mount");
	fd = given_open(path, O_PATH, 0);
	if (fd < 0)
		return error_set(err, fd, "%s: open the source %s", field, path);
	to->source_fd = fd;
	return convert_own(c, fd, err);
}

const struct oci_mount *convert_named_mount(const struct oci_config *config)
{
	for (size_t i = 0; i < config->n_mounts; i++) {
		const struct oci_mount *m = &config->mounts[i];

		if (str_eq(m->destination, MOUNT_CGROUP "/systemd") && !str_empty(m->source) &&
		    m->source[0] == '/')
			return m;
	}
	return NULL;
}

/* Where systemd's hierarchy is to lie in it, it is a place for hierarchies, as on the host. */
static bool mount_holds_named(const struct convert *c, const struct oci_mount *m)
{
	return !str_empty(m->type) && str_eq(m->type, "cgroup") &&
	       str_eq(m->destination, MOUNT_CGROUP) && convert_named_mount(c->config);
}

static void mount_place_for_named(struct isolate_mount *to)
{
	to->fs = "tmpfs";
	to->source = "tmpfs";
	to->options = "mode=755";
}

/* Without a cgroup namespace a mount of the hierarchy would show the host's: the container gets its
 * own group instead. */
static bool mount_shows_group(const struct convert *c, const struct oci_mount *m)
{
	return !str_empty(m->type) && (str_eq(m->type, "cgroup") || str_eq(m->type, "cgroup2")) &&
	       c->plan.ns[ISOLATE_NS_CGROUP] == ISOLATE_KEEP && c->cgroup_fd >= 0;
}

static int mount_group(struct convert *c, struct isolate_mount *to, struct error *err)
{
	to->is_system = true;
	to->source_fd = fd_copy(c->cgroup_fd);
	if (to->source_fd < 0)
		return error_set(err, to->source_fd, "open the cgroup");
	return convert_own(c, to->source_fd, err);
}

static int mount_new_fs(struct convert *c, const struct oci_mount *m, struct isolate_mount *to,
			struct options *o, const char *field, struct error *err)
{
	if (str_empty(m->type))
		return error_field(err, ERROR_INVALID, field, "has no type");
	if (o->remount)
		return error_field(err, ERROR_UNSUPPORTED, field,
				   "remount is supported for binds only");
	to->fs = m->type;
	to->source = str_empty(m->source) ? NULL : m->source;
	to->copy_up = o->copy_up;
	if (o->fs.len > 0 && !str_eq(m->type, "cgroup")) {
		to->options = arena_strndup(c->arena, (const char *)buf_data(&o->fs), o->fs.len);
		if (!to->options)
			return error_set(err, -ENOMEM, "name a mount");
	}
	return 0;
}

/* The ranges of the mount, or those of the container's own user namespace. */
static int convert_idmap(struct convert *c, const struct oci_mount *m, struct isolate_mount *to,
			 const struct options *o, const char *field, struct error *err)
{
	const struct isolate_id_map *uids = c->plan.uid_map, *gids = c->plan.gid_map;
	size_t n_uids = c->plan.n_uid_map, n_gids = c->plan.n_gid_map;
	int r = 0;

	if (!o->idmap && m->n_uid_maps == 0)
		return 0;
	if (to->source_fd < 0)
		return error_field(err, ERROR_INVALID, field, "idmap is for binds");
	if (m->n_uid_maps > 0) {
		r = convert_id_maps(c, m->uid_maps, m->n_uid_maps, &uids, &n_uids, err);
		if (r == 0)
			r = convert_id_maps(c, m->gid_maps, m->n_gid_maps, &gids, &n_gids, err);
	}
	if (r < 0)
		return r;
	if (n_uids == 0 || n_gids == 0)
		return error_field(err, ERROR_INVALID, field, "idmap without ranges of ids");
	to->idmap_fd = isolate_idmap_new(uids, n_uids, gids, n_gids, err);
	if (to->idmap_fd < 0)
		return error_wrap(err, to->idmap_fd, "%s", field);
	to->idmap_below = o->idmap_below;
	return convert_own(c, to->idmap_fd, err);
}

/* By its text: where a link leads is seen when it is mounted. */
static bool mount_is_root(const char *path)
{
	for (;;) {
		path += strspn(path, "/");
		if (!*path)
			return true;
		if (path[0] != '.' || (path[1] && path[1] != '/'))
			return false;
		path++;
	}
}

static int convert_mount(struct convert *c, const struct oci_mount *m, struct isolate_mount *to,
			 const char *field, struct error *err)
{
	struct options o = { .mount = to, .fs = BUF_INIT };
	int r = 0;

	if (mount_is_root(m->destination))
		return error_field(err, ERROR_INVALID, field,
				   "destination \"%.80s\" is the root, and nothing can be mounted "
				   "on that",
				   m->destination);

	*to = (struct isolate_mount)ISOLATE_MOUNT_INIT;
	to->target = m->destination[0] == '/' ? m->destination
					      : arena_printf(c->arena, "/%s", m->destination);
	for (size_t i = 0; r == 0 && i < m->n_options; i++)
		r = options_word(&o, m->options[i]);
	if (!to->target || r < 0)
		r = error_set(err, -ENOMEM, "%s", field);
	else if (o.bind || (!str_empty(m->type) && str_eq(m->type, "bind")))
		r = mount_bind_source(c, m, to, field, err);
	else if (mount_holds_named(c, m))
		mount_place_for_named(to);
	else if (mount_shows_group(c, m))
		r = mount_group(c, to, err);
	else
		r = mount_new_fs(c, m, to, &o, field, err);
	to->recursive = o.recursive;
	if (r == 0)
		r = convert_idmap(c, m, to, &o, field, err);
	buf_done(&o.fs);
	return r;
}

static int convert_mounts(struct convert *c, struct error *err)
{
	const struct oci_config *config = c->config;
	struct isolate_mount *list = arena_zalloc(c->arena, config->n_mounts + 1, sizeof(*list));
	char field[24];

	if (!list)
		return error_set(err, -ENOMEM, "convert the mounts");
	for (size_t i = 0; i < config->n_mounts; i++) {
		int r;

		(void)str_printf(field, sizeof(field), "mounts[%zu]", i);
		r = convert_mount(c, &config->mounts[i], &list[i], field, err);
		if (r < 0)
			return r;
	}
	c->plan.mounts = list;
	c->plan.n_mounts = config->n_mounts;
	return 0;
}

/* ---- devices ---- */

static const struct isolate_device devices_default[] = {
	{ "/dev/null", 'c', 1, 3, 0666, 0, 0, -1 },    { "/dev/zero", 'c', 1, 5, 0666, 0, 0, -1 },
	{ "/dev/full", 'c', 1, 7, 0666, 0, 0, -1 },    { "/dev/random", 'c', 1, 8, 0666, 0, 0, -1 },
	{ "/dev/urandom", 'c', 1, 9, 0666, 0, 0, -1 }, { "/dev/tty", 'c', 5, 0, 0666, 0, 0, -1 },
};

/* Also with slashes too many. */
static bool mount_is_dev(const char *path)
{
	path += strspn(path, "/");
	if (!str_has_prefix(path, "dev"))
		return false;
	path += strlen("dev");
	return (!*path || *path == '/') && mount_is_root(path);
}

/* A /dev that is bound from elsewhere has what it has. */
static bool devices_are_foreign(const struct convert *c)
{
	for (size_t i = 0; i < c->plan.n_mounts; i++)
		if (c->plan.mounts[i].source_fd >= 0 && mount_is_dev(c->plan.mounts[i].target))
			return true;
	return false;
}

/* In a user namespace no node can be made: the host's is bound instead. */
static int device_bind(struct convert *c, struct isolate_device *d, const char *field,
		       struct error *err)
{
	struct stat st;
	int r;

	d->fd = given_open(d->path, O_PATH | O_NOFOLLOW, 0);
	if (d->fd < 0)
		return error_set(err, d->fd, "%s: open the host's %s", field, d->path);
	r = convert_own(c, d->fd, err);
	if (r < 0)
		return r;
	if (fstat(d->fd, &st) < 0 || !(S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) ||
	    major(st.st_rdev) != d->major || minor(st.st_rdev) != d->minor ||
	    S_ISBLK(st.st_mode) != (d->type == 'b'))
		return error_field(err, ERROR_PRECONDITION, field,
				   "the host's %s is another device", d->path);
	return 0;
}

static bool device_has_number(const struct oci_device *d)
{
	return d->major.set && d->minor.set && d->major.value >= 0 && d->minor.value >= 0 &&
	       d->major.value <= DEVICE_NUMBER_MAX && d->minor.value <= DEVICE_NUMBER_MAX;
}

int convert_devices_check(const struct oci_linux *os, struct error *err)
{
	char field[32];

	for (size_t i = 0; i < os->n_devices; i++) {
		const struct oci_device *d = &os->devices[i];

		(void)str_printf(field, sizeof(field), "linux.devices[%zu]", i);
		if (strlen(d->type) != 1 || !strchr("cbup", d->type[0]))
			return error_field(err, ERROR_INVALID, field,
					   "type \"%.20s\" is not c, b, u or p", d->type);
		if (d->type[0] != 'p' && !device_has_number(d))
			return error_field(err, ERROR_INVALID, field,
					   "needs its major and minor number");
	}
	return 0;
}

static struct isolate_device convert_device(const struct oci_device *from)
{
	bool numbered = !str_eq(from->type, "p");

	return (struct isolate_device){
		.path = from->path,
		.type = from->type[0],
		.major = numbered ? (unsigned)from->major.value : 0,
		.minor = numbered ? (unsigned)from->minor.value : 0,
		.mode = from->mode.set ? (mode_t)(from->mode.value & 07777) : 0666,
		.uid = (uid_t)from->uid.value,
		.gid = (gid_t)from->gid.value,
		.fd = -1,
	};
}

/* Adds one unless the path is there already. */
static int devices_add(struct convert *c, struct isolate_device *list, size_t *n,
		       const struct isolate_device *d, const char *field, struct error *err)
{
	for (size_t i = 0; i < *n; i++)
		if (str_eq(list[i].path, d->path))
			return 0;
	list[*n] = *d;
	if (c->plan.ns[ISOLATE_NS_USER] != ISOLATE_KEEP && d->type != 'p') {
		int r = device_bind(c, &list[*n], field, err);

		if (r < 0)
			return r;
	}
	(*n)++;
	return 0;
}

static int convert_devices(struct convert *c, struct error *err)
{
	const struct oci_linux *os = c->config->os;
	size_t n = 0, max = os->n_devices + ARRAY_SIZE(devices_default);
	struct isolate_device *list = arena_zalloc(c->arena, max, sizeof(*list));
	bool foreign = devices_are_foreign(c);
	char field[32];
	int r;

	if (!list)
		return error_set(err, -ENOMEM, "convert the devices");
	r = convert_devices_check(os, err);
	for (size_t i = 0; r == 0 && i < os->n_devices; i++) {
		struct isolate_device d = convert_device(&os->devices[i]);

		(void)str_printf(field, sizeof(field), "linux.devices[%zu]", i);
		if (!(foreign && str_has_prefix(d.path, "/dev/")))
			r = devices_add(c, list, &n, &d, field, err);
	}
	for (size_t i = 0; r == 0 && !foreign && i < ARRAY_SIZE(devices_default); i++)
		r = devices_add(c, list, &n, &devices_default[i], "linux.devices", err);
	c->plan.devices = list;
	c->plan.n_devices = n;
	return r;
}

/* ---- the root ---- */

static int convert_root(struct convert *c, const char *rootfs, struct error *err)
{
	const struct oci_config *config = c->config;
	uint64_t spread = 0;
	int fd;

	if (!str_empty(config->os->root_propagation)) {
		int r = word_need(words_propagation, config->os->root_propagation,
				  "linux.rootfsPropagation", &spread, err);

		if (r < 0)
			return r;
	}
	fd = given_copy_tree(rootfs);
	if (fd < 0)
		return error_set(err, fd, "root.path: open %s", rootfs);
	c->plan.root = ISOLATE_ROOT_TREE;
	c->plan.root_fd = fd;
	c->plan.root_read_only = config->root->readonly.value;
	c->plan.root_propagation = (unsigned long)spread;
	return convert_own(c, fd, err);
}

int convert_tree(struct convert *c, const char *rootfs, struct error *err)
{
	const struct oci_linux *os = c->config->os;
	int r;

	if (c->plan.ns[ISOLATE_NS_MOUNT] != ISOLATE_NEW &&
	    c->plan.ns[ISOLATE_NS_USER] == ISOLATE_NEW)
		return error_field(err, ERROR_INVALID, "linux.namespaces",
				   "a user namespace needs a mount namespace beside it");
	r = convert_root(c, rootfs, err);
	if (r == 0)
		r = convert_mounts(c, err);
	if (r == 0)
		r = convert_devices(c, err);
	c->plan.masked_paths = (char *const *)(uintptr_t)os->masked_paths;
	c->plan.readonly_paths = (char *const *)(uintptr_t)os->readonly_paths;
	return r;
}
