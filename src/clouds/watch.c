/* SPDX-License-Identifier: Apache-2.0 */
#include "clouds/clouds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "clouds/model.h"

#define CLOUD_NODE_FILE "cloud-node"

/* ---- the name of this node ---- */

/* Drawn once: a host name may come again on another machine. */
static int clouds_make_node(struct clouds *all, struct error *err)
{
	static const char temporary[] = CLOUD_NODE_FILE ".new";
	const int dir_fd = all->config.root_fd;
	_cleanup_fd_ int fd = -1;
	int r = id_new(all->node);

	if (r < 0)
		return error_set(err, r, "draw an id");
	fd = sysio_openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			  0600);
	r = fd < 0 ? -errno : fd_write_full(fd, all->node, ID_LEN);
	if (r == 0 && sysio_fsync(fd) < 0)
		r = -errno;
	if (r == 0 && sysio_renameat(dir_fd, temporary, dir_fd, CLOUD_NODE_FILE) < 0)
		r = -errno;
	if (r == 0 && sysio_fsync(dir_fd) < 0)
		r = -errno;
	return r < 0 ? error_set(err, r, "write %s", CLOUD_NODE_FILE) : 0;
}

static int clouds_read_node(struct clouds *all, struct error *err)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	int r = fd_read_file(all->config.root_fd, CLOUD_NODE_FILE, 64, &text);

	if (r == -ENOENT)
		return clouds_make_node(all, err);
	if (r < 0)
		return error_set(err, r, "read %s", CLOUD_NODE_FILE);
	if (text.len == ID_LEN)
		memcpy(all->node, buf_data(&text), ID_LEN);
	if (text.len != ID_LEN || strspn(all->node, "0123456789abcdef") != ID_LEN)
		return error_refuse(err, ERROR_FAULT,
				    "%s in the root directory is damaged: it holds 16 hexadecimal "
				    "digits, by which this node finds its machines in the cloud",
				    CLOUD_NODE_FILE);
	return 0;
}

/* ---- one look at all ---- */

static void clouds_on_vm(void *userdata, const struct cloudmsg *m)
{
	struct clouds *all = userdata;
	struct cloud_vm *vm = map_get(&all->by_token, cloudmsg_get(m, "token"));

	if (vm)
		cloud_vm_seen(vm, m);
}

static void clouds_on_list(void *userdata, const struct cloudmsg *m, const struct error *err)
{
	struct clouds *all = userdata;
	struct cloud_vm *vm;

	(void)m;
	all->looking = NULL;
	if (err && !all->look_failed)
		log_warn("the machines in the cloud cannot be looked at", LOG_ERR(err));
	all->look_failed = err != NULL;
	list_for_each (vm, &all->list, struct cloud_vm, link)
		if (!err && cloud_vm_is_watched(vm) && vm->round < all->round &&
		    vm->born < all->round)
			cloud_vm_missed(vm);
	if (!err)
		clouds_renew(all);
	clouds_arm(all, clouds_pause(all));
	if (all->look_soon) {
		all->look_soon = false;
		clouds_look(all, true);
	}
}

static const struct cloud_question_ops clouds_list_ops = { .on_vm = clouds_on_vm,
							   .on_done = clouds_on_list };

static void clouds_on_look(struct loop_timer *t)
{
	struct clouds *all = container_of(t, struct clouds, look);
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	all->look_due = 0;
	if (all->looking || clouds_pause(all) == NSEC_NEVER)
		return;
	all->round++;
	if (cloudmsg_put(&b, "verb", "list") < 0 || clouds_put_tags(all, &b, all->node) < 0 ||
	    cloud_helper_ask(all->helper, &b, &clouds_list_ops, all, &all->looking) < 0)
		clouds_arm(all, CLOUD_LOOK_SOON);
}

/* ---- the object ---- */

void clouds_watch(struct clouds *all, cloud_watch_fn fn, void *userdata)
{
	all->instances = (struct cloud_watch){ fn, userdata };
}

void clouds_watch_workloads(struct clouds *all, cloud_watch_fn fn, void *userdata)
{
	all->workloads = (struct cloud_watch){ fn, userdata };
}

static int clouds_read(void *data, const struct root_cloud_vm *record)
{
	struct clouds *all = data;
	struct error err = ERROR_INIT;
	int r = cloud_vm_read(all, record, &err);

	if (r < 0)
		log_error("a record cannot be read", LOG_ERR(&err));
	return r;
}

int clouds_new(struct clouds **ret, const struct clouds_config *config, struct error *err)
{
	struct clouds *all = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return error_set(err, -ENOMEM, "clouds");
	all->config = *config;
	list_init(&all->list);
	list_init(&all->calls);
	loop_timer_init(&all->look, config->loop, clouds_on_look);
	all->program = strdup(config->program);
	r = all->program ? root_store_each_cloud_vm(config->store, clouds_read, all, err)
			 : error_set(err, -ENOMEM, "clouds");
	if (r < 0) {
		(void)clouds_free(all);
		return err->code ? r : error_set(err, r, "read the records of machines in clouds");
	}
	*ret = all;
	return 0;
}

static void clouds_tell_stranded(const struct clouds *all)
{
	const struct cloud_vm *vm;
	size_t n = 0;

	for (vm = clouds_next(all, NULL); vm; vm = clouds_next(all, vm))
		n += vm->elsewhere && !cloud_vm_has_ended(vm);
	if (n > 0)
		log_error("machines of this node are in a cloud that the configuration does not "
			  "name: they go on, and cost, and nothing is done with them "
			  "(nacre cloud ls)",
			  LOG_INT("machines", n), LOG_STR("region", all->config.settings->region));
}

int clouds_begin(struct clouds *all, struct error *err)
{
	const struct cloud_settings *s = all->config.settings;
	const struct cloud_helper_config c = { .loop = all->config.loop,
					       .program = all->program,
					       .provider = s->provider,
					       .project = s->project,
					       .region = s->region,
					       .endpoint = s->endpoint,
					       .profile = s->profile,
					       .trust = s->trust };
	int r;

	clouds_tell_stranded(all);
	if (!*s->region)
		return 0;
	r = clouds_read_node(all, err);
	if (r == 0)
		r = cloud_helper_new(&all->helper, &c, err);
	if (r < 0)
		return r;
	for (struct cloud_vm *vm = clouds_next(all, NULL); vm; vm = clouds_next(all, vm))
		loop_defer_schedule(&vm->step);
	clouds_look(all, true);
	return 0;
}

struct clouds *clouds_free(struct clouds *all)
{
	struct error err = ERROR_INIT;
	struct cloud_vm *vm;

	if (!all)
		return NULL;
	(void)error_refuse(&err, ERROR_UNAVAILABLE,
			   "the daemon ends; what was begun goes on when it starts again");
	clouds_end_calls(all, &err);
	list_for_each (vm, &all->list, struct cloud_vm, link) {
		cloud_vm_give_up(vm, &err);
		(void)cloud_vm_free(vm);
	}
	all->helper = cloud_helper_free(all->helper);
	loop_timer_done(&all->look);
	map_done(&all->by_token);
	free(all->program);
	free(all);
	return NULL;
}
