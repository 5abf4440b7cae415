/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/volumes.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/memory/buf.h"
#include "base/memory/map.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "store/root.h"
#include "volumes/fill.h"

#define VOLUMES_DIR "volumes"

struct volumes {
	struct volumes_config config;
	char *root;
	int dir_fd;
	struct list list;
	struct list gone; /* struct volume_gone */
	struct map by_id, by_name;
};

/* A directory that nothing names any more. */
struct volume_gone {
	struct pool_work work;
	struct list link;
	struct list waiters;
	int dir_fd; /* of all volumes */
	int result;
	char name[ID_SIZE + 8];
};

/* ---- forms ---- */

static bool volume_is_name(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	size_t n = strlen(name);

	return n > 0 && n <= VOLUME_NAME_MAX && strspn(name, letters) == n &&
	       !strchr("_.-", name[0]);
}

int volume_check_name(const char *field, const char *name, struct error *err)
{
	if (volume_is_name(name))
		return 0;
	return error_field(err, ERROR_INVALID, field,
			   "\"%.80s\" is no name of a volume: 1 to %d of A-Z, a-z, 0-9, '_', '.' "
			   "and '-', the first a letter or digit (a directory is named by a path "
			   "with a '/')",
			   name, VOLUME_NAME_MAX);
}

static size_t volume_label_name(const char *label)
{
	return strcspn(label, "=");
}

static bool volume_is_label(const char *label)
{
	size_t n = strlen(label);

	return volume_label_name(label) > 0 && n <= VOLUME_LABEL_MAX && str_is_clean(label) &&
	       str_is_utf8(label, n);
}

int volume_check_labels(char *const *labels, size_t n, struct error *err)
{
	char field[32];

	if (n > VOLUME_LABELS_MAX)
		return error_field(err, ERROR_INVALID, "labels",
				   "%zu are more than the limit of %d", n, VOLUME_LABELS_MAX);
	for (size_t i = 0; i < n; i++) {
		(void)str_printf(field, sizeof(field), "labels[%zu]", i);
		if (!volume_is_label(labels[i]))
			return error_field(err, ERROR_INVALID, field,
					   "\"%.80s\" is no NAME=VALUE of at most %d bytes without "
					   "control characters",
					   labels[i], VOLUME_LABEL_MAX);
		for (size_t k = 0; k < i; k++) {
			size_t len = volume_label_name(labels[i]);

			if (volume_label_name(labels[k]) == len &&
			    memcmp(labels[i], labels[k], len) == 0)
				return error_field(err, ERROR_INVALID, field,
						   "\"%.*s\" has a value already by labels[%zu]",
						   (int)MIN(len, (size_t)80), labels[i], k);
		}
	}
	return 0;
}

/* ---- directories that go ---- */

static void volume_gone_free(struct volume_gone *g)
{
	list_remove(&g->link);
	free(g);
}

static void volume_gone_run(struct pool_work *work)
{
	struct volume_gone *g = container_of(work, struct volume_gone, work);

	FAILPOINT_BEFORE("volume.files");
	g->result = rootfd_remove_tree(g->dir_fd, g->name);
	FAILPOINT_AFTER("volume.files");
}

static void volume_tell(struct list *waiters, struct volume *v, const struct error *err)
{
	while (!list_empty(waiters)) {
		struct volume_waiter *w = list_first(waiters, struct volume_waiter, link);

		list_remove(&w->link);
		w->done(w, v, err);
	}
}

static void volume_gone_done(struct pool_work *work)
{
	struct volume_gone *g = container_of(work, struct volume_gone, work);

	if (g->result < 0)
		log_warn("cannot remove the files of a volume, before the next start",
			 LOG_STR("volume", g->name), LOG_INT("errno", -g->result));
	volume_tell(&g->waiters, NULL, NULL);
	volume_gone_free(g);
}

/* Its files go at the next start where there is no memory. */
static struct volume_gone *volume_go(struct volumes *all, const char *name)
{
	struct volume_gone *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	*g = (struct volume_gone){ .dir_fd = all->dir_fd,
				   .work = { .run = volume_gone_run, .done = volume_gone_done } };
	list_init(&g->waiters);
	list_init(&g->link);
	if (str_copy(g->name, sizeof(g->name), name) < 0) {
		free(g);
		return NULL;
	}
	list_add_tail(&all->gone, &g->link);
	pool_submit(all->config.pool, &g->work);
	return g;
}

/* ---- one volume ---- */

static void volume_free(struct volume *v)
{
	if (map_get(&v->all->by_id, v->id) == v)
		(void)map_remove(&v->all->by_id, v->id);
	if (map_get(&v->all->by_name, v->name) == v)
		(void)map_remove(&v->all->by_name, v->name);
	list_remove(&v->link);
	free(v->labels);
	free(v);
}

/* Each with a newline behind it; what has no '=' gets one. */
static char *volume_join(char *const *labels, size_t n)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	for (size_t i = 0; i < n; i++)
		if (buf_addf(&b, "%s%s\n", labels[i], strchr(labels[i], '=') ? "" : "=") < 0)
			return NULL;
	return n > 0 ? buf_take_str(&b) : strdup("");
}

static struct volume *volume_new(struct volumes *all, const char *id, const char *name)
{
	struct volume *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->all = all;
	list_init(&v->link);
	list_init(&v->waiters);
	if (str_copy(v->id, sizeof(v->id), id) < 0 ||
	    str_copy(v->name, sizeof(v->name), str_empty(name) ? id : name) < 0 ||
	    map_add(&all->by_id, v->id, v) < 0 || map_add(&all->by_name, v->name, v) < 0) {
		volume_free(v);
		return NULL;
	}
	list_add_tail(&all->list, &v->link);
	return v;
}

/* ---- made ---- */

static void volume_on_recorded(void *userdata, const struct error *err)
{
	struct volume *v = userdata;
	struct list waiters;

	list_init(&waiters);
	while (!list_empty(&v->waiters)) {
		struct list *first = v->waiters.next;

		list_remove(first);
		list_add_tail(&waiters, first);
	}
	if (err) {
		(void)volume_go(v->all, v->id);
		volume_free(v);
		volume_tell(&waiters, NULL, err);
		return;
	}
	v->state = VOLUME_READY;
	FAILPOINT_AFTER("volume.record");
	volume_tell(&waiters, v, NULL);
	if (v->doomed)
		(void)volume_remove(v, NULL, NULL);
}

static int volume_record(struct volume *v, struct error *err)
{
	const struct root_volume record = {
		.id = v->id,
		.name = v->name,
		.labels = v->labels,
		.anonymous = v->anonymous,
		.created_at = v->created_at,
	};
	int r = FAILPOINT("volume.record");

	if (r < 0)
		return error_set(err, r, "record the volume %s", v->name);
	return root_store_put_volume(v->all->config.store, &record, volume_on_recorded, v, err);
}

static int volumes_check_new(const struct volumes *all, const struct volume_spec *spec,
			     struct error *err)
{
	int r = str_empty(spec->name) ? 0 : volume_check_name("name", spec->name, err);

	if (r == 0)
		r = volume_check_labels(spec->labels, spec->n_labels, err);
	if (r < 0)
		return r;
	if (!str_empty(spec->name) &&
	    (map_get(&all->by_name, spec->name) || map_get(&all->by_id, spec->name)))
		return error_field(err, ERROR_EXISTS, "name", "there is a volume %s already",
				   spec->name);
	if (all->by_id.n >= VOLUMES_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "this node has %d volumes already, its limit (`nacre volume "
				    "prune` removes those that nobody has)",
				    VOLUMES_MAX);
	return 0;
}

int volumes_create(struct volumes *all, const struct volume_spec *spec,
		   struct volume_waiter *waiter, struct volume **ret, struct error *err)
{
	char id[ID_SIZE];
	struct volume *v;
	int r = volumes_check_new(all, spec, err);

	if (r == 0 && spec->id)
		(void)str_copy(id, sizeof(id), spec->id);
	else if (r == 0 && id_new(id) < 0)
		r = error_set(err, -EIO, "draw an id");
	if (r < 0)
		return r;
	v = volume_new(all, id, spec->name);
	if (!v)
		return error_set(err, -ENOMEM, "make a volume");
	v->anonymous = spec->anonymous;
	v->created_at = clock_real();
	v->labels = volume_join(spec->labels, spec->n_labels);
	r = v->labels ? fill_make(all->dir_fd, v->id, err)
		      : error_set(err, -ENOMEM, "make a volume");
	if (r == 0)
		r = volume_record(v, err);
	if (r < 0) {
		(void)rootfd_remove_tree(all->dir_fd, v->id);
		volume_free(v);
		return r;
	}
	if (waiter)
		volume_await(v, waiter);
	if (ret)
		*ret = v;
	return 0;
}

void volume_await(struct volume *v, struct volume_waiter *waiter)
{
	assert(v->state == VOLUME_MAKING);
	list_init(&waiter->link);
	list_add_tail(&v->waiters, &waiter->link);
}

/* ---- removed ---- */

static void volume_on_dropped(void *userdata, const struct error *err)
{
	struct volume *v = userdata;
	struct volumes *all = v->all;
	struct volume_gone *g = NULL;
	struct list waiters;

	list_init(&waiters);
	if (!err)
		g = volume_go(all, v->id);
	while (!list_empty(&v->waiters)) {
		struct list *first = v->waiters.next;

		list_remove(first);
		list_add_tail(g ? &g->waiters : &waiters, first);
	}
	if (err)
		v->state = VOLUME_READY;
	else
		volume_free(v);
	volume_tell(&waiters, NULL, err);
}

int volume_remove(struct volume *v, struct volume_waiter *waiter, struct error *err)
{
	int r;

	if (waiter)
		list_init(&waiter->link);
	if (v->state == VOLUME_MAKING && !waiter) {
		v->doomed = true;
		return 0;
	}
	if (v->state != VOLUME_READY)
		return error_refuse(err, ERROR_UNAVAILABLE, "the volume %s is being %s; try again",
				    v->name, v->state == VOLUME_MAKING ? "made" : "removed");
	r = FAILPOINT("volume.drop");
	if (r < 0)
		return error_set(err, r, "remove the volume %s", v->name);
	r = root_store_drop_volume(v->all->config.store, v->id, volume_on_dropped, v, err);
	if (r < 0)
		return r;
	FAILPOINT_AFTER("volume.drop");
	v->state = VOLUME_REMOVING;
	if (waiter)
		list_add_tail(&v->waiters, &waiter->link);
	return 0;
}

/* ---- all of them ---- */

struct volume *volumes_find(const struct volumes *all, const char *name)
{
	struct volume *v = map_get(&all->by_name, name);

	if (!v)
		v = map_get(&all->by_id, name);
	return v && v->state != VOLUME_REMOVING ? v : NULL;
}

bool volumes_has_name(const struct volumes *all, const char *name)
{
	return map_get(&all->by_name, name) || map_get(&all->by_id, name);
}

const struct list *volumes_list(const struct volumes *all)
{
	return &all->list;
}

size_t volumes_count(const struct volumes *all)
{
	return all->by_id.n;
}

int volumes_dir(const struct volumes *all)
{
	return all->dir_fd;
}

int volume_path(const struct volume *v, char *ret, size_t size)
{
	return str_printf(ret, size, "%s/" VOLUMES_DIR "/%s/" FILL_DATA, v->all->root, v->id) < 0
		       ? -ENAMETOOLONG
		       : 0;
}

static int volumes_load_one(void *data, const struct root_volume *record)
{
	struct volumes *all = data;
	struct volume *v;

	if (strlen(record->id) != ID_LEN || !volume_is_name(record->name))
		return -EBADMSG;
	v = volume_new(all, record->id, record->name);
	if (!v)
		return -ENOMEM;
	v->labels = strdup(record->labels);
	v->anonymous = record->anonymous;
	v->created_at = record->created_at;
	v->state = VOLUME_READY;
	return v->labels ? 0 : -ENOMEM;
}

/* What a copy that was not ended has left is moved out of the volume, and goes like a directory
 * without a record. */
static void volumes_sweep_new(struct volumes *all, const char *id)
{
	_cleanup_fd_ int fd =
		sysio_openat(all->dir_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	char name[ID_SIZE + 8];

	(void)str_printf(name, sizeof(name), "%s-new", id);
	if (fd >= 0 && sysio_renameat(fd, FILL_NEW, all->dir_fd, name) == 0)
		(void)volume_go(all, name);
}

static int volumes_sweep(struct volumes *all)
{
	_cleanup_strv_ char **names = NULL;
	int r = fd_list_dir(all->dir_fd, &names);

	for (size_t i = 0; names && names[i]; i++) {
		if (map_get(&all->by_id, names[i]))
			volumes_sweep_new(all, names[i]);
		else
			(void)volume_go(all, names[i]);
	}
	return r;
}

static int volumes_open_dir(struct volumes *all, struct error *err)
{
	if (sysio_mkdirat(all->config.root_fd, VOLUMES_DIR, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make the directory of the volumes");
	all->dir_fd = sysio_openat(all->config.root_fd, VOLUMES_DIR,
				   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	return all->dir_fd < 0 ? error_set(err, -errno, "open the directory of the volumes") : 0;
}

int volumes_new(struct volumes **ret, const struct volumes_config *config, struct error *err)
{
	struct volumes *all = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return error_set(err, -ENOMEM, "the volumes");
	all->config = *config;
	all->dir_fd = -1;
	list_init(&all->list);
	list_init(&all->gone);
	all->root = strdup(config->root);
	r = all->root ? volumes_open_dir(all, err) : error_set(err, -ENOMEM, "the volumes");
	if (r == 0)
		r = root_store_each_volume(config->store, volumes_load_one, all, err);
	if (r < 0 && err && !err->code)
		(void)error_set(err, r, "read the volumes");
	if (r == 0) {
		r = volumes_sweep(all);
		if (r < 0)
			(void)error_set(err, r, "read the directory of the volumes");
	}
	if (r < 0) {
		(void)volumes_free(all);
		return r;
	}
	*ret = all;
	return 0;
}

static void volumes_forget(struct list *waiters)
{
	while (!list_empty(waiters))
		list_remove(waiters->next);
}

void volumes_stop(struct volumes *all)
{
	struct volume_gone *g;
	struct volume *v;

	if (!all)
		return;
	list_for_each (v, &all->list, struct volume, link)
		volumes_forget(&v->waiters);
	list_for_each (g, &all->gone, struct volume_gone, link)
		volumes_forget(&g->waiters);
}

struct volumes *volumes_free(struct volumes *all)
{
	if (!all)
		return NULL;
	while (!list_empty(&all->gone))
		volume_gone_free(list_first(&all->gone, struct volume_gone, link));
	while (!list_empty(&all->list))
		volume_free(list_first(&all->list, struct volume, link));
	map_done(&all->by_id);
	map_done(&all->by_name);
	(void)fd_close(all->dir_fd);
	free(all->root);
	free(all);
	return NULL;
}
