/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_SERVICES_H
#define NACRE_RUNTIME_SERVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/list.h"
#include "instance/model.h"
#include "keeper/message/copy.h"
#include "rpc/server/server.h"
#include "runtime/storage/cdi_call.h"
#include "runtime/storage/volumes_call.h"

/*
 * The services of a node's socket. Each is a table of methods, and takes just what it needs as
 * userdata.
 */

struct clouds;
struct events;
struct foreigns;
struct identities;
struct image_store;
struct instances;
struct issuer;
struct log_readers;
struct networks;
struct loop;
struct pool;
struct volumes;
struct starts;
struct workloads;

/* aurae.runtime.v0.RuntimeService; userdata: struct runtime_service. */
extern const struct rpc_service runtime_service;
struct runtime_service {
	struct loop *loop;
	struct pool *pool;
	struct workloads *workloads;
	struct instances *instances;
	struct image_store *images;
	struct log_readers *logs;
	int cgroup_fd;      /* the node's base group */
	const char *cgroup; /* its path below the root of the hierarchy, with a '/' in front */
	const char *init;   /* path of the program for Container.init */
	enum instance_kind pod_kind; /* of a pod without a wish; INSTANCE_KIND_COUNT: auto */
	bool on_network;             /* a pod that names no network is on the default one */
	const char *profile;         /* of a container that names none */
	struct list executables;     /* calls that wait for one (runtime/start/executable.c) */
	struct volumes_calls volumes;
	struct cdi_calls devices;
	unsigned n_machine_calls; /* under way (runtime/start/machine_call.c) */
	bool closing;             /* the daemon ends: what its clients run goes on */
};

/* nacre.v1.WorkloadService; userdata: struct workload_service. */
extern const struct rpc_service workload_service;
struct workload_service {
	struct loop *loop;
	struct pool *pool;
	struct workloads *workloads;
	struct instances *instances;
	struct foreigns *foreigns;
	struct clouds *clouds;
	struct events *events;
	struct log_readers *logs;
	int top_fd;       /* root of the cgroup hierarchy, which groups.h counts from */
	int cgroup_fd;    /* the node's base group */
	const char *base; /* its path below that root, with a '/' in front */
	struct copies copies;
	unsigned n_diffs; /* calls of Diff that are under way */
	struct starts *starts;
};

/* nacre.v1.DiskService; userdata: struct disk_service. */
extern const struct rpc_service disk_service;
struct disk_service {
	struct pool *pool;
	int root_fd;
};

/* nacre.v1.NetworkService; userdata: struct network_service. */
extern const struct rpc_service network_service;
struct network_service {
	struct loop *loop;
	struct networks *networks;
	struct workloads *workloads;
};

/* nacre.v1.VolumeService; userdata: struct volume_service. */
extern const struct rpc_service volume_service;
struct volume_service {
	struct pool *pool; /* counts what they take */
	struct volumes *volumes;
	struct workloads *workloads;
	struct copies exports, imports; /* their `gone`: volume_service_copied() */
};
/* A copy of its files has ended, out of it or into it; id: of the volume. */
void volume_service_copied(struct volume_service *s, const char *id, bool into);

/* nacre.v1.SecretService; userdata: struct secret_service. */
extern const struct rpc_service secret_service;
struct secret_service {
	struct pool *pool;
	int dir_fd, sets_fd; /* volumes/secrets.h */
};

/* nacre.v1.EventService; userdata: struct workload_service. */
extern const struct rpc_service event_service;

/* nacre.v1.ImageService; userdata: struct image_service. */
extern const struct rpc_service image_service;
struct image_service {
	struct image_store *images;
	struct events *events;
};

/* nacre.v1.IdentityService; userdata: struct identity_service. */
extern const struct rpc_service identity_service;
struct identity_service {
	struct identities *identities;
	struct issuer *issuer;
	const char *const *listen; /* n_listen addresses */
	size_t n_listen;
};

/* nacre.v1.CloudService; userdata: struct cloud_service. */
extern const struct rpc_service cloud_service;
struct cloud_service {
	struct clouds *clouds;
};

/* nacre.v1.NodeService; userdata: struct node_service. */
extern const struct rpc_service node_service;
struct node_service {
	struct loop *loop;
	struct pool *pool;
	struct workloads *workloads;
	struct instances *instances;
	struct image_store *images;
	int root_fd, run_fd, cgroup_fd;
	struct list checks; /* that run (runtime/node/check_call.h) */
	const char *root, *run, *cgroup;
	uint64_t started_at;
	const char *const *lacks; /* n_lacks sentences */
	size_t n_lacks;
};

#endif
