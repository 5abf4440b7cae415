/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/model.h"

#include <errno.h>

#include "base/macros.h"
#include "base/time/clock.h"
#include "daemon/cni.h"
#include "image/image.h"
#include "instance/instance.h"
#include "network/networks.h"
#include "rpc/server/server.h"
#include "stream/server.h"

/* The services of the node's socket. */

static int daemon_copy_room(void *userdata, uint64_t need, struct error *err)
{
	const struct daemon *d = userdata;

	return image_room_check(d->images, need, err);
}

static void daemon_volume_exported(void *userdata, const char *id)
{
	struct daemon *d = userdata;

	volume_service_copied(&d->volume, id, false);
}

static void daemon_volume_imported(void *userdata, const char *id)
{
	struct daemon *d = userdata;

	volume_service_copied(&d->volume, id, true);
}

static void daemon_init_volume(struct daemon *d)
{
	d->volume = (struct volume_service){
		.pool = d->pool,
		.volumes = d->volumes,
		.workloads = d->workloads,
		.exports = { .pool = d->pool, .gone = daemon_volume_exported, .userdata = d },
		.imports = { .pool = d->pool,
			     .room = daemon_copy_room,
			     .gone = daemon_volume_imported,
			     .userdata = d },
	};
	d->secret = (struct secret_service){ d->pool, d->place.secrets_fd, d->place.sets_fd };
}

static int daemon_cri_network(void *userdata, const char **reason, struct error *err)
{
	const struct daemon *d = userdata;

	return cni_network_ready(&d->config, d->plugins, reason, err);
}

static int daemon_add_cri(struct daemon *d)
{
	int r;

	r = stream_server_new(&d->streams, d->loop, d->config.cri.streaming_address);
	if (r < 0)
		return r;
	d->cri_runtime = (struct cri_runtime_service){ .images = d->images,
						       .instances = d->instances,
						       .pool = d->pool,
						       .streams = d->streams,
						       .workloads = d->workloads,
						       .volumes = &d->runtime.volumes,
						       .devices = &d->runtime.devices,
						       .events = &d->events,
						       .work = &d->workload,
						       .cgroup_fd = d->place.cgroup_fd,
						       .network_ready = daemon_cri_network,
						       .network = d,
						       .pod_network = d->config.cri.plugin_network
									      ? "cni"
									      : NETWORK_DEFAULT,
						       .root = d->options.root,
						       .run = d->options.run,
						       .cgroup = d->place.cgroup,
						       .socket = d->options.socket };
	list_init(&d->cri_runtime.logs);
	cri_logs_begin(&d->cri_runtime);
	d->cri_image = (struct cri_image_service){ .images = d->images,
						   .instances = d->instances,
						   .events = &d->events,
						   .root = d->options.root };
	r = rpc_server_add(d->server, &cri_runtime_service, &d->cri_runtime);
	return r < 0 ? r : rpc_server_add(d->server, &cri_image_service, &d->cri_image);
}

static void daemon_init_node(struct daemon *d)
{
	d->node = (struct node_service){ .loop = d->loop,
					 .pool = d->pool,
					 .workloads = d->workloads,
					 .instances = d->instances,
					 .images = d->images,
					 .root_fd = d->place.root_fd,
					 .run_fd = d->place.run_fd,
					 .cgroup_fd = d->place.cgroup_fd,
					 .checks = LIST_INIT(d->node.checks),
					 .root = d->options.root,
					 .run = d->options.run,
					 .cgroup = d->place.cgroup,
					 .started_at = clock_real(),
					 .lacks = d->node.lacks,
					 .n_lacks = d->node.n_lacks };
}

int daemon_add_services(struct daemon *d)
{
	const struct volume_guard guard = { d->place.root_fd, d->place.run_fd, -1, d->identity_fd };
	const struct {
		const struct rpc_service *service;
		void *userdata;
	} services[] = {
		{ &runtime_service, &d->runtime },
		{ &workload_service, &d->workload },
		{ &event_service, &d->workload },
		{ &image_service, &d->image },
		{ &disk_service, &d->disk },
		{ &network_service, &d->network },
		{ &volume_service, &d->volume },
		{ &secret_service, &d->secret },
		{ &cloud_service, &d->cloud },
		{ &node_service, &d->node },
		{ &identity_service, &d->remote.service },
	};
	int r;

	d->init = place_helper(d->config.libexec, "nacre-init");
	d->runtime = (struct runtime_service){ .loop = d->loop,
					       .pool = d->pool,
					       .workloads = d->workloads,
					       .instances = d->instances,
					       .images = d->images,
					       .logs = d->logs,
					       .cgroup_fd = d->place.cgroup_fd,
					       .cgroup = d->place.cgroup,
					       .init = d->init,
					       .pod_kind = d->config.vm.pods,
					       .on_network = d->config.network.by_default,
					       .profile = d->config.security_profile };
	if (!d->init)
		return -ENOMEM;
	list_init(&d->runtime.executables);
	starts_init(&d->starts, &d->runtime, &d->workload.copies);
	r = volumes_calls_init(&d->runtime.volumes, d->loop, &guard);
	if (r == 0)
		r = cdi_calls_init(&d->runtime.devices, d->loop, d->images,
				   d->config.devices.cdi_dirs);
	volumes_calls_know(&d->runtime.volumes, d->volumes, d->images, d->workloads,
			   d->place.secrets_fd, d->place.sets_fd);
	d->workload = (struct workload_service){
		.loop = d->loop,
		.pool = d->pool,
		.workloads = d->workloads,
		.instances = d->instances,
		.foreigns = d->microvms.foreigns,
		.clouds = d->clouds,
		.events = &d->events,
		.logs = d->logs,
		.top_fd = d->place.top_fd,
		.cgroup_fd = d->place.cgroup_fd,
		.base = d->place.cgroup,
		.copies = { .pool = d->pool, .room = daemon_copy_room, .userdata = d },
		.starts = &d->starts
	};
	d->image = (struct image_service){ .images = d->images, .events = &d->events };
	d->disk = (struct disk_service){ .pool = d->pool, .root_fd = d->place.root_fd };
	d->cloud = (struct cloud_service){ .clouds = d->clouds };
	d->network = (struct network_service){ .loop = d->loop,
					       .networks = d->networks,
					       .workloads = d->workloads };
	daemon_init_volume(d);
	daemon_init_node(d);
	for (size_t i = 0; i < ARRAY_SIZE(services) && r == 0; i++)
		r = rpc_server_add(d->server, services[i].service, services[i].userdata);
	if (r == 0)
		r = aurae_open(&d->aurae, d->server, &d->workload, &d->runtime);
	return r < 0 ? r : daemon_add_cri(d);
}
