/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_MODEL_H
#define NACRE_POD_MODEL_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "base/text/id.h"
#include "base/text/parse.h"
#include "base/text/request.h"
#include "base/time/clock.h"
#include "cell/spec.h"
#include "instance/instance.h"
#include "loop/loop.h"
#include "pod/storage/volume.h"
#include "pod/workload/ids.h"

/*
 * A workload, the unit that a user runs: a pod (containers in an instance spawned for them), a cell
 * (containers in an instance that is there, or on the node), an executable (one plain process of
 * the node) or a vm (a machine with a system of the user's: pod/workload/hosted.h). Its containers
 * live in a keeper, which goes on while the daemon is away; this is the node's record of them.
 *
 * STARTING  recorded; its instance, root file systems and processes are being made.
 * RUNNING   every container was started, at least one still runs.
 * STOPPING  told to stop; some containers have not ended yet.
 * EXITED    every container has ended. Its instance or cell is taken down in the background.
 * FAILED    it did not start, or its keeper ended: `reason`. Taken down likewise.
 * REMOVING  being removed; freed at the end of that.
 * CREATED   its files are there, and nothing else: it waits to be started (pod/restart/again.h).
 *
 * A workload that is EXITED, FAILED or CREATED can be started (again): STARTING, with the files
 * that it has.
 */
enum workload_state {
	WORKLOAD_STARTING,
	WORKLOAD_RUNNING,
	WORKLOAD_STOPPING,
	WORKLOAD_EXITED,
	WORKLOAD_FAILED,
	WORKLOAD_REMOVING,
	WORKLOAD_CREATED, /* behind those that have ended: nothing of it lives either */
	WORKLOAD_STATE_COUNT
};

enum workload_kind {
	WORKLOAD_POD,
	WORKLOAD_CELL,
	WORKLOAD_EXECUTABLE,
	WORKLOAD_VM,
	WORKLOAD_KIND_COUNT
};

#define WORKLOAD_CONTAINERS_MAX 64
#define WORKLOADS_MAX 4096
#define WORKLOAD_REASON_MAX 512

/* When a workload that has ended is started again by itself (pod/restart/restart.h). */
enum restart_policy {
	RESTART_NO,
	RESTART_ON_FAILURE,
	RESTART_ALWAYS,
	RESTART_UNLESS_STOPPED,
	RESTART_POLICY_COUNT
};

struct restart_rule {
	enum restart_policy policy;
	unsigned max; /* restarts in a row of RESTART_ON_FAILURE; 0: any number */
};

/* The health of a container by its probes (pod/workload/health.h). */
enum health_status {
	HEALTH_NONE, /* it is not probed */
	HEALTH_STARTING,
	HEALTH_HEALTHY,
	HEALTH_UNHEALTHY,
	HEALTH_STATUS_COUNT
};

struct pod_container;
struct workload;
struct workloads;
struct attachment;
struct etc_wish;
struct networks;
struct foreign;
struct foreigns;
struct metadata_ops;
struct network_metadata;
struct network_namespace;
struct mirrors;
struct image;
struct health;
struct health_ops;
struct clouds;
struct hosted_cloud;
struct hosted_ops;
struct hosted_wish;
struct image_store;
struct volumes;
struct root_store;
struct run_store;
struct pool;
struct events;

struct workloads_config {
	struct loop *loop;
	struct pool *pool;
	struct instances *instances;
	struct foreigns *foreigns; /* NULL: no machine can be made */
	struct clouds *clouds;     /* NULL: nor one in a cloud */
	struct networks *networks;
	struct image_store *images;
	struct volumes *volumes;
	struct run_store *store;
	struct root_store *kept; /* pod/restart/reboot.h; NULL: nothing is kept over a reboot */
	struct events *events;
	struct volume_guard guard;
	struct mirrors *mirrors; /* made by workloads_new() */
	struct ids_space ids;    /* not owned */
	int logs_fd;             /* directory of log files: ID/NAME.log */
	int sets_fd;             /* of sets of secrets (volumes/secrets.h); -1: there are none */
	struct log_policy log;
	uint64_t container_limit; /* pod_container.disk where nobody says; 0: none */
	/* Starts w again, as its policy wants it: by workload_start(), or restart_failed() tells
	 * why not. Not called before workloads_resume(). */
	void (*restart)(void *userdata, struct workload *w);
	/* The same for one container: by container_start(), or container_restart_failed(). */
	void (*restart_container)(void *userdata, struct pod_container *c);
	const struct health_ops *health; /* NULL: nothing is probed */
	void *userdata;
	/* Opens the log of a container that has_own_log and is in an instance with a kernel of its
	 * own, for a daemon that comes later; sandbox_give_log() tells. NULL: nobody can. */
	int (*open_log)(void *userdata, struct pod_container *c, struct error *err);
	void *open_log_userdata;
	const struct metadata_ops *metadata; /* pod/networks/metadata.h; NULL: nobody has one */
	void *metadata_userdata;
};

/* The space that files take on the disk (pod/storage/disk_watch.h). */
struct disk_written {
	uint64_t limit; /* 0: none */
	uint64_t bytes;
	nsec_t at; /* clock_real() of when that was measured; 0: it was not yet */
};

/*
 * How far a container of a sandbox has come, beside what its keeper says (status.state, which is
 * CONTAINER_STARTING in the first three).
 *
 * ROOT      recorded; what its root file system lies upon is being made.
 * FILES     its files are to be made when the loop turns.
 * CREATED   it waits to be started.
 * STARTED   its keeper was asked to start it. Any container that came with its workload.
 * REMOVING  its keeper was asked to forget it.
 * REMOVED   and has; freed when the loop turns.
 */
enum pod_container_phase {
	POD_CONTAINER_STARTED,
	POD_CONTAINER_ROOT,
	POD_CONTAINER_FILES,
	POD_CONTAINER_CREATED,
	POD_CONTAINER_REMOVING,
	POD_CONTAINER_REMOVED,
};

/* The events of other containers that one waits for: a bit for each container (1 << its index). */
struct pod_requires {
	uint64_t started, healthy, completed;
};
static_assert(WORKLOAD_CONTAINERS_MAX <= 64, "a bit for each container");

/* The metadata service of a workload (pod/networks/metadata.h). */
enum workload_metadata {
	WORKLOAD_METADATA_UNKNOWN, /* its request was not looked at yet */
	WORKLOAD_METADATA_NONE,
	WORKLOAD_METADATA_WANTED,
	WORKLOAD_METADATA_SERVED,
};

/* A container as the node knows it. */
struct pod_container {
	struct workload *workload;
	unsigned position; /* among those that its workload has ever had */
	char id[ID_SIZE];
	char name[NAME_LABEL_MAX + 1];
	char *image_name; /* as the user said it; "" for an executable */
	char *image_id;
	struct image *image; /* held, or NULL */
	char **argv;         /* until it was started */
	char **env;
	char *cwd;
	char *user;
	char *command;       /* for people */
	uint64_t created_at; /* as that of its workload */
	bool stdin_open, tty;
	struct terminal_size terminal; /* until it was started */
	bool hold_output;
	struct container_mount *mounts; /* fds.n_mounts of them, until it was started */
	size_t n_mounts;
	char **volumes;     /* ids of the node's volumes that it has; NULL: none */
	char **shares;      /* names of the shares that it has (pod/storage/shares.h); NULL: none */
	char **own_volumes; /* those of them that were made for it: anonymous ones; NULL: none */
	struct image_mount *image_mounts; /* pod/storage/image_mounts.h */
	size_t n_image_mounts;
	bool read_only_root;
	uint64_t disk; /* bytes that its layer may take, until it was started; 0: no limit */
	char **limits; /* isolate/cgroup/limits_words.h, until it was started; NULL: none */
	bool new_proc; /* container_spec.new_proc, likewise */
	struct container_security security; /* until it was started */
	char **hidden, **read_only;         /* struct container_masks, likewise */
	struct buf filter;                  /* struct container_filter, likewise */
	unsigned filter_flags;
	/* The rest of its request, in the words of the API that was called
	 * (runtime/start/settings.h); "": nothing that is not in the other members. */
	char *settings;
	struct container_status status;
	pid_t host_pid;                    /* as the daemon sees it, once asked for */
	struct process_identity *identity; /* likewise (pod_container_identity()); NULL: not yet */
	bool has_rootfs;
	struct disk_written written; /* its layer, with the files of its own in it */
	bool paused;                 /* its processes are stopped (pod/workload/pause.h) */
	uint64_t names;     /* checksum of its block in /etc/hosts (pod/networks/names.h); or 0 */
	bool has_old_names; /* its /etc/hosts is out of date, as it could not be written */
	bool seen;          /* its keeper has spoken of it in this life of the daemon */
	bool is_init;       /* it runs to its end before others begin (pod/workload/order.h) */
	bool is_debug;      /* it came to look at another one (pod/workload/sandbox.h) */
	struct pod_requires requires; /* likewise: of those that come before it */
	bool ending;                  /* a sidecar that is stopped, as nobody needs it any more */
	/* Its start again alone (pod/restart/container_restart.h). */
	struct restart_rule restart; /* its own; RESTART_NO: none */
	unsigned restart_count;      /* restarts by its policy since somebody started it */
	nsec_t restart_delay;        /* before the last of them; 0: there was none */
	uint64_t restart_at;         /* clock_real() of the next one; 0: none is due */
	bool restarting;             /* it is being started */
	bool stopped;    /* somebody stopped it: its policy rests until somebody starts it */
	bool stays;      /* it has run: its log goes on */
	uint64_t ran_at; /* status.started_at of its last run; 0: there was none */
	struct loop_timer again;          /* until restart_at */
	struct health *health;            /* NULL: it has no check, or did not run yet */
	enum health_status health_status; /* kept with its record */
	bool starting;            /* its keeper was asked to start it and has not answered */
	bool unanswered;          /* and will not: status.reason is how the call ended */
	bool late;                /* and is still to get its descriptors */
	struct container_fds fds; /* until they were handed to the keeper */
	/* In an instance with a kernel of its own (pod/workload/remote.h). */
	char serial[INSTANCE_SERIAL_SIZE]; /* of the disk with its image */
	bool has_disk;                     /* it is one of those who use it */
	bool awaits_disk;                  /* of a sandbox: it is on its way */
	int log_fd;                        /* of has_own_log, until it is taken; -1: none */
	bool awaits_log;                   /* that is being opened */
	bool log_begun;                    /* something of it may be in there */
	struct log_pull *log;              /* that is being taken; NULL: it is not */
	bool log_over;                     /* all of it was */
	uint64_t log_dropped;              /* bytes of it that could not be written here; a part of
					      status.log_lost */
	/* Of a sandbox (pod/workload/sandbox.h). */
	enum pod_container_phase phase;
	bool is_leaving;  /* it is removed as soon as it has ended */
	bool has_own_log; /* its log is a file of whoever asked for it, not ours */
	nsec_t stop_by;   /* clock_mono(): it is killed then; 0: nobody stops it */
	struct loop_timer stop;
	struct error *failed; /* why it could not be made, or started; NULL: nothing failed */
};

struct workload {
	struct list link; /* in order of creation */
	struct workloads *all;
	char id[ID_SIZE];
	char path[NAME_PATH_MAX + 1];
	/* Its name for its keeper and its cgroups: the last label of the path that it was started
	 * with, unless a workload that was renamed since has that (pod/workload/rename.h). */
	char handle[NAME_LABEL_MAX + 1];
	enum workload_kind kind;
	enum workload_state state;
	char reason[WORKLOAD_REASON_MAX];
	char request[REQUEST_KEY_SIZE]; /* that it was made for, or "" */
	const char *network;            /* a word of the API */
	/* Of its user namespace: for as long as it is there, over all its starts. count 0: none. */
	struct isolate_ids ids;
	/* On a network of the node, with further ones behind it (attachment.next); NULL: it is on
	 * none. */
	struct attachment *attachment;
	char net_of[ID_SIZE]; /* the pod whose network namespace it has; "": it has its own */
	/* Of a cell, made before its keeper hears of it; NULL once it has started. */
	struct network_namespace *netns;
	struct plug_change
		*change; /* of these, while it runs (pod/networks/connect.h); NULL: none */
	enum workload_metadata metadata;
	struct network_metadata *metadata_making; /* its sockets; NULL: they are not being made */
	bool has_names;                /* it is, or was, on one: its files name who is beside it */
	bool plug_failed;              /* `refused` says why, if there was memory for it */
	bool pausing;                  /* a call pauses it, or lets it go on */
	bool keep_due, kept;           /* pod/restart/reboot.h */
	bool save_due;                 /* its record is to be written when the loop turns */
	struct etc_wish *etc;          /* until it was started; NULL: nothing */
	struct instance_choice choice; /* of the instance that is made for a pod */
	char *comment;                 /* NULL: none */
	bool auto_remove;
	bool drops_volumes; /* the volumes that were made for it go with it (pod/storage/volumes.h)
			     */
	bool drops_failed;  /* it goes where its first start fails (RunPodRequest.remove_failed) */
	bool dropped;       /* it did, and it goes */
	bool stays; /* it has files of its own: one that cannot be started is as it was before */
	struct restart_rule restart;
	unsigned restart_count; /* restarts by its policy since somebody started it */
	uint64_t restart_at;    /* clock_real() of the next one; 0: none is due */
	bool restarting;        /* its policy, or that of its health, starts it: it is being
				   stopped first, or what it mounts is being opened */
	bool restart_missed;    /* the last restart came to nothing */
	bool stopped;           /* somebody stopped it: its policy rests until somebody starts it */
	/* A sandbox: it lives until it is stopped, and its containers come and go
	 * (pod/workload/sandbox.h). */
	bool lasts;
	uint64_t created_at;
	struct instance *instance; /* NULL once it is gone */
	struct pod_container **containers;
	size_t n_containers;
	struct disk_written log_written; /* the logs of all its containers */
	uint64_t grown; /* bytes that both had more than when they were measured before */
	char **limits;  /* as those of a container, of its own group */
	char *settings; /* likewise */

	/* Private to this area. */
	struct error *failed; /* the error that kept it from running; NULL: none is known */
	struct error
		*refused;   /* why nothing like it can be here; NULL: nothing of it was refused */
	size_t n_starting;  /* containers that are `starting` */
	size_t n_removing;  /* containers that are POD_CONTAINER_REMOVING */
	unsigned n_ever;    /* containers that it has ever had */
	bool has_roots;     /* the lower layers of their root file systems were asked for */
	size_t n_roots;     /* containers whose lower layers are not there yet */
	bool create_only;   /* it is CREATED when its files are there */
	bool prepare_due;   /* its files are to be made when the loop turns */
	bool late_due;      /* they are there, and are given once its network is there */
	bool start_due;     /* to be started when the loop turns */
	bool asked;         /* the keeper was asked to start its containers */
	nsec_t stop_by;     /* clock_mono(): a stop that goes on kills it then; 0: none does */
	unsigned n_kills;   /* how often its containers were killed */
	bool killed;        /* whatever has not ended is killed */
	bool awaits_keeper; /* instance_create() has not called back */
	struct list shares; /* struct pod_share */
	size_t n_shares;
	size_t n_disks; /* and shares, that were asked for and are not there yet */
	bool has_disks;
	void (*on_disks)(struct workload *w);
	struct error disk_error; /* why one could not be had; code 0: none was missed */
	bool volumes_dropped;    /* that was begun */
	struct list volumes_leaving;
	bool taken_down; /* nothing of it lives in a keeper any more */
	bool image_job_down;
	bool adopted;
	struct foreign *machine;             /* of kind vm; NULL: it has not begun, or is gone */
	struct hosted_cloud *cloud;          /* its end of one in a cloud; NULL: it is in none */
	struct hosted_wish *wish;            /* its specification, until it is up */
	const struct hosted_ops *hosted_ops; /* of kind vm (pod/workload/hosted.h) */
	struct loop_timer timer;
	struct loop_timer again;  /* until restart_at */
	nsec_t restart_delay;     /* before the last restart; 0: there was none */
	nsec_t restart_next;      /* before the one that is due */
	struct loop_timer answer; /* while a container is `unanswered` */
	struct loop_defer defer;
	struct list waiters;
};

/* Nothing of it runs: it has ended, or was not started yet. */
static inline bool workload_has_ended(const struct workload *w)
{
	return w->state >= WORKLOAD_EXITED;
}

/* In an instance with a kernel of its own. */
static inline bool workload_is_remote(const struct workload *w)
{
	return w->instance && instance_is_remote(w->instance);
}

/* It was not started yet. */
static inline bool pod_container_is_created(const struct pod_container *c)
{
	return c->phase >= POD_CONTAINER_ROOT && c->phase <= POD_CONTAINER_CREATED;
}

static inline bool pod_container_has_ended(const struct pod_container *c)
{
	return c->status.state >= CONTAINER_EXITED;
}

/* An init container that runs on beside the others (pod/workload/order.h). */
static inline bool pod_container_is_sidecar(const struct pod_container *c)
{
	return c->is_init && c->restart.policy == RESTART_ALWAYS;
}

const char *restart_policy_word(enum restart_policy policy);
/* RESTART_POLICY_COUNT: it is none. */
enum restart_policy restart_policy_of(const char *word);
/* "starting", "healthy", "unhealthy"; "" for HEALTH_NONE. */
const char *health_word(enum health_status status);
const char *workload_state_word(enum workload_state state);
const char *workload_kind_word(enum workload_kind kind);
const char *pod_container_state_word(const struct pod_container *c);
/* The exit code of its first container that could not be started, or else of the first that did not
 * end with 0. */
int workload_exit_code(const struct workload *w);

/* By name; "" is the only one. NULL with err. */
struct pod_container *workload_container(struct workload *w, const char *name, struct error *err);
/* Its keeper, NULL where there is none to ask. */
struct peer *workload_peer(const struct workload *w);
/* It is why its workload did not come to run: it could not be started, or is an init container that
 * has failed. False where that had another reason. */
bool pod_container_is_to_blame(const struct pod_container *c);
/* The pid of its first process as the daemon sees it; 0 where none runs. */
pid_t pod_container_pid(struct pod_container *c);
/* The same in the answer to its start: what the kernel says of the number that its keeper has told
 * a moment ago. Nothing is remembered. */
pid_t pod_container_pid_told(struct pod_container *c);
/* The user and groups of its first process when this was first asked for, with the ids inside its
 * own user namespace; NULL: it did not run then, or could not be read. Of a container that does not
 * run again. */
const struct process_identity *pod_container_identity(struct pod_container *c);
/* Its keeper has told it, since its kernel is another. */
void pod_container_tell_identity(struct pod_container *c, const struct process_identity *told);

/* The paths of the groups of a cell's workload and of a container below base_fd, where group is
 * that of the instance ("." : base_fd is it). -ENAMETOOLONG. */
int workload_group(const struct workload *w, int base_fd, const char *group, char *ret,
		   size_t size);
int pod_container_group(const struct pod_container *c, int base_fd, const char *group, char *ret,
			size_t size);

/* The whole path of that of a container, which the caller frees; NULL where it is not known, or
 * there is no memory. */
char *pod_container_whole_group(const struct pod_container *c);

/* err NULL for success. w is NULL where it was removed meanwhile. */
typedef void (*workload_fn)(void *userdata, struct workload *w, const struct error *err);

#endif
