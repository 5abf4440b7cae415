/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/descriptors.h"
#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/process/thread.h"
#include "base/process/title.h"
#include "base/text/str.h"
#include "clouds/clouds.h"
#include "daemon/cloud.h"
#include "daemon/cni.h"
#include "daemon/config.h"
#include "daemon/images.h"
#include "daemon/instance_record.h"
#include "daemon/microvms.h"
#include "daemon/metadata.h"
#include "daemon/model.h"
#include "daemon/notify.h"
#include "daemon/place.h"
#include "daemon/privilege.h"
#include "daemon/remote.h"
#include "daemon/svid.h"
#include "daemon/system.h"
#include "daemon/usage.h"
#include "gates/metrics_port.h"
#include "gates/svid_port.h"
#include "image/image.h"
#include "init/system_main.h"
#include "instance/instance.h"
#include "instance/place.h"
#include "io/unix.h"
#include "isolate/seccomp/confine.h"
#include "keeper/client/client.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "network/networks.h"
#include "network/plugins.h"
#include "pod/log/log_reader.h"
#include "pod/storage/disk_watch.h"
#include "pod/storage/volumes.h"
#include "pod/workload/events.h"
#include "pod/workload/follow.h"
#include "pod/workload/workload.h"
#include "provider/far.h"
#include "rpc/server/server.h"
#include "runtime/node/check_call.h"
#include "runtime/node/metrics.h"
#include "runtime/services.h"
#include "runtime/start/start_call.h"
#include "runtime/workload/health_call.h"
#include "store/root.h"
#include "store/store.h"
#include "stream/server.h"
#include "volumes/volumes.h"

/*
 * The wiring of a node, in the order of daemon_open(): place, stores, images, instances, workloads,
 * services. What was there in an earlier life is taken up before anything is served.
 */

#define DAEMON_THREADS 4
/* Keepers that were there before must have told what they have by then. */
#define DAEMON_READY_LIMIT (10 * NSEC_PER_SEC)
#define DAEMON_TELL_AGAIN (1 * NSEC_PER_SEC)
/* Beyond the time that a daemon gives to its calls. */
#define DAEMON_REPLACE_PATIENCE (30 * NSEC_PER_SEC)
#define DAEMON_EXIT_FAILED 1
/* Beside a host that ends nobody waits for calls that only look. */
#define DAEMON_SHUT_DRAIN (2 * NSEC_PER_SEC)

/* ---- what the instances need and tell ---- */

static int daemon_connect(void *userdata, int rpc_fd, int fd_fd, struct peer **ret)
{
	struct daemon *d = userdata;

	return keeper_client_new(ret, d->loop, rpc_fd, fd_fd);
}

static int daemon_save_instance(void *userdata, const struct instance *i, struct error *err)
{
	struct daemon *d = userdata;

	return instance_record_save(d->run_store, i, err);
}

static void daemon_forget_instance(void *userdata, const struct instance *i)
{
	struct daemon *d = userdata;

	instance_record_drop(d->run_store, i);
}

static void daemon_on_instance(void *userdata, struct instance *i)
{
	struct daemon *d = userdata;
	struct event e = {
		.object = "instance",
		.id = i->id,
		.name = i->path,
		.kind = "instance",
		.state = i->state == INSTANCE_GONE ? "removed" : instance_state_word(i->state),
		.reason = i->reason,
	};

	/* An instance that was spawned for a pod is shown as that pod. */
	if (!instance_is_node(i) && !i->owner[0])
		events_publish(&d->events, &e);
	if (instance_is_node(i) && i->state == INSTANCE_READY)
		d->trying = false;
	if (d->workloads)
		workloads_on_instance(d->workloads, i);
	loop_defer_schedule(&d->check);
}

static void daemon_on_container(void *userdata, struct instance *i,
				const struct container_view *view)
{
	struct daemon *d = userdata;

	workloads_on_container(d->workloads, i, view);
	disk_watch_wake(d->disk_watch);
}

static void daemon_on_synced(void *userdata, struct instance *i)
{
	struct daemon *d = userdata;

	workloads_on_synced(d->workloads, i);
	loop_defer_schedule(&d->check);
}

static void daemon_on_close(void *userdata, struct instance *i)
{
	struct daemon *d = userdata;

	if (d->workloads)
		workloads_on_close(d->workloads, i);
}

static void daemon_on_note(void *userdata, struct instance *i)
{
	struct daemon *d = userdata;
	struct event e = {
		.object = "instance",
		.id = i->id,
		.name = i->path,
		.kind = "instance",
		.state = instance_state_word(i->state),
		.reason = i->note,
	};

	if (i->note[0])
		events_publish(&d->events, &e);
	loop_defer_schedule(&d->check);
}

/* ---- opening ---- */

static int daemon_open_instances(struct daemon *d, struct error *err)
{
	struct instances_config config = {
		.loop = d->loop,
		.run_fd = d->place.run_fd,
		.cgroup_fd = d->place.cgroup_fd,
		.cgroup = d->place.cgroup,
		.top_fd = d->place.top_fd,
		.connect = daemon_connect,
		.save = daemon_save_instance,
		.forget = daemon_forget_instance,
		.on_state = daemon_on_instance,
		.on_container = daemon_on_container,
		.on_synced = daemon_on_synced,
		.on_close = daemon_on_close,
		.on_note = daemon_on_note,
		.userdata = d,
	};
	int r = microvms_open(&d->microvms, d->loop, d->pool, &d->place, &d->config, err);

	if (r < 0)
		return r;
	r = microvms_open_far(&d->microvms, d->loop, d->pool, d->clouds, &d->config, err);
	if (r < 0)
		return r;
	config.providers[INSTANCE_VM] = microvms_provider(&d->microvms);
	config.providers[INSTANCE_EC2] = fars_provider(d->microvms.fars, INSTANCE_EC2);
	config.providers[INSTANCE_GCE] = fars_provider(d->microvms.fars, INSTANCE_GCE);
	config.providers[INSTANCE_VSPHERE] = fars_provider(d->microvms.fars, INSTANCE_VSPHERE);
	r = instances_new(&d->instances, &config, err);
	if (r < 0)
		return r;
	/* The node's keeper is looked for by daemon_on_check(). */
	return instance_records_adopt(d->run_store, d->instances, err);
}

static int daemon_open_workloads(struct daemon *d, struct error *err)
{
	struct workloads_config config = {
		.loop = d->loop,
		.pool = d->pool,
		.instances = d->instances,
		.images = d->images,
		.volumes = d->volumes,
		.store = d->run_store,
		.kept = d->root_store,
		.events = &d->events,
		.networks = d->networks,
		.guard = { d->place.root_fd, d->place.run_fd, d->place.sets_fd, -1 },
		.logs_fd = d->place.logs_fd,
		.sets_fd = d->place.sets_fd,
		.log = d->config.container_log,
		.container_limit = d->config.storage.container_limit,
		.ids = { .first = d->config.users.first, .count = d->config.users.count },
		.restart = starts_restart,
		.restart_container = starts_restart_container,
		.health = &health_call_ops,
		.userdata = &d->starts,
		.open_log = cri_log_open,
		.open_log_userdata = &d->cri_runtime,
		.metadata = &metadata_ops,
		.metadata_userdata = d,
	};
	int r;

	r = ids_space_read(&config.ids);
	if (r < 0)
		return error_set(err, r, "read /etc/subuid");
	d->ids = config.ids;
	r = microvms_open_foreign(&d->microvms, d->loop, d->pool, &d->place, &d->config, err);
	if (r < 0)
		return r;
	config.foreigns = d->microvms.foreigns;
	config.clouds = d->clouds;
	r = metadata_begin_port(d, err);
	if (r < 0)
		return r;
	r = log_readers_new(&d->logs, d->loop, d->pool, d->place.logs_fd);
	if (r == 0)
		r = workloads_new(&d->workloads, &config);
	if (r < 0)
		return error_set(err, r, "workloads");
	r = disk_watch_new(&d->disk_watch,
			   &(struct disk_watch_config){ .loop = d->loop,
							.pool = d->pool,
							.workloads = d->workloads,
							.images = d->images,
							.logs_fd = d->place.logs_fd });
	if (r < 0)
		return error_set(err, r, "watch the disk");
	r = workloads_adopt(d->workloads, err);
	if (r == 0)
		workloads_collect_secrets(d->workloads);
	if (r == 0 && d->plugins && plugins_begin(d->plugins) < 0)
		r = error_set(err, -ENOMEM, "networks of plugins");
	return r;
}

static int daemon_open_root_store(struct daemon *d, struct error *err)
{
	struct networks_config config = { .loop = d->loop, .pool = d->pool };
	int r = root_store_open(&d->root_store, d->pool, d->place.root_fd, "root.db", err);

	if (r < 0)
		return r;
	/* Until all have read it (daemon_open()). */
	root_store_hold(d->root_store);
	/* It keeps the privilege that this process has now. */
	r = cni_open(&d->plugins, d->loop, &d->config, d->options.root, d->options.run, err);
	if (r < 0)
		return r;
	config.plugins = d->plugins;
	config.store = d->root_store;
	config.run_store = d->run_store;
	r = networks_new(&d->networks, &config, err);
	return r < 0 ? r
		     : images_open_volumes(&d->volumes, d->pool, &d->place, d->options.root,
					   d->root_store, err);
}

static int daemon_serve(struct daemon *d, struct error *err)
{
	struct rpc_server_config config = {
		.loop = d->loop,
		.descriptors = api_descriptors,
		.descriptors_len = api_descriptors_len,
		.authorize = remote_authorize,
		.done = remote_done,
		.userdata = &d->remote,
	};
	int fd, r;

	r = rpc_server_new(&d->server, &config);
	if (r == 0)
		r = daemon_add_services(d);
	if (r < 0)
		return error_set(err, r, "make the server");
	fd = unix_listen(AT_FDCWD, d->options.socket, SOCK_STREAM, err);
	if (fd < 0)
		return fd;
	r = rpc_server_listen(d->server, fd);
	if (r < 0)
		return error_set(err, r, "listen on %s", d->options.socket);
	return 0;
}

/* ---- from ready to the end ---- */

static void daemon_on_node_gone(void *userdata, struct instance *i, const struct error *err)
{
	struct daemon *d = userdata;

	(void)i;
	(void)err;
	place_remove_cgroup(&d->place);
	loop_quit(d->loop, d->result);
}

/* Every call has ended. Keepers with something to keep go on; an empty node leaves no process. */
static void daemon_drained(void *userdata)
{
	struct daemon *d = userdata;
	struct instance *node = instances_find(d->instances, "");
	const struct instance *i;
	size_t n = 0;

	instances_close_spare(d->instances);
	list_for_each (i, instances_list(d->instances), struct instance, link)
		n += i != node;
	if (n > 0 || !node || node->ended ||
	    (!list_empty(workloads_list(d->workloads)) && !d->shut)) {
		loop_quit(d->loop, d->result);
		return;
	}
	instance_stop(node, daemon_on_node_gone, d);
}

static void daemon_drain(void *userdata)
{
	struct daemon *d = userdata;

	d->draining = true;
	remote_end(&d->remote);
	d->metrics_port = metrics_port_free(d->metrics_port);
	d->svids = svid_port_free(d->svids);
	rpc_server_drain(d->server,
			 d->shut ? MIN(d->config.drain, DAEMON_SHUT_DRAIN) : d->config.drain,
			 daemon_drained, d);
}

static void daemon_shut(struct daemon *d)
{
	if (d->shut) {
		shutdown_hurry(&d->shutdown);
		return;
	}
	d->shut = true;
	shutdown_begin(&d->shutdown, d->loop, d->workloads, d->config.sys.stop_within, daemon_drain,
		       d);
}

static void daemon_on_signal(struct loop_signal *source, int sig, pid_t sender)
{
	struct daemon *d = container_of(source, struct daemon, signals);
	bool quits = !d->serving || d->draining;

	if (sig == SIGHUP) {
		remote_reload(&d->remote);
		return;
	}
	log_info(sig == SIGPWR ? "the host ends, and all that runs"
			       : "told to end; what runs goes on",
		 LOG_INT("signal", sig), LOG_INT("sender", sender));
	(void)notify_send("STOPPING=1");
	if (quits)
		loop_quit(d->loop, 0);
	else if (sig == SIGPWR)
		daemon_shut(d);
	else
		daemon_drain(d);
}

/* Now, since the keeper of the node is there and must not inherit it, and nobody is served yet. */
static void daemon_confine(struct daemon *d)
{
	struct error err = ERROR_INIT;

	if (confine_daemon(&err) < 0)
		log_warn("the daemon keeps more privilege than it needs", LOG_ERR(&err));
	pool_renew(d->pool);
	d->confined = true;
}

/* The service manager would end a daemon that never says it. */
static void daemon_on_tell_ready(struct loop_timer *t)
{
	struct daemon *d = container_of(t, struct daemon, tell_ready);

	if (!d->draining && notify_send("READY=1") < 0)
		loop_timer_set(&d->tell_ready, DAEMON_TELL_AGAIN);
}

static void daemon_become_ready(struct daemon *d)
{
	struct error err = ERROR_INIT;

	loop_timer_stop(&d->ready_limit);
	daemon_confine(d);
	workloads_resume(d->workloads);
	cloud_begin(d->clouds);
	fars_begin(d->microvms.fars);
	instances_sweep(d->instances);
	image_rootfs_sweep(d->images);
	FAILPOINT_BEFORE("boot.serve");
	if (daemon_serve(d, &err) < 0) {
		log_error("cannot serve", LOG_ERR(&err));
		d->result = DAEMON_EXIT_FAILED;
		d->draining = true;
		daemon_drained(d);
		return;
	}
	if (d->config.spare && instances_open_spare(d->instances) < 0)
		log_warn("no keeper is made ahead of need: out of memory");
	d->serving = true;
	image_ballast_restore(d->images);
	disk_watch_wake(d->disk_watch);
	microvms_begin(&d->microvms, d->instances);
	remote_begin(&d->remote, d->server);
	daemon_begin_metrics(d);
	svid_begin(d);
	FAILPOINT_AFTER("boot.serve");
	log_info("ready", LOG_STR("version", NACRE_VERSION), LOG_STR("socket", d->options.socket),
		 LOG_STR("root", d->options.root), LOG_STR("run", d->options.run),
		 LOG_STR("cgroup", d->place.cgroup));
	daemon_on_tell_ready(&d->tell_ready);
}

/* A filter and a bounding set are handed down, so a keeper that a confined daemon has made has no
 * more, and neither have its executables. */
static void daemon_tell_less(struct daemon *d)
{
	if (d->node.n_lacks == 0 || d->lacks[d->node.n_lacks - 1] != privilege_lacks[0])
		d->lacks[d->node.n_lacks++] = privilege_lacks[0];
	log_warn("executables have no more privilege than this daemon, until it starts again while "
		 "none runs");
}

static void daemon_make_node(struct daemon *d)
{
	struct error err = ERROR_INIT;

	d->trying = true;
	if (d->confined)
		daemon_tell_less(d);
	if (instances_open_node(d->instances, &err) == 0)
		return;
	log_error("cannot make a keeper for the node", LOG_ERR(&err));
	loop_quit(d->loop, DAEMON_EXIT_FAILED);
}

static void daemon_on_node_clean(void *userdata, struct instance *i, const struct error *err)
{
	struct daemon *d = userdata;

	d->replacing = false;
	/* Without memory to wait for it: again when the loop turns. */
	if (err)
		loop_defer_schedule(&d->check);
	else if (!d->draining)
		daemon_make_node(d);
}

/* A node without a keeper gets one, once nothing is left of the last one; one whose keepers end
 * before they are ready does not. */
static void daemon_replace_node(struct daemon *d, struct instance *last)
{
	if (!last) {
		daemon_make_node(d);
		return;
	}
	if (d->replacing)
		return;
	log_warn("the keeper of the node has ended", LOG_STR("reason", last->reason));
	if (d->trying) {
		log_error("no keeper of the node comes to be ready");
		loop_quit(d->loop, DAEMON_EXIT_FAILED);
		return;
	}
	d->replacing = true;
	instance_stop(last, daemon_on_node_clean, d);
}

/*
 * Whether the keeper of the node, which an earlier daemon has made, is to be made again by this
 * one, which is not confined yet: it has less than it should and nothing to keep. Once; what it has
 * to keep is worth more.
 */
static bool daemon_renew_node(struct daemon *d, struct instance *node)
{
	const struct workload *w;

	if (d->confined || d->renewed || !privilege_is_less(node->pid))
		return false;
	list_for_each (w, workloads_list(d->workloads), struct workload, link)
		if (w->instance == node && !workload_has_ended(w)) {
			daemon_tell_less(d);
			return false;
		}
	log_info("the keeper of the node has less privilege than it should: it is made again");
	d->renewed = true;
	d->replacing = true;
	instance_stop(node, daemon_on_node_clean, d);
	return true;
}

/* Looks whether the node still has a keeper, and whether it can serve. */
static void daemon_on_check(struct loop_defer *defer)
{
	struct daemon *d = container_of(defer, struct daemon, check);
	struct instance *node = instances_find(d->instances, "");

	if (d->draining)
		return;
	if (!node || node->ended)
		daemon_replace_node(d, node);
	else if (!d->serving && node->state == INSTANCE_READY && instances_synced(d->instances) &&
		 !daemon_renew_node(d, node))
		daemon_become_ready(d);
}

static void daemon_on_ready_limit(struct loop_timer *t)
{
	struct daemon *d = container_of(t, struct daemon, ready_limit);

	log_error("some keepers have not told what they have in time; serving all the same");
	if (!d->serving)
		daemon_become_ready(d);
}

static int daemon_open_loop(struct daemon *d, struct error *err)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGPWR };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	int r;

	r = loop_new(&d->loop);
	if (r < 0)
		return error_set(err, r, "make the event loop");
	r = pool_new(&d->pool, d->loop, DAEMON_THREADS);
	if (r < 0)
		return error_set(err, r, "make the thread pool");
	r = loop_signal_init(&d->signals, d->loop, signals, ARRAY_SIZE(signals), daemon_on_signal);
	if (r < 0)
		return error_set(err, r, "take signals");
	if (sigaction(SIGPIPE, &ignore, NULL) < 0)
		return error_set(err, -errno, "ignore SIGPIPE");
	loop_timer_init(&d->ready_limit, d->loop, daemon_on_ready_limit);
	loop_timer_init(&d->tell_ready, d->loop, daemon_on_tell_ready);
	loop_timer_set(&d->ready_limit, DAEMON_READY_LIMIT);
	loop_defer_init(&d->check, d->loop, daemon_on_check);
	return 0;
}

/* A socket that a daemon with another run directory serves at is not ours to replace. */
static int daemon_check_socket(const struct daemon *d, struct error *err)
{
	if (!unix_is_served(AT_FDCWD, d->options.socket, SOCK_STREAM))
		return 0;
	return error_refuse(err, ERROR_PRECONDITION, "another daemon serves at %s",
			    d->options.socket);
}

static int daemon_open(struct daemon *d, struct error *err)
{
	int r;

	/* The one that is to be replaced serves there until it has ended. */
	r = d->options.replace ? 0 : daemon_check_socket(d, err);
	if (r < 0)
		return r;
	r = place_open(&d->place, d->options.root, d->options.run, d->config.cgroup,
		       d->options.replace ? d->config.drain + DAEMON_REPLACE_PATIENCE : 0, err);
	if (r < 0)
		return r;
	r = d->options.replace ? daemon_check_socket(d, err) : 0;
	if (r < 0)
		return r;
	r = svid_open_dir(d, err);
	if (r == 0)
		r = daemon_open_loop(d, err);
	if (r < 0)
		return r;
	r = events_init(&d->events);
	if (r < 0)
		return error_set(err, r, "draw the id of this life");
	r = run_store_open(&d->run_store, d->place.run_fd, "run.db", err);
	if (r < 0)
		return r;
	r = daemon_open_root_store(d, err);
	if (r == 0)
		r = images_open(&d->images, d->loop, d->pool, &d->place, &d->config, d->root_store,
				err);
	if (r < 0)
		return r;
	r = cloud_open(&d->clouds, d->loop, &d->config, &d->place, d->root_store, &d->events, err);
	if (r == 0)
		r = daemon_open_instances(d, err);
	if (r == 0)
		r = remote_open(&d->remote, d->loop, d->root_store, d->microvms.issuer, err);
	if (r == 0)
		r = aurae_vms_load(&d->aurae.vms, d->root_store, err);
	if (r < 0)
		return r;
	r = daemon_open_workloads(d, err);
	if (r < 0)
		return r;
	root_store_release(d->root_store);
	loop_defer_schedule(&d->check);
	return 0;
}

/* From the top down: nothing is told to what is gone already. */
static void daemon_close(struct daemon *d)
{
	d->runtime.closing = true;
	volumes_stop(d->volumes);
	daemon_end_metrics(d);
	d->svids = svid_port_free(d->svids);
	metadata_end_port(d);
	d->server = rpc_server_free(d->server);
	aurae_close(&d->aurae);
	d->streams = stream_server_free(d->streams);
	if (d->serving)
		(void)unlink(d->options.socket);
	if (d->loop) {
		loop_signal_done(&d->signals);
		loop_timer_done(&d->ready_limit);
		loop_timer_done(&d->tell_ready);
	}
	volumes_calls_done(&d->runtime.volumes);
	cdi_calls_done(&d->runtime.devices);
	cri_logs_end(&d->cri_runtime);
	starts_done(&d->starts);
	disk_watch_stop(d->disk_watch);
	networks_stop(d->networks);
	shutdown_end(&d->shutdown);
	if (d->clouds)
		clouds_watch_workloads(d->clouds, NULL, NULL);
	d->workloads = workloads_free(d->workloads);
	ids_space_done(&d->ids);
	d->instances = instances_free(d->instances);
	d->metrics = metrics_free(d->metrics);
	/* For calls whose work on a thread comes back now. */
	d->volume.exports.gone = d->volume.imports.gone = NULL;
	d->workload.workloads = NULL;
	d->workload.instances = NULL;
	loop_defer_done(&d->check);
	/* No thread may still work for what is freed next. */
	d->pool = pool_free(d->pool);
	d->disk_watch = disk_watch_free(d->disk_watch);
	copies_done(&d->workload.copies);
	copies_done(&d->volume.exports);
	copies_done(&d->volume.imports);
	aurae_signals_done(&d->aurae.observe.signals);
	aurae_vms_done(&d->aurae.vms);
	d->clouds = clouds_free(d->clouds);
	remote_close(&d->remote);
	microvms_close(&d->microvms);
	check_calls_free(&d->node);
	d->logs = log_readers_free(d->logs);
	d->plugins = plugins_free(d->plugins);
	d->networks = networks_free(d->networks);
	d->volumes = volumes_free(d->volumes);
	d->images = image_store_free(d->images);
	d->root_store = root_store_close(d->root_store);
	d->run_store = run_store_close(d->run_store);
	d->loop = loop_free(d->loop);
	d->identity_fd = fd_close(d->identity_fd);
	place_done(&d->place);
	events_done(&d->events);
	free(d->init);
}

/* ---- the command ---- */

int daemon_main(int argc, char **argv)
{
	static struct daemon d = {
		.identity_fd = -1,
		.options = { .config = "/etc/nacre/config.yaml",
			     .root = "/var/lib/nacre",
			     .run = "/run/nacre" },
		.place = { .root_fd = -1,
			   .run_fd = -1,
			   .lock_fd = -1,
			   .logs_fd = -1,
			   .top_fd = -1,
			   .cgroup_fd = -1 },
	};
	struct error err = ERROR_INIT;
	char socket[PATH_MAX];
	int r;

	r = daemon_options_parse(&d.options, argc, argv);
	if (r >= 0)
		return r;
	if (system_is_asked())
		return system_run(&d.options, argc, argv);
	list_init(&d.node.checks);
	d.node.lacks = d.lacks;
	d.lacks[0] = getenv(SYSTEM_FAULT_WORD);
	d.node.n_lacks = d.lacks[0] ? 1 : 0;
	if (!d.options.socket) {
		(void)str_printf(socket, sizeof(socket), "%s/nacre.sock", d.options.run);
		d.options.socket = socket;
	}
	config_init(&d.config);
	r = config_load(&d.config, d.options.config, !d.options.config_given, &err);
	if (r == 0)
		r = remote_read(&d.remote, &d.config, &err);
	if (r == 0) {
		log_configure(STDERR_FILENO, d.config.log_level, d.config.log_form);
		confine_memory();
		(void)thread_be_prompt();
		privilege_raise_limits();
		(void)umask(022);
		r = daemon_open(&d, &err);
	}
	if (r < 0) {
		(void)fprintf(stderr, "nacre daemon: %s\n", error_text(&err));
		daemon_close(&d);
		return DAEMON_EXIT_FAILED;
	}
	r = loop_run(d.loop);
	daemon_close(&d);
	return r;
}
