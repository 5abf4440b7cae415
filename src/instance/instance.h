/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_INSTANCE_H
#define NACRE_INSTANCE_INSTANCE_H

#include "instance/model.h"
#include "instance/provider.h"
#include "isolate/spawn/ids.h"

/*
 * The life of instances: everything that changes one goes through here.
 */

/* From now on a keeper is made ahead of need (instance/spare.h). 0 or -ENOMEM. */
int instances_open_spare(struct instances *all);
/* A start is over and was answered: a good time for that. */
void instances_rest(struct instances *all);
/* No more: the one that waits is ended. */
void instances_close_spare(struct instances *all);
int instances_new(struct instances **ret, const struct instances_config *config, struct error *err);
/* Closes connections; keepers go on. Waiters are told with an error. */
struct instances *instances_free(struct instances *all);

const struct list *instances_list(const struct instances *all);
/* By path; "" is the node's own keeper. NULL where there is none. */
struct instance *instances_find(struct instances *all, const char *path);
struct instance *instances_find_id(struct instances *all, const char *id);

/* The keeper of the node, where none lives: makes one. The last one must be cleaned up
 * (instance_stop() tells); its record is dropped. */
int instances_open_node(struct instances *all, struct error *err);

/* The specification of an instance, all of it copied; NULL where there is none. */
struct instance_spec {
	const char *name;     /* below its parent */
	const char *owner;    /* the workload that it is made for */
	const char *request;  /* base/text/request.h */
	const char *settings; /* the rest of its request, kept with its record */
	bool host_network;
	bool volumes; /* instance_put_volume() will be called */
	/* Of one of kind cell below the node: the group that its own is made in, a path from the v2
	 * root that begins with '/' and is not in the base group. Made where it is missing, and
	 * then taken away with the last one in it. NULL: the node's base group. */
	const char *cgroup_parent;
	char *const *sysctls; /* instance_check_sysctls(); of one below the node */
	/* Of one of kind cell: it has these namespaces of its parent. */
	bool host_pids, host_ipc, host_uts;
	/* Likewise: ISOLATE_NS_COUNT descriptors of namespaces that it has, -1: one as above; NULL:
	 * none. */
	const int *joins;
	struct isolate_ids ids; /* likewise: struct instance_spawn */
	struct instance_size size;
	/* For one that is remote; of any other the group is there, and the caller sets them. */
	char *const *limits;
	struct instance_choice choice;  /* instances_choose(), for this parent */
	const struct instance_nic *nic; /* a second network device; NULL: none */
	/* Of one of kind vm, without such a device: its pod's; NULL: none. */
	const struct instance_link *link;
};

/*
 * A new instance. done is called once, later: when it is READY (err NULL), when it has failed (it
 * is FAILED then, recorded, and cleaned up), or when it was stopped before (GONE, ERROR_ABORTED).
 * parent NULL: below the node. The path must be free (ERROR_EXISTS) and not too deep
 * (ERROR_INVALID); ERROR_EXHAUSTED past INSTANCES_MAX.
 */
int instance_create(struct instances *all, struct instance *parent,
		    const struct instance_spec *spec, instance_done_fn done, void *userdata,
		    struct instance **ret, struct error *err);
/* A disk for it, or for what is around it: provider.h, put_disk(). Only where instance_is_remote().
 */
int instance_put_disk(struct instance *i, const char *name, int fd,
		      char ret_serial[INSTANCE_SERIAL_SIZE], peer_done_fn done, void *userdata,
		      struct error *err);
/* Its claim_disk() and drop_disk(), likewise. */
int instance_claim_disk(struct instance *i, const char *name, struct error *err);
void instance_drop_disk(struct instance *i, const char *name);
/* A volume for it: provider.h, put_volume(). Only where instance_is_remote(). */
int instance_put_volume(struct instance *i, const char *name, int mount_fd, bool read_only,
			peer_done_fn done, void *userdata, struct error *err);
/* Its drop_volume(), likewise. */
void instance_drop_volume(struct instance *i, const char *name);
/* Another path, which is free, for one that nothing is in; its keeper and its cgroup go on under
 * its handle. Nothing is recorded. Behind instance_reserve_rename() (0 or -ENOMEM) it is done, and
 * can be undone once. */
int instance_reserve_rename(struct instance *i);
void instance_rename(struct instance *i, const char *path);
/* Writes its record. */
int instance_save(struct instance *i, struct error *err);
/* In the place of those that it was made with. */
int instance_set_settings(struct instance *i, const char *settings, struct error *err);
/* done as that of instance_create(), for one that is there: at once with err without memory. */
void instance_wait_ready(struct instance *i, instance_done_fn done, void *userdata);

/* Ends it with all that is in it, the instances below too; done (err NULL) when it is GONE or
 * FAILED and cleaned up, later also where it is that already. Without memory for that it ends all
 * the same, but done is called at once, with err. */
void instance_stop(struct instance *i, instance_done_fn done, void *userdata);
/* SIGKILL to everything in a cell, past its keeper: for one that is mute. 0 or a negative errno. */
int instance_kill_cell(struct instance *i, const char *cell);
/* Drops the record of a FAILED instance: it is GONE, as soon as it is cleaned up. */
void instance_remove(struct instance *i);
/* It is FAILED, and that was called. */
bool instance_is_leaving(const struct instance *i);
/* The connection to its keeper is lost. Soon it is there again, or the instance has ended, by
 * itself or by force, and then its reason says how. */
bool instance_is_lost(const struct instance *i);
/* Takes the waiters of this userdata back, of whatever instance. */
void instances_forget_waiter(struct instances *all, const void *userdata);

/* From a record of an earlier life of the daemon, parents first: connects again. A keeper that is
 * no longer there makes it FAILED. An instance that was SPAWNING or STOPPING then is ended: it
 * becomes GONE where it was SPAWNING and no workload owns it, so that its name is free for the same
 * call, else FAILED. The remains of one that was FAILED are cleaned up. An error is the machine's,
 * and nothing was ended. */
struct instance_record {
	const char *id, *path, *owner, *reason, *cgroup, *request, *settings, *kernel;
	const char *handle; /* NULL or "": the last label of path */
	struct instance_choice choice;
	struct instance_machine machine;
	int state;
	bool host_network;
	uint64_t created_at;
	pid_t pid;
	unsigned long long start_time;
};
int instance_adopt(struct instances *all, const struct instance_record *r, struct error *err);
/* Whether every instance that was adopted has told what it had, and its keeper was asked to go on
 * as this build where it was another one. */
bool instances_synced(struct instances *all);

#endif
