/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/remote.h"

#include <errno.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "image/image.h"
#include "pod/log/log_pull.h"
#include "pod/storage/mirror.h"
#include "pod/storage/shares.h"
#include "pod/workload/failure.h"
#include "pod/workload/publish.h"
#include "store/store.h"

struct remote_claim {
	const struct workloads_config *config;
	struct workload *workload;
};

/* ---- disks and volumes ---- */

void remote_claim_disks(struct workload *w)
{
	struct error err = ERROR_INIT;

	for (size_t n = 0; n < w->n_containers; n++) {
		struct pod_container *c = w->containers[n];

		c->has_disk = instance_claim_disk(w->instance, c->image_id, &err) == 0;
		if (!c->has_disk)
			log_warn("a disk is not taken up again", LOG_STR("workload", w->path),
				 LOG_ERR(&err));
	}
}

void remote_drop_disk(struct pod_container *c)
{
	struct instance *i = c->workload->instance;

	if (c->has_disk && i && !i->ended)
		instance_drop_disk(i, c->image_id);
	c->has_disk = false;
}

void remote_drop_disks(struct workload *w)
{
	struct pod_share *s;

	for (size_t n = 0; n < w->n_containers; n++)
		remote_drop_disk(w->containers[n]);
	list_for_each (s, &w->shares, struct pod_share, link)
		if (!s->deciding)
			s->mirror = mirror_free(s->mirror);
}

static void remote_one_over(struct workload *w, const struct error *err)
{
	if (err && !w->disk_error.code)
		(void)error_copy(&w->disk_error, err);
	w->n_disks--;
	if (w->lasts)
		loop_defer_schedule(&w->defer);
	if (w->n_disks > 0)
		return;
	if (w->taken_down)
		remote_drop_disks(w);
	if (!w->lasts)
		w->on_disks(w);
}

static void remote_disk_over(struct pod_container *c, const struct error *err)
{
	if (err)
		c->has_disk = false;
	if (err && c->workload->lasts)
		failure_keep_member(c, err);
	c->awaits_disk = false;
	remote_one_over(c->workload, err);
}

static void remote_on_disk(void *userdata, const struct error *err)
{
	remote_disk_over(userdata, err);
}

static int remote_check_instance(const struct workload *w, struct error *err)
{
	return w->instance && !w->instance->ended
		       ? 0
		       : error_refuse(err, ERROR_UNAVAILABLE, "the instance of %s is gone",
				      w->path);
}

static void remote_on_image(void *userdata, int fd, const struct error *err)
{
	_cleanup_fd_ int disk_fd = fd;
	struct pod_container *c = userdata;
	struct workload *w = c->workload;
	struct error own = ERROR_INIT;
	int r;

	r = err ? error_copy(&own, err) : remote_check_instance(w, &own);
	if (r == 0)
		r = instance_put_disk(w->instance, c->image_id, disk_fd, c->serial, remote_on_disk,
				      c, &own);
	if (r < 0)
		remote_disk_over(c, &own);
	else
		c->has_disk = true;
}

/* ---- volumes ---- */

/* Those that wait for it fail; the next one that mounts it tries again. */
static void remote_lose_share(struct pod_share *s, const struct error *err)
{
	struct workload *w = s->workload;

	s->asked = false;
	for (size_t i = 0; i < w->n_containers; i++)
		if (w->containers[i]->phase == POD_CONTAINER_ROOT &&
		    shares_has(w->containers[i], s))
			failure_keep_member(w->containers[i], err);
}

static void remote_id_of(const struct pod_share *s, char ret[ID_SIZE + POD_SHARE_NAME_SIZE])
{
	(void)str_printf(ret, ID_SIZE + POD_SHARE_NAME_SIZE, "%s/%s", s->workload->id, s->name);
}

/* A restart of the daemon finds what the machine of a sandbox has. */
static void remote_record_share(const struct pod_share *s)
{
	char id[ID_SIZE + POD_SHARE_NAME_SIZE];
	const struct run_share record = { .id = id,
					  .workload = s->workload->id,
					  .name = s->name,
					  .source = s->source,
					  .read_only = s->read_only,
					  .dev = s->dev,
					  .ino = s->ino };
	struct error err = ERROR_INIT;

	remote_id_of(s, id);
	if (run_store_put_share(s->config->store, &record, &err) < 0)
		log_error("cannot record a volume", LOG_STR("workload", s->workload->path),
			  LOG_ERR(&err));
}

static bool remote_needs_share(const struct pod_share *s)
{
	const struct workload *w = s->workload;

	if (s->pending || s->deciding || s->mirror || s->scratch)
		return true;
	for (size_t i = 0; i < w->n_containers; i++)
		if (shares_has(w->containers[i], s))
			return true;
	return false;
}

void remote_settle_shares(const struct workloads_config *config, struct workload *w)
{
	char id[ID_SIZE + POD_SHARE_NAME_SIZE];
	struct pod_share *s;

	list_for_each (s, &w->shares, struct pod_share, link) {
		if (!w->lasts || remote_needs_share(s))
			continue;
		if (s->there && w->instance && !w->instance->ended)
			instance_drop_volume(w->instance, s->name);
		remote_id_of(s, id);
		if (s->there)
			(void)run_store_drop_share(config->store, id, NULL);
		(void)share_free(s);
	}
}

static void remote_share_over(struct pod_share *s, const struct error *err)
{
	struct workload *w = s->workload;

	s->there = !err;
	s->pending = false;
	if (err && w->lasts)
		remote_lose_share(s, err);
	else if (w->lasts && !s->mirror)
		remote_record_share(s);
	remote_one_over(w, err);
}

/* The container that asked for it may be gone by now. */
static void remote_on_volume(void *userdata, const struct error *err)
{
	const struct pod_share *s = userdata;
	const struct workloads_config *config = s->config;
	struct workload *w = s->workload;
	const bool lasts = w->lasts;

	remote_share_over(userdata, err);
	/* Only a sandbox is there for sure. */
	if (lasts)
		remote_settle_shares(config, w);
}

static int remote_put_volume(struct pod_share *s, struct error *err)
{
	const struct workload *w = s->workload;
	int r = remote_check_instance(w, err);

	if (r < 0)
		return r;
	return instance_put_volume(w->instance, s->name, TAKE_FD(s->fd), s->read_only,
				   remote_on_volume, s, err);
}

static struct peer *remote_peer(void *userdata)
{
	const struct pod_share *s = userdata;

	return workload_peer(s->workload);
}

/* A restart of the daemon goes on from there. */
static void remote_record_mirror(const struct pod_share *s)
{
	char id[ID_SIZE + POD_SHARE_NAME_SIZE];
	const struct run_mirror record = {
		.id = id, .workload = s->workload->id, .name = s->name, .source = s->source
	};
	struct error err = ERROR_INIT;

	remote_id_of(s, id);
	if (run_store_put_mirror(s->config->store, &record, &err) < 0)
		log_error("cannot record a volume", LOG_STR("workload", s->workload->path),
			  LOG_ERR(&err));
}

static void remote_on_mirror(void *userdata, const struct error *err)
{
	struct pod_share *s = userdata;
	struct error own = ERROR_INIT;

	s->deciding = false;
	if (!err) {
		s->fd = fd_close(s->fd);
		remote_record_mirror(s);
		remote_share_over(s, NULL);
		return;
	}
	log_info("a volume does not change as a whole", LOG_STR("workload", s->workload->path),
		 LOG_STR("source", s->source), LOG_ERR(err));
	s->mirror = mirror_free(s->mirror);
	if (remote_put_volume(s, &own) < 0)
		remote_share_over(s, &own);
}

static void remote_on_kept(void *userdata, const struct error *err)
{
	const struct pod_share *s = userdata;
	char note[WORKLOAD_REASON_MAX];

	(void)str_printf(note, sizeof(note), "the volume %.200s keeps what it had: %.250s",
			 s->source, error_text(err));
	log_warn("a volume keeps what it had", LOG_STR("workload", s->workload->path),
		 LOG_STR("source", s->source), LOG_ERR(err));
	publish_workload_note(s->config->events, s->workload, note);
}

static const struct mirror_ops mirror_ops = { .peer = remote_peer,
					      .done = remote_on_mirror,
					      .kept = remote_on_kept };

/* 0, or why it cannot be asked whether it is one: it is none. */
static int remote_put_mirror(struct pod_share *s)
{
	struct peer *peer = workload_peer(s->workload);
	struct mirror_spec spec = {
		.name = s->name,
		.source = s->source,
		.one_file = s->one_file,
		.ops = &mirror_ops,
		.userdata = s,
	};
	int r;

	if (!peer || !peer->ops->takes_files(peer)) {
		log_info("a volume does not change as a whole: its machine's guest set is older",
			 LOG_STR("workload", s->workload->path), LOG_STR("source", s->source));
		return -EOPNOTSUPP;
	}
	spec.fd = fd_copy(s->fd);
	if (spec.fd < 0)
		return spec.fd;
	r = mirror_new(&s->mirror, s->config->mirrors, &spec);
	if (r < 0)
		(void)fd_close(spec.fd);
	s->deciding = r == 0;
	return r;
}

static int remote_put_share(struct pod_share *s, struct error *err)
{
	/* A volume of the node changes file by file, as it does for its other users. */
	if (s->read_only && s->source[0] == '/' && remote_put_mirror(s) == 0)
		return 0;
	return remote_put_volume(s, err);
}

static int remote_claim_mirror(void *data, const struct run_mirror *r)
{
	struct workload *w = ((struct remote_claim *)data)->workload;
	struct pod_share *s = shares_again(w, r->name, r->source);

	if (!s)
		return -ENOMEM;
	s->config = ((struct remote_claim *)data)->config;
	return mirror_new(&s->mirror, s->config->mirrors,
			  &(struct mirror_spec){ .name = s->name,
						 .source = s->source,
						 .one_file = true,
						 .fd = -1,
						 .ops = &mirror_ops,
						 .userdata = s });
}

static int remote_claim_share(void *data, const struct run_share *r)
{
	const struct remote_claim *claim = data;
	struct pod_share *s = shares_recall(claim->workload, r->name, r->source, r->read_only,
					    (dev_t)r->dev, (ino_t)r->ino);

	if (!s)
		return -ENOMEM;
	s->config = claim->config;
	return 0;
}

int remote_claim_files(const struct workloads_config *config, struct workload *w, struct error *err)
{
	struct remote_claim claim = { config, w };
	int r = run_store_each_mirror(config->store, w->id, remote_claim_mirror, &claim, err);

	if (r == 0)
		r = run_store_each_share(config->store, w->id, remote_claim_share, &claim, err);

	return r < 0 && !err->code ? error_set(err, r, "follow a volume") : r;
}

void remote_lose_peer(struct workload *w)
{
	struct pod_share *s;

	list_for_each (s, &w->shares, struct pod_share, link)
		if (s->mirror)
			mirror_lose_peer(s->mirror);
}

/* Those that were asked for are waited for. */
static int remote_put_each(const struct workloads_config *config, struct workload *w,
			   struct error *err)
{
	struct pod_share *s;
	int r;

	for (size_t i = 0; i < w->n_containers; i++) {
		struct pod_container *c = w->containers[i];

		r = image_erofs_open(config->images, c->image, remote_on_image, c, err);
		if (r < 0)
			return r;
		w->n_disks++;
	}
	list_for_each (s, &w->shares, struct pod_share, link) {
		if (s->scratch)
			continue;
		s->config = config;
		r = remote_put_share(s, err);
		if (r < 0)
			return r;
		w->n_disks++;
	}
	return 0;
}

int remote_put_disks(const struct workloads_config *config, struct workload *w,
		     void (*done)(struct workload *w), struct error *err)
{
	int r;

	w->on_disks = done;
	w->disk_error = (struct error)ERROR_INIT;
	r = remote_put_each(config, w, err);
	if (r < 0 && w->n_disks == 0)
		return r;
	if (r < 0)
		(void)error_copy(&w->disk_error, err);
	return 0;
}

int remote_put_member(const struct workloads_config *config, struct pod_container *c,
		      struct error *err)
{
	struct workload *w = c->workload;
	struct pod_share *s;
	int r = image_erofs_open(config->images, c->image, remote_on_image, c, err);

	if (r < 0)
		return r;
	c->awaits_disk = true;
	w->n_disks++;
	list_for_each (s, &w->shares, struct pod_share, link) {
		struct error own = ERROR_INIT;

		if (s->asked || !shares_has(c, s))
			continue;
		s->config = config;
		s->asked = s->pending = true;
		w->n_disks++;
		if (remote_put_share(s, &own) < 0)
			remote_share_over(s, &own);
	}
	return 0;
}

bool remote_has_member(const struct pod_container *c)
{
	const struct pod_share *s;

	if (c->awaits_disk)
		return false;
	list_for_each (s, &c->workload->shares, struct pod_share, link)
		if (!c->failed && !s->there && shares_has(c, s))
			return false;
	return true;
}

void remote_fill(const struct pod_container *c, const struct etc *etc, struct container_spec *spec,
		 struct container_disk *room)
{
	*room = (struct container_disk){ .serial = c->serial, .fs = CONTAINER_DISK_FS };
	spec->root_disk = room;
	spec->files = etc->files;
	spec->n_files = ETC_FILES;
	spec->keep_log = true;
}

/* ---- logs ---- */

static void remote_on_log_end(void *userdata, const struct error *err)
{
	struct pod_container *c = userdata;

	c->log_over = true;
	if (err)
		log_warn("a log cannot be taken", LOG_STR("workload", c->workload->path),
			 LOG_ERR(err));
}

static void remote_on_log_lost(void *userdata, uint64_t n)
{
	struct pod_container *c = userdata;

	c->log_dropped += n;
	c->status.log_lost += n;
}

void remote_lose_log(struct pod_container *c, const struct error *err)
{
	remote_on_log_end(c, err);
}

/* A daemon before this one had it. */
static void remote_open_log(const struct workloads_config *config, struct pod_container *c)
{
	struct error err = ERROR_INIT;

	if (c->awaits_log)
		return;
	c->awaits_log = true;
	if (!config->open_log)
		(void)error_refuse(&err, ERROR_PRECONDITION, "nobody knows where it is");
	else if (config->open_log(config->open_log_userdata, c, &err) == 0)
		return;
	c->awaits_log = false;
	remote_lose_log(c, &err);
}

void remote_follow_log(const struct workloads_config *config, struct pod_container *c)
{
	const struct log_pull_config pull = {
		.loop = config->loop,
		.pool = config->pool,
		.peer = workload_peer(c->workload),
		.logs_fd = config->logs_fd,
		.dir = c->workload->id,
		.id = c->id,
		.name = c->name,
		.own_fd = c->log_fd,
		.fresh = !c->log_begun,
		.log = config->log,
		.on_end = remote_on_log_end,
		.on_lost = remote_on_log_lost,
		.userdata = c,
	};

	if (c->log || c->log_over || !pull.peer || pod_container_has_ended(c))
		return;
	if (c->has_own_log && c->log_fd < 0) {
		remote_open_log(config, c);
		return;
	}
	if (log_pull_new(&c->log, &pull) < 0)
		log_warn("a log cannot be taken: out of memory",
			 LOG_STR("workload", c->workload->path));
	else
		c->log_fd = -1;
	c->log_begun = c->has_own_log;
}

void remote_close_log(struct pod_container *c)
{
	c->log = log_pull_free(c->log);
	c->log_fd = fd_close(c->log_fd);
}
