/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUDS_CLOUDS_H
#define NACRE_CLOUDS_CLOUDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "base/text/id.h"
#include "base/text/parse.h"
#include "clouds/plan.h"

/*
 * Machines in a cloud that this node has made from images of the cloud's (doc/decisions/cloud.md).
 * There is no nacre in them. Their records lie in root.db, so they outlive a reboot of the node.
 *
 * None is ever left behind: the record is on the disk before the cloud is first asked to make one,
 * with the token of that call and all its words, so that it can be made again bit for bit until the
 * cloud says what became of it; and it leaves the disk only when the cloud has said that nothing is
 * left. A machine has tags that say whose it is, set by the call that makes it.
 *
 * One question shows the states of all machines, and is asked as often as there is something to
 * wait for: every other second while one comes or goes, else each settings.poll.
 */

struct cloud_vm;
struct clouds;
struct loop;
struct root_store;

#define CLOUD_CALLS_MAX 16 /* of users that wait for the cloud, but for new machines */
#define CLOUD_VMS_MAX 4096
#define CLOUD_FOUND_MAX 16384

/*
 * The states of a machine, for this node:
 *
 *   CREATING  the intent is recorded. The cloud is asked to make it until it answers.
 *   PENDING   the cloud has made it, and it has an id there.
 *   RUNNING   the cloud says that it runs.
 *   STOPPED   somebody else has stopped it in the cloud, where it still is, with its disks. It may
 *             be started there again. Nobody but an order of this node's user takes it away.
 *   ENDING    it is to go: the cloud is told until it says that it has gone.
 *   EXITED    it is gone in the cloud. Only the record is left.
 *   FAILED    the cloud has refused to make it, and nothing was made. Only the record is left.
 */
enum cloud_state {
	CLOUD_CREATING,
	CLOUD_PENDING,
	CLOUD_RUNNING,
	CLOUD_STOPPED,
	CLOUD_ENDING,
	CLOUD_EXITED,
	CLOUD_FAILED,
	CLOUD_STATE_COUNT
};

struct clouds_config {
	struct loop *loop;
	struct root_store *store;
	int root_fd; /* the node's name in the cloud lies in there, in the file cloud-node */
	const char *program;                   /* path of nacre-cloud; copied */
	const struct cloud_settings *settings; /* must live as long */
	/* A machine has another state (NULL: its record is gone); not from within a call of here.
	 */
	void (*on_state)(void *userdata, const struct cloud_vm *vm, const char *state);
	void *userdata;
};

/* Reads the records: while the store is idle. Asks nobody. */
int clouds_new(struct clouds **ret, const struct clouds_config *config, struct error *err);
/* Starts the helper where a cloud is configured, and goes on with what was begun. */
int clouds_begin(struct clouds *all, struct error *err);
/* Behind pool_free(), in front of root_store_close(). Waiters are told ERROR_UNAVAILABLE. Takes
 * NULL, returns NULL. */
struct clouds *clouds_free(struct clouds *all);

/* A machine as it is shown; lives until the loop turns. */
struct cloud_view {
	const char *provider; /* "ec2", "gce", "vsphere" */
	const char *id, *name, *image, *type, *region, *instance, *address, *zone, *reason;
	const char *owner;    /* the instance of this node that it is; "": none */
	const char *workload; /* the workload of this node that it is (pod/workload/hosted.h); "":
				 none */
	enum cloud_state state;
	uint64_t created_at, ended_at;
	uint64_t lease; /* its end, in seconds since 1970; 0: not known */
};

const char *cloud_state_word(enum cloud_state s);
const struct list *clouds_list(const struct clouds *all);
/* The next one behind `at`, from NULL on, in order of creation; or NULL. */
struct cloud_vm *clouds_next(const struct clouds *all, const struct cloud_vm *at);
/* By name or id; or NULL. */
struct cloud_vm *clouds_find(const struct clouds *all, const char *target);
void cloud_vm_view(const struct cloud_vm *vm, struct cloud_view *ret);

/* err NULL for success. vm NULL: it is gone, or was never made. */
typedef void (*cloud_done_fn)(void *userdata, const struct cloud_vm *vm, const struct error *err);

/* That one of an instance has another state or address, or its record goes (gone); not from within
 * a call of here. */
typedef void (*cloud_watch_fn)(void *userdata, const struct cloud_vm *vm, bool gone);
void clouds_watch(struct clouds *all, cloud_watch_fn fn, void *userdata);
struct cloud_vm *clouds_find_owned(const struct clouds *all, const char *owner);
/* The same for machines that are workloads. */
void clouds_watch_workloads(struct clouds *all, cloud_watch_fn fn, void *userdata);
struct cloud_vm *clouds_find_workload(const struct clouds *all, const char *workload);
/* Why no machine can be made; 0: a cloud is configured. */
int clouds_check(const struct clouds *all, struct error *err);

struct cloud_wish {
	const char *name;  /* "": one is found */
	const char *image; /* as the cloud calls it */
	const char *type;  /* "": the cheapest one with so much: */
	unsigned cpus;
	uint64_t memory;
	bool dry_run; /* the cloud is asked whether it would */
	/* Of one that is an instance of this node (provider/far.h): the instance's id, and what it
	 * is told (base64). NULL: it is none. */
	const char *owner, *user_data;
	const char *workload; /* the id of the workload that it is; NULL: it is none */
};

/*
 * Makes one; done when the cloud has given it an id and that is recorded, or has refused, after
 * which nothing of it is left, not even a record. An error comes at once, or by done.
 *
 * ERROR_INVALID names `name`, `image` or `type`; ERROR_EXISTS; ERROR_EXHAUSTED: there are
 * CLOUD_VMS_MAX, or the cloud has no room; ERROR_PRECONDITION: no cloud is configured, or it
 * refuses; ERROR_ABORTED: it was removed meanwhile.
 */
int clouds_run(struct clouds *all, const struct cloud_wish *wish, cloud_done_fn done,
	       void *userdata, struct error *err);
/* The done of a clouds_run() with this userdata is not called any more. */
void clouds_forget_run(struct clouds *all, const void *userdata);
/* Ends it in the cloud; done when it has gone there. ERROR_PRECONDITION where no cloud is
 * configured, or another one than it is in, or where the cloud refuses: it is tried again all the
 * same. */
int cloud_vm_stop(struct cloud_vm *vm, cloud_done_fn done, void *userdata, struct error *err);
/* Takes the record away too. Not forced: ERROR_PRECONDITION where it has not ended. */
int cloud_vm_remove(struct cloud_vm *vm, bool force, cloud_done_fn done, void *userdata,
		    struct error *err);

/* The output of a machine's console, as base64 and with the time at which the cloud has read it. */
typedef void (*cloud_console_fn)(void *userdata, const char *base64, const char *time,
				 const struct error *err);
/* ERROR_PRECONDITION where the cloud has not made it yet. */
int cloud_vm_console(struct cloud_vm *vm, cloud_console_fn done, void *userdata, struct error *err);

/* A machine in the cloud with the tags of a node, and no record here. */
struct cloud_found {
	char instance[64], name[64], state[32], type[64], address[64], zone[64];
	const char *provider;
	char node[ID_SIZE]; /* the node that owns it, by its tags */
	uint64_t lease;     /* when that ends, in seconds since 1970; 0: it has none */
	char reason[256];   /* why it could not be ended; "": it was, or is to be */
};
struct cloud_collect_wish {
	const char *node; /* "": this one, or with `expired` all of the cluster */
	bool expired;     /* only where the lease has ended, by the clock of the cloud */
	bool dry_run;     /* they are just told */
};
typedef void (*cloud_collect_fn)(void *userdata, const struct cloud_found *found, size_t n,
				 const struct error *err);
/* Ends those of which there is no record here. ERROR_UNAVAILABLE also where the cloud tells no
 * time. */
int clouds_collect(struct clouds *all, const struct cloud_collect_wish *wish, cloud_collect_fn done,
		   void *userdata, struct error *err);
/* The name of this node in the tags. */
const char *clouds_node(const struct clouds *all);
/* The cloud that is configured, "ec2", "gce" or "vsphere". */
const char *clouds_provider(const struct clouds *all);

#endif
