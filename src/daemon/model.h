/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_MODEL_H
#define NACRE_DAEMON_MODEL_H

/* The members of a daemon, for the units that implement it. */

#include "aurae/services.h"
#include "cri/services.h"
#include "daemon/config.h"
#include "daemon/microvms.h"
#include "daemon/place.h"
#include "daemon/remote.h"
#include "daemon/shutdown.h"
#include "daemon/usage.h"
#include "loop/loop.h"
#include "pod/workload/events.h"
#include "runtime/services.h"
#include "runtime/start/start_call.h"

struct clouds;
struct disk_watch;
struct log_readers;
struct metrics;
struct metadata_port;
struct metrics_port;
struct svid_port;
struct networks;
struct plugins;
struct pool;
struct root_store;
struct run_store;
struct volumes;
struct workloads;

struct daemon {
	struct daemon_options options;
	struct config config;
	struct place place;
	struct loop *loop;
	struct pool *pool;
	struct run_store *run_store;
	struct root_store *root_store;
	struct image_store *images;
	struct events events;
	struct microvms microvms;
	struct instances *instances;
	struct plugins *plugins; /* of CNI; NULL: none are run */
	struct networks *networks;
	struct volumes *volumes;
	struct log_readers *logs;
	struct workloads *workloads;
	struct ids_space ids; /* for their user namespaces */
	struct disk_watch *disk_watch;
	struct rpc_server *server;
	struct loop_signal signals;
	struct loop_timer ready_limit;
	struct loop_timer tell_ready;
	struct loop_defer check;
	struct shutdown shutdown;
	const char *lacks[2]; /* node.lacks */
	char *init;           /* path of the program for Container.init */
	struct runtime_service runtime;
	struct workload_service workload;
	struct starts starts;
	struct image_service image;
	struct disk_service disk;
	struct network_service network;
	struct volume_service volume;
	struct secret_service secret;
	struct node_service node;
	struct aurae aurae;
	struct cri_runtime_service cri_runtime;
	struct stream_server *streams;
	struct remote remote;
	struct clouds *clouds;
	struct cloud_service cloud;
	struct cri_image_service cri_image;
	struct metrics *metrics; /* NULL: nobody scrapes */
	struct metrics_port *metrics_port;
	struct svid_port *svids;
	struct metadata_port *metadata_port;
	int identity_fd; /* the directory of its socket; -1: there can be none */
	bool serving;
	bool draining;
	bool shut;      /* the host ends: nothing of the node is to be left */
	int result;     /* exit status */
	bool confined;  /* all processes that are started from here on are confined as well */
	bool renewed;   /* the keeper of the node was ended for one with more privilege */
	bool replacing; /* the last keeper of the node is being cleaned up behind */
	bool trying;    /* a keeper of the node was made, and has not been ready yet */
};

/* Serves the metrics where the configuration says so; its failure is logged. */
void daemon_begin_metrics(struct daemon *d);
/* Nobody is served any more. */
void daemon_end_metrics(struct daemon *d);

/* Makes the services, and adds them to its server. 0 or a negative errno. */
int daemon_add_services(struct daemon *d);

#endif
