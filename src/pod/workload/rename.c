/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/rename.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/fault/failpoint.h"
#include "base/text/str.h"
#include "pod/networks/metadata.h"
#include "pod/restart/reboot.h"
#include "pod/workload/life.h"
#include "pod/workload/publish.h"
#include "pod/workload/record.h"
#include "store/store.h"

/* ---- handles ---- */

/* Of a pod around it that is the pod itself, whose cell is in the same keeper. */
static bool rename_handle_is_taken(const struct workloads *all, const struct workload *w)
{
	const struct workload *other;

	list_for_each (other, &all->list, struct workload, link)
		if (other != w && other->instance == w->instance && !other->taken_down &&
		    str_eq(other->handle, w->handle))
			return true;
	return false;
}

void rename_choose_handle(const struct workloads *all, struct workload *w)
{
	(void)str_copy(w->handle, sizeof(w->handle), name_last(w->path));
	for (unsigned n = 2; all->renamed && rename_handle_is_taken(all, w); n++)
		name_number(w->handle, name_last(w->path), n);
}

/* ---- whether ---- */

static bool rename_covers(const struct workload *w, const char *path)
{
	size_t n = strlen(w->path);

	return strncmp(path, w->path, n) == 0 && path[n] == '/';
}

static int rename_check_inside(const struct workload *w, struct error *err)
{
	const struct instance *i;
	const struct workload *other;

	list_for_each (other, &w->all->list, struct workload, link)
		if (rename_covers(w, other->path))
			return error_refuse(
				err, ERROR_PRECONDITION,
				"%s is around %s, which would lose its path: remove that "
				"first",
				w->path, other->path);
	list_for_each (i, instances_list(w->all->config.instances), struct instance, link)
		if (i->state != INSTANCE_GONE && rename_covers(w, i->path))
			return error_refuse(
				err, ERROR_PRECONDITION,
				"%s is around %s, which would lose its path: remove that "
				"first",
				w->path, i->path);
	return 0;
}

static int rename_check(const struct workload *w, const char *name, struct error *err)
{
	if (str_empty(name))
		return error_field(err, ERROR_INVALID, "name", "required");
	if (!name_is_label(name))
		return error_field(
			err, ERROR_INVALID, "name",
			"\"%.80s\" is no name: use a-z, 0-9 and '-' inside, at most %d of "
			"them",
			name, NAME_LABEL_MAX);
	if (w->lasts)
		return error_field(err, ERROR_UNSUPPORTED, "target",
				   "%s is a sandbox of Kubernetes, whose name is the kubelet's",
				   w->path);
	return rename_check_inside(w, err);
}

static int rename_check_free(const struct workload *w, const char *path, struct error *err)
{
	const struct workload *other = map_get(&w->all->by_path, path);

	if (other)
		return error_field(err, ERROR_EXISTS, "name", "%s is taken by a %s", path,
				   workload_kind_word(other->kind));
	if (instances_find(w->all->config.instances, path))
		return error_field(err, ERROR_EXISTS, "name", "%s is taken by an instance", path);
	if (w->kind != WORKLOAD_POD && w->instance && w->instance->owner[0] &&
	    str_eq(name_last(path), name_last(w->instance->path)))
		return error_field(err, ERROR_EXISTS, "name", "%s is taken by the pod %s itself",
				   path, w->instance->path);
	return 0;
}

/* ---- the change ---- */

/* That was made for it, and has its path. */
static struct instance *rename_instance(const struct workload *w)
{
	return w->kind == WORKLOAD_POD && w->instance && w->instance->state != INSTANCE_GONE
		       ? w->instance
		       : NULL;
}

/* For a change, and to undo it. */
static int rename_reserve(struct workload *w)
{
	struct instance *i = rename_instance(w);
	int r = map_reserve(&w->all->by_path, 2);

	return r == 0 && i ? instance_reserve_rename(i) : r;
}

static void rename_set(struct workload *w, const char *path)
{
	struct instance *i = rename_instance(w);
	int r;

	if (i)
		instance_rename(i, path);
	(void)map_remove(&w->all->by_path, w->path);
	(void)str_copy(w->path, sizeof(w->path), path);
	w->all->renamed = true;
	r = map_add(&w->all->by_path, w->path, w);
	assert(r == 0);
}

/* Both rows, or none. */
static int rename_record(struct workload *w, struct error *err)
{
	struct run_store *store = w->all->config.store;
	struct instance *i = rename_instance(w);
	int r = FAILPOINT("workload.rename"), ended;

	if (r < 0)
		return error_set(err, r, "record workload %s", w->path);
	r = run_store_begin(store, err);
	if (r < 0)
		return r;
	r = record_put_workload(store, w, err);
	if (r == 0 && i)
		r = instance_save(i, err);
	ended = run_store_commit(store, r == 0 ? err : NULL);
	FAILPOINT_AFTER("workload.rename");
	return r < 0 ? r : ended;
}

int workload_rename(struct workload *w, const char *name, struct error *err)
{
	char old[NAME_PATH_MAX + 1], path[NAME_PATH_MAX + 1];
	int r = rename_check(w, name, err);

	if (r < 0)
		return r;
	(void)str_copy(old, sizeof(old), w->path);
	if (str_eq(name, name_last(w->path)))
		return 0;
	(void)str_printf(path, sizeof(path), "%.*s%s", (int)(name_last(w->path) - w->path), w->path,
			 name);
	r = rename_check_free(w, path, err);
	if (r < 0)
		return r;
	r = rename_reserve(w);
	if (r < 0)
		return error_set(err, r, "rename %s", old);
	rename_set(w, path);
	r = rename_record(w, err);
	if (r < 0) {
		rename_set(w, old);
		return r;
	}
	reboot_touch(w);
	names_look(&w->all->names);
	metadata_changed(w);
	publish_workload(w->all->config.events, w, "renamed");
	return 0;
}
