/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_SERVICES_H
#define NACRE_CRI_SERVICES_H

#include <stdbool.h>

#include "base/memory/list.h"
#include "rpc/server/server.h"

/*
 * Kubernetes' CRI: two services over the same domain as those of runtime/services.h. Each is a
 * table of methods, and takes just what it needs as userdata.
 */

struct error;
struct events;
struct image_store;
struct instances;
struct pod_container;
struct volumes_calls;
struct workload_service;
struct pool;
struct stream_server;
struct workloads;

/* runtime.v1.ImageService; userdata: struct cri_image_service. */
extern const struct rpc_service cri_image_service;
struct cri_image_service {
	struct image_store *images;
	struct instances *instances;
	struct events *events;
	const char *root; /* absolute: the directory that images and containers are in */
};

/*
 * Whether pods can have a network. 0, or an error whose text says why not and what to do; `reason`
 * is one word for it then, for programs.
 */
typedef int (*cri_network_ready_fn)(void *userdata, const char **reason, struct error *err);

/* runtime.v1.RuntimeService; userdata: struct cri_runtime_service. */
extern const struct rpc_service cri_runtime_service;
struct cri_runtime_service {
	struct image_store *images; /* tells whether user namespaces are supported */
	struct instances *instances;
	struct workloads *workloads;
	struct volumes_calls *volumes;
	struct cdi_calls *devices;
	struct events *events;
	struct workload_service *work; /* for names of groups */
	struct pool *pool;
	struct stream_server *streams;
	int cgroup_fd; /* the node's base group */
	cri_network_ready_fn network_ready;
	void *network;           /* userdata of network_ready */
	const char *pod_network; /* that its pods are on */
	const char *root, *run, *cgroup, *socket;
	struct list logs; /* of containers, that are being opened (cri_log_open()) */
};

/*
 * workloads_config.open_log(), with the service as its userdata: for containers whose log an
 * earlier daemon has begun. Requests from before the service is there are served by
 * cri_logs_begin(). Behind volumes_calls_done() cri_logs_end() frees those that are left.
 */
int cri_log_open(void *userdata, struct pod_container *c, struct error *err);
void cri_logs_begin(struct cri_runtime_service *s);
void cri_logs_end(struct cri_runtime_service *s);

#endif
