/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "pod/networks/plug.h"
#include "pod/storage/image_mounts.h"
#include "pod/storage/shares.h"
#include "pod/workload/alloc.h"
#include "store/store.h"

/* Without its attachment. */
static struct run_workload record_of_workload(const struct workload *w)
{
	return (struct run_workload){
		.id = w->id,
		.path = w->path,
		.kind = workload_kind_word(w->kind),
		.instance = w->instance ? w->instance->id : "",
		.state = (int)w->state,
		.state_word = workload_state_word(w->state),
		.network = w->network,
		.auto_remove = w->auto_remove,
		.reason = w->reason,
		.created_at = w->created_at,
		.request = w->request,
		.handle = w->handle,
		.comment = w->comment ? w->comment : "",
		.settings = w->settings,
		.instance_kind = w->kind == WORKLOAD_POD ? instance_kind_word(w->choice.kind) : "",
		.kind_reason = w->choice.reason,
		.stop_by = w->stop_by,
		.attachment = "",
		.lasts = w->lasts,
		.drops_volumes = w->drops_volumes,
		.stays = w->stays,
		.restart = restart_policy_word(w->restart.policy),
		.restart_max = w->restart.max,
		.restart_count = w->restart_count,
		.restart_delay = w->restart_delay,
		.stopped = w->stopped,
		.ids_uid = w->ids.uid,
		.ids_gid = w->ids.gid,
		.ids_count = w->ids.count,
	};
}

int record_put_workload(struct run_store *s, const struct workload *w, struct error *err)
{
	_cleanup_(buf_done) struct buf attachment = BUF_INIT;
	struct run_workload r = record_of_workload(w);

	if (plug_print(w, &attachment) < 0)
		return error_set(err, -ENOMEM, "record workload %s", w->path);
	r.attachment = (const char *)buf_data(&attachment);
	return run_store_put_workload(s, &r, err);
}

static bool record_is_own(const struct pod_container *c, const char *id)
{
	for (char *const *v = c->own_volumes; v && *v; v++)
		if (str_eq(*v, id))
			return true;
	return false;
}

static char *record_volumes(const struct pod_container *c)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	for (char *const *v = c->volumes; v && *v; v++)
		if (buf_addf(&b, "%s%s%s", b.len ? " " : "", record_is_own(c, *v) ? "+" : "", *v) <
		    0)
			return NULL;
	for (size_t i = 0; i < c->n_image_mounts; i++)
		if (buf_addf(&b, "%s@%s", b.len ? " " : "", c->image_mounts[i].id) < 0)
			return NULL;
	for (char *const *v = c->workload->lasts ? c->shares : NULL; v && *v; v++)
		if (buf_addf(&b, "%s%%%s", b.len ? " " : "", *v) < 0)
			return NULL;
	return b.len ? buf_take_str(&b) : strdup("");
}

/* volumes: record_volumes(). */
static struct run_container record_of_container(const struct pod_container *c, const char *volumes)
{
	return (struct run_container){
		.id = c->id,
		.workload = c->workload->id,
		.position = c->position,
		.name = c->name,
		.image = c->image_id,
		.image_name = c->image_name,
		.command = c->command,
		.user = c->user,
		.stdin_open = c->stdin_open,
		.tty = c->tty,
		.settings = c->settings,
		.state = (int)c->status.state,
		.state_word = pod_container_state_word(c),
		.pid = c->status.pid,
		.exit_code = c->status.exit_code,
		.signal = c->status.signal,
		.reason = c->status.reason,
		.started_at = c->status.started_at,
		.finished_at = c->status.finished_at,
		.log_lost = c->status.log_lost,
		.created_at = c->created_at,
		.own_log = c->has_own_log,
		.volumes = volumes,
		.health = health_word(c->health_status),
		.role = c->is_debug  ? "debug"
			: c->is_init ? "init"
				     : "",
		.restart = restart_policy_word(c->restart.policy),
		.restart_max = c->restart.max,
		.restart_count = c->restart_count,
		.stopped = c->stopped,
	};
}

int record_put_container(struct run_store *s, const struct pod_container *c, struct error *err)
{
	_cleanup_str_ char *volumes = record_volumes(c);
	const struct run_container r = record_of_container(c, volumes);

	if (!volumes)
		return error_set(err, -ENOMEM, "record container %s", c->id);
	return run_store_put_container(s, &r, err);
}

static int record_take_wish(void *data, const struct run_wish *r)
{
	char **ret = data;

	*ret = strdup(r->text);
	return *ret ? 0 : -ENOMEM;
}

int record_wish(struct run_store *s, const struct workload *w, char **ret, struct error *err)
{
	char *text = NULL;
	int r = run_store_each_wish(s, w->id, record_take_wish, &text, err);

	if (r < 0)
		return error_set(err, r, "read what %s was asked to be", w->path);
	if (!text)
		return error_refuse(err, ERROR_PRECONDITION,
				    "what %s was asked to be is not known any more: remove it, and "
				    "run it anew",
				    w->path);
	*ret = text;
	return 0;
}

/* What is there is freed by the caller, also where this fails. */
static int record_keep_containers(const struct workload *w, struct run_kept *kept)
{
	kept->containers = calloc(w->n_containers + 1, sizeof(*kept->containers));
	for (size_t i = 0; kept->containers && i < w->n_containers; i++) {
		char *volumes;

		if (w->containers[i]->is_debug)
			continue;
		volumes = record_volumes(w->containers[i]);
		kept->containers[kept->n_containers++] =
			record_of_container(w->containers[i], volumes);
		if (!volumes)
			return -ENOMEM;
	}
	return kept->containers ? 0 : -ENOMEM;
}

int record_keep(struct run_store *s, const struct workload *w, char **ret, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *wish = NULL;
	struct run_kept kept = { .workload = record_of_workload(w) };
	int r = record_wish(s, w, &wish, err);

	if (r < 0)
		return r;
	kept.wish = (struct run_wish){ .id = w->id, .text = wish };
	r = record_keep_containers(w, &kept);
	if (r == 0)
		r = run_kept_write(&b, &kept);
	for (size_t i = 0; i < kept.n_containers; i++)
		free((void *)(uintptr_t)kept.containers[i].volumes);
	free(kept.containers);
	*ret = r == 0 ? buf_take_str(&b) : NULL;
	return *ret ? 0 : error_set(err, -ENOMEM, "keep workload %s", w->path);
}

static int record_put_each(struct run_store *s, const struct workload *w, struct error *err)
{
	int r = record_put_workload(s, w, err);

	for (unsigned i = 0; i < w->n_containers && r == 0; i++)
		r = record_put_container(s, w->containers[i], err);
	return r;
}

int record_put_again(struct run_store *s, const struct workload *w, struct error *err)
{
	int r = run_store_begin(s, err), ended;

	if (r < 0)
		return r;
	r = record_put_each(s, w, err);
	ended = run_store_commit(s, r == 0 ? err : NULL);
	return r < 0 ? r : ended;
}

int record_put_all(struct run_store *s, const struct workload *w, const char *wish,
		   struct error *err)
{
	const struct run_wish kept = { .id = w->id, .text = wish };
	int r;

	r = run_store_begin(s, err);
	if (r < 0)
		return r;
	r = record_put_each(s, w, err);
	if (r == 0 && wish)
		r = run_store_put_wish(s, &kept, err);
	if (r < 0) {
		(void)run_store_commit(s, NULL);
		(void)run_store_drop_workload(s, w->id, NULL);
		return r;
	}
	return run_store_commit(s, err);
}

/* ---- reading ---- */

struct record_walk {
	struct run_store *store;
	struct workload *w;
	size_t n;
	int (*fn)(void *userdata, struct workload *w, const char *instance_id,
		  const char *attachment);
	void *userdata;
	struct error *err;
};

/* The words of the API live for ever; those of a record do not. NULL: unknown. */
static const char *record_network(const char *word)
{
	static const char *const words[] = { "pod", "none", "own", "host" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (str_eq(words[i], word))
			return words[i];
	return NULL;
}

/* WORKLOAD_KIND_COUNT: unknown. */
static enum workload_kind record_kind(const char *word)
{
	int k = 0;

	while (k < WORKLOAD_KIND_COUNT && !str_eq(workload_kind_word((enum workload_kind)k), word))
		k++;
	return (enum workload_kind)k;
}

static int record_count(void *data, const struct run_container *r)
{
	struct record_walk *walk = data;

	(void)r;
	walk->n++;
	return 0;
}

/* One of a share: '%' and its name. */
static int record_read_share(struct pod_container *c, const char *word, size_t len)
{
	char name[POD_SHARE_NAME_SIZE];

	if (len < 2 || len > POD_SHARE_NAME_SIZE)
		return -EBADMSG;
	(void)str_printf(name, sizeof(name), "%.*s", (int)len - 1, word + 1);
	return strv_add(&c->shares, name);
}

/* Ids, joined by blanks, with a '+' in front of those that were made for it, a '@' in front of the
 * images that it mounts, and a '%' in front of names of shares. */
static int record_read_volumes(struct pod_container *c, const char *ids)
{
	char id[ID_SIZE];
	int r = 0;

	while (*ids && r == 0) {
		bool own = *ids == '+';
		size_t n = strcspn(ids += own, " ");

		if (*ids == '@' || *ids == '%') {
			r = *ids == '@' ? image_mounts_recall(c, ids + 1, n - 1)
					: record_read_share(c, ids, n);
			ids += n + (ids[n] == ' ');
			continue;
		}
		if (n != ID_LEN)
			return -EBADMSG;
		(void)str_printf(id, sizeof(id), "%.*s", (int)n, ids);
		r = strv_add(&c->volumes, id);
		if (r == 0 && own)
			r = strv_add(&c->own_volumes, id);
		ids += n + (ids[n] == ' ');
	}
	return r;
}

/* HEALTH_STATUS_COUNT: unknown. */
static enum health_status record_health(const char *word)
{
	int s = 0;

	while (s < HEALTH_STATUS_COUNT && !str_eq(health_word((enum health_status)s), word))
		s++;
	return (enum health_status)s;
}

static bool record_knows_container(const struct run_container *r)
{
	return r->state >= 0 && r->state < CONTAINER_STATE_COUNT &&
	       (str_eq(r->role, "") || str_eq(r->role, "init") || str_eq(r->role, "debug")) &&
	       restart_policy_of(r->restart) != RESTART_POLICY_COUNT &&
	       record_health(r->health) != HEALTH_STATUS_COUNT;
}

static int record_fill(void *data, const struct run_container *r)
{
	struct record_walk *walk = data;
	struct pod_container *c;
	int ret;

	if (!record_knows_container(r) || walk->n >= walk->w->n_containers)
		return error_set(walk->err, -EBADMSG, "the record of container %s", r->id);
	c = walk->w->containers[walk->n++];
	c->position = r->position;
	c->created_at = r->created_at;
	c->has_own_log = c->log_begun = r->own_log;
	c->health_status = record_health(r->health);
	c->is_init = str_eq(r->role, "init");
	c->is_debug = str_eq(r->role, "debug");
	c->restart.policy = restart_policy_of(r->restart);
	c->restart.max = r->restart_max;
	c->restart_count = r->restart_count;
	c->stopped = r->stopped;
	walk->w->n_ever = MAX(walk->w->n_ever, r->position + 1);
	(void)str_copy(c->id, sizeof(c->id), r->id);
	(void)str_copy(c->name, sizeof(c->name), r->name);
	c->image_name = strdup(r->image_name);
	c->image_id = strdup(r->image);
	c->command = strdup(r->command);
	c->user = strdup(r->user);
	c->settings = strdup(r->settings);
	c->stdin_open = r->stdin_open;
	c->tty = r->tty;
	c->status = (struct container_status){
		.state = (enum container_state)r->state,
		.pid = r->pid,
		.exit_code = r->exit_code,
		.signal = r->signal,
		.started_at = r->started_at,
		.finished_at = r->finished_at,
		.log_lost = r->log_lost,
	};
	(void)str_copy(c->status.reason, sizeof(c->status.reason), r->reason);
	ret = record_read_volumes(c, r->volumes);
	if (ret < 0)
		return error_set(walk->err, ret, "the record of container %s", r->id);
	if (!c->image_name || !c->image_id || !c->command || !c->user || !c->settings)
		return error_set(walk->err, -ENOMEM, "container %s", r->id);
	return 0;
}

static int record_choice(const struct run_workload *r, struct instance_choice *ret)
{
	*ret = (struct instance_choice){ .kind = INSTANCE_CELL };
	if (*r->instance_kind)
		ret->kind = instance_kind_of(r->instance_kind);
	if (ret->kind == INSTANCE_KIND_COUNT)
		return -EBADMSG;
	return str_copy(ret->reason, sizeof(ret->reason), r->kind_reason);
}

static int record_read(void *data, const struct run_workload *r)
{
	struct record_walk *walk = data;
	struct instance_choice choice;
	struct workload *w;
	int ret;

	if (r->state < 0 || r->state >= WORKLOAD_STATE_COUNT || record_choice(r, &choice) < 0 ||
	    restart_policy_of(r->restart) == RESTART_POLICY_COUNT ||
	    record_kind(r->kind) == WORKLOAD_KIND_COUNT || !record_network(r->network))
		return error_set(walk->err, -EBADMSG, "the record of workload %s", r->id);
	walk->n = 0;
	ret = run_store_each_container(walk->store, r->id, record_count, walk, walk->err);
	if (ret < 0)
		return ret;
	w = workload_alloc(walk->n);
	if (w && workload_set_comment(w, r->comment) < 0) {
		workload_unmake(w);
		w = NULL;
	}
	if (!w)
		return error_set(walk->err, -ENOMEM, "workload %s", r->id);
	(void)str_copy(w->id, sizeof(w->id), r->id);
	(void)str_copy(w->path, sizeof(w->path), r->path);
	(void)str_copy(w->handle, sizeof(w->handle), *r->handle ? r->handle : name_last(r->path));
	(void)str_copy(w->reason, sizeof(w->reason), r->reason);
	w->kind = record_kind(r->kind);
	w->network = record_network(r->network);
	w->choice = choice;
	w->state = (enum workload_state)r->state;
	w->auto_remove = r->auto_remove;
	w->created_at = r->created_at;
	w->stop_by = r->stop_by;
	w->lasts = r->lasts;
	w->drops_volumes = r->drops_volumes;
	w->stays = r->stays;
	w->restart.policy = restart_policy_of(r->restart);
	w->restart.max = r->restart_max;
	w->restart_count = r->restart_count;
	w->restart_delay = r->restart_delay;
	w->stopped = r->stopped;
	w->ids = (struct isolate_ids){ r->ids_uid, r->ids_gid, r->ids_count };
	(void)str_copy(w->request, sizeof(w->request), r->request);
	w->settings = strdup(r->settings);
	if (!w->settings) {
		workload_unmake(w);
		return error_set(walk->err, -ENOMEM, "workload %s", r->id);
	}
	walk->w = w;
	walk->n = 0;
	ret = run_store_each_container(walk->store, r->id, record_fill, walk, walk->err);
	if (ret < 0) {
		workload_unmake(w);
		return ret;
	}
	return walk->fn(walk->userdata, w, r->instance, r->attachment);
}

int record_each(struct run_store *s,
		int (*fn)(void *userdata, struct workload *w, const char *instance_id,
			  const char *attachment),
		void *userdata, struct error *err)
{
	struct record_walk walk = { .store = s, .fn = fn, .userdata = userdata, .err = err };

	return run_store_each_workload(s, record_read, &walk, err);
}
